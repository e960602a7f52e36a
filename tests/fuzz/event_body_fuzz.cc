// Event bodies: a stored row of the log, and a whole event line. What decodes must encode to
// something that decodes to the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ymir/core/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto event = ymir::decode_event(text)) {
    const std::string line = ymir::encode_line(*event);
    const auto again = ymir::decode_event(line);
    if (!again || ymir::encode_line(*again) != line) std::abort();
  }
  const std::size_t space = text.find(' ');  // KIND BODY
  if (space == std::string_view::npos) return 0;
  if (const auto body = ymir::decode_body(text.substr(0, space), 1, text.substr(space + 1))) {
    const std::string json = ymir::encode_body(*body);
    const auto again = ymir::decode_body(ymir::kind_of(*body), 1, json);
    if (!again || ymir::encode_body(*again) != json) std::abort();
    ymir::Snapshot state;
    (void)state.allows(*body);
  }
  return 0;
}
