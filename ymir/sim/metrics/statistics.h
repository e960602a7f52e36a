// The statistics of results: quantiles, means, intervals. NaN where there are no values. Pure.
#pragma once

#include <vector>

namespace ymir {

// By linear interpolation between order statistics, rank (n - 1) p.
double quantile(std::vector<double> values, double p);
double mean(const std::vector<double>& values);
double geometric_mean(const std::vector<double>& values);  // of positive values
// Half width of the two-sided 95% interval of the mean by Student's t; NaN below two values.
double half_width_95(const std::vector<double>& values);

}  // namespace ymir
