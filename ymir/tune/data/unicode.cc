#include "ymir/tune/data/unicode.h"

#include <fmt/format.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "ymir/base/result.h"
#include "ymir/base/text.h"
#include "ymir/tune/data/unicode_changes.h"

namespace ymir {
namespace {

// The reference's normal forms are those of Unicode 9: what came later has no decomposition, no
// combining class and is no mark.
constexpr int kNormalizationVersion = 9;

UChar32 signed_point(char32_t c) { return static_cast<UChar32>(c); }

bool known_since(char32_t c, int version) {
  if (c < 0x80) return true;
  UVersionInfo age{};
  u_charAge(signed_point(c), age);
  return age[0] >= 1 && age[0] <= version;
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

using Changes = std::vector<AlignedText::Change>;

std::uint8_t combining_class(char32_t c) {
  if (c < 0x300 || !known_since(c, kNormalizationVersion)) return 0;
  return u_getCombiningClass(signed_point(c));
}

const icu::Normalizer2& normalizer(bool compatible) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* found = compatible ? icu::Normalizer2::getNFKCInstance(status)
                                             : icu::Normalizer2::getNFCInstance(status);
  YMIR_CHECK(U_SUCCESS(status), "ICU has no normalisation data");
  return *found;
}

// Puts marks that follow one another in the order of their classes; `from` is the first of them.
void sort_marks(Changes& out, std::size_t from) {
  std::stable_sort(out.begin() + static_cast<std::ptrdiff_t>(from), out.end(),
                   [](const auto& a, const auto& b) {
                     return combining_class(a.character) < combining_class(b.character);
                   });
}

Changes decompose(const std::string& text, bool compatible) {
  const icu::Normalizer2& form = normalizer(compatible);
  Changes out;
  std::size_t marks = 0;  // where the marks at the end of `out` begin
  const auto put = [&](char32_t c, int change) {
    if (combining_class(c) == 0) {
      sort_marks(out, marks);
      out.push_back({c, change});
      marks = out.size();
    } else {
      out.push_back({c, change});
    }
  };
  icu::UnicodeString parts;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = take_code_point(text, at);
    if (c < 0xA0 || !known_since(c, kNormalizationVersion) ||
        !form.getDecomposition(signed_point(c), parts)) {
      put(c, 0);
      continue;
    }
    for (int i = 0; i < parts.length(); i = parts.moveIndex32(i, 1))
      put(static_cast<char32_t>(parts.char32At(i)), i == 0 ? 0 : 1);
  }
  sort_marks(out, marks);
  return out;
}

std::optional<char32_t> composed(char32_t a, char32_t b) {
  if (a < 0x3C || b < 0x300) return std::nullopt;
  const UChar32 c = normalizer(false).composePair(signed_point(a), signed_point(b));
  if (c < 0 || !known_since(static_cast<char32_t>(c), kNormalizationVersion)) return std::nullopt;
  return static_cast<char32_t>(c);
}

// The canonical composition of what was decomposed.
Changes compose(const Changes& parts) {
  Changes out;
  std::ptrdiff_t starter = -1;  // in `out`; -1: none yet
  int last_class = -1;          // of what lies between the starter and here; -1: nothing does
  for (const AlignedText::Change& part : parts) {
    const int its_class = combining_class(part.character);
    if (starter >= 0 && (last_class < 0 || last_class < its_class)) {
      AlignedText::Change& first = out[static_cast<std::size_t>(starter)];
      if (const auto one = composed(first.character, part.character)) {
        first = {*one, first.change + part.change - 1};
        continue;
      }
    }
    out.push_back(part);
    if (its_class == 0) {
      starter = static_cast<std::ptrdiff_t>(out.size()) - 1;
      last_class = -1;
    } else {
      last_class = its_class;
    }
  }
  return out;
}

}  // namespace

bool is_white_space(char32_t c) { return u_isUWhiteSpace(signed_point(c)) != 0; }

bool is_word_character(char32_t c) {
  constexpr std::uint32_t kWord = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  return u_isUAlphabetic(signed_point(c)) != 0 ||
         (U_MASK(u_charType(signed_point(c))) & kWord) != 0 ||
         u_hasBinaryProperty(signed_point(c), UCHAR_JOIN_CONTROL) != 0;
}

bool is_number(char32_t c) {
  if ((U_MASK(u_charType(signed_point(c))) & U_GC_N_MASK) != 0) return true;
  return std::ranges::any_of(kCategoryChanges, [c](const CategoryChange& change) {
    return change.first <= c && c <= change.last && change.category[0] == 'N';
  });
}

bool is_combining_mark(char32_t c) {
  if (c < 0x300) return false;
  // Changed after Unicode 9: the first two were marks then, the last was not.
  if (c == 0x1CF2 || c == 0x1CF3) return true;
  if (c == 0x111C9) return false;
  return (U_MASK(u_charType(signed_point(c))) & U_GC_M_MASK) != 0 &&
         known_since(c, kNormalizationVersion);
}

std::optional<char32_t> last_code_point(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80)
    --at;
  char32_t c = kReplacementCharacter;
  return decode_utf8(text.substr(at), c) == text.size() - at ? c : kReplacementCharacter;
}

std::optional<char32_t> first_code_point(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::size_t at = 0;
  return take_code_point(text, at);
}

int count_code_points(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void normalize(AlignedText& text, NormalForm form) {
  if (is_ascii(text.text())) return;
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  Changes changes = decompose(text.text(), compatible);
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) changes = compose(changes);
  text.rewrite(changes);
}

void lower_case(AlignedText& text) {
  if (is_ascii(text.text())) return text.lower_ascii();
  Changes changes;
  for (std::size_t at = 0; at < text.text().size();) {
    const char32_t c = take_code_point(text.text(), at);
    if (c == 0x130) {  // the one letter whose lower case is two code points
      changes.push_back({'i', 0});
      changes.push_back({0x307, 1});
      continue;
    }
    const auto lower = static_cast<char32_t>(u_tolower(signed_point(c)));
    changes.push_back({lower == c ? newer_lower(c) : lower, 0});
  }
  text.rewrite(changes);
}

std::optional<std::string> category_set(std::string_view name) {
  static constexpr std::array<std::string_view, 34> kNames = {
      "L",  "M",  "N",  "P",  "S",  "Z",  "Lu", "Ll", "Lt", "Lm", "Lo", "Mn",
      "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
      "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"};
  if (std::ranges::find(kNames, name) == kNames.end()) return std::nullopt;
  // What ICU has, without what changed or came later than the reference, and with its changes.
  std::string changed, added;
  for (const CategoryChange& change : kCategoryChanges) {
    const std::string range =
        fmt::format("\\U{:08X}-\\U{:08X}", std::uint32_t{change.first}, std::uint32_t{change.last});
    changed += range;
    if (std::string_view(change.category).starts_with(name)) added += range;
  }
  return fmt::format("[[\\p{{{}}}&&\\p{{Age=16.0}}]--[{}]]{}", name, changed, added);
}

}  // namespace ymir
