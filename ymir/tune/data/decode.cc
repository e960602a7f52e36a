// Tokenizer::decode: ids back to text, by the way the vocabulary spells blanks and bytes.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "ymir/base/text.h"
#include "ymir/tune/data/tokenizer.h"
#include "ymir/tune/data/unicode.h"

namespace ymir {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kLowerBar = "\xE2\x96\x81";  // SentencePiece's blank

const std::map<char32_t, char>& spelled_bytes() {
  static const std::map<char32_t, char> table = [] {
    std::map<char32_t, char> made;
    for (int byte = 0; byte < 256; ++byte)
      made[byte_character(static_cast<unsigned char>(byte))] = static_cast<char>(byte);
    return made;
  }();
  return table;
}

// A byte-level token's bytes; one that is not spelled in bytes (an added token) is its own text.
std::string from_byte_level(std::string_view token) {
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const auto found = spelled_bytes().find(take_code_point(token, at));
    if (found == spelled_bytes().end()) return std::string(token);
    bytes += found->second;
  }
  return bytes;
}

// The byte of <0xNN>; -1 of any other token.
int byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return -1;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const bool digit = c >= '0' && c <= '9', letter = c >= 'A' && c <= 'F';
    if (!digit && !letter) return -1;
    value = value * 16 + (digit ? c - '0' : c - 'A' + 10);
  }
  return value;
}

// Bytes that came one a token: their text, or where they make none a U+FFFD for each.
std::string take_bytes(std::string& bytes) {
  const std::string run = std::exchange(bytes, {});
  if (valid_utf8(run)) return run;
  std::string text;
  for (std::size_t i = 0; i < run.size(); ++i) text += kReplacement;
  return text;
}

std::string from_piece(std::string_view token) {
  std::string text;
  while (!token.empty()) {
    const std::size_t bar = std::min(token.find(kLowerBar), token.size());
    text += token.substr(0, bar);
    if (bar == token.size()) break;
    text += ' ';
    token.remove_prefix(bar + kLowerBar.size());
  }
  return text;
}

}  // namespace

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  const bool byte_level = std::ranges::any_of(pre_tokenizers_, [](const PreTokenizer& step) {
    return std::holds_alternative<ByteLevelSplit>(step);
  });
  const bool words = std::holds_alternative<WordPiece>(model_);
  std::string text, bytes;
  bool first = true;
  for (const std::int32_t id : ids) {
    if (id < 0 || static_cast<std::size_t>(id) >= tokens_.size() ||
        special_[static_cast<std::size_t>(id)])
      continue;
    const std::string& token = tokens_[static_cast<std::size_t>(id)];
    if (byte_level) {
      text += from_byte_level(token);
    } else if (words) {
      const bool inside = token.starts_with("##");
      if (!first && !inside) text += ' ';
      text += inside && !first ? token.substr(2) : token;
    } else if (const int byte = byte_of(token); byte >= 0) {
      bytes += static_cast<char>(byte);
    } else {
      text += take_bytes(bytes) + from_piece(token);
    }
    first = false;
  }
  text += take_bytes(bytes);
  if (!byte_level && !words && text.starts_with(' ')) text.erase(0, 1);
  return repaired_utf8(text);
}

}  // namespace ymir
