#include "ymir/sim/recorded_run.h"

#include <fmt/format.h>

#include <set>

#include "ymir/control/controller.h"
#include "ymir/sim/metrics/check_run.h"

namespace ymir {

namespace {

Result<Snapshot> folded(const std::vector<Event>& log) {
  Snapshot state;
  for (const Event& event : log) {
    const auto at = [&](const std::string& what) {
      return Error{ErrorCode::kCorruption, fmt::format("event {}: {}", event.seq, what)};
    };
    if (event.seq != state.seq + 1) return at(fmt::format("follows event {}", state.seq));
    if (const Result<> allowed = state.allows(event.body); !allowed)
      return at(allowed.error().message);
    if (const auto* run = std::get_if<RunRequested>(&event.body))
      if (run->what.partner && !state.jobs.contains(*run->what.partner))
        return at("no such partner: " + to_string(*run->what.partner));
    state.apply(event);
  }
  return state;
}

// Jobs that have ended since, or that changed while the plan was made, are in neither list.
Plan completed(Plan plan, const Snapshot& state) {
  std::set<JobId> named;
  for (const PlannedAssignment& line : plan.assignments) {
    named.insert(line.what.job);
    if (line.what.partner) named.insert(*line.what.partner);
  }
  for (const Plan::Waiting& line : plan.waiting) named.insert(line.job);
  for (const JobView* job : state.active_jobs())
    if (!named.contains(job->id)) plan.waiting.push_back({job->id, "not told"});
  return plan;
}

// R9. A plan of which something was taken out at its adoption isn't the one that was made.
std::vector<std::string> check_plans(const std::vector<Event>& log) {
  std::vector<std::string> broken;
  Snapshot seen;
  for (const Event& event : log) {
    const auto* adopted = std::get_if<PlanAdopted>(&event.body);
    if (adopted == nullptr || !adopted->dropped.empty()) continue;
    if (adopted->based_on >= event.seq || adopted->based_on < seen.seq) {
      broken.push_back(fmt::format("R9: round {} is based on event {}, which is not before it",
                                   adopted->round, adopted->based_on));
      continue;
    }
    while (seen.seq < adopted->based_on) seen.apply(log[seen.seq]);
    const Forecast nothing;
    const Result<> sound =
        check_plan({.cluster = seen, .forecast = nothing}, completed(adopted->plan, seen));
    if (!sound)
      broken.push_back(fmt::format("R9: round {}: {}", adopted->round, sound.error().message));
  }
  return broken;
}

// Who the jobs are, for record_of().
Result<Workload> jobs_of_log(const Snapshot& state) {
  std::map<JobId, std::string> names;
  for (const auto& [id, job] : state.jobs) names[id] = job.spec.name;
  Workload workload;
  for (auto& [id, name] : unique_names(std::move(names))) {
    if (id.value != workload.jobs.size() + 1)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the log has no {}", to_string(JobId{workload.jobs.size() + 1}))};
    const JobView& job = state.jobs.at(id);
    workload.jobs.push_back({.name = name,
                             .backbone = job.facts.backbone,
                             .gpus = job.spec.min_gpus,
                             .min_gpus = job.spec.min_gpus,
                             .max_gpus = job.spec.max_gpus});
  }
  return workload;
}

}  // namespace

std::map<JobId, std::string> unique_names(std::map<JobId, std::string> names) {
  std::set<std::string> taken;
  for (auto& [id, name] : names) {
    if (taken.contains(name)) name += fmt::format(" ({})", to_string(id));
    taken.insert(name);
  }
  return names;
}

Result<RunRecord> record_of_recorded(const std::vector<Event>& log) {
  std::vector<Event> shifted = log;
  for (Event& event : shifted)
    event.at = Time(event.at.time_since_epoch() - log.front().at.time_since_epoch());
  YMIR_TRY_ASSIGN(const Snapshot state, folded(shifted));
  YMIR_TRY_ASSIGN(const Workload jobs, jobs_of_log(state));
  RunRecord record = record_of(shifted, state, jobs, true);
  record.policy = "recorded";
  return record;
}

std::vector<std::string> check_recorded(const std::vector<Event>& log) {
  const Result<RunRecord> record = record_of_recorded(log);
  if (!record) return {record.error().message};
  std::vector<std::string> broken =
      check_run(*record, {.until_horizon = true, .real_workers = true});
  for (std::string& fault : check_plans(log)) broken.push_back(std::move(fault));
  return broken;
}

}  // namespace ymir
