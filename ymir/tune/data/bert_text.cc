#include "ymir/tune/data/bert_text.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "ymir/tune/data/unicode.h"

namespace ymir {
namespace {

UChar32 signed_point(char32_t c) { return static_cast<UChar32>(c); }

bool known_to_unicode_8(char32_t c) {
  UVersionInfo age{};
  u_charAge(signed_point(c), age);
  return age[0] >= 1 && age[0] <= 8;
}

bool is_control(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  constexpr std::uint32_t kControl = U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK;
  return (U_MASK(u_charType(signed_point(c))) & kControl) != 0 && known_to_unicode_8(c);
}

bool is_accent(char32_t c) {
  if (c < 0x300) return false;
  // Changed after Unicode 8: the first was a mark then, the others were not.
  if (c == 0x1734) return true;
  if (c == 0x1885 || c == 0x1886 || c == 0xA9BD || c == 0x111C9) return false;
  return u_charType(signed_point(c)) == U_NON_SPACING_MARK && known_to_unicode_8(c);
}

bool is_cjk(char32_t c) {
  constexpr std::array<std::array<char32_t, 2>, 8> kRanges = {{{0x4E00, 0x9FFF},
                                                               {0x3400, 0x4DBF},
                                                               {0x20000, 0x2A6DF},
                                                               {0x2A700, 0x2B73F},
                                                               {0x2B740, 0x2B81F},
                                                               {0x2B920, 0x2CEAF},
                                                               {0xF900, 0xFAFF},
                                                               {0x2F800, 0x2FA1F}}};
  return c >= 0x3400 && std::ranges::any_of(kRanges, [c](const auto& range) {
           return range[0] <= c && c <= range[1];
         });
}

void space_out_cjk(AlignedText& text) {
  std::vector<AlignedText::Change> changes;
  bool any = false;
  for (std::size_t at = 0; at < text.text().size();) {
    const char32_t c = take_code_point(text.text(), at);
    if (is_cjk(c)) {
      changes.insert(changes.end(), {{U' ', 0}, {c, 1}, {U' ', 1}});
      any = true;
    } else {
      changes.push_back({c, 0});
    }
  }
  if (any) text.rewrite(changes);
}

}  // namespace

bool is_bert_punctuation(char32_t c) {
  if (c < 0x80) return c > 0x20 && c < 0x7f && u_isalnum(signed_point(c)) == 0;
  // The two changed their category after Unicode 8.
  if (c == 0x166D || c == 0x111C9) return true;
  return u_ispunct(signed_point(c)) != 0 && known_to_unicode_8(c);
}

void BertNormalizer::normalize(AlignedText& text) const {
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7F; };
  if (std::ranges::all_of(text.text(), is_plain)) {  // most text: only capitals may change
    if (lowercase) text.lower_ascii();
    return;
  }
  if (clean_text) {
    text.keep_if([](char32_t c) { return c != 0 && c != kReplacementCharacter && !is_control(c); });
    text.map([](char32_t c) { return is_white_space(c) ? U' ' : c; });
  }
  if (handle_chinese_chars) space_out_cjk(text);
  if (strip_accents.value_or(lowercase) && !is_ascii(text.text())) {
    ymir::normalize(text, NormalForm::kNfd);
    text.keep_if([](char32_t c) { return !is_accent(c); });
  }
  if (lowercase) lower_case(text);
}

std::vector<std::string_view> split_bert_words(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t begin = 0;  // of the word that is being read
  const auto end_word = [&](std::size_t end) {
    if (end > begin) words.push_back(text.substr(begin, end - begin));
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t c = take_code_point(text, at);
    const bool blank = is_white_space(c);
    if (!blank && !is_bert_punctuation(c)) continue;
    end_word(start);
    if (!blank) words.push_back(text.substr(start, at - start));
    begin = at;
  }
  end_word(text.size());
  return words;
}

}  // namespace ymir
