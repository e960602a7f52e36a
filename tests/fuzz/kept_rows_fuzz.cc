// A file of kept rows that another process wrote, or that rotted: rows of the right size, or none;
// what is written is read back.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/file.h"
#include "ymir/base/temp_folder.h"
#include "ymir/tune/data/kept_rows.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ymir::TempFolder folder{"kept_rows_fuzz"};
  static const std::string path = folder.path() + "/rows";
  constexpr std::array<std::int64_t, 4> kSizes = {2, 0, 3, 1};
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  YMIR_CHECK(static_cast<bool>(ymir::write_file(path, bytes)), "the file is there");
  // Enough for all, for some, for none.
  auto kept = ymir::KeptRows::open(path, kSizes, data[0]);
  if (!kept) return 0;
  for (std::size_t row = 0; row < kSizes.size(); ++row) {
    std::vector<float> numbers(static_cast<std::size_t>(kSizes[row]));
    kept->read(row, numbers);
    std::ranges::fill(numbers, 1.5f);
    if (!kept->write(row, numbers)) continue;
    std::vector<float> again(numbers.size());
    YMIR_CHECK(kept->read(row, again) && again == numbers, "a row that was written is there");
  }
  return 0;
}
