#include "ymir/tune/data/normalizer.h"

#include <array>

namespace ymir {
namespace {

std::array<char32_t, 256> make_byte_characters() {
  std::array<char32_t, 256> table{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool plain =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    table[byte] = plain ? byte : next++;
  }
  return table;
}

bool is_dropped_control(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
         c == 0x8F || c == 0x9F;
}

bool counts_as_blank(char32_t c) {
  switch (c) {
    case 0x09:
    case 0x0A:
    case 0x0C:
    case 0x0D:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x2581:
    case 0xFEFF:
    case 0xFFFD:
      return true;
    default:
      return c >= 0x200B && c <= 0x200F;
  }
}

struct Apply {
  AlignedText& text;

  void operator()(const BertNormalizer& how) const { how.normalize(text); }
  void operator()(NormalForm form) const { normalize(text, form); }
  void operator()(const LowerCase&) const { lower_case(text); }
  void operator()(const StripAccents&) const {
    if (!is_ascii(text.text())) text.keep_if([](char32_t c) { return !is_combining_mark(c); });
  }
  void operator()(const ReplaceText& how) const {
    text.replace(how.pattern.find(text.text()), how.content);
  }
  void operator()(const PrependText& how) const { text.prepend(how.text); }
  void operator()(const StripBlanks& how) const { text.strip(how.left, how.right); }
  void operator()(const CleanBlanks&) const {
    text.keep_if([](char32_t c) { return !is_dropped_control(c); });
    text.map([](char32_t c) { return counts_as_blank(c) ? U' ' : c; });
  }
  void operator()(const SpellBytes&) const { spell_bytes(text); }
};

}  // namespace

char32_t byte_character(unsigned char byte) {
  static const std::array<char32_t, 256> table = make_byte_characters();
  return table[byte];
}

void spell_bytes(AlignedText& text) {
  std::vector<AlignedText::Change> changes;
  changes.reserve(text.text().size());
  for (const char c : text.text()) {
    const auto byte = static_cast<unsigned char>(c);
    changes.push_back({byte_character(byte), (byte & 0xC0) == 0x80 ? 1 : 0});
  }
  text.rewrite(changes);
}

void normalize(AlignedText& text, const Normalizer& how) { std::visit(Apply{text}, how); }

void normalize(AlignedText& text, const std::vector<Normalizer>& steps) {
  for (const Normalizer& step : steps) normalize(text, step);
}

}  // namespace ymir
