// BERT's text rules, torch-free and stateless: normalisation (clean, space out CJK, strip accents,
// lower-case) and the split into words and punctuation, code point for code point as the Hugging
// Face library has them. That library's character classes are those of Unicode 8, so characters
// assigned later count as unassigned here too, whatever ICU knows. Any thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ymir/tune/data/aligned_text.h"

namespace ymir {

struct BertNormalizer {
  bool clean_text = true;               // drop control characters, every blank becomes a space
  bool handle_chinese_chars = true;     // a space before and after each CJK ideograph
  std::optional<bool> strip_accents{};  // none: as `lowercase`
  bool lowercase = true;

  void normalize(AlignedText& text) const;
};

// The words of `text`: split at white space, each punctuation character a word of its own. The
// views point into `text`.
std::vector<std::string_view> split_bert_words(std::string_view text);
bool is_bert_punctuation(char32_t c);

}  // namespace ymir
