#include "ymir/core/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace ymir {

std::string to_string(JobState state) {
  switch (state) {
    case JobState::kSubmitted:
      return "submitted";
    case JobState::kValidating:
      return "validating";
    case JobState::kQueued:
      return "queued";
    case JobState::kProfiling:
      return "profiling";
    case JobState::kRunning:
      return "running";
    case JobState::kSplitting:
      return "splitting";
    case JobState::kPreempted:
      return "preempted";
    case JobState::kSucceeded:
      return "succeeded";
    case JobState::kFailed:
      return "failed";
    case JobState::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

std::vector<std::string> job_state_names() {
  std::vector<std::string> names;
  for (int state = 0; state <= static_cast<int>(JobState::kCancelled); ++state)
    names.push_back(to_string(static_cast<JobState>(state)));
  return names;
}

int rank_of(const JobView& job) {
  switch (job.state) {
    case JobState::kSubmitted:
      return 0;
    case JobState::kValidating:
      return 1;
    case JobState::kQueued:
      return job.profile_settled ? 4 : 2;
    case JobState::kProfiling:
      return 3;
    case JobState::kRunning:
    case JobState::kSplitting:
    case JobState::kPreempted:
      return 5;
    case JobState::kSucceeded:
    case JobState::kFailed:
    case JobState::kCancelled:
      return 6;
  }
  return 6;
}

const Transfer* JobView::merge() const {
  if (!merged || transfers.empty()) return nullptr;
  const Transfer& newest = transfers.back();
  return newest.verdict == Transfer::Verdict::kSplit ? nullptr : &newest;
}

std::string JobView::adapter() const {
  if (result && !result->adapter.empty()) return result->adapter;
  return checkpoint ? checkpoint->adapter : "";
}
std::string JobView::adapter_hash() const {
  if (result && !result->adapter.empty()) return result->adapter_hash;
  return checkpoint ? checkpoint->adapter_hash : "";
}

namespace {

constexpr int kPairStarts = 3;  // failed starts in a row after which a pair is taken apart

class Fold {
 public:
  Fold(Snapshot& state, Time at) : state_(state), at_(at) {}

  void operator()(const DaemonStarted& e) {
    if (e.era != state_.era) state_.next_run = 1;
    state_.era = e.era;
    state_.round_length = e.round;
  }
  void operator()(const PlaceReady& e) {
    state_.places[e.place] = PlaceView{.place = e.place,
                                       .node = e.node,
                                       .hardware = e.hardware,
                                       .num_slots = e.num_slots,
                                       .node_slots = e.node_slots};
  }
  void operator()(const PlaceLost& e) { state_.places.erase(e.place); }

  void operator()(const JobSubmitted& e) {
    state_.open.insert(e.job);
    JobView& job = state_.jobs[e.job];
    job.id = e.job;
    job.spec = *e.spec;
    job.submitted = job.last_progress = job.waiting_since = at_;
    ++job.version;
  }
  void operator()(const DataCheckStarted& e) { touch(e.job).state = JobState::kValidating; }
  void operator()(const DataChecked& e) {
    JobView& job = touch(e.job);
    job.facts = e.facts;
    job.state = JobState::kQueued;
  }
  void operator()(const DataRefused& e) { touch(e.job); }
  void operator()(const JobHeld& e) {
    JobView& job = touch(e.job);
    job.held = true;
    if (job.run) must_stop(state_.runs.at(job.run), "paused");
  }
  void operator()(const JobReleased& e) { touch(e.job).held = false; }

  void operator()(const JobFinished& e) {
    JobView& job = touch(e.job);
    if (job.run) {
      RunView& run = state_.runs.at(job.run);
      charge(run, job);
      std::erase(run.jobs, e.job);
      must_stop(run, !run.jobs.empty()                  ? "partner_finished"
                     : e.outcome == Outcome::kCancelled ? "cancelled"
                                                        : "finished");
      job.run = {};
    }
    job.state = e.outcome == Outcome::kSucceeded ? JobState::kSucceeded
                : e.outcome == Outcome::kFailed  ? JobState::kFailed
                                                 : JobState::kCancelled;
    state_.open.erase(e.job);
    job.finished = at_;
    job.result = e;
    job.waiting_for.clear();
  }

  void operator()(const ProfileFinished& e) {
    JobView& job = touch(e.job);
    for (const Probe& probe : e.profile.probes) {
      std::erase_if(job.probes, [&](const Probe& old) {
        return old.source == probe.source && old.strength == probe.strength;
      });
      job.probes.push_back(probe);
    }
    if (!job.profile) job.profile = e.profile;  // later ones only bring probes
    settle_profile(job);
  }
  void operator()(const ProfileFailed& e) { settle_profile(touch(e.job)); }
  void operator()(const StepTimed&) {}
  void operator()(const TransferSettled& e) {
    for (Transfer& transfer : state_.jobs.at(e.job).transfers)
      if (transfer.partner == e.partner && transfer.mode == e.mode && !transfer.settled) {
        transfer.settled = e;
        return;
      }
  }

  void operator()(const PlanAdopted& e) {
    if (state_.wish)  // only they wait for something
      for (const Plan::Waiting& waited : state_.wish->plan.waiting)
        if (const auto job = state_.jobs.find(waited.job); job != state_.jobs.end())
          job->second.waiting_for.clear();
    state_.round = e.round;
    state_.wish = e;
    for (const Plan::Waiting& waiting : e.plan.waiting)
      if (const auto job = state_.jobs.find(waiting.job); job != state_.jobs.end())
        job->second.waiting_for = waiting.reason;
    const std::vector<Assignment> due = state_.due();
    std::vector<std::pair<JobId, const Assignment*>> wants;  // of each job that is to train
    wants.reserve(2 * due.size());
    for (const Assignment& want : due) {
      wants.emplace_back(want.job, &want);
      if (want.mode == Mode::kSpatial) wants.emplace_back(*want.partner, &want);
    }
    const auto job = [](const auto& wanted) { return wanted.first; };
    std::ranges::sort(wants, {}, job);
    for (auto& [id, run] : state_.runs) {
      const JobId first = run.jobs.empty() ? JobId{} : run.jobs.front();
      const auto want = std::ranges::lower_bound(wants, first, {}, job);
      const bool goes_on =
          want != wants.end() && want->first == first && serves(run, *want->second);
      if (!run.profile && !goes_on) must_stop(run, "round");
    }
  }
  void operator()(const RoundSkipped& e) { state_.round = e.round; }

  void operator()(const RunRequested& e) {
    state_.next_run = (e.run.value & ((std::uint64_t{1} << 48) - 1)) + 1;
    state_.runs[e.run] = RunView{.run = e.run,
                                 .what = e.what,
                                 .jobs = e.jobs,
                                 .profile = e.profile,
                                 .place = e.place,
                                 .slots = e.slots,
                                 .from_steps = e.from_steps,
                                 .requested = at_};
    for (const int slot : e.slots) state_.places.at(e.place).taken.insert(slot);
    for (std::size_t i = 0; i < e.jobs.size(); ++i) {
      JobView& job = touch(e.jobs[i]);
      job.run = e.run;
      job.waited += at_ - job.waiting_since;
      job.last_place = e.place;
      job.last_slots = e.slots;
      begin_path(job, e.from_steps[i]);
      if (!e.profile) begin_transfer(job, e, e.jobs.size() == 2 ? e.jobs[1 - i] : JobId{});
    }
  }

  void operator()(const RunStarted& e) {
    RunView& run = state_.runs.at(e.run);
    run.started = at_;
    for (const JobId id : run.jobs) {
      JobView& job = touch(id);
      if (!job.first_started) job.first_started = at_;
      if (run.profile) {
        if (!job.profile_settled) job.state = JobState::kProfiling;
      } else {
        job.state = JobState::kRunning;
        job.profile_settled = true;
        ++job.starts;
      }
    }
  }

  void operator()(const EpochEvaluated& e) {
    JobView& job = state_.jobs.at(e.job);
    job.lost_in_a_row = 0;
    for (const LossPoint& point : e.losses)
      if (job.losses.empty() || point.step > job.losses.back().step) job.losses.push_back(point);
    job.evaluations.push_back(e.evaluation);
    if (job.merge() != nullptr && job.transfers.back().run == e.run)
      job.transfers.back().evaluations.push_back(e.evaluation);
  }

  void operator()(const CheckpointCommitted& e) {
    JobView& job = state_.jobs.at(e.job);
    if (e.step > job.steps_done) job.lost_in_a_row = 0;
    job.steps_done = e.step;
    job.checkpoint = Checkpoint{.step = e.step,
                                .path = e.path,
                                .hash = e.hash,
                                .adapter = e.adapter,
                                .adapter_hash = e.adapter_hash};
    if (!job.merged) job.own_checkpoint = job.checkpoint;
    if (state_.runs.at(e.run).profile) job.profile_steps = e.step;
  }

  void operator()(const RunKept& e) {
    Transfer& transfer = state_.jobs.at(e.job).transfers.back();
    transfer.verdict = Transfer::Verdict::kKept;
    transfer.why = e.why;
  }
  void operator()(const RunSplit& e) {
    RunView& run = state_.runs.at(e.run);
    if (e.restart) run.goes_back = e.job;
    must_stop(run, "split");
    for (const JobId id : run.jobs) {
      JobView& job = touch(id);
      part(job, id == e.job ? e.partner : e.job, e.why);
      if (run.started) job.state = JobState::kSplitting;
    }
  }

  void operator()(const RunStopped& e) { close(e.run); }
  void operator()(const RunLost& e) {
    const std::vector<JobId> jobs = state_.runs.at(e.run).jobs;
    const bool started = state_.runs.at(e.run).started.has_value();
    close(e.run);
    for (const JobId id : jobs) {
      JobView& job = state_.jobs.at(id);
      ++job.lost_in_a_row;
      job.lost_at = at_;
      if (jobs.size() == 1) {
        job.faults += e.fault ? 1 : 0;
      } else if (e.fault || (!started && job.lost_in_a_row >= kPairStarts)) {
        // Of two jobs in one process nobody can say whose fault it was; and a pair whose
        // checkpoints do not belong together (one has trained alone since, or only one of the two
        // was written) can never be joined: they go on apart.
        part(job, id == jobs[0] ? jobs[1] : jobs[0], e.why);
      }
    }
  }
  void operator()(const FlowAuthorised&) {}

 private:
  JobView& touch(JobId id) {
    JobView& job = state_.jobs.at(id);
    ++job.version;
    return job;
  }
  static void must_stop(RunView& run, const char* why) {
    if (run.stopping && run.stop_why != "round") return;  // the first reason stands
    run.stopping = true;
    run.stop_why = why;
  }
  static void settle_profile(JobView& job) {
    job.profile_settled = true;
    if (job.state == JobState::kProfiling) job.state = JobState::kQueued;
  }
  static bool serves(const RunView& run, const Assignment& want) {
    if (run.what.gpus != want.gpus) return false;
    if (want.mode != Mode::kSpatial) return run.jobs.size() == 1 && run.jobs[0] == want.job;
    return run.jobs.size() == 2 && std::ranges::count(run.jobs, want.job) == 1 &&
           std::ranges::count(run.jobs, *want.partner) == 1;
  }
  static void part(JobView& job, JobId partner, const std::string& why) {
    job.barred.insert(partner);
    if (job.transfers.empty() || job.transfers.back().partner != partner) return;
    job.transfers.back().verdict = Transfer::Verdict::kSplit;
    job.transfers.back().why = why;
  }

  // Slot time of one member up to now: an equal share of the run's.
  void charge(const RunView& run, JobView& job) const {
    if (!run.started) return;
    const auto slots = static_cast<double>(run.slots.size());
    job.busy += (at_ - *run.started) * slots / static_cast<double>(run.from_steps.size());
  }

  // What is measured beyond `from` will be measured again; from step 0 a new path begins.
  static void begin_path(JobView& job, std::int64_t from) {
    const auto beyond = [from](const auto& point) { return from == 0 || point.step > from; };
    std::erase_if(job.evaluations, beyond);
    std::erase_if(job.losses, beyond);
    if (job.merge() != nullptr) std::erase_if(job.transfers.back().evaluations, beyond);
    if (from == 0) {
      job.checkpoint.reset();
      job.profile_steps = 0;
      job.merged = false;
    } else if (!job.checkpoint) {  // a merge that left nothing: back to before it
      job.checkpoint = job.own_checkpoint;
      job.profile_steps = from;
      job.merged = false;
    }
    job.steps_done = from;
  }

  void begin_transfer(JobView& job, const RunRequested& e, JobId mate) {
    if (e.what.mode == Mode::kNormal) return;
    const JobId partner = mate ? mate : e.what.partner.value_or(JobId{});
    const bool known = !job.transfers.empty() && job.transfers.back().partner == partner &&
                       job.transfers.back().verdict != Transfer::Verdict::kSplit;
    if (job.merged || known) {
      if (known) job.transfers.back().run = e.run;
      job.merged = job.merged || known;
      return;
    }
    Transfer transfer{.partner = partner,
                      .mode = e.what.mode,
                      .run = e.run,
                      .strength = e.what.strength,
                      .from_step = job.steps_done};
    if (state_.wish)
      for (const PlannedAssignment& line : state_.wish->plan.assignments)
        if (line.what.job == e.what.job && line.what.partner == e.what.partner)
          transfer.card = line.card;
    job.transfers.push_back(std::move(transfer));
    job.merged = true;
  }

  void close(RunId id) {
    const RunView run = std::move(state_.runs.at(id));
    state_.runs.erase(id);
    PlaceView& place = state_.places.at(run.place);
    for (const int slot : run.slots) place.taken.erase(slot);
    for (const JobId member : run.jobs) {
      JobView& job = touch(member);
      charge(run, job);
      job.run = {};
      if (run.started && !run.profile) job.state = JobState::kPreempted;
      job.waiting_since = at_;
      const bool only_probed = run.profile && job.steps_done == run.from_steps[0];
      if (run.started && !only_probed) job.last_progress = at_;
      if (run.goes_back == member) go_back(job);
    }
  }
  // To where it stood before the merge, which is never beyond its profile.
  static void go_back(JobView& job) {
    job.checkpoint = job.own_checkpoint;
    job.steps_done = job.profile_steps = job.checkpoint ? job.checkpoint->step : 0;
    job.evaluations = job.profile ? job.profile->evaluations : std::vector<Evaluation>{};
    job.losses = job.profile ? job.profile->losses : std::vector<LossPoint>{};
    job.merged = false;
  }

  Snapshot& state_;
  Time at_;
};

}  // namespace

void Snapshot::apply(const Event& event) {
  YMIR_CHECK(event.seq == seq + 1, fmt::format("event {} after event {}", event.seq, seq));
  if (const Result<> allowed = allows(event.body); !allowed)
    YMIR_CHECK(false, fmt::format("event {}: {}", event.seq, allowed.error().message));
  std::visit(Fold(*this, event.at), event.body);
  seq = event.seq;
  now = event.at;
}

std::vector<const JobView*> Snapshot::active_jobs() const {
  std::vector<const JobView*> active;
  if (seq == 0) {  // made by hand, not folded: nobody kept `open`
    for (const auto& [id, job] : jobs)
      if (job.active()) active.push_back(&job);
    return active;
  }
  for (const JobId id : open)
    if (const JobView& job = jobs.at(id); job.active()) active.push_back(&job);
  return active;
}

int Snapshot::num_gpus() const {
  int sum = 0;
  for (const auto& [id, place] : places) sum += place.num_slots;
  return sum;
}
int Snapshot::free_gpus() const {
  int sum = num_gpus();
  for (const auto& [id, place] : places) sum -= static_cast<int>(place.taken.size());
  return sum;
}

RunId Snapshot::new_run() const { return RunId{era << 48 | next_run}; }

}  // namespace ymir
