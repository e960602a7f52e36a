// A workload of the format `ymir`: what is read is written again byte for byte, the linter has an
// answer, and a small one runs without breaking an invariant; never a crash.
#include <cstddef>
#include <cstdint>
#include <string>

#include "ymir/base/result.h"
#include "ymir/sim/simulate.h"
#include "ymir/sim/trace/lint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto lint = ymir::lint_text("ymir", "f", text, {});
  YMIR_CHECK(static_cast<bool>(lint), "the linter has no answer");
  const auto workload = ymir::parse_workload("f", text);
  YMIR_CHECK(workload || lint->num_faults > 0, "the linter finds no fault in what can't be read");
  if (!workload) return 0;
  const std::string written = ymir::to_text(*workload);
  const auto again = ymir::parse_workload("f", written);
  YMIR_CHECK(again && ymir::to_text(*again) == written, "reads back another workload");
  if (workload->jobs.size() > 6 || workload->nodes * workload->gpus_per_node > 16) return 0;
  for (const ymir::WorkloadJob& job : workload->jobs)
    if (job.max_steps > 400 || job.step_time > 100 || job.at > 5000 || job.start_s > 100) return 0;
  ymir::Scenario scenario = ymir::scenario_of(*workload, {}, "ymir");
  scenario.cluster.horizon = ymir::from_seconds(20'000);
  const auto run = ymir::run_scenario(scenario);
  YMIR_CHECK(run || scenario.jobs.empty(), "a workload that was read does not run");
  return 0;
}
