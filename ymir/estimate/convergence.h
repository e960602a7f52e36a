// Convergence: fits loss curves and answers how many optimizer steps are left until a target or
// until the loss stands still. Deterministic; pure, any thread.
//
// Recipe: drop what is not finite and single outliers (Hampel), average to at most 60 blocks of
// equal width in ln k, make non-increasing (isotonic regression); for 64 floors d, non-negative
// least squares of 1 / (loss - d) on 1, k, k^2; the best start is polished by Levenberg-Marquardt
// with Huber's loss. From five points on the two families (a = 0 and a >= 0) are averaged in ln k
// by how well each has predicted the next point. The interval comes from a block bootstrap of the
// residuals, never narrower than what was measured for so few points.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ymir/base/interval.h"
#include "ymir/base/result.h"
#include "ymir/estimate/rational_curve.h"

namespace ymir {

struct CurvePoint {
  double step = 0;
  double loss = 0;
};

struct FitOptions {
  int replicas = 50;       // of the bootstrap
  std::uint64_t seed = 0;  // of the bootstrap; with the number of points
  Result<> validate() const;
};

// A curve and how much it counts.
struct WeightedCurve {
  std::string family{};  // "R0" (a = 0) or "R1"
  RationalCurve curve{};
  double weight = 1;
  double one_step_error = 0;  // relative; of the next point from those before, 0 when unknown
};

struct CurveFit {
  std::vector<WeightedCurve> curves{};  // weights sum to 1; the heaviest first
  std::vector<std::vector<WeightedCurve>> replicas{};
  double loss_scale = 1;                // median of the first points: 1 normalised unit
  double error = 0;                     // root mean square of relative residuals
  double last_step = 0, last_loss = 0;  // of the data
  std::int64_t points = 0;              // distinct ones
  bool converging = true;               // false: worse than a constant, or rising in the last third
  double at(double step) const;         // weighted mean
};

// kInvalidArgument when fewer than three distinct finite points with positive steps and losses are
// left.
Result<CurveFit> fit_curve(std::span<const CurvePoint> points, const FitOptions& options);

// Steps in all, from the first; or not reached, as far as can be told.
struct Steps {
  bool censored = false;
  double at_least = 0;  // when censored
  Interval value{};     // else
};
// The curve's own floor lies above the target, or it does not converge: censored.
Steps steps_to(const CurveFit& fit, double target_loss);

struct ConvergenceRule {
  double epsilon = 0.001;  // of normalised loss: improvement in one unit that counts as none
  double unit_steps = 1;   // optimizer steps of one unit (step, interval, epoch)
};
// The first step past the steepest point where a unit improves by at most epsilon. kConflict when
// even the steepest unit does: the unit is too fine, the answer would be 0.
Result<Steps> steps_to_convergence(const CurveFit& fit, const ConvergenceRule& rule);

// Non-increasing regression (pool adjacent violators) with weights; in place.
void isotonic_decreasing(std::vector<double>& values, std::vector<double> weights);

// The loss at which a metric has been `target`, from pairs (loss, metric) seen at evaluations, by a
// monotone map, extended by its last slope. Empty below three pairs or when the metric does not
// change with the loss.
struct MetricPoint {
  double loss = 0, metric = 0;
};
Result<double> loss_for_metric(std::span<const MetricPoint> seen, double target,
                               bool larger_is_better);

}  // namespace ymir
