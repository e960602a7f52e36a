// The files of finished runs (docs/simulate.md): DIR/POLICY/... of each, and what compares them.
#pragma once

#include <string>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/sim/report/report.h"

namespace ymir {

struct FinishedRun {
  RunRecord record{};
  SimulationSummary summary{};
  std::string events{};  // the texts of events.jsonl and pairs.csv
  std::string pairs{};
  std::string config{};  // JSON
};

// DIR/POLICY/{events.jsonl,jobs.csv,timeline.csv,rounds.csv,pairs.csv,summary.json}; of a further
// seed DIR/POLICY/seed-K/.
Result<> write_run(const std::string& out, const FinishedRun& run, bool first_seed);

// DIR/{compare,seeds,comparison,cdf,cluster,who_paid}.csv and DIR/report.html. `report` without its
// records and summaries: they are those of `runs`, policies in order, in them seeds in order.
Result<> write_comparison(SimulationReport report, const std::vector<FinishedRun>& runs,
                          const std::string& out);

}  // namespace ymir
