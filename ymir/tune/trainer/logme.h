// LogME: how well a linear head on given features could explain the labels, as the maximised log
// evidence per row of Bayesian linear regression (You et al., "LogME: Practical Assessment of
// Pre-trained Models for Transfer Learning", ICML 2021). The `probe` of the estimator is the
// difference of two such numbers: with a source's adapter minus without.
//
// Model of one output y [N]: y = F w + noise, w ~ N(0, 1/alpha I), noise ~ N(0, 1/beta I); alpha
// and beta maximise p(y | F). Classes are fitted one-hot and averaged. Deterministic, pure, any
// thread. Cost: N D min(N, D) for the Gram matrix + 4/3 min(N, D)^3; 512 rows of 384 features take
// about 0.1 s, so callers cap the rows they probe.
#pragma once

#include <cstdint>
#include <span>

#include "ymir/base/result.h"
#include "ymir/tune/trainer/features.h"

namespace ymir {

// Nats per row, mean over the classes that occur. Labels in [0, num_classes). kInvalidArgument when
// sizes disagree, a label is outside, a feature is not finite, or fewer than two classes occur.
Result<double> logme(const Features& features, std::span<const std::int32_t> labels,
                     int num_classes);

// The same for one real target a row, standardised first, so that the unit of the target does not
// matter. kInvalidArgument also when all targets are equal.
Result<double> logme(const Features& features, std::span<const float> targets);

}  // namespace ymir
