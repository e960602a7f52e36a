#include "ymir/tune/data/text_pattern.h"

#include <fmt/format.h>
#include <unicode/regex.h>
#include <unicode/utext.h>

#include <algorithm>

#include "ymir/base/text.h"
#include "ymir/tune/data/unicode.h"

namespace ymir {
namespace {

constexpr std::size_t kMaxExpression = 1 << 16;
// Oniguruma's \s is White_Space, ICU's is not.
constexpr std::string_view kSpace =
    R"(\t-\r\u0020\u0085\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F)"
    R"(\u205F\u3000)";

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

bool is_ascii_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Rewrites an expression from left to right.
class Translator {
 public:
  explicit Translator(std::string_view text) : text_(text) {}

  Result<std::string> translate() {
    while (at_ < text_.size()) YMIR_TRY(take());
    if (!groups_.empty()) return fault("a group is not closed");
    return std::move(out_);
  }

 private:
  // What was put out last: decides what a repetition may follow.
  enum class Last { kNothing, kAtom, kRepeatingGroup, kRepetition };

  Error fault(std::string_view what) const {
    return refused(fmt::format("regular expression: {} at {}: {}", what, at_ + 1, fit(text_, 60)));
  }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  Result<> take() {
    const char c = peek();
    switch (c) {
      case '\\':
        return take_escape(false);
      case '[':
        last_ = Last::kAtom;
        return take_class();
      case '(':
        return open_group();
      case ')':
        return close_group();
      case '*':
      case '+':
      case '?':
        return take_repetition(false);
      case '{':
        return take_repetition(true);
      case '|':
        last_ = Last::kNothing;
        break;
      case '^':
      case '$':
        last_ = Last::kNothing;
        break;
      case '}':
      case ']':
        out_ += '\\';
        [[fallthrough]];
      default:
        last_ = Last::kAtom;
    }
    return copy();
  }
  Result<> copy() {
    const std::size_t begin = at_;
    take_code_point(text_, at_);
    out_ += text_.substr(begin, at_ - begin);
    return Ok{};
  }

  Result<> open_group() {
    static constexpr std::string_view kKnown[] = {
        "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?i:", "(?>"};
    std::string_view opening = "(";
    if (peek(1) == '?') {
      const auto rest = text_.substr(at_);
      const auto* known = std::ranges::find_if(
          kKnown, [rest](std::string_view one) { return rest.starts_with(one); });
      if (known == std::end(kKnown)) return fault("a kind of group that is not supported");
      opening = *known;
    }
    if (groups_.size() >= 32) return fault("more than 32 groups within one another");
    out_ += opening;
    at_ += opening.size();
    groups_.push_back(false);
    last_ = Last::kNothing;
    return Ok{};
  }
  Result<> close_group() {
    if (groups_.empty()) return fault("a group closes that was not opened");
    const bool repeats = groups_.back();
    groups_.pop_back();
    if (repeats && !groups_.empty()) groups_.back() = true;
    last_ = repeats ? Last::kRepeatingGroup : Last::kAtom;
    return copy();
  }

  // A repetition of a group that repeats could take time without end on some text.
  Result<> take_repetition(bool counted) {
    const bool optional = !counted && peek() == '?';
    if (last_ == Last::kNothing) return fault("a repetition of nothing");
    if (last_ == Last::kRepetition) return fault("a repetition of a repetition");
    if (last_ == Last::kRepeatingGroup && !optional)
      return fault("a repetition within a repeated group");
    if (counted) {
      const auto end = text_.find('}', at_);
      const auto inside = end == std::string_view::npos ? "" : text_.substr(at_ + 1, end - at_ - 1);
      const auto comma = inside.find(',');
      const auto low = parse_int(inside.substr(0, comma));
      const bool open = comma != std::string_view::npos && comma + 1 == inside.size();
      const auto high =
          comma == std::string_view::npos || open ? low : parse_int(inside.substr(comma + 1));
      if (!low || !high || *low < 0 || *high < *low || *high > 1000)
        return fault("a count that is not {n}, {n,} or {n,m} up to 1000");
      out_ += text_.substr(at_, end + 1 - at_);
      at_ = end + 1;
    } else {
      YMIR_TRY(copy());
    }
    if (!groups_.empty() && !optional) groups_.back() = true;
    last_ = Last::kRepetition;
    if (peek() == '+' && counted) return fault("+ after a count");  // the two read it differently
    if (peek() == '+' || peek() == '?') return copy();
    return Ok{};
  }

  // \p{L}, \P{Lu}, \p{^Nd}: the set and whether it is the complement.
  Result<std::string> take_property(bool complement) {
    const auto end = text_.find('}', at_);
    if (peek() != '{' || end == std::string_view::npos) return fault("\\p without {...}");
    std::string_view name = text_.substr(at_ + 1, end - at_ - 1);
    if (name.starts_with('^')) {
      complement = !complement;
      name.remove_prefix(1);
    }
    const auto set = category_set(name);
    if (!set) return fault(fmt::format("the property {} is not supported", fit(name, 20)));
    at_ = end + 1;
    return fmt::format("[{}{}]", complement ? "^" : "", *set);
  }

  // Oniguruma counts the superscripts and fractions of Latin-1 too.
  static std::string word_set(bool complement) {
    return fmt::format("[{}\\p{{Alphabetic}}\\u00B2\\u00B3\\u00B9\\u00BC-\\u00BE{}{}{}{}{}]",
                       complement ? "^" : "", *category_set("L"), *category_set("M"),
                       *category_set("Nd"), *category_set("Nl"), *category_set("Pc"));
  }

  Result<> take_escape(bool in_class) {
    ++at_;
    if (at_ >= text_.size()) return fault("a \\ at the end");
    last_ = Last::kAtom;
    const char c = peek();
    if (c == 'p' || c == 'P') {
      ++at_;
      YMIR_TRY_ASSIGN(const std::string set, take_property(c == 'P'));
      out_ += set;
      return Ok{};
    }
    if (c == 's' || c == 'S') {
      out_ += fmt::format("[{}{}]", c == 'S' ? "^" : "", kSpace);
    } else if (c == 'd' || c == 'D') {
      out_ += fmt::format("[{}{}]", c == 'D' ? "^" : "", *category_set("Nd"));
    } else if (c == 'w' || c == 'W') {
      out_ += word_set(c == 'W');
    } else if (c == 'n' || c == 'r' || c == 't' || c == 'f') {
      out_ += {'\\', c};
    } else if (c == 'v') {
      out_ += "\\u000B";
    } else if (!in_class && (c == 'A' || c == 'z' || c == 'b' || c == 'B')) {
      if (c == 'b' || c == 'B') return fault("\\b is not supported");
      out_ += {'\\', c};
      last_ = Last::kNothing;
    } else if (c == 'x' || c == 'u') {
      return take_code(c);
    } else if (is_ascii_letter_or_digit(c)) {
      return fault(fmt::format("\\{} is not supported", c));
    } else {
      if (static_cast<unsigned char>(c) < 0x80) out_ += '\\';
      return copy();
    }
    ++at_;
    return Ok{};
  }
  Result<> take_code(char kind) {
    const bool braces = kind == 'x' && peek(1) == '{';
    const std::size_t begin = at_ + (braces ? 2 : 1);
    std::size_t end = begin;
    const std::size_t most = braces ? 6 : kind == 'u' ? 4 : 2;
    while (end < text_.size() && end - begin < most &&
           std::isxdigit(static_cast<unsigned char>(text_[end])))
      ++end;
    const bool closed = !braces || (end < text_.size() && text_[end] == '}');
    if (end == begin || (kind == 'u' && end - begin != 4) || !closed)
      return fault("a code that is not hexadecimal");
    const auto code = std::stoul(std::string(text_.substr(begin, end - begin)), nullptr, 16);
    if (code > 0x10FFFF || (kind == 'x' && !braces && code >= 0x80))
      return fault("a code that is no character");
    out_ += fmt::format("\\U{:08X}", code);
    at_ = end + (braces ? 1 : 0);
    return Ok{};
  }

  Result<> take_class() {
    if (++depth_ > 8) return fault("more than 8 classes within one another");
    out_ += '[';
    ++at_;
    if (peek() == '^') YMIR_TRY(copy());
    for (bool first = true;; first = false) {
      if (at_ >= text_.size()) return fault("a class is not closed");
      const char c = peek();
      if (c == ']' && !first) break;
      if (c == '[') {
        if (peek(1) == ':') return fault("a named class such as [:alpha:]");
        YMIR_TRY(take_class());
      } else if (c == '\\') {
        YMIR_TRY(take_escape(true));
      } else if (c == '&' && peek(1) == '&') {
        out_ += "&&";
        at_ += 2;
      } else if (c == '-' && !first && peek(1) != ']') {
        YMIR_TRY(copy());  // a range
      } else {
        // Everything that could mean something to ICU is written so that it doesn't.
        if (static_cast<unsigned char>(c) < 0x80 && !is_ascii_letter_or_digit(c)) out_ += '\\';
        YMIR_TRY(copy());
      }
    }
    --depth_;
    return copy();
  }

  std::string_view text_;
  std::string out_;
  std::size_t at_ = 0;
  std::vector<bool> groups_;  // the open ones; whether something in them repeats
  int depth_ = 0;             // of classes
  Last last_ = Last::kNothing;
};

// Appends a match and what lies before it.
void append_match(std::vector<Segment>& found, std::size_t& done, std::size_t begin,
                  std::size_t end) {
  if (begin > done) found.push_back({done, begin, false});
  found.push_back({begin, end, true});
  done = end;
}

}  // namespace

Result<std::string> icu_expression(std::string_view oniguruma) {
  if (oniguruma.empty() || oniguruma.size() > kMaxExpression)
    return refused(fmt::format("regular expression: it has {} bytes, 1 to {} are allowed",
                               oniguruma.size(), kMaxExpression));
  if (!valid_utf8(oniguruma) || oniguruma.find('\0') != std::string_view::npos)
    return refused("regular expression: it is not text");
  return Translator(oniguruma).translate();
}

struct TextPattern::Compiled {
  std::unique_ptr<icu::RegexPattern> pattern{};
};

TextPattern TextPattern::literal(std::string_view text) {
  YMIR_CHECK(!text.empty(), "an empty pattern");
  TextPattern pattern;
  pattern.literal_ = text;
  return pattern;
}

Result<TextPattern> TextPattern::expression(std::string_view regex) {
  YMIR_TRY_ASSIGN(const std::string translated, icu_expression(regex));
  UErrorCode status = U_ZERO_ERROR;
  UParseError place{};
  auto compiled = std::make_shared<Compiled>();
  compiled->pattern.reset(icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(translated),
                                                     UREGEX_MULTILINE | UREGEX_UNIX_LINES, place,
                                                     status));
  if (U_FAILURE(status) || compiled->pattern == nullptr)
    return refused(fmt::format("regular expression: {}: {}", u_errorName(status), fit(regex, 60)));
  TextPattern pattern;
  pattern.regex_ = std::move(compiled);
  return pattern;
}

std::vector<Segment> TextPattern::find(std::string_view text) const {
  std::vector<Segment> found;
  std::size_t done = 0;
  if (regex_ == nullptr) {
    for (std::size_t at = 0; (at = text.find(literal_, at)) != std::string_view::npos; at = done)
      append_match(found, done, at, at + literal_.size());
  } else {
    UErrorCode status = U_ZERO_ERROR;
    UText input = UTEXT_INITIALIZER;
    utext_openUTF8(&input, text.data(), static_cast<std::int64_t>(text.size()), &status);
    const std::unique_ptr<icu::RegexMatcher> matcher(regex_->pattern->matcher(status));
    YMIR_CHECK(U_SUCCESS(status), "ICU has no memory for a matcher");
    matcher->reset(&input);
    matcher->setStackLimit(0, status);  // what is repeated is bounded by the text
    while (matcher->find(status) && U_SUCCESS(status)) {
      const auto begin = static_cast<std::size_t>(matcher->start64(status));
      const auto end = static_cast<std::size_t>(matcher->end64(status));
      if (begin == end && begin == done && !found.empty()) continue;  // right after a match
      append_match(found, done, begin, end);
    }
    utext_close(&input);
  }
  if (done < text.size()) found.push_back({done, text.size(), false});
  return found;
}

std::vector<Segment> cut(const std::vector<Segment>& found, CutBehavior behavior) {
  std::vector<Segment> kept;
  if (behavior == CutBehavior::kRemoved) {
    std::ranges::copy_if(found, std::back_inserter(kept),
                         [](const Segment& s) { return !s.is_match; });
    return kept;
  }
  if (behavior == CutBehavior::kIsolated) return found;
  if (behavior == CutBehavior::kMergedWithNext) {
    bool previous = false;
    for (auto segment = found.rbegin(); segment != found.rend(); ++segment) {
      if (segment->is_match && !previous && !kept.empty())
        kept.back().begin = segment->begin;
      else
        kept.push_back(*segment);
      previous = segment->is_match;
    }
    std::ranges::reverse(kept);
    return kept;
  }
  bool previous = false;
  for (const Segment& segment : found) {
    const bool joins = behavior == CutBehavior::kContiguous ? segment.is_match == previous
                                                            : segment.is_match && !previous;
    if (joins && !kept.empty())
      kept.back().end = segment.end;
    else
      kept.push_back(segment);
    previous = segment.is_match;
  }
  return kept;
}

}  // namespace ymir
