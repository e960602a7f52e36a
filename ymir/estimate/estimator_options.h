// EstimatorOptions: the knobs of the estimator. A value.
#pragma once

#include <string>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

struct EstimatorOptions {
  double exploration_share = 0.05;  // of slot time, for pairs whose gain is not known yet
  std::vector<double> strengths{0.25, 0.5, 1.0};
  double default_strength = 0.5;
  int max_probe_sources = 8;
  bool transfer = true;      // false: normal candidates only
  bool offer_every = false;  // also pairs that are believed not to pay (tests, `--show spatial`)
  std::string similarity = "probe";  // by name, see similarity.h

  double admit_above = 0.7;          // P(faster than alone) of a pair that is no exploration
  double explore_above = 0.3;        // least P of one that is
  double explore_similarity = 0.05;  // least similarity of one that is: clearly above zero
  // Most that an exploring pair that does not help may delay its target: judged at its first
  // evaluation, as a share of its predicted time alone.
  double explore_delay = 0.6;
  Result<> validate() const;
};

}  // namespace ymir
