#include "ymir/estimate/gain.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ymir/base/symmetric.h"
#include "ymir/estimate/draws.h"

namespace ymir {

using Observation = GainModel::Observation;

namespace {

constexpr int kRounds = 20;

Observation observe(const GainRow& row, double predicted, double residual) {
  const double deviation = std::hypot(residual, row.deviation);
  if (!row.upper_bound) return {row.log_speedup, 1 / (deviation * deviation)};
  const double z = (row.log_speedup - predicted) / deviation;
  // Density over probability below z; far down its asymptote.
  const double ratio =
      z < -8 ? -z - 1 / z
             : std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi) / normal_cdf(z);
  const double information = std::clamp(ratio * (z + ratio), 1e-9, 1.0);
  return {predicted - deviation * ratio / information, information / (deviation * deviation)};
}

}  // namespace

Interval GainBelief::speedup() const { return log_normal(mean, deviation); }
double GainBelief::helps() const { return normal_cdf(mean / deviation); }

Result<> GainOptions::validate() const {
  const bool positive = intercept_deviation > 0 && slope_deviation > 0 && similarity_scale > 0 &&
                        other_deviation > 0 && residual > 0 && residual_rows > 0;
  if (!positive || !std::isfinite(intercept) || !std::isfinite(slope)) {
    return Error{ErrorCode::kInvalidArgument, "gain: deviations and scales must be > 0"};
  }
  return Ok{};
}

// Centred on the usual case, so that the intercept is the gain of a neutral pair at strength 0.5.
// Large values are bent: beyond what was seen the line must not promise ever more.
GainModel::Vector GainModel::features(const GainInput& x) const {
  const double s = x.similarity / options_.similarity_scale;
  return {1,
          4 * std::tanh(s / 4),
          2 * (x.strength - 0.5),
          std::tanh(std::log(std::max(x.source_rows, 1.0) / std::max(x.target_rows, 1.0)) / 3),
          std::tanh(x.slowness),
          x.same_kind ? 0.0 : 1.0};
}

Result<GainModel> GainModel::fit(std::span<const GainRow> rows, const GainOptions& options) {
  YMIR_TRY(options.validate());
  GainModel model;
  model.options_ = options;
  model.residual_ = options.residual;
  model.rows_ = static_cast<std::int64_t>(rows.size());
  model.solve(rows, {});
  for (int round = 0; round < kRounds && !rows.empty(); ++round) {
    std::vector<Observation> seen;
    double squares = options.residual_rows * options.residual * options.residual;
    double exact = options.residual_rows;
    for (const GainRow& row : rows) {
      const GainBelief fitted = model.predict(row.input);
      seen.push_back(observe(row, fitted.mean, model.residual_));
      if (row.upper_bound) continue;
      // What the row's own uncertainty explains is no residual of the line; what the row has
      // pulled the line towards itself is put back.
      const double miss = row.log_speedup - fitted.mean;
      const double pulled = fitted.deviation * fitted.deviation - model.residual_ * model.residual_;
      squares += std::max(0.0, miss * miss + pulled - row.deviation * row.deviation);
      exact += 1;
    }
    model.residual_ = std::sqrt(squares / exact);
    model.solve(rows, seen);
  }
  return model;
}

void GainModel::solve(std::span<const GainRow> rows, std::span<const Observation> seen) {
  constexpr auto n = static_cast<std::size_t>(kInputs);
  const Vector prior{options_.intercept, options_.slope, 0, 0, 0, 0};
  Vector deviation{};
  deviation.fill(options_.other_deviation);
  deviation[0] = options_.intercept_deviation;
  deviation[1] = options_.slope_deviation;
  std::vector<double> precision(n * n);
  Vector right{};
  for (std::size_t i = 0; i < n; ++i) {
    precision[i * n + i] = 1 / (deviation[i] * deviation[i]);
    right[i] = prior[i] * precision[i * n + i];
  }
  for (std::size_t r = 0; r < seen.size(); ++r) {
    const Vector x = features(rows[r].input);
    for (std::size_t i = 0; i < n; ++i) {
      right[i] += seen[r].weight * x[i] * seen[r].y;
      for (std::size_t j = 0; j <= i; ++j) precision[i * n + j] += seen[r].weight * x[i] * x[j];
    }
  }
  auto factor = cholesky(precision, kInputs);
  YMIR_CHECK(factor.has_value(), "gain: precision is not positive definite");
  factor_ = *std::move(factor);
  cholesky_solve(factor_, kInputs, right);
  mean_ = right;
}

GainBelief GainModel::predict(const GainInput& input) const {
  const Vector x = features(input);
  Vector image = x;
  cholesky_solve(factor_, kInputs, image);
  GainBelief belief;
  double variance = residual_ * residual_;
  for (std::size_t i = 0; i < x.size(); ++i) {
    belief.mean += mean_[i] * x[i];
    variance += x[i] * image[i];
  }
  belief.deviation = std::sqrt(variance);
  belief.rows = rows_;
  return belief;
}

void GainBook::add(const std::string& key, const GainRow& row) {
  Entry& entry = entries_[key];
  entry.rows.push_back(row);
  auto fitted = GainModel::fit(entry.rows, options_);
  YMIR_CHECK(static_cast<bool>(fitted), "gain: options were validated");
  entry.model = *std::move(fitted);
}

const GainModel& GainBook::model(const std::string& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? empty_.model : found->second.model;
}

const std::vector<GainRow>& GainBook::rows(const std::string& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? empty_.rows : found->second.rows;
}

std::string gain_key(const std::string& class_key, Mode mode) {
  return class_key + " " + to_string(mode);
}

}  // namespace ymir
