#include "ymir/sim/run_files.h"

#include <fmt/format.h>

#include "ymir/base/csv.h"
#include "ymir/base/file.h"
#include "ymir/sim/report/tables.h"

namespace ymir {

Result<> write_run(const std::string& out, const FinishedRun& run, bool first_seed) {
  std::string folder = out + "/" + run.record.policy;
  if (!first_seed) folder += fmt::format("/seed-{}", run.record.seed);
  YMIR_TRY(make_folders(folder));
  YMIR_TRY(write_file(folder + "/events.jsonl", run.events));
  YMIR_TRY(write_file(folder + "/jobs.csv", jobs_csv(run.record)));
  YMIR_TRY(write_file(folder + "/timeline.csv", timeline_csv(run.record)));
  YMIR_TRY(write_file(folder + "/rounds.csv", rounds_csv(run.record)));
  YMIR_TRY(write_file(folder + "/pairs.csv", run.pairs));
  return write_file(folder + "/summary.json", summary_json(run.summary, run.config));
}

Result<> write_comparison(SimulationReport report, const std::vector<FinishedRun>& runs,
                          const std::string& out) {
  std::vector<const RunRecord*> first;  // of each policy
  std::vector<SimulationSummary> summaries;
  for (const FinishedRun& run : runs) {
    if (first.empty() || first.back()->policy != run.record.policy) first.push_back(&run.record);
    report.configs.emplace(run.record.policy, run.config);
    report.records.push_back(&run.record);
    report.summaries.push_back(&run.summary);
    summaries.push_back(run.summary);
  }
  YMIR_TRY(write_file(out + "/compare.csv", compare_csv(first)));
  YMIR_TRY(write_file(out + "/seeds.csv", seeds_csv(summaries)));
  YMIR_TRY(write_comparison_tables(report, out));
  if (!report.sweep.empty()) {
    std::string csv = "key,value,policy,avg_jct_s,p99_jct_s\n";
    for (const SweepPoint& point : report.sweep)
      csv += fmt::format("{},{},{},{},{}\n", csv_field(report.sweep_key), point.value,
                         csv_field(point.policy), point.avg_jct_s, point.p99_jct_s);
    YMIR_TRY(write_file(out + "/sweep.csv", csv));
  }
  return write_file(out + "/report.html", write_simulation_report(report));
}

}  // namespace ymir
