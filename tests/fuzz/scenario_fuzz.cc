// A scenario: read or refused with its line, and a small one runs to its end with every invariant.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "ymir/base/result.h"
#include "ymir/sim/scenario.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto scenario =
      ymir::parse_scenario("f", std::string(reinterpret_cast<const char*>(data), size));
  if (!scenario) {
    YMIR_CHECK(!scenario.error().message.empty(), "refused without a reason");
    return 0;
  }
  if (scenario->jobs.size() > 5 || scenario->real_estimator || scenario->actions.size() > 8)
    return 0;
  if (scenario->controller.round.count() < 10) return 0;
  int gpus = 0;
  for (const int slots : scenario->cluster.nodes) gpus += slots;
  if (gpus > 16) return 0;
  for (const ymir::ScenarioJob& job : scenario->jobs)
    if (job.truth.max_steps > 2000 || job.at > ymir::from_seconds(10'000)) return 0;
  ymir::Scenario bounded = *scenario;
  bounded.cluster.horizon = std::min(bounded.cluster.horizon, ymir::from_seconds(20'000));
  const auto run = ymir::run_scenario(bounded);
  if (run) (void)ymir::check_invariants(bounded, *run);
  return 0;
}
