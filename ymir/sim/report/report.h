// The report of a simulation: one HTML file without network that compares policies over seeds, and
// the tables behind its pictures as CSV. Texts of jobs are data, never markup; the
// page's own script is named by hash in its Content-Security-Policy. Pure but for the files of
// write_comparison_tables.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/sim/metrics/record.h"
#include "ymir/sim/metrics/summary.h"

namespace ymir {

// One policy at one value of what is swept; means over seeds.
struct SweepPoint {
  double value = 0;
  std::string policy{};
  double avg_jct_s = 0, p99_jct_s = 0;
};

struct SimulationReport {
  std::string name{};                            // of the workload
  std::string baseline{};                        // a policy
  std::string config{};                          // JSON of the first run
  std::map<std::string, std::string> configs{};  // of each policy; "constants": as it used them
  double load = 0;                               // offered; 0: not known
  std::string sweep_key{};                       // empty: nothing is swept
  std::vector<SweepPoint> sweep{};               // by value, then by policy
  std::vector<std::string> warnings{};
  // One each a run, policies in order, in them seeds in order. Holds only in the first seed of
  // each. They outlive the call.
  std::vector<const RunRecord*> records{};
  std::vector<const SimulationSummary*> summaries{};
};

// One number of a policy over its seeds, and against the baseline, differences paired by seed.
struct Compared {
  double mean = 0, half_width = 0;         // 95%, Student's t; NaN with one seed
  double ratio = 0, ratio_half_width = 0;  // baseline / policy: above 1 the policy is better
};
struct PolicyComparison {
  std::string policy{};
  int seeds = 0;
  std::map<std::string, Compared> numbers{};  // avg_jct_s, p99_jct_s, ...
  // Per job finished in both, of all seeds: JCT of the baseline / JCT.
  double ratio_geometric_mean = 0, ratio_p25 = 0, ratio_p50 = 0, ratio_p75 = 0;
  double share_better = 0, share_worse = 0;  // by more than 5%
  std::int64_t jobs_compared = 0;
};
std::vector<PolicyComparison> compare(const SimulationReport& input);

// Completion times of each job that finished under the policy and under the baseline, of the first
// seed: {baseline's, policy's}, in the order of submission.
std::vector<std::pair<double, double>> paired_times(const SimulationReport& input,
                                                    const std::string& policy);

// Who paid: jobs of the first seed that took longer than under the baseline, the worst first.
struct Loser {
  std::string policy{}, job{};
  double jct_s = 0, baseline_jct_s = 0;
  std::string cause{};
};
std::vector<Loser> losers(const SimulationReport& input, std::size_t most_each = 10);

std::string write_simulation_report(const SimulationReport& input);
// FOLDER/{comparison,cdf,cluster,who_paid}.csv.
Result<> write_comparison_tables(const SimulationReport& input, const std::string& folder);

}  // namespace ymir
