#include "ymir/tune/data/bert_text.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "ymir/base/result.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

char32_t next_code_point(std::string_view text, std::size_t& at) {
  char32_t c = kReplacement;
  at += std::max<std::size_t>(decode_utf8(text.substr(at), c), 1);
  return c;
}

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

bool is_punctuation(char32_t c) {
  if (c < 0x80) return c > 0x20 && c < 0x7f && u_isalnum(signed_point(c)) == 0;
  // The two changed their category after Unicode 8.
  if (c == 0x166D || c == 0x111C9) return true;
  return u_ispunct(signed_point(c)) != 0 && known_to_unicode_8(c);
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

// Letters that got a lower case after the Unicode version of some ICU in use (72 knows 15.0); the
// reference knows 17.
char32_t newer_lower(char32_t c) {
  if (c >= 0x10D50 && c <= 0x10D65) return c + 0x20;
  if (c >= 0x16EA0 && c <= 0x16EB8) return c + 0x1B;
  switch (c) {
    case 0xA7CB:
      return 0x0264;
    case 0xA7DC:
      return 0x019B;
    case 0x1C89:
    case 0xA7CC:
    case 0xA7CE:
    case 0xA7D2:
    case 0xA7D4:
    case 0xA7DA:
      return c + 1;
    default:
      return c;
  }
}

void append_lower(std::string& out, char32_t c) {
  if (c == 0x130) {  // the one letter whose lower case is two code points
    out += "i\xCC\x87";
    return;
  }
  const auto lower = static_cast<char32_t>(u_tolower(signed_point(c)));
  append_utf8(out, lower == c ? newer_lower(c) : lower);
}

std::string clean(std::string_view text, bool drop_controls, bool space_cjk) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (drop_controls && (c == 0 || c == kReplacement || is_control(c))) continue;
    if (drop_controls && is_white_space(c)) {
      out += ' ';
    } else if (space_cjk && is_cjk(c)) {
      out += ' ';
      append_utf8(out, c);
      out += ' ';
    } else {
      append_utf8(out, c);
    }
  }
  return out;
}

// Canonical decomposition without the non-spacing marks. What Unicode 8 does not know is left
// alone and stops the reordering of marks.
std::string without_accents(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* nfd = icu::Normalizer2::getNFDInstance(status);
  YMIR_CHECK(U_SUCCESS(status), "ICU has no normalisation data");
  std::string out;
  icu::UnicodeString run;
  const auto flush = [&] {
    const icu::UnicodeString decomposed = nfd->normalize(run, status);
    for (int i = 0; i < decomposed.length(); i = decomposed.moveIndex32(i, 1)) {
      const auto c = static_cast<char32_t>(decomposed.char32At(i));
      if (!is_accent(c)) append_utf8(out, c);
    }
    run.remove();
  };
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (c < 0x80 || known_to_unicode_8(c)) {
      run.append(signed_point(c));
      continue;
    }
    flush();
    append_utf8(out, c);
  }
  flush();
  return out;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

std::string BertNormalizer::normalize(std::string_view text) const {
  std::string out = clean(text, clean_text, handle_chinese_chars);
  const bool ascii = is_ascii(out);
  if (!ascii && strip_accents.value_or(lowercase)) out = without_accents(out);
  if (!lowercase) return out;
  if (ascii) {
    for (char& c : out)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
  }
  std::string lower;
  lower.reserve(out.size());
  for (std::size_t at = 0; at < out.size();) append_lower(lower, next_code_point(out, at));
  return lower;
}

std::vector<std::string_view> split_bert_words(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t begin = 0;  // of the word that is being read
  const auto end_word = [&](std::size_t end) {
    if (end > begin) words.push_back(text.substr(begin, end - begin));
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t c = next_code_point(text, at);
    const bool blank = is_white_space(c);
    if (!blank && !is_punctuation(c)) continue;
    end_word(start);
    if (!blank) words.push_back(text.substr(start, at - start));
    begin = at;
  }
  end_word(text.size());
  return words;
}

bool is_white_space(char32_t c) { return u_isUWhiteSpace(signed_point(c)) != 0; }

bool is_word_character(char32_t c) {
  constexpr std::uint32_t kWord = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  return u_isUAlphabetic(signed_point(c)) != 0 ||
         (U_MASK(u_charType(signed_point(c))) & kWord) != 0 ||
         u_hasBinaryProperty(signed_point(c), UCHAR_JOIN_CONTROL) != 0;
}

std::optional<char32_t> last_code_point(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80)
    --at;
  char32_t c = kReplacement;
  return decode_utf8(text.substr(at), c) == text.size() - at ? c : kReplacement;
}

std::optional<char32_t> first_code_point(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::size_t at = 0;
  return next_code_point(text, at);
}

int count_code_points(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace ymir
