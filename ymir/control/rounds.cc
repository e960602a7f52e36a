// The controller's judgement of transfers and its rounds.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "ymir/base/log.h"
#include "ymir/control/controller.h"

namespace ymir {
namespace {

// Asks for a stop when a wall-clock limit has passed; gone with the object.
class Guard {
 public:
  explicit Guard(Seconds limit) {
    if (limit <= Seconds(0)) return;
    thread_ = std::jthread([this, limit](const std::stop_token& done) {
      std::unique_lock lock(mutex_);
      const bool ended = gone_.wait_for(lock, done, limit, [&] { return done.stop_requested(); });
      if (!ended) source_.request_stop();
    });
  }
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_{};
  std::mutex mutex_{};
  std::condition_variable_any gone_{};
  std::jthread thread_{};
};

void in_order_of_jobs(std::vector<PlannedAssignment>& lines) {
  const auto job = [](const PlannedAssignment& line) { return line.what.job; };
  if (!std::ranges::is_sorted(lines, {}, job)) std::ranges::sort(lines, {}, job);
}

}  // namespace

void Controller::judge_transfers() {
  if (std::exchange(evaluated_, false) && policy_.stops_losses()) {
    const std::vector<TransferOutlook> outlooks = beliefs_.outlooks(state_);
    for (Judgement& j : judge(state_, outlooks, options_.stop_loss)) {
      EventBody body = RunKept{.run = j.run, .job = j.job, .helps = j.helps, .why = j.why};
      if (j.split)
        body = RunSplit{.run = j.run,
                        .job = j.job,
                        .partner = j.partner,
                        .helps = j.helps,
                        .restart = j.restart,
                        .why = j.why};
      if (state_.allows(body)) note(std::move(body));
    }
  }
  if (std::exchange(settle_, false))
    for (TransferSettled& settled : beliefs_.settle(state_)) {
      EventBody body = std::move(settled);
      if (state_.allows(body)) note(std::move(body));
    }
}

// By the clock; and at once when something changed, a slot is left over, and a job waits that the
// newest plan does not start anyway.
bool Controller::round_is_due() const {
  if (world_.now() >= next_round_) return true;
  if (!options_.round_on_events || !round_wanted_ || spare_slots() <= 0) return false;
  IdSet<JobId> due;
  for (const Assignment& want : state_.due()) {
    due.insert(want.job);
    if (want.partner) due.insert(*want.partner);
  }
  if (state_.wish)  // a target whose source is not done yet has its place
    for (const PlannedAssignment& line : state_.wish->plan.assignments)
      if (line.what.mode == Mode::kTemporal && due.contains(*line.what.partner))
        due.insert(line.what.job);
  return std::ranges::any_of(state_.open, [&](JobId id) {
    const JobView& job = state_.jobs.at(id);
    return job.active() && !job.run && !due.contains(id);
  });
}

Result<> Controller::hold_round() {
  round_wanted_ = false;
  next_round_ = world_.now() + options_.round;
  Versions seen;
  for (const JobView* job : state_.active_jobs()) seen.emplace_back(job->id, job->version);
  if (seen.empty() || state_.num_gpus() == 0) return Ok{};

  const std::uint64_t based_on = state_.seq;
  const auto skip = [&](std::string why) {
    log::warning("round {} skipped: {}", state_.round + 1, why);
    note(RoundSkipped{.round = state_.round + 1, .why = std::move(why)});
    return Ok{};
  };
  const Guard guard(options_.round_guard);
  const Forecast forecast = beliefs_.forecast(state_);
  const Round round{
      .cluster = state_, .forecast = forecast, .effort = options_.effort, .guard = guard.token()};
  Result<Decision> decision = policy_.decide(round);
  if (!decision) return skip(decision.error().message);
  if (guard.token().stop_requested())
    return skip(fmt::format("took longer than {} s", options_.round_guard.count()));
  if (const Result<> sound = check_plan(round, decision->plan); !sound)
    return skip(sound.error().message);

  YMIR_TRY(hear(world_.wait(world_.now())));  // what happened meanwhile
  YMIR_TRY(obey());
  PlanAdopted adopted = adopt(std::move(decision->plan), seen, based_on);
  adopted.pass_ms = std::move(decision->pass_ms);
  note(std::move(adopted));
  probe_runs_ = 0;
  return Ok{};
}

// Takes out what rests on jobs that changed since. Of such a pair, the job that did not change
// keeps the GPUs in normal mode; a job that runs goes on as it runs.
PlanAdopted Controller::adopt(Plan plan, const Versions& seen, std::uint64_t based_on) const {
  PlanAdopted adopted{.round = state_.round + 1, .based_on = based_on};
  if (state_.seq == based_on) {  // nothing happened
    in_order_of_jobs(plan.assignments);
    adopted.plan = std::move(plan);
    return adopted;
  }
  const auto unchanged = [&](JobId id) {
    const auto version = std::ranges::lower_bound(seen, id, {}, &Versions::value_type::first);
    const bool was_active = version != seen.end() && version->first == id;
    const JobView& job = state_.jobs.at(id);
    if (!was_active) return job.state == JobState::kSucceeded;  // a finished source stays one
    return job.version == version->second;
  };
  // Whose GPUs an assignment takes: any number of jobs may begin from one finished source.
  const auto members = [&](const Assignment& what) {
    std::vector<JobId> jobs{what.job};
    if (what.partner && !state_.jobs.at(*what.partner).ended()) jobs.push_back(*what.partner);
    return jobs;
  };
  IdSet<JobId> placed;
  const auto is_placed = [&](JobId id) { return placed.contains(id); };
  std::vector<PlannedAssignment> kept, rest;
  for (PlannedAssignment& line : plan.assignments) {
    const Assignment& what = line.what;
    const bool holds = unchanged(what.job) && (!what.partner || unchanged(*what.partner));
    (holds ? kept : rest).push_back(std::move(line));
  }
  for (const PlannedAssignment& line : kept)
    for (const JobId id : members(line.what)) placed.insert(id);
  for (PlannedAssignment& line : rest) {
    adopted.dropped.push_back(line.what);
    for (const JobId id : members(line.what)) {
      const JobView& job = state_.jobs.at(id);
      if (!job.active() || placed.contains(id)) continue;
      const auto run = state_.runs.find(job.run);
      const bool runs = run != state_.runs.end() && !run->second.profile && !run->second.stopping;
      if (!runs && !unchanged(id)) continue;
      PlannedAssignment alone{.what = {.mode = Mode::kNormal, .job = id, .gpus = line.what.gpus},
                              .card = line.card};
      if (runs) alone.what = run->second.what;
      if (std::ranges::any_of(members(alone.what), is_placed))
        continue;                                       // it runs with one of them
      if (!runs && is_placed(line.what.job)) continue;  // the GPUs are given already
      for (const JobId member : members(alone.what)) placed.insert(member);
      kept.push_back(std::move(alone));
    }
  }
  in_order_of_jobs(kept);
  std::erase_if(plan.waiting, [&](const Plan::Waiting& w) { return !state_.open.contains(w.job); });
  plan.assignments = std::move(kept);
  adopted.plan = std::move(plan);
  return adopted;
}

}  // namespace ymir
