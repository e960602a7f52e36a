// Lines between ymird, agent and worker: orders one way, reports the other.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ymir/core/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto action = ymir::decode_action(text)) {
    const std::string line = ymir::encode_line(*action);
    const auto again = ymir::decode_action(line);
    if (!again || ymir::encode_line(*again) != line) std::abort();
  }
  if (const auto report = ymir::decode_report(text)) {
    const std::string line = ymir::encode_line(*report);
    const auto again = ymir::decode_report(line);
    if (!again || ymir::encode_line(*again) != line) std::abort();
  }
  return 0;
}
