// Random interleavings of everything that can cross: finish, cancel, hold, split,
// adopt, crash, node loss, late and doubled reports, restart. Whatever the order, each job ends
// once, what is charged ends with it, no plan holds an ended job, and a replay gives the same
// state.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "ymir/base/rng.h"
#include "ymir/control/controller.h"
#include "ymir/control/scripted_policy.h"
#include "ymir/control/scripted_world.h"
#include "ymir/core/codec.h"
#include "ymir/store/check_log.h"

namespace ymir {
namespace {

constexpr std::uint64_t kJobs = 4;

// Draws what happens next; after `calm()` nothing bad does and jobs end by themselves.
class WildWorld final : public World {
 public:
  explicit WildWorld(std::uint64_t seed) : rng_(seed) {}

  // The controller that is under way; the world reads its state to draw something that can happen.
  void watch(const Controller* controller) { controller_ = controller; }
  void begin(int turns) { turns_ = turns; }
  void calm() { calm_ = true; }
  void restarted() {
    orders_.clear();
    waiting_.clear();
    for (std::uint64_t place : {1, 2}) say(PlaceReady{.place = PlaceId{place}, .num_slots = 2});
  }
  void say(EventBody body) { queue_.push_back({.at = now_, .body = std::move(body)}); }

  Time now() const override { return now_; }
  bool finished() const override { return turns_ <= 0; }
  Result<> request(const Action& action) override {
    if (!calm_ && rng_.chance(0.1)) return Error{ErrorCode::kUnavailable, "not reachable"};
    waiting_.push_back(action);
    return Ok{};
  }
  std::vector<Event> wait(Time deadline) override {
    --turns_;
    if (rng_.chance(0.3)) now_ = now_ + Seconds(rng_.uniform(0, 20));
    if (rng_.chance(0.1) && deadline > now_ && deadline < now_ + Seconds(1000)) now_ = deadline;
    answer_some();
    for (std::uint64_t n = rng_.below(3); n > 0; --n) draw();
    if (!calm_ && !past_.empty() && rng_.chance(0.2))  // late or doubled
      queue_.push_back(past_[rng_.below(past_.size())]);
    past_.insert(past_.end(), queue_.begin(), queue_.end());
    return std::exchange(queue_, {});
  }

 private:
  const Snapshot& state() const { return controller_->state(); }

  void answer_some() {
    std::vector<Action> later;
    for (Action& action : std::exchange(waiting_, {})) {
      if (rng_.chance(0.4))
        later.push_back(std::move(action));
      else
        std::visit([&](const auto& a) { answer(a); }, action);
    }
    waiting_.insert(waiting_.begin(), later.begin(), later.end());
  }
  void answer(const StopCheck&) {}  // too late: the answer may come all the same
  void answer(const CheckData& check) {
    say(DataChecked{check.job, {.steps_per_epoch = 10, .total_steps = 40, .backbone = "minilm"}});
  }
  void answer(const StartRun& start) {
    if (orders_.contains(start.run)) return;
    orders_[start.run] = start;
    say(RunStarted{.run = start.run});
  }
  void answer(const StopRun& stop) {
    const auto order = orders_.find(stop.run);
    if (order == orders_.end()) {
      orders_[stop.run] = {};  // overtaken: a later start of it runs nothing
      return say(RunStopped{.run = stop.run, .why = "round"});
    }
    leave(order->second, "round");
  }
  void leave(const StartRun& order, const std::string& why) {
    for (const TaskOrder& task : order.tasks) commit(task.job, order.run, 0);
    say(RunStopped{.run = order.run, .why = why});
  }
  void commit(JobId job, RunId run, std::int64_t more) {
    std::int64_t& step = steps_[{job, run}];
    step = std::max(step, state().jobs.at(job).steps_done) + more;
    say(ScriptedWorld::checkpoint(job, run, step));
  }

  template <class Pick>
  std::optional<RunView> some_run(const Pick& pick) {
    std::vector<RunView> runs;
    for (const auto& [id, run] : state().runs)
      if (run.started && orders_.contains(id) && !run.jobs.empty() && pick(run))
        runs.push_back(run);
    if (runs.empty()) return std::nullopt;
    return runs[rng_.below(runs.size())];
  }
  JobId some_job() { return JobId{1 + rng_.below(kJobs)}; }

  void draw() {
    const std::uint64_t what = rng_.below(calm_ ? 4 : 9);
    const auto any = [](const RunView&) { return true; };
    if (what <= 1) {
      if (const auto run = some_run(any)) train(*run);
    } else if (what <= 2) {
      if (const auto run = some_run(any)) calm_ || rng_.chance(0.3) ? finish(*run) : train(*run);
    } else if (what <= 3) {
      if (calm_)
        for (std::uint64_t id = 1; id <= kJobs; ++id) say(JobReleased{JobId{id}});
      else
        say(JobSubmitted{some_job(), JobSpec{.sharing = {.trust_domain = "team"}}});
    } else if (what == 4) {
      if (const auto run = some_run(any))
        say(RunLost{.run = run->run, .why = "worker_died", .fault = rng_.chance(0.2)});
    } else if (what == 5) {
      say(rng_.chance(0.5) ? EventBody(JobHeld{some_job()}) : EventBody(JobReleased{some_job()}));
    } else if (what == 6 && rng_.chance(0.2)) {
      const JobId job = some_job();
      say(JobFinished{.job = job, .outcome = Outcome::kCancelled, .reason = "cancelled"});
    } else if (what == 7 && rng_.chance(0.3)) {
      const PlaceId place{1 + rng_.below(2)};
      say(PlaceLost{.place = place, .why = "lease over"});
      say(PlaceReady{.place = place, .num_slots = 2});
    } else if (what == 8 && rng_.chance(0.3)) {
      turns_ = 0;  // killed here
    }
  }
  void train(const RunView& run) {
    const JobId job = run.jobs[rng_.below(run.jobs.size())];
    if (run.profile && rng_.chance(0.5)) {
      commit(job, run.run, 1);
      say(rng_.chance(0.8) ? EventBody(ProfileFinished{.job = job, .run = run.run})
                           : EventBody(ProfileFailed{.job = job, .run = run.run}));
      return leave(orders_.at(run.run), "profile_done");
    }
    commit(job, run.run, 1 + static_cast<std::int64_t>(rng_.below(5)));
    const std::int64_t step = steps_[{job, run.run}];
    say(EpochEvaluated{.job = job,
                       .run = run.run,
                       .evaluation = {.step = step, .epoch = static_cast<double>(step) / 10}});
  }
  void finish(const RunView& run) {
    const JobId job = run.jobs[rng_.below(run.jobs.size())];
    for (const JobId other : run.jobs)
      if (other != job) commit(other, run.run, 1);
    say(JobFinished{.job = job, .reason = "target", .run = run.run, .target_reached = true});
    if (run.jobs.size() == 2 && rng_.chance(0.5))
      say(RunStopped{.run = run.run, .why = "partner_finished"});
  }

  Rng rng_;
  const Controller* controller_ = nullptr;
  Time now_ = from_seconds(1);
  int turns_ = 0;
  bool calm_ = false;
  std::vector<Event> queue_{}, past_{};
  std::vector<Action> waiting_{};
  std::map<RunId, StartRun> orders_{};
  std::map<std::pair<JobId, RunId>, std::int64_t> steps_{};
};

// Any plan that check_plan lets through; its choices hang on the seed and the state alone.
std::vector<Assignment> some_plan(std::uint64_t seed, const Snapshot& now) {
  Rng rng(seed ^ now.seq << 20);
  std::vector<const JobView*> jobs;
  for (const auto& [id, job] : now.jobs)
    if (job.active()) jobs.push_back(&job);
  for (std::size_t i = jobs.size(); i > 1; --i) std::swap(jobs[i - 1], jobs[rng.below(i)]);
  std::vector<Assignment> plan;
  std::set<JobId> placed;
  int left = now.num_gpus();
  for (const JobView* job : jobs) {
    if (left == 0 || placed.contains(job->id) || rng.chance(0.15)) continue;
    Assignment what{.job = job->id, .gpus = 1};
    for (const auto& [id, other] : now.jobs) {
      if (id == job->id || !rng.chance(0.5) || job->has_progress() || job->merged) continue;
      if (job->barred.contains(id) || other.facts.backbone != job->facts.backbone) continue;
      const bool free = other.active() && !placed.contains(id);
      if (rng.chance(0.5) && (other.state == JobState::kSucceeded || free))
        what = {.mode = Mode::kTemporal, .job = job->id, .partner = id, .gpus = 1, .strength = 0.5};
      else if (free && !other.has_progress() && !other.merged)
        what = {.mode = Mode::kSpatial,
                .job = std::min(id, job->id),
                .partner = std::max(id, job->id),
                .gpus = 1};
    }
    placed.insert(what.job);
    if (what.partner) placed.insert(*what.partner);
    --left;
    plan.push_back(what);
  }
  return plan;
}

std::vector<TransferOutlook> some_outlooks(std::uint64_t seed, const Snapshot& now) {
  Rng rng(seed ^ now.seq << 24);
  std::vector<TransferOutlook> outlooks;
  for (const auto& [id, run] : now.runs)
    if (run.what.mode != Mode::kNormal)
      for (const JobId job : run.jobs)
        outlooks.push_back({.run = id,
                            .job = job,
                            .helps = rng.uniform(),
                            .epochs = rng.uniform(0, 4),
                            .literal_rule_failed = rng.chance(0.1)});
  return outlooks;
}

void live_through(std::uint64_t seed) {
  WildWorld world(seed);
  ScriptedPolicy policy;
  policy.plan = [seed](const Snapshot& now) { return some_plan(seed, now); };
  ScriptedBeliefs beliefs;
  beliefs.outlooks = [seed](const Snapshot& now) { return some_outlooks(seed, now); };
  const auto log = make_memory_log();
  Rng rng(seed + 1);
  ControllerOptions options;
  options.round = Seconds(15);
  options.publish = false;
  options.profiling.enabled = rng.chance(0.5);
  std::unique_ptr<Controller> controller;
  const auto live = [&](int turns) {
    auto made = Controller::create(options, world, *log, policy, beliefs.bind());
    RC_ASSERT(static_cast<bool>(made));
    controller = *std::move(made);
    world.watch(controller.get());
    world.restarted();
    world.begin(turns);
    RC_ASSERT(static_cast<bool>(controller->run()));
  };

  for (int life = 0; life < 4; ++life) live(static_cast<int>(20 + rng.below(60)));
  world.calm();
  for (std::uint64_t id = 1; id <= kJobs; ++id)
    world.say(JobSubmitted{JobId{id}, JobSpec{.sharing = {.trust_domain = "team"}}});
  live(1500);

  for (const auto& [id, job] : controller->state().jobs) RC_ASSERT(job.ended());
  RC_ASSERT(controller->state().jobs.size() == kJobs);
  const auto report = check_log(*log);
  RC_ASSERT(static_cast<bool>(report));
  if (!report->sound()) RC_LOG(report->faults[0].text);
  RC_ASSERT(report->sound());
  const auto again = replay(*log);
  RC_ASSERT(static_cast<bool>(again));
  RC_ASSERT(encode(*again) == encode(controller->state()));
}

TEST(Interleavings, EndEachJobOnceWhateverCrosses) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) { live_through(seed); }));
}

}  // namespace
}  // namespace ymir
