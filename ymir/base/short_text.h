// ShortText: a word of at most N characters that lies in the object itself, for the words in values
// of which a round makes many thousands: it is copied as bytes and never allocates. Read as a
// std::string_view; a longer word aborts, so input from outside is measured first.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>

#include "ymir/base/result.h"

namespace ymir {

template <std::size_t N>
class ShortText {
 public:
  static_assert(N < 128);
  ShortText() = default;
  ShortText(std::string_view text) {  // NOLINT: as good as a text
    YMIR_CHECK(text.size() <= N, "a word is too long");
    std::ranges::copy(text, chars_.begin());
    size_ = static_cast<char>(text.size());
  }
  template <class Text>
    requires std::convertible_to<const Text&, std::string_view>
  ShortText(const Text& text) : ShortText(std::string_view(text)) {}  // NOLINT

  operator std::string_view() const {  // NOLINT
    return {chars_.data(), static_cast<std::size_t>(size_)};
  }
  bool empty() const { return size_ == 0; }
  template <class Text>
    requires std::convertible_to<const Text&, std::string_view>
  friend bool operator==(const ShortText& a, const Text& b) {
    return std::string_view(a) == std::string_view(b);
  }

 private:
  std::array<char, N> chars_{};  // zeros behind the end
  char size_ = 0;
};

}  // namespace ymir
