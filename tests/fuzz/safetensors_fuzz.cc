// A safetensors file from anywhere: parsed or refused, every view inside the bytes.
#include <cstddef>
#include <cstdint>
#include <span>

#include "ymir/tune/checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto content = ymir::parse_safetensors(bytes);
  if (!content) return 0;
  for (const auto& [name, view] : content->tensors) {
    const bool inside = view.bytes.empty() ||
                        (view.bytes.data() >= bytes.data() &&
                         view.bytes.data() + view.bytes.size() <= bytes.data() + bytes.size());
    YMIR_CHECK(inside, "tensor outside the file: " + name);
    static_cast<void>(ymir::to_f32(view));
  }
  return 0;
}
