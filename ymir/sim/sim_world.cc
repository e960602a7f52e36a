#include "ymir/sim/sim_world.h"

#include <fmt/format.h>

#include <algorithm>

namespace ymir {

namespace {

// Order of what happens at one instant.
enum Rank { kFault = 1, kEnd, kEvaluation, kStop, kProfile, kStart, kArrival, kCommand };

constexpr double kAlmost = 1e-9;  // progress is a sum of fractions

std::string checkpoint_path(const TaskOrder& order, RunId run, std::int64_t step) {
  return fmt::format("{}/{}/step-{}", order.folder, to_string(run), step);
}

}  // namespace

Result<> SimOptions::validate() const {
  if (nodes.empty()) return Error{ErrorCode::kInvalidArgument, "a cluster has at least one node"};
  for (const int slots : nodes)
    if (slots < 1 || slots > 1024)
      return Error{ErrorCode::kInvalidArgument, fmt::format("node with {} slots", slots)};
  if (one_place && std::ranges::any_of(nodes, [&](int slots) { return slots != nodes.front(); }))
    return Error{ErrorCode::kInvalidArgument, "nodes of one place must be of one size"};
  if (start_time.count() < 0 || handover_time.count() < 0 || check_time.count() < 0)
    return Error{ErrorCode::kInvalidArgument, "times of a simulation can't be negative"};
  return Ok{};
}

SimWorld::SimWorld(SimOptions options, JobModel model)
    : options_(std::move(options)), model_(std::move(model)) {
  for (int node = 0; node < num_places(); ++node) join(node);
}

int SimWorld::num_places() const {
  return options_.one_place ? 1 : static_cast<int>(options_.nodes.size());
}

void SimWorld::push(Happening happening) {
  happening.sequence = sequence_++;
  heap_.push_back(std::move(happening));
  std::ranges::push_heap(heap_, Later{});
}

void SimWorld::submit_at(Time at, JobId job, JobSpec spec) {
  specs_[job] = std::move(spec);
  push({.at = at, .kind = Kind::kSubmit, .job = job});
}
void SimWorld::hold_at(Time at, JobId job) { push({.at = at, .kind = Kind::kHold, .job = job}); }
void SimWorld::release_at(Time at, JobId job) {
  push({.at = at, .kind = Kind::kRelease, .job = job});
}
void SimWorld::cancel_at(Time at, JobId job) {
  push({.at = at, .kind = Kind::kCancel, .job = job});
}
void SimWorld::kill_worker_at(Time at, JobId job) {
  push({.at = at, .kind = Kind::kKill, .job = job});
}
void SimWorld::lose_node_at(Time at, int node, Time back_at) {
  push({.at = at, .kind = Kind::kLose, .node = node});
  if (back_at != kNever) push({.at = back_at, .kind = Kind::kReturn, .node = node});
}

void SimWorld::break_at(Time at) { push({.at = at, .kind = Kind::kBreak}); }

std::vector<Event> SimWorld::wait(Time deadline) {
  std::vector<Bundle> bundles = std::move(at_once_);
  at_once_.clear();
  const Time limit = std::min(deadline, options_.horizon);
  while (!heap_.empty() && heap_.front().at <= limit &&
         (bundles.empty() || heap_.front().at == now_)) {
    std::ranges::pop_heap(heap_, Later{});
    const Happening next = std::move(heap_.back());
    heap_.pop_back();
    const Time before = now_;
    now_ = std::max(now_, next.at);
    std::optional<Bundle> bundle = happen(next);
    if (!bundle) {
      now_ = before;  // it was called off: nobody may notice
      continue;
    }
    bundle->sequence = next.sequence;
    bundles.push_back(std::move(*bundle));
  }
  if (bundles.empty()) now_ = std::max(now_, limit);
  if (bundles.size() > 1)
    std::ranges::stable_sort(bundles, {}, [](const Bundle& bundle) {
      return std::tuple(bundle.rank, bundle.job, bundle.sequence);
    });
  std::vector<Event> events;
  std::size_t count = 0;
  for (const Bundle& bundle : bundles) count += bundle.bodies.size();
  events.reserve(count);
  for (Bundle& bundle : bundles)
    for (EventBody& body : bundle.bodies)
      events.push_back({.seq = 0, .at = now_, .actor = bundle.actor, .body = std::move(body)});
  return events;
}

SimWorld::Bundle SimWorld::one(int rank, JobId job, EventBody body, std::string actor) {
  Bundle bundle{.rank = rank, .job = job, .actor = std::move(actor)};
  bundle.bodies.push_back(std::move(body));
  return bundle;
}

std::optional<SimWorld::Bundle> SimWorld::happen(const Happening& what) {
  switch (what.kind) {
    case Kind::kSubmit:
      return one(kArrival, what.job, JobSubmitted{what.job, specs_.at(what.job)}, "user");
    case Kind::kHold:
      return one(kCommand, what.job, JobHeld{what.job}, "user");
    case Kind::kRelease:
      return one(kCommand, what.job, JobReleased{what.job}, "user");
    case Kind::kCancel:
      return one(
          kCommand, what.job,
          JobFinished{.job = what.job, .outcome = Outcome::kCancelled, .reason = "cancelled"},
          "user");
    case Kind::kChecked: {
      const JobTruth& truth = model_.job(what.job);
      if (truth.bad_data)
        return one(kArrival, what.job, DataRefused{what.job, {"train.csv:3:1: no label"}});
      const JobSpec& spec = specs_.at(what.job);
      DataFacts facts{.train_rows = truth.steps_per_epoch * spec.train.batch,
                      .validation_rows = 1000,
                      .num_labels = 2,
                      .mean_tokens = 32,
                      .max_length = 128,
                      .steps_per_epoch = truth.steps_per_epoch,
                      .total_steps = truth.max_steps,
                      .data_hash = spec.name,
                      .backbone = spec.model};
      return one(kArrival, what.job, DataChecked{what.job, std::move(facts)});
    }
    case Kind::kKill:
      return kill(what.job);
    case Kind::kLose:
      return lose(what.node, true);
    case Kind::kReturn:
      join(what.node);
      return Bundle{.rank = kFault};
    case Kind::kBreak:
      broken_ = true;
      return Bundle{.rank = kFault};
    case Kind::kBegin:
    case Kind::kMilestone: {
      const auto run = runs_.find(what.run);
      if (run == runs_.end() || run->second.generation != what.generation) return std::nullopt;
      return what.kind == Kind::kBegin ? begin(run->second) : milestone(run->second);
    }
  }
  return std::nullopt;
}

void SimWorld::join(int node) {
  if (place_of_node_.contains(node)) return;
  const PlaceId place{next_place_++};
  place_of_node_[node] = place;
  PlaceReady ready{.place = place,
                   .node = fmt::format("node{}", node),
                   .num_slots = options_.nodes[static_cast<std::size_t>(node)],
                   .hardware = options_.hardware};
  if (options_.one_place) {
    ready.node_slots = ready.num_slots;
    ready.num_slots *= static_cast<int>(options_.nodes.size());
  }
  at_once_.push_back({.rank = kFault, .bodies = {std::move(ready)}});
}

SimWorld::Bundle SimWorld::lose(int node, bool place_too) {
  Bundle bundle{.rank = kFault};
  const auto place = place_of_node_.find(node);
  if (place == place_of_node_.end()) return bundle;
  for (auto& [id, run] : runs_)
    if (!run.ended && run.order.place == place->second) lose_run(run, "place_lost", false, bundle);
  if (!place_too)
    bundle.bodies.clear();
  else
    bundle.bodies.push_back(PlaceLost{place->second, "node failed"});
  place_of_node_.erase(place);
  return bundle;
}

void SimWorld::controller_restarted() {
  broken_ = false;
  at_once_.clear();
  for (int node = 0; node < num_places(); ++node) {
    if (!place_of_node_.contains(node)) continue;
    lose(node, false);
    join(node);
  }
  // Data checks that nobody waits for any more are asked for again.
  std::erase_if(heap_, [](const Happening& each) { return each.kind == Kind::kChecked; });
  std::ranges::make_heap(heap_, Later{});
}

SimWorld::Bundle SimWorld::kill(JobId job) {
  Bundle bundle{.rank = kFault, .job = job};
  for (auto& [id, run] : runs_) {
    const bool in_it =
        std::ranges::any_of(run.tasks, [&](const Task& task) { return task.order->job == job; });
    if (!run.ended && in_it) lose_run(run, "worker_died", true, bundle);
  }
  return bundle;
}

void SimWorld::lose_run(Run& run, const std::string& why, bool fault, Bundle& bundle) {
  for (const Task& task : run.tasks) {
    const std::int64_t at =
        run.started ? task.from.step + boundary_after(run, now_) : task.from.step;
    steps_lost_[task.order->job] += std::max<std::int64_t>(0, at - task.committed);
  }
  run.ended = true;
  ++run.generation;
  bundle.bodies.push_back(RunLost{run.order.run, why, fault});
}

// --- requests -------------------------------------------------------------------------------

Result<> SimWorld::request(const Action& action) {
  if (const auto* order = std::get_if<StartRun>(&action)) start(*order);
  if (const auto* order = std::get_if<StopRun>(&action)) stop(*order);
  if (const auto* order = std::get_if<CheckData>(&action)) {
    specs_[order->job] = order->spec;
    push({.at = now_ + options_.check_time, .kind = Kind::kChecked, .job = order->job});
  }
  return Ok{};
}

void SimWorld::start(const StartRun& order) {
  if (runs_.contains(order.run)) return;  // asked again
  Run& run = runs_[order.run];
  run.order = order;
  const bool place_is_there = std::ranges::any_of(
      place_of_node_, [&](const auto& entry) { return entry.second == order.place; });
  Bundle answer{.rank = kStop, .job = order.tasks.empty() ? JobId{} : order.tasks.front().job};
  for (const TaskOrder& task_order : run.order.tasks) {
    const JobId job = task_order.job;
    Task task{.order = &task_order};
    if (!task_order.checkpoint.empty()) {
      const auto saved = checkpoints_.find(task_order.checkpoint);
      YMIR_CHECK(saved != checkpoints_.end(), "no such checkpoint: " + task_order.checkpoint);
      task.from = saved->second;
    } else if (task_order.source) {
      task.from.progress = model_.head_start(task_order.source, job);
    }
    task.rate = 1.0 / static_cast<double>(model_.job(job).steps);
    task.committed = task.from.step;
    task.next_loss = task.from.step;
    run.tasks.push_back(std::move(task));
  }
  const int gpus = static_cast<int>(order.slots.size()), nodes = num_nodes(order);
  if (order.mode == Mode::kSpatial && run.tasks.size() == 2) {
    const JobId a = run.tasks[0].order->job, b = run.tasks[1].order->job;
    const SpatialTruth truth = model_.spatial(std::min(a, b), std::max(a, b));
    for (Task& task : run.tasks)
      task.rate *= 1 + (task.order->job == std::min(a, b) ? truth.gain_first : truth.gain_second);
    run.step = model_.joint_step_time(std::min(a, b), std::max(a, b), gpus, nodes);
  } else if (!run.tasks.empty()) {
    run.step = model_.step_time(run.tasks.front().order->job, gpus, nodes);
  }
  if (refused_.contains(order.run) || !place_is_there || run.tasks.empty()) {
    run.ended = true;
    answer.bodies.push_back(RunLost{order.run, place_is_there ? "start_failed" : "place_lost"});
    at_once_.push_back(std::move(answer));
    return;
  }
  run.takes_over = std::ranges::any_of(order.slots, [&](int slot) {
    const auto left = left_at_.find({order.place, slot});
    return left != left_at_.end() && left->second == now_;
  });
  push({.at = now_ + start_time(run),
        .kind = Kind::kBegin,
        .job = answer.job,
        .run = order.run,
        .generation = run.generation});
}

int SimWorld::num_nodes(const StartRun& order) const {
  if (!options_.one_place) return 1;
  std::set<int> nodes;
  for (const int slot : order.slots) nodes.insert(slot / options_.nodes.front());
  return static_cast<int>(nodes.size());
}

Seconds SimWorld::start_time(const Run& run) const {
  Seconds most{-1};
  for (const Task& task : run.tasks) most = std::max(most, model_.job(task.order->job).start_time);
  return (most.count() < 0 ? options_.start_time : most) +
         (run.takes_over ? options_.handover_time : Seconds(0));
}

void SimWorld::stop(const StopRun& order) {
  const auto found = runs_.find(order.run);
  if (found == runs_.end()) {  // its start got lost, and must not come later
    refused_.insert(order.run);
    at_once_.push_back({.rank = kStop, .bodies = {RunLost{order.run, "unknown_run"}}});
    return;
  }
  Run& run = found->second;
  if (run.ended || (run.stop_at && !order.now)) return;
  if (order.now || !run.started) {
    Bundle bundle{.rank = kStop, .job = run.tasks.front().order->job};
    if (order.now && run.started) {
      lose_run(run, "stopped", false, bundle);
    } else {
      close(run, "stopped", {}, bundle);
    }
    at_once_.push_back(std::move(bundle));
    return;
  }
  run.stop_at = std::max(run.reached, boundary_after(run, now_));
  schedule_next(run);
}

// --- a run's life ---------------------------------------------------------------------------

Time SimWorld::time_of(const Run& run, std::int64_t step) const {
  return run.first_step + run.step * static_cast<double>(step);
}

// Steps of the run that are complete at the first step boundary not before `at`.
std::int64_t SimWorld::boundary_after(const Run& run, Time at) const {
  std::int64_t steps = static_cast<std::int64_t>((at - run.first_step).count() / run.step.count());
  steps = std::max<std::int64_t>(steps, 0);
  while (time_of(run, steps) < at) ++steps;
  return steps;
}

SimWorld::TaskState SimWorld::state_at(const Run& run, const Task& task, std::int64_t steps) const {
  return {.step = task.from.step + steps,
          .progress = task.from.progress + task.rate * static_cast<double>(steps),
          .trained = task.from.trained + run.step * static_cast<double>(steps)};
}

SimWorld::Bundle SimWorld::begin(Run& run) {
  run.started = true;
  run.first_step = now_;
  if (run.order.profile && run.order.profile_steps > 0) {  // else it only measures, at once
    run.profile_end = run.order.profile_steps;
    if (run.order.profile_time.count() > 0)
      run.profile_end =
          std::min(run.profile_end,
                   static_cast<std::int64_t>(run.order.profile_time.count() / run.step.count()));
    run.profile_end = std::max<std::int64_t>(run.profile_end, 1);
  }
  Bundle bundle{.rank = kStart, .job = run.tasks.front().order->job};
  bundle.bodies.push_back(
      RunStarted{run.order.run, StartKind::kWarm, start_time(run).count() * 1000});
  schedule_next(run);
  return bundle;
}

// The next step of the run at which something is to be reported.
std::int64_t SimWorld::next_step(const Run& run) const {
  std::int64_t next = run.stop_at.value_or(std::numeric_limits<std::int64_t>::max());
  if (run.order.profile) return std::min(next, run.profile_end);
  for (const Task& task : run.tasks) {
    const JobTruth& truth = model_.job(task.order->job);
    const std::int64_t at = task.from.step + run.reached;
    const std::int64_t evaluation = (at / truth.steps_per_epoch + 1) * truth.steps_per_epoch;
    next = std::min(next, std::min(evaluation, std::max(truth.max_steps, at + 1)) - task.from.step);
    const double every = task.order->spec.checkpoint_every.count();
    if (every <= 0) continue;
    const std::int64_t apart =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(every / run.step.count()));
    next = std::min(next, (run.reached / apart + 1) * apart);
  }
  return next;
}

void SimWorld::schedule_next(Run& run) {
  const std::int64_t step = next_step(run);
  push({.at = std::max(now_, time_of(run, step)),
        .kind = Kind::kMilestone,
        .job = run.tasks.front().order->job,
        .run = run.order.run,
        .generation = ++run.generation});
}

JobFinished SimWorld::end_of(const Run& run, const Task& task, const std::string& reason,
                             const Evaluation& evaluation, std::int64_t step) {
  const bool reached = reason == "target", diverged = reason == "diverged";
  const bool failed = diverged || (!reached && task.order->spec.stop.require_target);
  return {.job = task.order->job,
          .outcome = failed ? Outcome::kFailed : Outcome::kSucceeded,
          .reason = failed ? "failed" : reason,
          .code = diverged ? "diverged"
                  : failed ? "target_not_reached"
                           : "",
          .run = run.order.run,
          .target_reached = reached,
          .step = step,
          .metrics = evaluation.metrics,
          .adapter = task.order->folder + "/adapter",
          .adapter_hash = fmt::format("adapter-{}-{}", to_string(task.order->job), step)};
}

SimWorld::Bundle SimWorld::milestone(Run& run) {
  Bundle bundle{.rank = kStop, .job = run.tasks.front().order->job};
  bundle.bodies.reserve(4 * run.tasks.size() + 1);  // at an end
  run.reached = next_step(run);
  if (run.order.profile && run.reached >= run.profile_end) {
    bundle.rank = kProfile;
    commit(run, run.tasks.front(), bundle);
    const JobId job = run.tasks.front().order->job;
    if (model_.job(job).no_profile)
      bundle.bodies.push_back(ProfileFailed{job, run.order.run, "out of memory"});
    else
      bundle.bodies.push_back(ProfileFinished{job, run.order.run, profile(run)});
    close(run, "profile_done", {}, bundle);
    return bundle;
  }
  std::set<JobId> ended;
  for (Task& task : run.tasks) {
    const JobTruth& truth = model_.job(task.order->job);
    const TaskState state = state_at(run, task, run.reached);
    const double every = task.order->spec.checkpoint_every.count();
    const std::int64_t apart =
        every <= 0 ? 0
                   : std::max<std::int64_t>(1, static_cast<std::int64_t>(every / run.step.count()));
    const bool last = state.step >= truth.max_steps;
    if (!run.order.profile && (last || state.step % truth.steps_per_epoch == 0)) {
      bundle.rank = std::min<int>(bundle.rank, kEvaluation);
      const Evaluation evaluation = evaluate(run, task, run.reached);
      bundle.bodies.push_back(
          EpochEvaluated{task.order->job, run.order.run, evaluation, losses(task, state.step)});
      std::string reason;
      if (ends(task, evaluation, &reason)) {
        bundle.rank = kEnd;
        commit(run, task, bundle);
        bundle.bodies.push_back(end_of(run, task, reason, evaluation, state.step));
        ended.insert(task.order->job);
        continue;
      }
    }
    if (apart > 0 && run.reached % apart == 0) commit(run, task, bundle);
  }
  if (!ended.empty()) {
    close(run, ended.size() == run.tasks.size() ? "finished" : "partner_finished", ended, bundle);
  } else if (run.stop_at && run.reached >= *run.stop_at) {
    close(run, "stopped", {}, bundle);
  } else {
    schedule_next(run);
  }
  return bundle;
}

void SimWorld::close(Run& run, const std::string& why, const std::set<JobId>& ended,
                     Bundle& bundle) {
  RunStopped stopped{.run = run.order.run, .why = why};
  for (Task& task : run.tasks) {
    if (ended.contains(task.order->job)) continue;
    if (run.started) commit(run, task, bundle);
    stopped.jobs.push_back(task.order->job);
    stopped.steps.push_back(task.committed);
  }
  for (const Task& task : run.tasks)
    if (run.reached > 0 && !run.order.profile)
      bundle.bodies.push_back(StepTimed{task.order->job, run.order.run, timing(run, task)});
  if (run.started)
    stopped.busy = (now_ - run.first_step) * static_cast<double>(run.order.slots.size());
  run.ended = true;
  ++run.generation;
  if (options_.handover_time.count() > 0)
    for (const int slot : run.order.slots) left_at_[{run.order.place, slot}] = now_;
  bundle.bodies.push_back(std::move(stopped));
}

void SimWorld::commit(Run& run, Task& task, Bundle& bundle) {
  const TaskState state = state_at(run, task, run.reached);
  if (state.step <= task.committed) return;
  const std::string path = checkpoint_path(*task.order, run.order.run, state.step);
  checkpoints_[path] = state;
  newest_[task.order->job] = state;
  task.committed = state.step;
  bundle.bodies.push_back(CheckpointCommitted{.job = task.order->job,
                                              .run = run.order.run,
                                              .step = state.step,
                                              .path = path,
                                              .hash = "state-" + path,
                                              .adapter = path + "/adapter",
                                              .adapter_hash = "adapter-" + path});
}

// --- what workers measure -------------------------------------------------------------------

Evaluation SimWorld::evaluate(const Run& run, const Task& task, std::int64_t at) {
  const JobTruth& truth = model_.job(task.order->job);
  const TaskState state = state_at(run, task, at);
  double metric = model_.metric(task.order->job, state.progress);
  if (truth.noise > 0) {
    // Its own generator a measurement: adding a job changes no other job's noise.
    Rng rng(options_.seed * 1'000'003 + task.order->job.value * 7919 +
            static_cast<std::uint64_t>(state.step));
    metric += rng.uniform(-truth.noise, truth.noise);
  }
  const std::string& name =
      task.order->spec.target.metric.empty() ? "accuracy" : task.order->spec.target.metric;
  return {.step = state.step,
          .epoch = static_cast<double>(state.step) / static_cast<double>(truth.steps_per_epoch),
          .samples = state.step * task.order->spec.train.batch,
          .metrics = {{name, metric}},
          .train_loss = model_.loss(task.order->job, state.progress),
          .train_time = state.trained};
}

bool SimWorld::ends(const Task& task, const Evaluation& evaluation, std::string* reason) const {
  const TargetSpec& target = task.order->spec.target;
  const std::int64_t diverges_at = model_.job(task.order->job).diverges_at;
  if (diverges_at > 0 && evaluation.step >= diverges_at) {
    *reason = "diverged";
    return true;
  }
  if (!target.metric.empty() && evaluation.metrics.begin()->second + kAlmost >= target.value) {
    *reason = "target";
    return true;
  }
  *reason = "budget";
  return evaluation.step >= model_.job(task.order->job).max_steps;
}

// About ten points an epoch, each the loss in the middle of its interval.
std::vector<LossPoint> SimWorld::losses(Task& task, std::int64_t upto) const {
  std::vector<LossPoint> points;
  const std::int64_t epoch = model_.job(task.order->job).steps_per_epoch;
  const std::int64_t apart = std::max<std::int64_t>(1, epoch / 10);
  for (std::int64_t step = task.next_loss + apart; step <= upto; step += apart) {
    const double middle =
        static_cast<double>(step - task.from.step) - static_cast<double>(apart) / 2;
    points.push_back({step, model_.loss(task.order->job, task.from.progress + task.rate * middle)});
    task.next_loss = step;
  }
  return points;
}

StepTiming SimWorld::timing(const Run& run, const Task& task) const {
  const MethodSpec& method = task.order->spec.method;
  std::string targets;
  for (const std::string& name : method.targets) targets += (targets.empty() ? " " : ",") + name;
  return {.key = {.backbone = task.order->spec.model,
                  .method = fmt::format("{} r{}{}", method.kind, method.rank, targets),
                  .hardware = options_.hardware,
                  .precision = task.order->spec.train.precision,
                  .joint = run.order.mode == Mode::kSpatial,
                  .gpus = static_cast<int>(run.order.slots.size()),
                  .batch = task.order->spec.train.batch,
                  .tokens_per_row = 32},
          .num_steps = std::max<std::int64_t>(run.reached, 1),
          .median = run.step,
          .mad = Seconds(0)};
}

Profile SimWorld::profile(Run& run) {
  Task& task = run.tasks.front();
  Profile made;
  made.losses = losses(task, state_at(run, task, run.reached).step);
  for (const std::int64_t part : {4, 2, 1})
    if (run.reached / part > 0) made.evaluations.push_back(evaluate(run, task, run.reached / part));
  made.step_times.push_back(timing(run, task));
  made.peak_memory = std::int64_t{1} << 30;
  made.seconds = (now_ - run.first_step) * static_cast<double>(run.order.slots.size());
  const JobId job = task.order->job;
  if (run.order.want_vector) {
    // Jobs of one family share most of the pattern; a part is the job's own.
    std::uint64_t family = 1;
    for (const char c : model_.job(job).family)
      family = family * 131 + static_cast<std::uint64_t>(c);
    Rng common(family), own(job.value + 17);
    double sum = 0;
    for (int i = 0; i < 64; ++i) {
      made.vector.fisher.push_back(
          static_cast<float>(0.8 * common.uniform() + 0.2 * own.uniform()));
      sum += static_cast<double>(made.vector.fisher.back());
    }
    for (float& x : made.vector.fisher) x = static_cast<float>(static_cast<double>(x) * 64 / sum);
    made.vector.key = "simulated " + task.order->spec.model;
    made.vector.scale = sum / 64;
    made.vector.rows = 512;
    made.vector.split_half = 0.98;
  }
  for (const TaskOrder& probe : run.order.probes)
    made.probes.push_back({.source = probe.source,
                           .strength = probe.strength,
                           .value = model_.probe_value(probe.source, job),
                           .rows = 500});
  return made;
}

std::int64_t SimWorld::steps_lost(JobId job) const {
  const auto found = steps_lost_.find(job);
  return found == steps_lost_.end() ? 0 : found->second;
}
std::int64_t SimWorld::steps_lost() const {
  std::int64_t sum = 0;
  for (const auto& [job, steps] : steps_lost_) sum += steps;
  return sum;
}

double SimWorld::progress_of(JobId job) const {
  const auto found = newest_.find(job);
  return found == newest_.end() ? 0 : found->second.progress;
}

}  // namespace ymir
