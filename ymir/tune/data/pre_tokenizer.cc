#include "ymir/tune/data/pre_tokenizer.h"

#include <algorithm>

#include "ymir/tune/data/bert_text.h"
#include "ymir/tune/data/normalizer.h"
#include "ymir/tune/data/unicode.h"

namespace ymir {
namespace {

const TextPattern& gpt2_pattern() {
  static const TextPattern pattern = [] {
    auto made = TextPattern::expression(
        R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
    YMIR_CHECK(made, made ? "" : made.error().message);
    return *std::move(made);
  }();
  return pattern;
}

void append_slices(const AlignedText& text, const std::vector<Segment>& segments,
                   std::vector<AlignedText>& parts) {
  for (const Segment& segment : segments)
    if (segment.end > segment.begin) parts.push_back(text.slice(segment.begin, segment.end));
}

std::vector<Segment> find_words(std::string_view text) {
  std::vector<Segment> words;
  const auto kind_of = [](char32_t c) {
    return is_white_space(c) ? 0 : is_word_character(c) ? 1 : 2;
  };
  int kind = 0;  // of the run that is being read
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const int next = kind_of(take_code_point(text, at));
    if (next != 0 && next == kind)
      words.back().end = at;
    else if (next != 0)
      words.push_back({begin, at, false});
    kind = next;
  }
  return words;
}

// Appends what becomes of one part.
struct Split {
  AlignedText& text;
  std::vector<AlignedText>& parts;

  void at(const std::vector<Segment>& found, CutBehavior behavior) const {
    append_slices(text, cut(found, behavior), parts);
  }

  void operator()(const BertSplit&) const {
    for (const std::string_view word : split_bert_words(text.text())) {
      const auto begin = static_cast<std::size_t>(word.data() - text.text().data());
      parts.push_back(text.slice(begin, begin + word.size()));
    }
  }
  void operator()(const ByteLevelSplit& how) const {
    if (how.add_prefix_space && !text.text().starts_with(' ')) text.prepend(" ");
    const std::size_t before = parts.size();
    if (how.use_regex)
      at(gpt2_pattern().find(text.text()), CutBehavior::kIsolated);
    else
      parts.push_back(std::move(text));
    for (std::size_t i = before; i < parts.size(); ++i) spell_bytes(parts[i]);
  }
  void operator()(const MetaspaceSplit& how) const {
    text.replace(TextPattern::literal(" ").find(text.text()), how.replacement);
    const bool wanted = how.scheme == MetaspaceSplit::Scheme::kAlways ||
                        (how.scheme == MetaspaceSplit::Scheme::kFirst && text.start() == 0);
    if (wanted && !text.text().starts_with(how.replacement)) text.prepend(how.replacement);
    if (how.split)
      at(TextPattern::literal(how.replacement).find(text.text()), CutBehavior::kMergedWithNext);
    else
      parts.push_back(std::move(text));
  }
  void operator()(const PatternSplit& how) const {
    auto found = how.pattern.find(text.text());
    if (how.invert)
      for (Segment& segment : found) segment.is_match = !segment.is_match;
    at(found, how.behavior);
  }
  void operator()(const DigitSplit& how) const {
    at(find_characters(text.text(), is_number),
       how.individual ? CutBehavior::kIsolated : CutBehavior::kContiguous);
  }
  void operator()(const PunctuationSplit& how) const {
    at(find_characters(text.text(), is_bert_punctuation), how.behavior);
  }
  void operator()(const BlankSplit&) const {
    at(find_characters(text.text(), is_white_space), CutBehavior::kRemoved);
  }
  void operator()(const WordSplit&) const { append_slices(text, find_words(text.text()), parts); }
  void operator()(const CharacterSplit& how) const {
    at(find_characters(text.text(), [&how](char32_t c) { return c == how.delimiter; }),
       CutBehavior::kRemoved);
  }
};

}  // namespace

std::vector<AlignedText> pre_tokenize(AlignedText text, const std::vector<PreTokenizer>& steps) {
  std::vector<AlignedText> parts;
  if (!text.empty()) parts.push_back(std::move(text));
  for (const PreTokenizer& step : steps) {
    std::vector<AlignedText> next;
    for (AlignedText& part : parts) std::visit(Split{part, next}, step);
    std::erase_if(next, [](const AlignedText& part) { return part.empty(); });
    parts = std::move(next);
  }
  return parts;
}

bool needs_origins(const std::vector<PreTokenizer>& steps) {
  return std::ranges::any_of(steps, [](const PreTokenizer& step) {
    const auto* metaspace = std::get_if<MetaspaceSplit>(&step);
    return metaspace != nullptr && metaspace->scheme == MetaspaceSplit::Scheme::kFirst;
  });
}

}  // namespace ymir
