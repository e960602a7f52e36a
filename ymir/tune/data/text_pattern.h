// TextPattern: the patterns of a tokenizer.json, a plain text or a regular expression as Oniguruma
// reads it (which the Hugging Face library uses), carried out by ICU. What the two understand
// differently is translated; what is not known to mean the same is refused by name. Immutable; any
// thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/data/aligned_text.h"

namespace ymir {

class TextPattern {
 public:
  static TextPattern literal(std::string_view text);  // not empty
  static Result<TextPattern> expression(std::string_view regex);

  // The matches from left to right and what lies between them: together the whole text.
  std::vector<Segment> find(std::string_view text) const;

 private:
  struct Compiled;
  std::string literal_;
  std::shared_ptr<const Compiled> regex_;  // none: the literal counts
};

// The expression in ICU's notation. Refuses back references, repetitions within repeated groups,
// named classes and every escape it does not know.
Result<std::string> icu_expression(std::string_view oniguruma);

// What becomes of the matches when a text is cut at them.
enum class CutBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
// The segments that stay, in order; is_match has no meaning afterwards.
std::vector<Segment> cut(const std::vector<Segment>& found, CutBehavior behavior);
// Each code point that `is_delimiter` is a match of its own.
template <class Predicate>
std::vector<Segment> find_characters(std::string_view text, Predicate is_delimiter) {
  std::vector<Segment> found;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (!is_delimiter(take_code_point(text, at))) continue;
    if (begin > done) found.push_back({done, begin, false});
    found.push_back({begin, at, true});
    done = at;
  }
  if (done < text.size()) found.push_back({done, text.size(), false});
  return found;
}

}  // namespace ymir
