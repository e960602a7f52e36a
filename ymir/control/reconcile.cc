// reconcile(): makes reality what the newest plan wants. Stops first; starts take only slots that
// are free already; intent is noted before any request leaves.
#include <algorithm>
#include <utility>

#include "ymir/base/log.h"
#include "ymir/control/controller.h"
#include "ymir/control/slots.h"

namespace ymir {
namespace {

// Where a job's next run begins. A merge begins at step 0, with the profile's steps dropped.
std::int64_t start_step(const JobView& job, bool begins_merge) {
  if (begins_merge) return 0;
  if (job.checkpoint) return job.checkpoint->step;
  return job.own_checkpoint && job.merge() == nullptr ? job.own_checkpoint->step : 0;
}

}  // namespace

void Controller::reconcile() {
  const bool submitted = std::exchange(submitted_, false);
  const bool changed = std::exchange(changed_, false) || world_.now() >= look_again_;
  if (!submitted && !changed) return;
  check_data();
  if (changed) {
    stop_runs();
    watch_starts();
    start_due();
  }
  look_again_ = when_to_look_again();
}

void Controller::check_data() {
  std::vector<JobId> fresh;
  for (const JobId id : unchecked_) {
    const JobView& job = state_.jobs.at(id);
    Sent& sent = checks_sent_[id];
    if (sent.times > 0 && sent.at + options_.resend > world_.now()) continue;
    sent = {world_.now(), sent.times + 1};
    if (job.state == JobState::kSubmitted) fresh.push_back(id);
    outbox_.emplace_back(CheckData{id, job.spec});
  }
  for (const JobId id : fresh) note(DataCheckStarted{id});
  std::erase_if(checks_sent_, [&](const auto& entry) {
    if (unchecked_.contains(entry.first)) return false;
    if (state_.jobs.at(entry.first).state == JobState::kCancelled)
      outbox_.emplace_back(StopCheck{entry.first});
    return true;
  });
}

void Controller::stop_runs() {
  std::erase_if(stops_sent_, [&](const auto& e) { return !state_.runs.contains(e.first); });
  for (const auto& [id, run] : state_.runs) {
    if (!run.stopping) continue;
    Sent& sent = stops_sent_[id];
    if (sent.times > 0 && sent.at + options_.resend > world_.now()) continue;
    sent = {world_.now(), sent.times + 1};
    // Nobody needs the steps of jobs that have ended; and one that does not stop is told so.
    outbox_.emplace_back(StopRun{.run = id, .now = run.jobs.empty() || sent.times > 2});
  }
}

// A run that does not begin in time is stopped. Its slots stay taken until the world says that it
// has ended: what still holds them there would refuse every other run. A world that says nothing
// for as long again has lost it.
void Controller::watch_starts() {
  const auto waited = [&](const Starting& each) { return world_.now() - each.requested; };
  std::erase_if(starting_, [&](const Starting& each) {
    const auto run = state_.runs.find(each.order.run);
    return run == state_.runs.end() || run->second.started || run->second.stopping;
  });
  for (Starting& each : starting_) {
    if (each.sent.at + options_.resend > world_.now()) continue;
    each.sent = {world_.now(), each.sent.times + 1};
    const RunId id = each.order.run;
    if (waited(each) < options_.start_timeout) {
      outbox_.emplace_back(each.order);
      continue;
    }
    log::warning("{} has not started in {} s", to_string(id), waited(each).count());
    outbox_.emplace_back(StopRun{.run = id, .now = true});
    if (waited(each) >= 2 * options_.start_timeout) note(RunLost{.run = id, .why = "start_failed"});
  }
  std::erase_if(starting_,
                [&](const Starting& each) { return !state_.runs.contains(each.order.run); });
}

void Controller::start_due() {
  if (state_.free_gpus() == 0) return;
  for (const Assignment& want : state_.due()) {
    const JobView& job = state_.jobs.at(want.job);
    if (job.run || may_start_at(job) > world_.now()) continue;
    if (want.mode == Mode::kSpatial && state_.jobs.at(*want.partner).run) continue;
    if (want.mode == Mode::kNormal && !job.profile_settled && quota_.allows(state_, want.gpus))
      start(want, true, profile_steps(job, options_.profiling), probes_for(job));  // goes on after
    else
      start(lawful(want), false, 0, {});
  }
}

// Asked a third time, after the candidate pass and check_plan: may these two share now?
bool Controller::may_learn(const JobView& from, const JobView& to, Mode mode) const {
  const SharingSpec &gives = from.spec.sharing, &takes = to.spec.sharing;
  const bool modes =
      mode == Mode::kSpatial ? gives.spatial && takes.spatial : gives.temporal && takes.temporal;
  return modes && gives.allow && takes.allow && gives.give && takes.take &&
         gives.trust_domain == takes.trust_domain && from.facts.backbone == to.facts.backbone &&
         !from.barred.contains(to.id) && !to.barred.contains(from.id);
}

Assignment Controller::lawful(Assignment what) const {
  if (!what.partner) return what;
  const JobView &job = state_.jobs.at(what.job), &partner = state_.jobs.at(*what.partner);
  const bool resumes = job.merge() != nullptr && job.merge()->partner == partner.id;
  bool may = resumes || may_learn(partner, job, what.mode);
  if (what.mode == Mode::kSpatial) may = may && (resumes || may_learn(job, partner, what.mode));
  if (what.mode == Mode::kTemporal && !resumes && !options_.artifacts.empty())
    may = may && !partner.adapter().empty();
  if (may) return what;
  log::warning("{} starts alone: it may not learn from {}", to_string(what.job),
               to_string(*what.partner));
  return {.mode = Mode::kNormal, .job = what.job, .gpus = what.gpus};
}

void Controller::start(const Assignment& what, bool profile, std::int64_t profile_steps,
                       const std::vector<Estimator::ProbeWish>& probes) {
  const JobView& job = state_.jobs.at(what.job);
  const bool spread = state_.wish && state_.wish->plan.spread;
  const auto where = find_slots(state_, job, what.gpus, spread);
  if (!where) return;
  RunRequested asked{.run = state_.new_run(),
                     .what = what,
                     .jobs = {what.job},
                     .profile = profile,
                     .place = where->first,
                     .slots = where->second};
  if (what.mode == Mode::kSpatial) asked.jobs.push_back(*what.partner);
  bool begins = what.mode != Mode::kNormal;
  for (const JobId id : asked.jobs) begins = begins && state_.jobs.at(id).merge() == nullptr;
  for (const JobId id : asked.jobs)
    asked.from_steps.push_back(start_step(state_.jobs.at(id), begins));
  const RunId run = asked.run;
  if (const Result<> allowed = state_.allows(asked); !allowed) {
    log::error("{} cannot start: {}", to_string(what.job), allowed.error().message);
    return;
  }
  note(std::move(asked));

  const RunView& view = state_.runs.at(run);
  StartRun order = order_for(view);
  if (profile) {
    const JobView& target = state_.jobs.at(what.job);
    order.profile_steps = std::max<std::int64_t>(profile_steps - target.steps_done, 0);
    order.profile_time = options_.profiling.max_time;
    order.want_vector = options_.profiling.vectors && profile_steps > 0 && !target.profile &&
                        target.spec.sharing.allow;
    for (const auto& [source, strength] : probes) {
      const JobView& from = state_.jobs.at(source);
      note(FlowAuthorised{run, source, what.job, "probe", from.adapter_hash()});
      order.probes.push_back({.job = what.job,
                              .source = source,
                              .source_adapter = from.adapter(),
                              .source_hash = from.adapter_hash(),
                              .strength = strength});
    }
  } else if (what.mode == Mode::kTemporal && view.from_steps[0] == 0) {
    note(FlowAuthorised{run, *what.partner, what.job, "temporal_start",
                        state_.jobs.at(*what.partner).adapter_hash()});
  } else if (what.mode == Mode::kSpatial) {
    note(FlowAuthorised{run, what.job, *what.partner, "spatial_shared", ""});
    note(FlowAuthorised{run, *what.partner, what.job, "spatial_shared", ""});
  }
  starting_.push_back({order, view.requested, {world_.now(), 1}});
  outbox_.emplace_back(std::move(order));
}

StartRun Controller::order_for(const RunView& run) const {
  StartRun order{.run = run.run,
                 .mode = run.what.mode,
                 .place = run.place,
                 .slots = run.slots,
                 .profile = run.profile};
  for (std::size_t i = 0; i < run.jobs.size(); ++i) {
    const JobView& job = state_.jobs.at(run.jobs[i]);
    TaskOrder task{.job = job.id,
                   .spec = job.spec,
                   .folder = options_.artifacts + "/" + to_string(job.id),
                   .from_step = run.from_steps[i],
                   .strength = run.what.strength};
    if (run.from_steps[i] > 0 && job.checkpoint) {
      task.checkpoint = job.checkpoint->path;
      task.checkpoint_hash = job.checkpoint->hash;
    } else if (run.what.mode == Mode::kTemporal) {
      const JobView& source = state_.jobs.at(*run.what.partner);
      task.source = source.id;
      task.source_adapter = source.adapter();
      task.source_hash = source.adapter_hash();
    }
    order.tasks.push_back(std::move(task));
  }
  return order;
}

}  // namespace ymir
