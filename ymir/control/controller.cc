#include "ymir/control/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "ymir/base/log.h"
#include "ymir/base/text.h"
#include "ymir/control/commands.h"
#include "ymir/core/codec.h"

namespace ymir {

Result<> ControllerOptions::validate() const {
  const auto invalid = [](const char* text) { return Error{ErrorCode::kInvalidArgument, text}; };
  if (!(round > Seconds(0))) return invalid("round must be > 0");
  if (effort < 1) return invalid("effort must be >= 1");
  if (!(round_guard >= Seconds(0))) return invalid("round_guard must be >= 0");
  if (!(resend > Seconds(0))) return invalid("resend must be > 0");
  if (!(start_timeout >= resend)) return invalid("start_timeout must be >= resend");
  if (max_faults < 1) return invalid("max_faults must be >= 1");
  if (!artifacts.empty() && artifacts[0] != '/') return invalid("artifacts must be absolute");
  YMIR_TRY(stop_loss.validate());
  return profiling.validate();
}

Controller::Controller(ControllerOptions options, World& world, EventLog& log, const Policy& policy,
                       Beliefs beliefs)
    : options_(std::move(options)),
      world_(world),
      log_(log),
      policy_(policy),
      beliefs_(std::move(beliefs)),
      quota_(options_.profiling) {}

Controller::~Controller() { close_commands(); }

Result<std::unique_ptr<Controller>> Controller::create(ControllerOptions options, World& world,
                                                       EventLog& log, const Policy& policy,
                                                       Beliefs beliefs) {
  YMIR_TRY(options.validate());
  std::unique_ptr<Controller> controller(
      new Controller(std::move(options), world, log, policy, std::move(beliefs)));
  Controller& c = *controller;
  YMIR_TRY_ASSIGN(c.state_, replay(log, [&c](const Event& event, const Snapshot& after) {
                    c.beliefs_.observe(event, after);
                    c.quota_.observe(event, after);
                  }));
  for (const JobId id : c.state_.open) {
    const JobView& job = c.state_.jobs.at(id);
    if (job.state <= JobState::kValidating) c.unchecked_.insert(id);
    if (job.lost_in_a_row > 0) c.unlucky_.insert(id);
  }
  c.next_round_ = world.now();
  c.settle_ = true;
  c.close_the_past();
  YMIR_TRY(c.flush());
  return controller;
}

// Crash-only: whatever ran under the controller before this one is gone or will be refused, its
// jobs go on from their newest checkpoints on places that report again.
void Controller::close_the_past() {
  note(DaemonStarted{.version = YMIR_VERSION,
                     .era = std::max<std::uint64_t>(state_.era, 1),
                     .round = options_.round,
                     .policy = std::string(policy_.name())});
  while (!state_.runs.empty())
    note(RunLost{.run = state_.runs.begin()->first, .why = "daemon_restarted"});
  while (!state_.places.empty())
    note(PlaceLost{.place = state_.places.begin()->first, .why = "daemon_restarted"});
}

Result<> Controller::run(std::stop_token stop) {
  const Result<> ended = loop(stop);
  close_commands();
  return ended;
}

Result<> Controller::loop(const std::stop_token& stop) {
  while (!stop.stop_requested() && !world_.finished()) {
    YMIR_TRY(hear(world_.wait(next_wakeup())));  // what happened
    YMIR_TRY(obey());                            // what people want
    grant_profiles();                            // submit -> profile
    judge_transfers();                           // evaluate -> keep or split
    if (round_is_due()) YMIR_TRY(hold_round());  // estimate -> schedule
    reconcile();                                 // plan -> run
    YMIR_TRY(flush());
  }
  return Ok{};
}

void Controller::note(EventBody body, const std::string& actor, Time at) {
  Event event{.seq = state_.seq + 1,
              .at = std::max(at == Time{} ? world_.now() : at, state_.now),
              .actor = actor,
              .body = std::move(body)};
  if (const auto* lost = std::get_if<RunLost>(&event.body))
    for (const JobId id : state_.runs.at(lost->run).jobs) unlucky_.insert(id);
  state_.apply(event);
  beliefs_.observe(event, state_);
  quota_.observe(event, state_);
  std::visit([this](const auto& each) { take_note(each); }, event.body);
  pending_.push_back(std::move(event));
}

// What an event means for the stages of the loop.
template <class Body>
void Controller::take_note(const Body& body) {
  const auto is = [](auto... kinds) {
    return (std::is_same_v<Body, typename decltype(kinds)::type> || ...);
  };
  using std::type_identity;
  constexpr bool opens_a_round =
      is(type_identity<DataChecked>{}, type_identity<ProfileFinished>{},
         type_identity<ProfileFailed>{}, type_identity<JobFinished>{}, type_identity<JobReleased>{},
         type_identity<RunSplit>{}, type_identity<RunStopped>{}, type_identity<RunLost>{},
         type_identity<PlaceReady>{});
  constexpr bool changes_nothing =  // of what reconcile() looks at
      is(type_identity<JobSubmitted>{}, type_identity<DataCheckStarted>{},
         type_identity<DataChecked>{}, type_identity<RunRequested>{}, type_identity<RunStarted>{},
         type_identity<EpochEvaluated>{}, type_identity<CheckpointCommitted>{},
         type_identity<StepTimed>{}, type_identity<FlowAuthorised>{}, type_identity<RunKept>{},
         type_identity<TransferSettled>{});
  round_wanted_ |= opens_a_round;
  changed_ |= !changes_nothing;
  if constexpr (is(type_identity<JobSubmitted>{})) {
    unchecked_.insert(body.job);
    submitted_ = true;
  } else if constexpr (is(type_identity<DataChecked>{})) {
    unchecked_.erase(body.job);
  } else if constexpr (is(type_identity<JobFinished>{})) {
    unchecked_.erase(body.job);
    unlucky_.erase(body.job);
  } else if constexpr (is(type_identity<EpochEvaluated>{})) {
    const auto run = state_.runs.find(body.run);
    evaluated_ |= run != state_.runs.end() && run->second.what.mode != Mode::kNormal;
  }
  if constexpr (is(type_identity<EpochEvaluated>{}, type_identity<JobFinished>{},
                   type_identity<RunSplit>{}))
    settle_ |= !state_.jobs.at(body.job).transfers.empty();
}

Result<> Controller::flush() {
  if (!pending_.empty()) {
    YMIR_TRY(log_.take(pending_));
    if (options_.publish) {
      auto snapshot = std::make_shared<const Snapshot>(state_);
      const std::scoped_lock lock(mutex_);
      published_ = std::move(snapshot);
    }
  }
  for (const Action& action : std::exchange(outbox_, {}))
    if (const Result<> sent = world_.request(action); !sent)
      log::warning("request refused, will be sent again: {}", sent.error().message);
  return Ok{};
}

std::shared_ptr<const Snapshot> Controller::snapshot() const {
  const std::scoped_lock lock(mutex_);
  return published_ ? published_ : std::make_shared<const Snapshot>();
}

Result<> Controller::hear(std::vector<Event> reports) {
  for (Event& report : reports) hear_one(report);
  YMIR_TRY(flush());
  if (!reports.empty()) world_.acknowledge();
  return Ok{};
}

void Controller::hear_one(Event& report) {
  // A lost place loses its runs first, each on record.
  if (const auto* lost = std::get_if<PlaceLost>(&report.body)) {
    std::vector<RunId> runs;
    for (const auto& [id, run] : state_.runs)
      if (run.place == lost->place) runs.push_back(id);
    for (const RunId run : runs) note(RunLost{.run = run, .why = "place_lost"});
  }
  const Result<> allowed = state_.allows(report.body);
  if (!allowed || !credible(report.body)) {
    ++num_refused_;
    log::debug("{} refused: {}", kind_of(report.body),
               allowed ? "not what the outside may report" : allowed.error().message);
    return;
  }
  note(std::move(report.body), report.actor.empty() ? "agent" : report.actor,
       std::min(report.at, world_.now()));
  follow_up();
}

// Beyond what the state allows: the outside decides nothing, and names only files of its own run.
bool Controller::credible(const EventBody& body) const {
  const auto below = [&](JobId job, const std::string& path) {
    const std::string folder = options_.artifacts + "/" + to_string(job) + "/";
    return options_.artifacts.empty() || path.empty() ||
           (path.starts_with(folder) && path.find("/../") == std::string::npos &&
            !path.ends_with("/.."));
  };
  return std::visit(
      [&](const auto& e) {
        using T = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<T, CheckpointCommitted>)
          return below(e.job, e.path) && below(e.job, e.adapter);
        if constexpr (std::is_same_v<T, JobFinished>) return below(e.job, e.adapter);
        return !(std::is_same_v<T, DaemonStarted> || std::is_same_v<T, DataCheckStarted> ||
                 std::is_same_v<T, PlanAdopted> || std::is_same_v<T, RoundSkipped> ||
                 std::is_same_v<T, RunRequested> || std::is_same_v<T, RunKept> ||
                 std::is_same_v<T, RunSplit> || std::is_same_v<T, TransferSettled> ||
                 std::is_same_v<T, FlowAuthorised>);
      },
      body);
}

// What must stand in the same transaction as the report.
// Nothing may be read of the event after the first note(): it moves on.
void Controller::follow_up() {
  const EventBody& body = pending_.back().body;
  if (const auto* refused = std::get_if<DataRefused>(&body)) {
    note(JobFinished{.job = refused->job,
                     .outcome = Outcome::kFailed,
                     .reason = "failed",
                     .code = "invalid_data",
                     .text = join(refused->faults, "\n")});
  } else if (const auto* finished = std::get_if<JobFinished>(&body)) {
    const auto run = state_.runs.find(finished->run);
    if (run == state_.runs.end() || !run->second.jobs.empty()) return;
    const Seconds busy = run->second.started ? state_.now - *run->second.started : Seconds(0);
    note(RunStopped{.run = finished->run, .why = "finished", .busy = busy});
  } else if (const auto* lost = std::get_if<RunLost>(&body); lost != nullptr && lost->fault) {
    std::vector<JobId> broken;
    for (const JobId id : state_.open)
      if (state_.jobs.at(id).faults >= options_.max_faults) broken.push_back(id);
    const std::string text =
        fmt::format("its worker ended {} times by itself: {}", options_.max_faults, lost->why);
    for (const JobId id : broken)
      note(JobFinished{.job = id,
                       .outcome = Outcome::kFailed,
                       .reason = "failed",
                       .code = "worker_crashed",
                       .text = text,
                       .step = state_.jobs.at(id).steps_done});
  }
}

Time Controller::may_start_at(const JobView& job) const {
  if (job.lost_in_a_row < 2) return job.lost_at;
  const double wait =
      std::min(60.0, 0.5 * static_cast<double>(1 << std::min(job.lost_in_a_row, 8)));
  return job.lost_at + Seconds(wait);
}

Time Controller::next_wakeup() const {
  if (round_is_due()) return world_.now();  // something happened while the last round was held
  return std::min(next_round_, look_again_);
}

// The next request to send again, or start after a loss.
Time Controller::when_to_look_again() const {
  Time next = kNever;
  for (const Starting& each : starting_) next = std::min(next, each.sent.at + options_.resend);
  for (const auto& [run, request] : stops_sent_)
    next = std::min(next, request.at + options_.resend);
  for (const auto& [job, request] : checks_sent_)
    next = std::min(next, request.at + options_.resend);
  for (const JobId id : unlucky_) {
    const JobView& job = state_.jobs.at(id);
    if (!job.run && may_start_at(job) > world_.now()) next = std::min(next, may_start_at(job));
  }
  return next;
}

}  // namespace ymir
