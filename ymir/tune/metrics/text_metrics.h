// Metrics of generated text against references: BLEU as sacrebleu (13a tokens, exponential
// smoothing), ROUGE as rouge-score (no stemmer), exact match and token F1 as SQuAD's script. Counts
// are integers (BLEU) or exact sums, so order and grouping of the rows do not matter; merge() joins
// what several ranks counted. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/tune/metrics/exact_sum.h"

namespace ymir {

// mteval-v13a's tokens: entities resolved, punctuation apart, full stops and commas apart except
// between digits.
std::vector<std::string> tokens_13a(std::string_view text);

// Corpus BLEU, 0 to 100.
class Bleu {
 public:
  static constexpr std::size_t kOrder = 4;
  void add(std::string_view hypothesis, std::span<const std::string> references);  // one or more
  void merge(const Bleu& other);
  std::optional<double> score() const;  // nullopt before the first row
  std::int64_t hypothesis_length() const { return hypothesis_length_; }
  std::int64_t reference_length() const { return reference_length_; }

 private:
  std::array<std::int64_t, kOrder> correct_{}, total_{};
  std::int64_t hypothesis_length_ = 0, reference_length_ = 0, rows_ = 0;
};

// Runs of a-z and 0-9 of the lower-cased text.
std::vector<std::string> rouge_tokens(std::string_view text);

struct RougeValues {
  double rouge1 = 0, rouge2 = 0, rouge_l = 0;  // F-measures, 0 to 1
};
RougeValues rouge_of(std::string_view hypothesis, std::string_view reference);

// The mean over rows; of several references the one that fits best counts, for each measure alone.
class Rouge {
 public:
  void add(std::string_view hypothesis, std::span<const std::string> references);
  void merge(const Rouge& other);
  std::optional<RougeValues> mean() const;

 private:
  ExactSum rouge1_, rouge2_, rouge_l_;
  std::int64_t rows_ = 0;
};

// Lower case, without ASCII punctuation and the words a, an, the; blanks single.
std::string normalized_answer(std::string_view text);
// The share of tokens of the normalised texts that they have in common, as F1; 1 when both are
// empty.
double answer_f1(std::string_view hypothesis, std::string_view reference);

class ExactMatch {
 public:
  void add(std::string_view hypothesis, std::span<const std::string> references);
  void merge(const ExactMatch& other);
  std::optional<double> exact() const;  // share of rows equal to a reference, normalised; 0 to 1
  std::optional<double> f1() const;     // mean over rows of the best reference's answer_f1

 private:
  std::int64_t rows_ = 0, matches_ = 0;
  ExactSum f1_;
};

}  // namespace ymir
