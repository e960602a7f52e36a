// A policy and beliefs that say what the test says, to go with a ScriptedWorld. For tests only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "ymir/control/beliefs.h"
#include "ymir/schedule/policy.h"

namespace ymir {

// Plans what the test says.
class ScriptedPolicy final : public Policy {
 public:
  std::function<std::vector<Assignment>(const Snapshot&)> plan = [](const Snapshot&) {
    return std::vector<Assignment>{};
  };
  std::string_view name() const override { return "scripted"; }
  Result<Decision> decide(const Round& round) const override {
    Decision decision;
    for (const Assignment& what : plan(round.cluster))
      decision.plan.assignments.push_back({.what = what});
    std::ranges::sort(decision.plan.assignments, {},
                      [](const PlannedAssignment& line) { return line.what.job; });
    std::set<JobId> placed;
    for (const PlannedAssignment& line : decision.plan.assignments) {
      placed.insert(line.what.job);
      if (line.what.partner) placed.insert(*line.what.partner);
    }
    for (const auto& [id, job] : round.cluster.jobs)
      if (job.active() && !placed.contains(id))
        decision.plan.waiting.push_back({id, "no_capacity"});
    return decision;
  }
};

// Believes what the test says: outlooks of running merges, and probes.
struct ScriptedBeliefs {
  std::function<std::vector<TransferOutlook>(const Snapshot&)> outlooks = [](const Snapshot&) {
    return std::vector<TransferOutlook>{};
  };
  std::function<std::vector<Estimator::ProbeWish>(const Snapshot&, JobId)> probes =
      [](const Snapshot&, JobId) { return std::vector<Estimator::ProbeWish>{}; };
  std::uint64_t observed = 0;

  Beliefs bind() {
    return {.observe = [this](const Event&, const Snapshot&) { ++observed; },
            .forecast =
                [this](const Snapshot& now) {
                  Forecast forecast;
                  forecast.outlooks = outlooks(now);
                  return forecast;
                },
            .outlooks = [this](const Snapshot& now) { return outlooks(now); },
            .settle = [](const Snapshot&) { return std::vector<TransferSettled>{}; },
            .probes_wanted = [this](const Snapshot& now, JobId job) { return probes(now, job); }};
  }
};

}  // namespace ymir
