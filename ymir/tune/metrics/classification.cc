#include "ymir/tune/metrics/classification.h"

#include <algorithm>
#include <cmath>

#include "ymir/base/result.h"

namespace ymir {
namespace {

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

double f1_from(std::int64_t hits, std::int64_t wrong) { return ratio(2 * hits, 2 * hits + wrong); }

}  // namespace

ConfusionCounts::ConfusionCounts(std::size_t num_classes)
    : num_classes_(num_classes), counts_(num_classes * num_classes, 0) {
  YMIR_CHECK(num_classes >= 1, "no classes");
}

void ConfusionCounts::add(std::int32_t actual, std::int32_t predicted) {
  const auto a = static_cast<std::size_t>(actual), p = static_cast<std::size_t>(predicted);
  YMIR_CHECK(a < num_classes_ && p < num_classes_, "a class that does not exist");
  ++counts_[a * num_classes_ + p];
  ++rows_;
}

void ConfusionCounts::merge(const ConfusionCounts& other) {
  YMIR_CHECK(other.num_classes_ == num_classes_, "other classes");
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  rows_ += other.rows_;
}

std::int64_t ConfusionCounts::count(std::size_t actual, std::size_t predicted) const {
  return counts_[actual * num_classes_ + predicted];
}

std::int64_t ConfusionCounts::actual(std::size_t label) const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < num_classes_; ++i) sum += count(label, i);
  return sum;
}

std::int64_t ConfusionCounts::predicted(std::size_t label) const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < num_classes_; ++i) sum += count(i, label);
  return sum;
}

std::optional<double> ConfusionCounts::accuracy() const {
  if (rows_ == 0) return std::nullopt;
  std::int64_t right = 0;
  for (std::size_t i = 0; i < num_classes_; ++i) right += count(i, i);
  return ratio(right, rows_);
}

std::optional<double> ConfusionCounts::f1_of(std::size_t label) const {
  if (rows_ == 0) return std::nullopt;
  const std::int64_t hits = count(label, label);
  return f1_from(hits, actual(label) + predicted(label) - 2 * hits);
}

std::optional<double> ConfusionCounts::precision_of(std::size_t label) const {
  if (rows_ == 0) return std::nullopt;
  return ratio(count(label, label), predicted(label));
}

std::optional<double> ConfusionCounts::recall_of(std::size_t label) const {
  if (rows_ == 0) return std::nullopt;
  return ratio(count(label, label), actual(label));
}

std::optional<double> ConfusionCounts::f1(Average average) const {
  if (rows_ == 0) return std::nullopt;
  if (average == Average::kMicro) return accuracy();  // the same with one label a row
  double sum = 0, weights = 0;
  for (std::size_t label = 0; label < num_classes_; ++label) {
    const std::int64_t rows = actual(label);
    if (rows + predicted(label) == 0) continue;
    const double weight = average == Average::kMacro ? 1 : static_cast<double>(rows);
    sum += weight * *f1_of(label);
    weights += weight;
  }
  return sum / weights;
}

std::optional<double> ConfusionCounts::matthews() const {
  if (rows_ == 0) return std::nullopt;
  double right = 0, cross = 0, actual_square = 0, predicted_square = 0;
  for (std::size_t k = 0; k < num_classes_; ++k) {
    const auto a = static_cast<double>(actual(k)), p = static_cast<double>(predicted(k));
    right += static_cast<double>(count(k, k));
    cross += a * p;
    actual_square += a * a;
    predicted_square += p * p;
  }
  const auto total = static_cast<double>(rows_);
  const double a_spread = total * total - actual_square,
               p_spread = total * total - predicted_square;
  if (a_spread <= 0 || p_spread <= 0) return 0;
  return (right * total - cross) / std::sqrt(a_spread * p_spread);
}

MultiLabelCounts::MultiLabelCounts(std::size_t num_labels) : labels_(num_labels) {
  YMIR_CHECK(num_labels >= 1, "no labels");
}

void MultiLabelCounts::add(std::span<const bool> actual, std::span<const bool> predicted) {
  YMIR_CHECK(actual.size() == labels_.size() && predicted.size() == labels_.size(),
             "another number of labels");
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    labels_[i].hit += actual[i] && predicted[i] ? 1 : 0;
    labels_[i].false_alarm += !actual[i] && predicted[i] ? 1 : 0;
    labels_[i].miss += actual[i] && !predicted[i] ? 1 : 0;
  }
  exact_rows_ += std::ranges::equal(actual, predicted) ? 1 : 0;
  ++rows_;
}

void MultiLabelCounts::merge(const MultiLabelCounts& other) {
  YMIR_CHECK(other.labels_.size() == labels_.size(), "other labels");
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    labels_[i].hit += other.labels_[i].hit;
    labels_[i].false_alarm += other.labels_[i].false_alarm;
    labels_[i].miss += other.labels_[i].miss;
  }
  rows_ += other.rows_;
  exact_rows_ += other.exact_rows_;
}

std::optional<double> MultiLabelCounts::exact() const {
  if (rows_ == 0) return std::nullopt;
  return ratio(exact_rows_, rows_);
}

std::optional<double> MultiLabelCounts::f1(Average average) const {
  if (rows_ == 0) return std::nullopt;
  if (average == Average::kMicro) {
    Label all;
    for (const Label& label : labels_) {
      all.hit += label.hit;
      all.false_alarm += label.false_alarm;
      all.miss += label.miss;
    }
    return f1_from(all.hit, all.false_alarm + all.miss);
  }
  double sum = 0, weights = 0;
  for (const Label& label : labels_) {
    const double weight =
        average == Average::kMacro ? 1 : static_cast<double>(label.hit + label.miss);
    sum += weight * f1_from(label.hit, label.false_alarm + label.miss);
    weights += weight;
  }
  return weights == 0 ? 0 : sum / weights;
}

std::optional<std::int32_t> best_class(std::span<const float> scores) {
  if (scores.empty() || std::ranges::any_of(scores, [](float s) { return std::isnan(s); }))
    return std::nullopt;
  return static_cast<std::int32_t>(std::ranges::max_element(scores) - scores.begin());
}

}  // namespace ymir
