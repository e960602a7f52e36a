// What the profiles of two public studies say of the jobs of their traces. Private to workload_of.
//
// titan: lengths of jobs_effective.csv (as the published results used them), step times on every
// number of GPUs up to the job's largest from the tables of placements and throughput_per_job.csv,
// each on as few nodes as can be and on one node more, 30 s and the context switch for each start.
// Gains from the curves of real transfer runs, against the solo length of the job's own setting, or
// with solo=tuned|p75|median against the task's best, 75th percentile or median setting of those
// that were run alone, whose target (98% of its best) and length are then the job's;
// a pair that never met its target counts as twice as slow as its curve is long. The curves of
// `vit` trained together are polluted (they are those of vit-large) and are left out.
//
// pollux: the declared batch, cut as Pollux cuts it; the seconds of the whole job on each number of
// GPUs are those of its epochs one after another, each with its own efficiency, and a step is an
// equal part of them. Settings batch=adaptive: on each number of GPUs the batch of most goodput in
// each epoch.
#pragma once

#include "ymir/sim/trace/workload_of.h"

namespace ymir {

Result<Workload> titan_workload(const Trace& trace, const std::string& profiles,
                                const TruthOptions& options);
Result<Workload> pollux_workload(const Trace& trace, const std::string& profiles,
                                 const TruthOptions& options);

}  // namespace ymir
