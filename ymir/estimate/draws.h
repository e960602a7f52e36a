// Draws: 64 fixed quasi-random numbers for each link of the estimate, so that a product or ratio of
// uncertain quantities gets its interval without chance: the same on every replay.
//
// Each uncertain quantity takes a dimension of the Halton sequence. Quantities that share a
// dimension move together: a job's curve is the same draw in all its candidates, so the ratio of
// two forecasts has the spread of the ratio.
#pragma once

#include <array>

#include "ymir/base/interval.h"

namespace ymir {

inline constexpr int kNumDraws = 64;
using Draws = std::array<double, kNumDraws>;

// Dimensions of the links. Two jobs of a pair use their own curve and rho dimensions.
enum class Dimension { kCurve, kStepTime, kGain, kSwitch, kPartnerCurve, kPartnerStepTime };

// Values in (0, 1), equidistributed.
const Draws& uniform(Dimension dimension);
// Their standard normal quantiles.
const Draws& normal(Dimension dimension);

// The quantile function through p10, p50, p90, linear in log space over normal scores, tails ending
// at p2 and p98. All three positive and ordered.
double quantile(const Interval& interval, double probability);
Draws draw(const Interval& interval, Dimension dimension);

// p10, p50, p90 of the draws.
Interval interval_of(Draws draws);
double mean_of(const Draws& draws);

// Normal scores: the standard normal's distribution and quantile function.
double normal_cdf(double z);
double normal_quantile(double probability);  // in (0, 1)
inline constexpr double kZ90 = 1.2815515655446004, kZ98 = 2.0537489106318230;

// A log-normal quantity by the mean and standard deviation of its logarithm.
Interval log_normal(double mean, double deviation);

}  // namespace ymir
