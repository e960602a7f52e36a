// Bound: completion times that no schedule can beat, so that a ratio of two policies can be seen
// beside the largest one there is: mean of the baseline / bound.
//
// What a job can do with how many GPUs is the truth's, without starts, switches and rounds: every
// number of GPUs at every moment, the best source and the best mate there are, whole epochs. Who
// trains together answers for half of the GPUs each. Believed gains play no part.
//
// Why it is a bound. Let GPUs cost any price p(t) >= 0. As never more than G are in use, the sum of
// (completion time + cost of the GPUs) over all jobs, less G x integral of p, is at most the sum of
// completion times. Each job by itself at its best against the prices gives less still: that sum is
// told. The prices only make it large; they are found by going up its slope. The other bound tried
// is that of a single machine as fast as all GPUs together under shortest remaining time first.
// Pure; any thread. + - * / only, so that every machine agrees.
#pragma once

#include <span>
#include <vector>

#include "ymir/sim/job_model.h"
#include "ymir/sim/workload.h"

namespace ymir {

struct Demand {
  struct Way {
    double gpus = 1;     // that the job answers for
    double seconds = 0;  // of the whole job
  };
  double at = 0;                 // of submission, seconds
  std::vector<Way> ways{};       // at least one; it may change between them at any time
  double least_service() const;  // GPU-seconds
  double least_seconds() const;
};

// What the schedules may do that the bound is of.
enum class Sharing {
  kNone,      // every job alone
  kTemporal,  // a job may begin from the adapter of another
  kAny,       // or train together with another
};

// In the order of the workload; JobId i of the model is job i - 1. A partner is any other job that
// may share with this one, whenever it comes. `noise`: half width of the error of evaluations.
std::vector<Demand> least_demands(const Workload& workload, const JobModel& model, int num_gpus,
                                  Sharing sharing, double noise = 0);

// A lower bound of the sum of completion times less submissions; more `effort` (steps of the search
// for prices, each about as long as 10^5 jobs x hours of waiting) makes it larger.
double least_total_jct(std::span<const Demand> jobs, double num_gpus, int effort = 100);

}  // namespace ymir
