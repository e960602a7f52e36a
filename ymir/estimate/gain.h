// Gain: what a transfer does to the number of steps, y = ln(steps alone / steps with), learnt from
// transfers that were tried.
//
// Bayesian linear regression with an explicit, cautious prior: of ordered pairs of tasks that were
// measured, most are harmed, and a source that lifts the target's probe helps. Rows that only give
// an upper bound (split, or never reached) enter by the Tobit likelihood. The posterior is the fit:
// few rows move it little where they say little. One model per (backbone, method,
// mode). Pure, deterministic, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ymir/base/interval.h"
#include "ymir/base/result.h"
#include "ymir/core/job.h"

namespace ymir {

struct GainInput {
  double similarity = 0;   // of the pair, directed: the probe, nats per row
  double strength = 0.5;   // of the temporal start; 1 for a spatial pair
  double source_rows = 1;  // training rows
  double target_rows = 1;
  double slowness = 0;    // ln(target's predicted steps alone / usual of its class): fast learners
                          // have little to gain
  bool same_kind = true;  // both classify, or both regress, ...
};

struct GainRow {
  GainInput input{};
  double log_speedup = 0;
  bool upper_bound = false;  // y <= log_speedup
  double deviation = 0.3;    // of log_speedup, from the baseline
};

// Belief about ln speed-up of one pair.
struct GainBelief {
  double mean = 0;
  double deviation = 1;  // of the next observation, not of the mean only
  std::int64_t rows = 0;
  Interval speedup() const;
  double helps() const;  // P(speed-up > 1)
};

struct GainOptions {
  double intercept = -0.45, intercept_deviation = 0.5;
  // Per unit of similarity_scale.
  double slope = 0.3, slope_deviation = 0.25;
  double similarity_scale = 0.1;
  double other_deviation = 0.15;  // of each further input's weight, around 0
  double residual = 0.5;          // of y around the line; weighs as much as residual_rows rows
  double residual_rows = 6;
  Result<> validate() const;
};

class GainModel {
 public:
  // The prior alone when there are no rows.
  static Result<GainModel> fit(std::span<const GainRow> rows, const GainOptions& options);
  GainBelief predict(const GainInput& input) const;
  std::int64_t rows() const { return rows_; }
  double residual() const { return residual_; }

  static constexpr int kInputs = 6;  // with the intercept
  using Vector = std::array<double, kInputs>;
  const Vector& weights() const { return mean_; }

  // A row as the regression sees it: an exact one as it is, an upper bound as the quadratic that
  // touches ln P(y <= bound) at the present fit (Newton's step for the Tobit likelihood, which is
  // concave: the fixed point is its maximum, and the weight its true curvature).
  struct Observation {
    double y = 0, weight = 0;
  };

 private:
  Vector features(const GainInput& input) const;
  void solve(std::span<const GainRow> rows, std::span<const Observation> seen);

  GainOptions options_{};
  Vector mean_{};
  std::vector<double> factor_{};  // Cholesky of the posterior precision of the weights
  double residual_ = 0.5;
  std::int64_t rows_ = 0;
};

// Rows and fits by model key.
class GainBook {
 public:
  explicit GainBook(GainOptions options = {}) : options_(options) {}
  void add(const std::string& key, const GainRow& row);
  const GainModel& model(const std::string& key) const;  // the prior for an unknown key
  const std::vector<GainRow>& rows(const std::string& key) const;

 private:
  struct Entry {
    std::vector<GainRow> rows{};
    GainModel model{};
  };
  GainOptions options_;
  std::map<std::string, Entry> entries_{};
  Entry empty_{{}, GainModel::fit({}, options_).operator*()};
};

std::string gain_key(const std::string& class_key, Mode mode);

}  // namespace ymir
