// Finish-time fairness, max-min: the fractional shares of one kind of GPU at which the worst
// finish-time ratio is least (Themis, NSDI'20, as an exact bisection).
//
// A job's ratio is rho = (age + time to its end at share x) / (time of its life if it had held an
// exclusive 1/J of the cluster throughout). The share x of a job is the part of the time that it
// runs, on all the GPUs it asks for. Pure, any thread; + - * / only.
#pragma once

#include <span>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

struct ShareJob {
  double gpus = 1;             // asked for: g
  double steps_left = 0;       // > 0
  double steps_per_s = 0;      // while it runs on g GPUs: a speed, not a share
  double age_s = 0;            // since submission
  double isolated_past_s = 0;  // what an exclusive share would have taken for the steps done so far
};

struct FairShares {
  double rho = 0;               // the least worst ratio
  std::vector<double> x{};      // by job: the share in (0, 1] that gives it exactly rho
  bool capacity_binds = false;  // else some job runs all the time and still decides rho
};

// The isolated share of a job that asks for `gpus`: min(1, N / (J g)).
double isolated_share(double gpus, double num_gpus, std::size_t num_jobs);
// Past and future of the job on that share, in seconds: the denominator of rho.
double isolated_life_s(const ShareJob& job, double num_gpus, std::size_t num_jobs);

// kInvalidArgument names job (index) and field: a number that is not finite, steps, speed or GPUs
// not > 0, a negative time. No jobs: rho 0.
Result<FairShares> max_min_shares(std::span<const ShareJob> jobs, double num_gpus);

}  // namespace ymir
