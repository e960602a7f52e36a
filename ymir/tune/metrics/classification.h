// Metrics of classifiers from counts of (true, predicted), which are integers: adding rows one by
// one, in any order, or merging the counts of several ranks gives the same to the last bit. Values
// as scikit-learn's with zero_division = 0. An empty set has no metrics (nullopt). One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ymir {

// How F1 is averaged over classes. Macro and weighted count the classes that occur, true or
// predicted.
enum class Average { kMacro, kMicro, kWeighted };

class ConfusionCounts {
 public:
  explicit ConfusionCounts(std::size_t num_classes);  // at least 1

  void add(std::int32_t actual, std::int32_t predicted);  // both in 0..num_classes-1
  void merge(const ConfusionCounts& other);               // of as many classes
  std::int64_t rows() const { return rows_; }
  std::int64_t count(std::size_t actual, std::size_t predicted) const;

  std::optional<double> accuracy() const;
  std::optional<double> f1(Average average) const;
  std::optional<double> f1_of(std::size_t label) const;  // one class against the rest
  std::optional<double> precision_of(std::size_t label) const;
  std::optional<double> recall_of(std::size_t label) const;
  // Matthews' coefficient, Gorodkin's for several classes; 0 when either side is constant.
  std::optional<double> matthews() const;

 private:
  std::int64_t actual(std::size_t label) const;
  std::int64_t predicted(std::size_t label) const;

  std::size_t num_classes_ = 0;
  std::vector<std::int64_t> counts_;  // [actual][predicted]
  std::int64_t rows_ = 0;
};

// Any number of labels a row.
class MultiLabelCounts {
 public:
  explicit MultiLabelCounts(std::size_t num_labels);

  void add(std::span<const bool> actual, std::span<const bool> predicted);
  void merge(const MultiLabelCounts& other);
  std::int64_t rows() const { return rows_; }

  std::optional<double> exact() const;  // rows with every label right ("subset accuracy")
  std::optional<double> f1(Average average) const;

 private:
  struct Label {
    std::int64_t hit = 0, false_alarm = 0, miss = 0;
  };
  std::vector<Label> labels_;
  std::int64_t rows_ = 0, exact_rows_ = 0;
};

// The first of the highest scores; nullopt when a score is NaN.
std::optional<std::int32_t> best_class(std::span<const float> scores);

}  // namespace ymir
