#include "ymir/sim/artifact/pollux/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace ymir::artifact::pollux {
namespace {

using Source = PolluxStepTime::Source;

class World {
 public:
  World(const WorldOptions& options, const Discipline& discipline)
      : options_(options), discipline_(discipline) {}

  Result<> admit(const Trace& trace, const PolluxProfile& profile);
  Result<Run> run();

 private:
  Result<> step(std::size_t index, double seconds);
  Result<> run_stretch(std::size_t index, double& seconds);
  Result<> decide(double now_s);
  void reallocate(std::size_t index, NodeList nodes, double now_s);
  Result<PolluxStepTime> step_time(const Job& job);
  bool disturbed(std::size_t index) const;
  PolluxSplit fixed_split(const Job& job) const {
    return job.app->split(static_cast<int>(job.trace->batch_size), job.replicas(),
                          PolluxAlone::kAboveInitialBatch);
  }
  void note_look_ups();

  const WorldOptions& options_;
  const Discipline& discipline_;
  std::vector<Job> jobs_;
  Run run_;
  // Look-ups made, by application, placement and batch: also the only memory of their sources.
  std::map<std::tuple<const PolluxApplication*, std::uint64_t, int>, PolluxStepTime> look_ups_;
};

Result<> World::admit(const Trace& trace, const PolluxProfile& profile) {
  for (const TraceJob& row : trace.jobs) {
    const auto fault = [&](const std::string& what) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}:{}: {}: {}", trace.file, row.line, row.name, what)};
    };
    Job job{.trace = &row, .app = profile.find(row.application)};
    if (job.app == nullptr) return fault("no profile of the application: " + row.application);
    if (row.gpus < 1 || row.gpus > options_.cluster.gpus())
      return fault(fmt::format("asks for {} GPUs of {}", row.gpus, options_.cluster.gpus()));
    if (row.batch_size < job.app->init_batch || row.batch_size > job.app->max_batch)
      return fault(fmt::format("batch {} is outside {}..{}", row.batch_size, job.app->init_batch,
                               job.app->max_batch));
    jobs_.push_back(std::move(job));
    run_.jobs.push_back(
        {.name = row.name, .submission_s = row.submission_s, .requested_gpus = row.gpus});
  }
  return Ok{};
}

Result<Run> World::run() {
  double now_s = 0;
  const auto unfinished = [](const Job& job) { return !job.completion_s; };
  while (std::any_of(jobs_.begin(), jobs_.end(), unfinished) && now_s < options_.horizon_s) {
    for (std::size_t i = 0; i < jobs_.size(); ++i) YMIR_TRY(step(i, options_.interval_s));
    now_s += options_.interval_s;
    YMIR_TRY(decide(now_s));
  }
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const Job& job = jobs_[i];
    JobResult& result = run_.jobs[i];
    result.finished = job.completion_s.has_value();
    result.completion_s = job.completion_s.value_or(now_s);
    result.gpu_seconds += (now_s - job.placed_s) * static_cast<double>(job.nodes.size());
    result.restarts = std::max(0, job.starts - 1);
  }
  note_look_ups();
  return std::move(run_);
}

Result<PolluxStepTime> World::step_time(const Job& job) {
  const auto key = std::tuple(job.app, pollux_placement_id(job.placement), job.split.atomic);
  if (std::get<1>(key) != 0)
    if (const auto known = look_ups_.find(key); known != look_ups_.end()) return known->second;
  YMIR_TRY_ASSIGN(const PolluxStepTime time, job.app->step_time(job.placement, job.split.atomic));
  look_ups_.emplace(key, time);
  return time;
}

// Two jobs that both span nodes and share one slow each other down.
bool World::disturbed(std::size_t index) const {
  if (jobs_[index].placement.size() < 2) return false;
  for (std::size_t other = 0; other < jobs_.size(); ++other) {
    if (other == index || jobs_[other].placement.size() < 2 || jobs_[other].completion_s) continue;
    for (const int node : jobs_[other].nodes)
      if (std::ranges::find(jobs_[index].nodes, node) != jobs_[index].nodes.end()) return true;
  }
  return false;
}

Result<> World::step(std::size_t index, double seconds) {
  Job& job = jobs_[index];
  if (job.completion_s) return Ok{};
  if (job.placement.empty()) {
    // What it waited before its submission is not waiting.
    run_.jobs[index].queueing_s +=
        std::max(0.0, job.clock_s + seconds - std::max(job.clock_s, job.trace->submission_s));
    job.clock_s += seconds;
    return Ok{};
  }
  const double delay = std::min(job.delay_s, seconds);
  job.clock_s += delay;
  job.attained_gpu_s += delay * job.replicas();
  job.delay_s -= delay;
  seconds -= delay;
  while (seconds > 0 && !job.completion_s) YMIR_TRY(run_stretch(index, seconds));
  job.clock_s += seconds;
  return Ok{};
}

// To the end of the interval or of the epoch, whichever is first.
Result<> World::run_stretch(std::size_t index, double& seconds) {
  Job& job = jobs_[index];
  YMIR_TRY_ASSIGN(const PolluxStepTime time, step_time(job));
  const int batch = job.split.total(job.replicas());
  if (batch < job.app->init_batch || batch > job.app->max_batch)
    return Error{ErrorCode::kNotFound,
                 fmt::format("no validation of the look-up: {}, batch {}", job.app->name, batch)};
  const double scale = static_cast<double>(batch) / job.app->init_batch;
  const PolluxGradStats grad = job.app->grad_stats(batch, job.epoch);
  if (discipline_.measured)
    discipline_.measured(
        index, {static_cast<int>(job.placement.size()), job.replicas(), job.split, time, grad});
  double goodput =
      PolluxApplication::gain(grad, scale) / PolluxApplication::step_seconds(time, job.split);
  if (options_.interference > 0 && disturbed(index)) goodput *= 1 - options_.interference;
  const double target = job.app->progress_after(job.epoch + 1);
  double elapsed = seconds;
  if (job.progress + goodput * seconds < target) {
    job.progress += goodput * seconds;
    job.clock_s += seconds;
    seconds = 0;
  } else {
    ++job.epoch;
    elapsed = std::nearbyint((target - job.progress) / goodput);
    if (job.epoch > job.app->last_epoch()) {
      job.completion_s = job.clock_s + elapsed;
      run_.jobs[index].last_gpus = job.replicas();
    }
    job.progress = target;
    job.clock_s += elapsed;
    seconds -= elapsed;
  }
  job.attained_gpu_s += elapsed * job.replicas();
  if (discipline_.split && !job.completion_s) job.split = discipline_.split(index, job);
  return Ok{};
}

Result<> World::decide(double now_s) {
  std::vector<std::size_t> active;
  for (std::size_t i = 0; i < jobs_.size(); ++i)
    if (now_s >= jobs_[i].trace->submission_s && !jobs_[i].completion_s) active.push_back(i);
  // Complete jobs hold their GPUs up to here.
  for (std::size_t i = 0; i < jobs_.size(); ++i)
    if (jobs_[i].completion_s && !jobs_[i].nodes.empty()) reallocate(i, {}, now_s);
  if (active.empty()) return Ok{};
  ++run_.rounds;
  YMIR_TRY_ASSIGN(std::vector<NodeList> nodes,
                  discipline_.decide({now_s, options_.cluster, jobs_, active}));
  YMIR_CHECK(nodes.size() == jobs_.size(), "a policy answers for every job");
  for (const int left : free_gpus(options_.cluster, nodes))
    YMIR_CHECK(left >= 0, "a GPU was given twice");
  for (std::size_t i = 0; i < jobs_.size(); ++i)
    if (nodes[i] != jobs_[i].nodes) reallocate(i, std::move(nodes[i]), now_s);
  return Ok{};
}

void World::reallocate(std::size_t index, NodeList nodes, double now_s) {
  Job& job = jobs_[index];
  run_.jobs[index].gpu_seconds += (now_s - job.placed_s) * static_cast<double>(job.nodes.size());
  job.placed_s = now_s;
  job.nodes = std::move(nodes);
  job.placement = run_lengths(job.nodes);
  run_.changes.push_back({now_s, static_cast<int>(index), job.nodes});
  if (job.nodes.empty()) return;
  if (job.starts++ == 0) run_.jobs[index].first_start_s = now_s;
  job.delay_s = options_.restart_s;
  job.split = discipline_.split ? discipline_.split(index, job) : fixed_split(job);
}

void World::note_look_ups() {
  std::map<Source, int> count;
  int several = 0;
  for (const auto& [key, time] : look_ups_) {
    ++count[time.source];
    if (time.unique) continue;
    if (++several > 8) continue;
    const auto& [app, placement, batch] = key;
    run_.notes.push_back(fmt::format(
        "look-up in no table, interpolated where triangulations differ: {} on {}, local batch {}",
        app->name, placement, batch));
  }
  run_.notes.push_back(fmt::format(
      "look-ups: {} from the file of look-ups, {} linear in the local batch, {} of the same size, "
      "{} interpolated in nodes, GPUs and batch, of these {} not unique (not comparable to the "
      "job)",
      count[Source::kLookUp], count[Source::kMeasured], count[Source::kSameSize],
      count[Source::kScattered], several));
}

}  // namespace

Result<> WorldOptions::validate() const {
  const auto fault = [](const std::string& what) {
    return Error{ErrorCode::kInvalidArgument, what};
  };
  if (cluster.nodes < 1 || cluster.nodes > 10'000) return fault("nodes: must be in 1..10000");
  if (cluster.gpus_per_node < 1 || cluster.gpus_per_node > 9)
    return fault("gpus_per_node: must be in 1..9 (a digit of the placements)");
  if (!(interval_s >= 1 && interval_s <= 1e6)) return fault("interval: must be in 1..1e6 s");
  if (!(restart_s >= 0 && restart_s <= 1e6)) return fault("restart: must be in 0..1e6 s");
  if (!(interference >= 0 && interference < 1)) return fault("interference: must be in [0, 1)");
  if (!(horizon_s > 0 && horizon_s <= 1e9)) return fault("horizon: must be in (0, 1e9] s");
  return Ok{};
}

Result<Run> run_world(const Trace& trace, const PolluxProfile& profile, const WorldOptions& options,
                      const Discipline& discipline) {
  YMIR_TRY(options.validate());
  World world(options, discipline);
  YMIR_TRY(world.admit(trace, profile));
  return world.run();
}

std::vector<int> run_lengths(const NodeList& nodes) {
  std::vector<int> lengths;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i == 0 || nodes[i] != nodes[i - 1]) lengths.push_back(0);
    ++lengths.back();
  }
  return lengths;
}

NodeList take_emptiest_first(int gpus, std::vector<int>& free) {
  NodeList nodes;
  while (static_cast<int>(nodes.size()) < gpus) {
    const auto emptiest = std::max_element(free.begin(), free.end());
    const int take = std::min(*emptiest, gpus - static_cast<int>(nodes.size()));
    YMIR_CHECK(take > 0, "not enough GPUs for a placement");
    nodes.insert(nodes.end(), static_cast<std::size_t>(take),
                 static_cast<int>(emptiest - free.begin()));
    *emptiest -= take;
  }
  return nodes;
}

std::vector<int> free_gpus(const Cluster& cluster, std::span<const NodeList> held) {
  std::vector<int> free(static_cast<std::size_t>(cluster.nodes), cluster.gpus_per_node);
  for (const NodeList& nodes : held)
    for (const int node : nodes) --free[static_cast<std::size_t>(node)];
  return free;
}

}  // namespace ymir::artifact::pollux
