#include "ymir/tune/trainer/metrics.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "ymir/tune/metrics/classification.h"
#include "ymir/tune/metrics/regression.h"
#include "ymir/tune/metrics/text_metrics.h"

namespace ymir {
namespace {

using Values = std::map<std::string, double>;

void put(Values& into, const char* name, const std::optional<double>& value) {
  if (value) into[name] = *value;
}

void class_metrics(const Outcomes& o, Values& into) {
  ConfusionCounts counts(static_cast<std::size_t>(o.outputs));
  for (std::int64_t row = 0; row < o.rows(); ++row)
    counts.add(o.classes[static_cast<std::size_t>(row)], o.predicted(row));
  put(into, "accuracy", counts.accuracy());
  put(into, "f1_micro", counts.f1(Average::kMicro));
  put(into, "f1_macro", counts.f1(Average::kMacro));
  put(into, "f1", o.outputs == 2 ? counts.f1_of(1) : counts.f1(Average::kMacro));
  put(into, "mcc", counts.matthews());
}

void multi_label_metrics(const Outcomes& o, Values& into) {
  const auto width = static_cast<std::size_t>(o.outputs);
  MultiLabelCounts counts(width);
  const auto actual = std::make_unique<bool[]>(width), said = std::make_unique<bool[]>(width);
  for (std::size_t first = 0; first < o.values.size(); first += width) {
    for (std::size_t c = 0; c < width; ++c) {
      actual[c] = o.values[first + c] > 0.5f;
      said[c] = o.scores[first + c] > 0;
    }
    counts.add({actual.get(), width}, {said.get(), width});
  }
  put(into, "accuracy", counts.exact());
  put(into, "f1_micro", counts.f1(Average::kMicro));
  put(into, "f1_macro", counts.f1(Average::kMacro));
  put(into, "f1", counts.f1(Average::kMicro));
}

void regression_metrics(const Outcomes& o, Values& into) {
  std::vector<double> predicted, actual;
  for (std::size_t row = 0; row < o.values.size(); ++row) {
    predicted.push_back(o.scores[row * static_cast<std::size_t>(o.outputs)]);
    actual.push_back(o.values[row]);
  }
  put(into, "mse", mean_squared_error(predicted, actual));
  put(into, "pearson", pearson(predicted, actual));
  put(into, "spearman", spearman(predicted, actual));
}

void answer_metrics(const Outcomes& o, Values& into) {
  Bleu bleu;
  Rouge rouge;
  ExactMatch match;
  for (std::size_t row = 0; row < o.written.size(); ++row) {
    const std::span<const std::string> wanted(&o.wanted[row], 1);
    bleu.add(o.written[row], wanted);
    rouge.add(o.written[row], wanted);
    match.add(o.written[row], wanted);
  }
  if (const auto score = bleu.score()) into["bleu"] = *score / 100;
  if (const auto mean = rouge.mean()) {
    into["rouge_1"] = mean->rouge1;
    into["rouge_2"] = mean->rouge2;
    into["rouge_l"] = mean->rouge_l;
  }
  put(into, "exact_match", match.exact());
  put(into, "answer_f1", match.f1());
}

}  // namespace

std::int32_t Outcomes::predicted(std::int64_t row) const {
  const auto first = scores.begin() + row * outputs;
  return static_cast<std::int32_t>(std::max_element(first, first + outputs) - first);
}

bool Outcomes::finite() const {
  return std::isfinite(loss_sum) &&
         std::ranges::all_of(scores, [](float score) { return std::isfinite(score); });
}

std::map<std::string, double> compute_metrics(const Outcomes& o) {
  Values metrics;
  if (o.rows() == 0 || !o.finite()) return metrics;
  metrics["loss"] = o.loss_sum / static_cast<double>(o.rows());
  switch (o.kind) {
    case TaskKind::kClassify:
      class_metrics(o, metrics);
      break;
    case TaskKind::kMultiLabel:
      multi_label_metrics(o, metrics);
      break;
    case TaskKind::kRegress:
      regression_metrics(o, metrics);
      break;
    case TaskKind::kLanguageModel: {
      Perplexity perplexity;
      perplexity.add(o.loss_sum, o.labels);
      put(metrics, "perplexity", perplexity.value());
      if (!o.written.empty()) answer_metrics(o, metrics);
      break;
    }
  }
  std::erase_if(metrics, [](const auto& entry) { return !std::isfinite(entry.second); });
  return metrics;
}

}  // namespace ymir
