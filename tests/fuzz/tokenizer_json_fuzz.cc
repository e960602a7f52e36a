// The first line is a text, the rest a tokenizer.json: refused, or it gives ids it says it knows.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ymir/tune/data/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto end = std::min(input.find('\n'), input.size());
  const std::string_view text = input.substr(0, end);
  const std::string_view file = input.substr(std::min(end + 1, input.size()));
  for (const bool json : {true, false}) {
    const auto tokenizer =
        json ? ymir::Tokenizer::parse(file, "") : ymir::Tokenizer::parse_vocabulary(file, "");
    if (!tokenizer) continue;
    const auto whole = tokenizer->encode(text);
    const auto cut = tokenizer->encode(text, 8);
    const auto pair = tokenizer->encode_pair(text, file.substr(0, 64), 8);
    for (const auto* encoding : {&whole, &cut, &pair}) {
      YMIR_CHECK(encoding->ids.size() == encoding->type_ids.size(), "ids and types differ");
      for (const std::int32_t id : encoding->ids)
        YMIR_CHECK(id >= 0 && id < tokenizer->vocabulary_size(), "an id beyond the vocabulary");
    }
    const auto placed = tokenizer->encode_with_offsets(text);
    YMIR_CHECK(placed.ids == whole.ids, "other ids with offsets");
    YMIR_CHECK(placed.offsets.size() == placed.ids.size(), "ids and offsets differ");
    for (const ymir::TextSpan& span : placed.offsets)
      YMIR_CHECK(span.begin <= span.end && span.end <= text.size(), "an offset outside the text");
    const auto limit = static_cast<std::size_t>(std::max(8, tokenizer->num_special(false)));
    YMIR_CHECK(cut.ids.size() <= limit, "not cut");
  }
  return 0;
}
