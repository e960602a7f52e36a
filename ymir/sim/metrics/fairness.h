// Finish-time fairness rho of every job, by each formula in use. rho > 1: worse
// off than with its share of the cluster to itself. Pure.
//
//   share         JCT / T(clip(G / N, least, most)); linear in speed between numbers of GPUs, by
//                 time slicing below the least
//   themis        JCT / (T(request) max(1, N / G))
//   static        JCT / (T(request) max(1, jobs of the trace / G))
//   gavel         age / isolated time at completion: T(request) x the mean over the time in which
//                 it ran of max(1, N(t) request / G)
//   resimulated   JCT / (start + T(n)), n = floor(G / N) in [least, most]: alone there from its
//                 submission
//
// T(g): alone on g GPUs without waiting; N: mean number of active jobs over its life.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ymir/sim/metrics/record.h"

namespace ymir {

// What is true of a job alone. Index: its place in RunRecord::jobs.
struct SoloTruth {
  std::function<double(std::size_t job, int gpus)> seconds{};  // NaN: not known
  std::vector<int> min_gpus{}, max_gpus{};
  double start_s = 0;  // what a start costs
};

const std::vector<std::string>& fairness_formulas();
// NaN for jobs that are not finished or whose run time is not known.
std::map<std::string, std::vector<double>> fairness(const RunRecord& record,
                                                    const SoloTruth& truth);

}  // namespace ymir
