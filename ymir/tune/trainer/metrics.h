// Metrics of a whole evaluation set, computed once from every row's outputs: no averages of
// averages, no padding rows. An undefined metric (correlation with a constant) is absent from the
// result: never best, never a target reached. Equal to scikit-learn and SciPy on the stored cases
// of the test. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ymir/core/job.h"

namespace ymir {

struct Outcomes {
  TaskKind kind = TaskKind::kClassify;
  int outputs = 0;                      // columns of scores: classes, or 1
  std::vector<float> scores{};          // rows x outputs: logits, or the predicted value
  std::vector<std::int32_t> classes{};  // classify: the true class of each row
  std::vector<float> values{};          // regress: the true value of each row
  double loss_sum = 0;
  std::vector<std::string> written{},
      wanted{};             // language model: answers, where they were asked for
  std::int64_t labels = 0;  // language model: tokens to be learnt, what the loss is the mean over

  std::int64_t rows() const {
    if (kind == TaskKind::kLanguageModel) return labels;
    if (kind == TaskKind::kMultiLabel && outputs > 0)
      return static_cast<std::int64_t>(values.size()) / outputs;
    return static_cast<std::int64_t>(kind == TaskKind::kClassify ? classes.size() : values.size());
  }
  std::int32_t predicted(std::int64_t row) const;  // the first of the highest scores
  bool finite() const;                             // loss and scores
};

// Classification: accuracy, f1 (of class 1 when there are two, else the macro mean), f1_macro,
// f1_micro, mcc. Multi-label (true where the logit is above 0): accuracy of whole rows, f1_micro,
// f1_macro. Regression: mse, pearson, spearman. Language model: perplexity, and of answers bleu (0
// to 1), rouge_1, rouge_2, rouge_l, exact_match, answer_f1. All: loss (mean). Of outcomes that are
// not finite none at all: an evaluation of NaN is never the best and reaches no target.
std::map<std::string, double> compute_metrics(const Outcomes& outcomes);

}  // namespace ymir
