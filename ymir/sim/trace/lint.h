// Lint: what is wrong with a workload before it is run, and what its jobs ask of the cluster. Pure
// but for the files of profiles.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/sim/trace/trace.h"
#include "ymir/sim/workload.h"

namespace ymir {

struct LoadReport {
  std::size_t jobs = 0;
  int gpus = 0;
  double window_s = 0;                        // over which the load is taken
  double load = 0;                            // sum of T(request) x request / (gpus x window)
  std::vector<double> load_by_hour{};         // of what is submitted in that hour
  double peak_backlog_gpu_hours = 0;          // were the cluster to work without a gap
  std::size_t never_empty_from = 0;           // then there is work left from this job on
  std::map<int, int> requests{};              // GPUs asked for: jobs
  std::map<std::string, int> sizes{};         // class of GPU time alone: jobs
  double median_s = 0, p90_s = 0, max_s = 0;  // alone on the request
  double under_a_round = 0;                   // share of the jobs
  // Share of the pairs of jobs of one backbone that may share, and of all pairs.
  std::map<std::string, double> eligible_pairs{};
};
// Jobs in the order of submission. `window_s` 0: from the first to the last submission.
LoadReport load_of(const Workload& workload, double window_s, double round_s = 120);

struct Lint {
  std::vector<std::string> faults{}, warnings{};
  std::size_t num_faults = 0;
  LoadReport load{};
  bool has_load = false;  // false: how long the jobs run is not known
};
struct LintOptions {
  std::string profiles{};
  int nodes = 0, gpus_per_node = 0;  // 0: as the file says
  double window_s = 0;
};
// An unknown format, or a file that cannot be read at all, is an error; all else is in the lint.
Result<Lint> lint_text(const std::string& format, const std::string& file, const std::string& text,
                       const LintOptions& options);
Result<Lint> lint_file(const std::string& format, const std::string& file,
                       const LintOptions& options);

std::string to_text(const std::string& file, const Lint& lint);
std::string to_json(const Lint& lint);

}  // namespace ymir
