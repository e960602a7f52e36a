// What may happen next: asked before an event is appended, and once more by
// apply(), which aborts on a no.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <variant>

#include "ymir/core/snapshot.h"

namespace ymir {
namespace {

constexpr int kMaxSlots = 4096;  // of one place

Error conflict(std::string text) { return {ErrorCode::kConflict, std::move(text)}; }
Error missing(std::string text) { return {ErrorCode::kNotFound, std::move(text)}; }
Error invalid(std::string text) { return {ErrorCode::kInvalidArgument, std::move(text)}; }

class Gate {
 public:
  explicit Gate(const Snapshot& now) : now_(now) {}

  Result<> operator()(const DaemonStarted& e) const {
    if (e.era < now_.era || e.era >= 1u << 16)
      return invalid(fmt::format("era {} after era {}", e.era, now_.era));
    return Ok{};
  }

  Result<> operator()(const PlaceReady& e) const {
    if (!e.place) return invalid("place without an id");
    if (now_.places.contains(e.place)) return conflict(to_string(e.place) + " is ready already");
    if (e.num_slots < 1 || e.num_slots > kMaxSlots)
      return invalid(fmt::format("{} has {} slots", to_string(e.place), e.num_slots));
    return Ok{};
  }

  Result<> operator()(const PlaceLost& e) const {
    const auto place = now_.places.find(e.place);
    if (place == now_.places.end()) return missing("unknown place: " + to_string(e.place));
    if (!place->second.taken.empty())
      return conflict("runs are not closed on " + to_string(e.place));
    return Ok{};
  }

  Result<> operator()(const JobSubmitted& e) const {
    if (!e.job) return invalid("job without an id");
    if (now_.jobs.contains(e.job)) return conflict(to_string(e.job) + " exists already");
    return Ok{};
  }

  Result<> operator()(const DataCheckStarted& e) const {
    YMIR_TRY_ASSIGN(const JobView* job, living(e.job));
    if (job->state != JobState::kSubmitted) return wrong_state(*job);
    return Ok{};
  }
  Result<> operator()(const DataChecked& e) const {
    if (e.facts.total_steps < 0 || e.facts.steps_per_epoch < 0)
      return invalid("negative number of steps for " + to_string(e.job));
    return awaits_check(e.job);
  }
  Result<> operator()(const DataRefused& e) const { return awaits_check(e.job); }

  Result<> operator()(const JobHeld& e) const {
    YMIR_TRY_ASSIGN(const JobView* job, living(e.job));
    if (job->held) return conflict(to_string(e.job) + " is held already");
    return Ok{};
  }
  Result<> operator()(const JobReleased& e) const {
    YMIR_TRY_ASSIGN(const JobView* job, living(e.job));
    if (!job->held) return conflict(to_string(e.job) + " is not held");
    return Ok{};
  }

  Result<> operator()(const JobFinished& e) const {
    YMIR_TRY_ASSIGN(const JobView* job, living(e.job));
    if (e.run && e.run != job->run)
      return conflict(fmt::format("{} is not in {}", to_string(e.job), to_string(e.run)));
    if (!e.run && e.outcome == Outcome::kSucceeded)
      return invalid(to_string(e.job) + " cannot succeed outside of a run");
    return Ok{};
  }

  Result<> operator()(const ProfileFinished& e) const { return profiles(e.run, e.job); }
  Result<> operator()(const ProfileFailed& e) const { return profiles(e.run, e.job); }
  Result<> operator()(const StepTimed& e) const {
    YMIR_TRY(member(e.run, e.job));
    return Ok{};
  }

  Result<> operator()(const TransferSettled& e) const {
    YMIR_TRY_ASSIGN(const JobView* job, known(e.job));
    const bool open = std::ranges::any_of(job->transfers, [&](const Transfer& t) {
      return t.partner == e.partner && t.mode == e.mode && !t.settled;
    });
    if (!open)
      return conflict(
          fmt::format("no open transfer of {} with {}", to_string(e.job), to_string(e.partner)));
    return Ok{};
  }

  Result<> operator()(const PlanAdopted& e) const {
    if (e.round <= now_.round)
      return conflict(fmt::format("round {} after round {}", e.round, now_.round));
    if (e.based_on > now_.seq)
      return invalid(
          fmt::format("plan is based on event {}, the newest is {}", e.based_on, now_.seq));
    IdSet<JobId> seen;
    for (const PlannedAssignment& line : e.plan.assignments) {
      const Assignment& what = line.what;
      if (what.gpus < 1) return invalid("plan gives no GPU to " + to_string(what.job));
      if (what.partner.has_value() == (what.mode == Mode::kNormal))
        return invalid("plan has a wrong number of partners for " + to_string(what.job));
      YMIR_TRY(living(what.job));
      if (!seen.insert(what.job)) return invalid("plan names twice: " + to_string(what.job));
      if (!what.partner) continue;
      YMIR_TRY_ASSIGN(const JobView* partner, known(*what.partner));
      if (partner->ended()) {
        if (what.mode == Mode::kTemporal && partner->state == JobState::kSucceeded) continue;
        return conflict(to_string(partner->id) + " has already ended");
      }
      if (!seen.insert(partner->id)) return invalid("plan names twice: " + to_string(partner->id));
    }
    return Ok{};
  }

  Result<> operator()(const RoundSkipped& e) const {
    if (e.round <= now_.round)
      return conflict(fmt::format("round {} after round {}", e.round, now_.round));
    return Ok{};
  }

  Result<> operator()(const RunRequested& e) const {
    if (e.run != now_.new_run())
      return conflict(
          fmt::format("{} requested, the next is {}", to_string(e.run), to_string(now_.new_run())));
    YMIR_TRY(slots_are_free(e));
    const bool pair = e.what.mode == Mode::kSpatial && !e.profile;
    if (e.jobs.size() != (pair ? 2u : 1u) || e.from_steps.size() != e.jobs.size())
      return invalid("wrong number of jobs in " + to_string(e.run));
    if (e.jobs[0] != e.what.job || (pair && (!e.what.partner || e.jobs[1] != *e.what.partner)))
      return invalid("jobs and assignment differ in " + to_string(e.run));
    if (pair && e.jobs[0] == e.jobs[1]) return invalid("a job is its own partner");
    for (std::size_t i = 0; i < e.jobs.size(); ++i) {
      YMIR_TRY_ASSIGN(const JobView* job, living(e.jobs[i]));
      if (!job->active()) return wrong_state(*job);
      if (job->run) return conflict(to_string(job->id) + " runs already");
      YMIR_TRY(may_start_from(*job, e.from_steps[i]));
    }
    return Ok{};
  }

  Result<> operator()(const RunStarted& e) const {
    YMIR_TRY_ASSIGN(const RunView* run, live(e.run));
    if (run->started) return conflict(to_string(e.run) + " has started already");
    return Ok{};
  }

  Result<> operator()(const EpochEvaluated& e) const {
    YMIR_TRY_ASSIGN(const JobView* job, progresses(e.run, e.job));
    const std::int64_t last = job->evaluations.empty() ? -1 : job->evaluations.back().step;
    if (e.evaluation.step <= last)
      return conflict(fmt::format("{} was evaluated at step {} already", to_string(e.job), last));
    return Ok{};
  }

  Result<> operator()(const CheckpointCommitted& e) const {
    YMIR_TRY_ASSIGN(const JobView* job, progresses(e.run, e.job));
    if (e.step < job->steps_done)
      return conflict(fmt::format("checkpoint of {} at step {} after one at step {}",
                                  to_string(e.job), e.step, job->steps_done));
    return Ok{};
  }

  Result<> operator()(const RunKept& e) const { return merged(e.run, e.job); }
  Result<> operator()(const RunSplit& e) const {
    YMIR_TRY(merged(e.run, e.job));
    if (!e.partner || e.partner == e.job) return invalid("split without a partner");
    return Ok{};
  }

  Result<> operator()(const RunStopped& e) const {
    if (e.jobs.size() != e.steps.size())
      return invalid("jobs and steps differ in " + to_string(e.run));
    YMIR_TRY(live(e.run));
    return Ok{};
  }
  Result<> operator()(const RunLost& e) const {
    YMIR_TRY(live(e.run));
    return Ok{};
  }

  Result<> operator()(const FlowAuthorised& e) const {
    YMIR_TRY(known(e.from));
    YMIR_TRY(living(e.to));
    YMIR_TRY(live(e.run));
    return Ok{};
  }

 private:
  Result<const JobView*> known(JobId id) const {
    const auto job = now_.jobs.find(id);
    if (job == now_.jobs.end()) return missing("unknown job: " + to_string(id));
    return &job->second;
  }
  Result<const JobView*> living(JobId id) const {
    YMIR_TRY_ASSIGN(const JobView* job, known(id));
    if (job->ended()) return conflict(to_string(id) + " has already ended");
    return job;
  }
  Result<const RunView*> live(RunId id) const {
    const auto run = now_.runs.find(id);
    if (run == now_.runs.end()) return missing(to_string(id) + " is not under way");
    return &run->second;
  }
  Result<const JobView*> member(RunId run, JobId id) const {
    YMIR_TRY(live(run));
    YMIR_TRY_ASSIGN(const JobView* job, living(id));
    if (job->run != run)
      return conflict(fmt::format("{} is not in {}", to_string(id), to_string(run)));
    return job;
  }
  Result<const JobView*> progresses(RunId id, JobId job) const {
    YMIR_TRY_ASSIGN(const JobView* view, member(id, job));
    if (now_.runs.at(id).goes_back == job)
      return conflict(to_string(job) + " goes back to its own checkpoint");
    return view;
  }
  Result<> profiles(RunId run, JobId job) const {
    YMIR_TRY(member(run, job));
    if (!now_.runs.at(run).profile) return conflict(to_string(run) + " is no profile");
    return Ok{};
  }
  Result<> merged(RunId run, JobId job) const {
    YMIR_TRY_ASSIGN(const JobView* view, member(run, job));
    const Transfer* merge = view->merge();
    if (merge == nullptr || merge->run != run)
      return conflict(fmt::format("{} is not merged in {}", to_string(job), to_string(run)));
    return Ok{};
  }
  Result<> awaits_check(JobId id) const {
    YMIR_TRY_ASSIGN(const JobView* job, living(id));
    if (job->state != JobState::kSubmitted && job->state != JobState::kValidating)
      return wrong_state(*job);
    return Ok{};
  }
  Result<> slots_are_free(const RunRequested& e) const {
    const auto place = now_.places.find(e.place);
    if (place == now_.places.end()) return missing("unknown place: " + to_string(e.place));
    const std::set<int> slots(e.slots.begin(), e.slots.end());
    if (slots.size() != e.slots.size() || std::ssize(e.slots) != e.what.gpus || slots.empty())
      return invalid("wrong number of slots for " + to_string(e.run));
    for (const int slot : slots) {
      if (slot < 0 || slot >= place->second.num_slots)
        return invalid(fmt::format("{} has no slot {}", to_string(e.place), slot));
      if (place->second.taken.contains(slot))
        return conflict(fmt::format("slot {} of {} is taken", slot, to_string(e.place)));
    }
    return Ok{};
  }
  static Result<> may_start_from(const JobView& job, std::int64_t step) {
    const bool newest = job.checkpoint && job.checkpoint->step == step;
    const bool own = !job.checkpoint && job.own_checkpoint && job.own_checkpoint->step == step;
    const bool anew = step == 0 && !job.has_progress();
    if (newest || own || anew) return Ok{};
    return conflict(fmt::format("{} has no checkpoint of step {}", to_string(job.id), step));
  }
  static Error wrong_state(const JobView& job) {
    return conflict(fmt::format("{} is {}{}", to_string(job.id), to_string(job.state),
                                job.held ? " and held" : ""));
  }

  const Snapshot& now_;
};

}  // namespace

Result<> Snapshot::allows(const EventBody& body) const { return std::visit(Gate(*this), body); }

}  // namespace ymir
