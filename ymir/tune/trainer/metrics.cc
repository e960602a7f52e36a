#include "ymir/tune/trainer/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace ymir {
namespace {

using Counts = std::vector<std::vector<double>>;  // [true][predicted]

Counts confusion(const Outcomes& o) {
  const auto n = static_cast<std::size_t>(o.outputs);
  Counts counts(n, std::vector<double>(n, 0));
  for (std::int64_t row = 0; row < o.rows(); ++row)
    counts[static_cast<std::size_t>(o.classes[static_cast<std::size_t>(row)])]
          [static_cast<std::size_t>(o.predicted(row))] += 1;
  return counts;
}

double f1_of(const Counts& c, std::size_t label) {
  double predicted = 0, actual = 0;
  for (std::size_t i = 0; i < c.size(); ++i) {
    predicted += c[i][label];
    actual += c[label][i];
  }
  return predicted + actual == 0 ? 0 : 2 * c[label][label] / (predicted + actual);
}

// The mean runs over labels that occur, true or predicted, as in scikit-learn.
double f1_macro(const Counts& c) {
  double sum = 0;
  int labels = 0;
  for (std::size_t label = 0; label < c.size(); ++label) {
    double seen = 0;
    for (std::size_t i = 0; i < c.size(); ++i) seen += c[i][label] + c[label][i];
    if (seen == 0) continue;
    sum += f1_of(c, label);
    ++labels;
  }
  return labels == 0 ? 0 : sum / labels;
}

// Gorodkin's R_K; 0 when either side is constant.
double matthews(const Counts& c) {
  double correct = 0, total = 0, cross = 0, predicted_square = 0, actual_square = 0;
  for (std::size_t k = 0; k < c.size(); ++k) {
    double predicted = 0, actual = 0;
    for (std::size_t i = 0; i < c.size(); ++i) {
      predicted += c[i][k];
      actual += c[k][i];
    }
    correct += c[k][k];
    total += actual;
    cross += predicted * actual;
    predicted_square += predicted * predicted;
    actual_square += actual * actual;
  }
  const double spread = (total * total - predicted_square) * (total * total - actual_square);
  return spread <= 0 ? 0 : (correct * total - cross) / std::sqrt(spread);
}

std::optional<double> pearson(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  if (x.size() < 2) return std::nullopt;
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - mean_x, dy = y[i] - mean_y;
    xy += dx * dy;
    xx += dx * dx;
    yy += dy * dy;
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return std::clamp(xy / std::sqrt(xx) / std::sqrt(yy), -1.0, 1.0);
}

// Ranks from 1; equal values share the mean of their ranks.
std::vector<double> ranks(const std::vector<double>& x) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return x[a] < x[b]; });
  std::vector<double> result(x.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    while (end < order.size() && x[order[end]] == x[order[i]]) ++end;
    const double mean = static_cast<double>(i + 1 + end) / 2;
    for (; i < end; ++i) result[order[i]] = mean;
  }
  return result;
}

void regression_metrics(const Outcomes& o, std::map<std::string, double>& into) {
  std::vector<double> predicted, actual;
  double square = 0;
  for (std::size_t row = 0; row < o.values.size(); ++row) {
    predicted.push_back(o.scores[row * static_cast<std::size_t>(o.outputs)]);
    actual.push_back(o.values[row]);
    square += (predicted.back() - actual.back()) * (predicted.back() - actual.back());
  }
  into["mse"] = square / static_cast<double>(actual.size());
  if (const auto r = pearson(predicted, actual)) into["pearson"] = *r;
  if (const auto r = pearson(ranks(predicted), ranks(actual))) into["spearman"] = *r;
}

// Labels that occur nowhere, true or predicted, count with F1 0, as in scikit-learn.
void multi_label_metrics(const Outcomes& o, std::map<std::string, double>& into) {
  const auto width = static_cast<std::size_t>(o.outputs);
  std::vector<double> both(width), either(width);
  double right = 0;
  for (std::size_t row = 0; row * width < o.values.size(); ++row) {
    bool all = true;
    for (std::size_t c = 0; c < width; ++c) {
      const bool truth = o.values[row * width + c] > 0.5f, said = o.scores[row * width + c] > 0;
      all = all && truth == said;
      both[c] += truth && said ? 1 : 0;
      either[c] += (truth ? 1 : 0) + (said ? 1 : 0);
    }
    right += all ? 1 : 0;
  }
  const auto f1 = [](double hits, double sum) { return sum == 0 ? 0 : 2 * hits / sum; };
  double macro = 0;
  for (std::size_t c = 0; c < width; ++c) macro += f1(both[c], either[c]);
  into["accuracy"] = right / static_cast<double>(o.rows());
  into["f1_macro"] = macro / static_cast<double>(width);
  into["f1_micro"] = f1(std::accumulate(both.begin(), both.end(), 0.0),
                        std::accumulate(either.begin(), either.end(), 0.0));
  into["f1"] = into["f1_micro"];
}

}  // namespace

std::int32_t Outcomes::predicted(std::int64_t row) const {
  const auto first = scores.begin() + row * outputs;
  return static_cast<std::int32_t>(std::max_element(first, first + outputs) - first);
}

std::map<std::string, double> compute_metrics(const Outcomes& o) {
  std::map<std::string, double> metrics;
  if (o.rows() == 0) return metrics;
  metrics["loss"] = o.loss_sum / static_cast<double>(o.rows());
  if (o.kind == TaskKind::kLanguageModel) {
    metrics["perplexity"] = std::exp(metrics["loss"]);
  } else if (o.kind == TaskKind::kMultiLabel) {
    multi_label_metrics(o, metrics);
  } else if (o.kind != TaskKind::kClassify) {
    regression_metrics(o, metrics);
  } else {
    const Counts counts = confusion(o);
    double correct = 0;
    for (std::size_t label = 0; label < counts.size(); ++label) correct += counts[label][label];
    metrics["accuracy"] = correct / static_cast<double>(o.rows());
    metrics["f1_micro"] = metrics["accuracy"];  // the same with one label a row
    metrics["f1_macro"] = f1_macro(counts);
    metrics["f1"] = o.outputs == 2 ? f1_of(counts, 1) : metrics["f1_macro"];
    metrics["mcc"] = matthews(counts);
  }
  std::erase_if(metrics, [](const auto& entry) { return !std::isfinite(entry.second); });
  return metrics;
}

}  // namespace ymir
