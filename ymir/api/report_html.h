// The report: what a log holds as one static HTML file that needs nothing else:
// timeline with merges and splits, results with predicted and actual gain, curves, numbers, and a
// comparison when there is one. Texts from jobs are data, never markup; the page's own script is
// named by hash in its Content-Security-Policy. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/core/event.h"
#include "ymir/core/snapshot.h"

namespace ymir {

// The same jobs with and without Ymir's sharing. Seconds.
struct ReportComparison {
  struct Sums {
    double makespan = 0, mean = 0, worst = 0;
  };
  struct Job {
    std::string name{};
    double shared = 0, sequential = 0;                    // from submission to end
    std::int64_t shared_steps = 0, sequential_steps = 0;  // to the target, or to the last
    bool learnt = false;                                  // from a partner, in the shared run
  };
  std::string baseline = "one after another, without sharing";
  Sums shared{}, sequential{};
  std::vector<Job> jobs{};
};

struct ReportInput {
  std::string title = "Ymir";
  Time generated{};
  std::vector<Event> events{};  // of the whole log, in order
  Snapshot state{};             // after the last of them
  std::optional<ReportComparison> comparison{};
};

std::string write_report(const ReportInput& input);

// Completion of every ended job, from submission, in order of id; makespan from the first
// submission to the last end.
struct Completion {
  JobId job{};
  std::string name{};
  double seconds = 0;
  std::int64_t steps = 0;
  bool learnt = false;  // from a partner
};
std::vector<Completion> completions(const Snapshot& state);
ReportComparison::Sums sums_of(const Snapshot& state);

// Reads log.db and folds it.
Result<ReportInput> report_from_log(const std::string& log_path);

}  // namespace ymir
