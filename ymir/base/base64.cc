#include "ymir/base/base64.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace ymir {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> kValues = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::int8_t>(i);
  return values;
}();

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t taken = bytes.size() - i < 3 ? bytes.size() - i : 3;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < taken ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      text.push_back(k <= taken ? kDigits[group >> (18 - 6 * k) & 63] : '=');
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return {};
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    const std::size_t padding = !last ? 0 : text[i + 2] == '=' ? 2 : text[i + 3] == '=' ? 1 : 0;
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const int value = k < 4 - padding      ? kValues[static_cast<unsigned char>(text[i + k])]
                        : text[i + k] == '=' ? 0
                                             : -1;
      if (value < 0) return {};
      group = group << 6 | static_cast<std::uint32_t>(value);
    }
    const std::uint32_t unused = padding == 0 ? 0 : padding == 1 ? 0xFFu : 0xFFFFu;
    if ((group & unused) != 0) return {};  // another text would give the same bytes
    for (std::size_t k = 0; k < 3 - padding; ++k)
      bytes.push_back(static_cast<char>(group >> (16 - 8 * k) & 0xFF));
  }
  return bytes;
}

}  // namespace ymir
