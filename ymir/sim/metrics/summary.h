// SimulationSummary: one run in numbers, the keys of summary.json.
// NaN where there is nothing to take a number from. Means are over finished jobs. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ymir/sim/metrics/fairness.h"
#include "ymir/sim/metrics/gpu_time.h"
#include "ymir/sim/metrics/pair_truth.h"
#include "ymir/sim/metrics/record.h"

namespace ymir {

struct FairnessSummary {
  double max = 0, p99 = 0, mean = 0, unfair_share = 0;  // of the jobs with rho > 1
};

// What was said before against what came of it, in merges.
struct Confusion {
  std::int64_t right_yes = 0, wrong_yes = 0;  // said yes, and it was so; said yes, and it was not
  std::int64_t wrong_no = 0, right_no = 0;
};

struct SimulationSummary {
  std::string policy{};
  std::uint64_t seed = 0;
  int jobs = 0, finished = 0, censored = 0;
  double avg_jct_s = 0, p50_jct_s = 0, p99_jct_s = 0, max_jct_s = 0;
  double avg_jct_with_censored_s = 0;  // censored jobs at their end or the horizon: a lower bound
  double makespan_s = 0, avg_queueing_s = 0, avg_first_wait_s = 0, longest_wait_s = 0;
  double avg_slowdown = 0, max_slowdown = 0;  // JCT / alone on the request
  double restarts_per_job = 0;
  std::string rho = "share";  // the formula of the next two
  double rho_max = 0, rho_unfair_share = 0;
  std::map<std::string, FairnessSummary> rho_all{};
  std::map<std::string, double> mode_share{};      // of the jobs, by their last mode
  std::map<std::string, double> mode_gpu_share{};  // of the useful GPU time
  std::map<std::string, double> gpu_seconds{};     // useful redone switch profile blocked idle ...
  double gpu_use = 0;                              // useful / (GPUs x makespan)
  std::int64_t merges = 0, rollbacks = 0, false_merges = 0, missed_merges = 0;
  double missed_gain_s = 0, extra_jct_s = 0;
  double gain_mape = 0, gain_sign_accuracy = 0;  // predicted against actual; of those measured
  std::int64_t gains_measured = 0;
  Confusion helps{};  // predicted to be faster than alone; measured at its end
  Confusion kept{};   // kept, not taken back; by the true transfer weight
  std::int64_t rounds = 0, unproved_rounds = 0;
  double solver_ms_mean = 0, solver_ms_p99 = 0, solver_ms_max = 0;
  double profile_wait_s = 0, wall_s = 0;
  std::vector<double> job_rho{}, job_slowdown{};  // in the order of the jobs, NaN: not known
  std::vector<std::string> broken{};              // invariants
  std::vector<std::string> notes{};
};

struct SummaryTruth {
  const SoloTruth* solo = nullptr;   // null: nothing is known of jobs alone; rho and slowdown NaN
  const PairTruth* pairs = nullptr;  // null: nothing is known of pairs
  double theta = 1.1;                // of missed merges
  std::string rho = "share";
};
SimulationSummary summarise(const RunRecord& record, const SummaryTruth& truth);

}  // namespace ymir
