// The normalizers of a tokenizer.json: each rewrites a text before it is cut into words. Values;
// any thread. To add one: a struct, a case in normalize(), a case in tokenizer_parts.cc.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "ymir/tune/data/aligned_text.h"
#include "ymir/tune/data/bert_text.h"
#include "ymir/tune/data/text_pattern.h"
#include "ymir/tune/data/unicode.h"

namespace ymir {

struct LowerCase {};
struct StripAccents {};  // drops every combining mark
struct ReplaceText {
  TextPattern pattern;
  std::string content{};
};
struct PrependText {
  std::string text{};
};
struct StripBlanks {
  bool left = true, right = true;
};
// SentencePiece's rule for control characters and odd blanks.
struct CleanBlanks {};
// Each byte becomes the printable character that byte-level vocabularies write it as.
struct SpellBytes {};

using Normalizer = std::variant<BertNormalizer, NormalForm, LowerCase, StripAccents, ReplaceText,
                                PrependText, StripBlanks, CleanBlanks, SpellBytes>;

void normalize(AlignedText& text, const Normalizer& how);
void normalize(AlignedText& text, const std::vector<Normalizer>& steps);

// The character that stands for a byte in byte-level vocabularies: itself where it is printable and
// no blank, else one from U+0100 on.
char32_t byte_character(unsigned char byte);
void spell_bytes(AlignedText& text);

}  // namespace ymir
