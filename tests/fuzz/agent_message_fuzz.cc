// Messages between ymird and its agents, either way: what is read is written the same again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ymir/cluster/agent_protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto message = ymir::decode_message(text);
  if (!message) return 0;
  const std::string line = ymir::encode_message(*message);
  const auto again = ymir::decode_message(line);
  if (!again || ymir::encode_message(*again) != line) std::abort();
  return 0;
}
