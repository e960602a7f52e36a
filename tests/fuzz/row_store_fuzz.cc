// A file of tokenised rows in the cache: every row can be read, or the file is made anew.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/file.h"
#include "ymir/base/temp_folder.h"
#include "ymir/tune/data/row_store.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ymir::TempFolder folder{"row_store_fuzz"};
  static const bool made = static_cast<bool>(ymir::make_folders(folder.path() + "/data"));
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  YMIR_CHECK(made && ymir::write_file(folder.path() + "/data/rows.ymirdata", bytes), "a full disk");
  const auto store =
      ymir::RowStore::open_or_build(folder.path(), "rows", []() -> ymir::Result<ymir::RowContent> {
        return ymir::Error{ymir::ErrorCode::kCorruption, "it would be made anew"};
      });
  if (!store) return 0;
  std::vector<std::int32_t> numbers;
  for (std::size_t row = 0; row < store->size(); ++row) {
    const auto pixels = store->pixels(row);
    YMIR_CHECK(pixels.empty() || pixels.size() == store->length(row), "pixels missing");
    if (pixels.empty()) {
      store->append_ids(row, numbers);
      store->append_type_ids(row, numbers);
    }
    static_cast<void>(store->place(row));
  }
  return 0;
}
