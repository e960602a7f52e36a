// BERT's text rules, torch-free and stateless: normalisation (clean, space out CJK, strip accents,
// lower-case) and the split into words and punctuation, code point for code point as the Hugging
// Face library has them. That library's character classes are those of Unicode 8, so characters
// assigned later count as unassigned here too, whatever ICU knows. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ymir {

struct BertNormalizer {
  bool clean_text = true;               // drop control characters, every blank becomes a space
  bool handle_chinese_chars = true;     // a space before and after each CJK ideograph
  std::optional<bool> strip_accents{};  // none: as `lowercase`
  bool lowercase = true;

  // UTF-8 in and out. Bytes that are not UTF-8 count as U+FFFD.
  std::string normalize(std::string_view text) const;
};

// The words of `text`: split at white space, each punctuation character a word of its own. The
// views point into `text`.
std::vector<std::string_view> split_bert_words(std::string_view text);

// Unicode's White_Space; what a regular expression's \w matches. The code point that ends (begins)
// `text`, or nothing when it is empty.
bool is_white_space(char32_t c);
bool is_word_character(char32_t c);
std::optional<char32_t> last_code_point(std::string_view text);
std::optional<char32_t> first_code_point(std::string_view text);
// How many code points the text has.
int count_code_points(std::string_view text);

}  // namespace ymir
