// The first byte picks format and encoding, the rest is a data file: rows and faults, never a
// crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ymir/base/text.h"
#include "ymir/tune/data/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const char* const kFormats[] = {"csv", "tsv", "jsonl", "json", "lines"};
  ymir::ReadOptions options;
  options.format = kFormats[data[0] % 5];
  if ((data[0] & 0x40) != 0) options.encoding = "latin-1";
  if ((data[0] & 0x80) != 0) {
    options.header = "no";
    options.columns = {{"text", "0"}, {"label", "1"}};
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto table = ymir::read_table(bytes, "f", options);
  if (!table) return 0;
  for (const ymir::TextRow& row : table->rows) {
    YMIR_CHECK(!ymir::trim(row.text).empty() && !row.label.empty(), "an empty field got through");
    YMIR_CHECK(ymir::valid_utf8(row.text) && ymir::valid_utf8(row.label), "bad UTF-8 got through");
    YMIR_CHECK(row.line >= 1 && row.label_line >= row.line, "a row without a place");
  }
  YMIR_CHECK(table->faults.kept().size() <= 20u * 16, "more faults than are told");
  return 0;
}
