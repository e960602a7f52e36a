// The pre-tokenizers of a tokenizer.json: each cuts a text into parts that the model then sees one
// by one, and may rewrite them. Values; any thread. To add one: a struct, a case in
// pre_tokenizer.cc, a case in tokenizer_parts.cc.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "ymir/tune/data/aligned_text.h"
#include "ymir/tune/data/text_pattern.h"

namespace ymir {

struct BertSplit {};  // blanks go, each punctuation character is a part
struct ByteLevelSplit {
  bool add_prefix_space = true;
  bool use_regex = true;  // GPT-2's pattern; else the parts stay whole
};
struct MetaspaceSplit {
  enum class Scheme { kFirst, kNowhere, kAlways };
  std::string replacement = "\xE2\x96\x81";
  Scheme scheme = Scheme::kAlways;  // where a replacement is put before the part
  bool split = true;
};
struct PatternSplit {
  TextPattern pattern;
  CutBehavior behavior = CutBehavior::kIsolated;
  bool invert = false;
};
struct DigitSplit {
  bool individual = false;
};
struct PunctuationSplit {
  CutBehavior behavior = CutBehavior::kIsolated;
};
struct BlankSplit {};  // blanks go
struct WordSplit {};   // blanks go, runs of word characters and of others are parts
struct CharacterSplit {
  char32_t delimiter = ' ';
};

using PreTokenizer =
    std::variant<BertSplit, ByteLevelSplit, MetaspaceSplit, PatternSplit, DigitSplit,
                 PunctuationSplit, BlankSplit, WordSplit, CharacterSplit>;

// The parts of `text` that are not empty, in order.
std::vector<AlignedText> pre_tokenize(AlignedText text, const std::vector<PreTokenizer>& steps);
// Whether the parts depend on what they stand for in the original text.
bool needs_origins(const std::vector<PreTokenizer>& steps);

}  // namespace ymir
