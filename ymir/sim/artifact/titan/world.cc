#include "ymir/sim/artifact/titan/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <memory>
#include <numeric>

namespace ymir::artifact::titan {
namespace {

// A policy that never serves a job, or stops all of them before they get anywhere, ends here, with
// these jobs censored.
constexpr std::int64_t kMaxRounds = 1 << 22, kMaxIdleRounds = 1 << 14;
constexpr int kMaxGpus = 1 << 14;
// Samples that a job may lack and yet be complete.
constexpr double kDone = 0.1;

std::string where(const Trace& trace, const TraceJob& job) {
  return fmt::format("{}:{}: {}", trace.file, job.line, job.name);
}

std::vector<std::string> models_of(const Trace& trace) {
  std::vector<std::string> models;
  for (const TraceJob& job : trace.jobs) {
    const std::string model = job.application.substr(0, job.application.find('@'));
    if (std::ranges::find(models, model) == models.end()) models.push_back(model);
  }
  return models;
}

void erase(std::vector<int>& list, int job) { std::erase(list, job); }

}  // namespace

Result<World> World::make(const Trace& trace, const Options& options, const Settings& settings) {
  World world;
  world.nodes_ = options.nodes > 0 ? options.nodes : 8;
  world.gpus_per_node_ = options.gpus_per_node > 0 ? options.gpus_per_node : 4;
  if (world.nodes_ > kMaxGpus / world.gpus_per_node_)
    return Error{ErrorCode::kInvalidArgument, fmt::format("more than {} GPUs: {} x {}", kMaxGpus,
                                                          world.nodes_, world.gpus_per_node_)};
  world.checkpoint_s_ = settings.number("clock.checkpoint_s", 30);
  YMIR_TRY_ASSIGN(TitanProfile profile,
                  TitanProfile::read({.folder = options.profiles,
                                      .gpu_type = settings.word("profiles.gpu_type", "V100"),
                                      .models = models_of(trace)}));
  world.profile_ = std::make_unique<const TitanProfile>(std::move(profile));
  world.free_.assign(static_cast<std::size_t>(world.nodes_), world.gpus_per_node_);
  for (const TraceJob& asked : trace.jobs) {
    auto kind = world.profile_->find(asked.application, asked.learning_rate, asked.gradient_steps,
                                     asked.batch_size);
    if (!kind) return annotate(kind.error(), where(trace, asked));
    if (asked.gpus < 1 || asked.gpus > world.num_gpus())
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} asks for {} GPUs of {}", where(trace, asked), asked.gpus,
                               world.num_gpus())};
    world.jobs_.push_back({.asked = &asked, .kind = *kind});
    world.results_.push_back(
        {.name = asked.name, .submission_s = asked.submission_s, .requested_gpus = asked.gpus});
  }
  world.by_submission_.resize(world.jobs_.size());
  std::iota(world.by_submission_.begin(), world.by_submission_.end(), 0);
  std::ranges::stable_sort(world.by_submission_, {},
                           [&](int job) { return world.job(job).asked->submission_s; });
  return world;
}

Result<Run> World::run(double interval_s, const Decide& decide) {
  if (!(interval_s > 0) || interval_s > 1e7)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the interval is not within 0 and 10^7 s: {}", interval_s)};
  std::int64_t rounds = 0, idle = 0;
  for (; rounds < kMaxRounds && idle < kMaxIdleRounds; ++rounds) {
    if (next_arrival_ == by_submission_.size() && pending_.empty() && running_.empty()) break;
    now_ = static_cast<double>(rounds) * interval_s;
    before_ = std::max(0.0, now_ - interval_s);
    for (const int running : running_) step(job(running));
    end_jobs();
    admit();
    for (const int pending : pending_) step(job(pending));
    YMIR_TRY(decide(*this));
    idle = running_.empty() && !pending_.empty() ? idle + 1 : 0;
  }
  return report(rounds);
}

double World::elapsed(const Job& job) const {
  return now_ - std::max(before_, job.asked->submission_s);
}

// The order of operations is that of the published results.
void World::step(Job& job) {
  double seconds = elapsed(job);
  if (job.nodes.empty()) {
    job.staying += seconds;
    job.pending += seconds;
    return;
  }
  const double switching = std::min(job.switch_left, seconds);
  job.switch_left -= switching;
  seconds -= switching;
  job.staying += switching;
  job.service += switching * job.gpus();

  const auto samples = static_cast<double>(job.rate.samples);
  const double done =
      std::min(seconds / job.rate.seconds * samples, job.kind->samples - job.progress);
  const double took = std::nearbyint(done / samples * job.rate.seconds);
  job.progress += done;
  if (std::abs(job.progress - job.kind->samples) <= kDone) {
    job.state = State::kEnded;
    const auto index = static_cast<std::size_t>(&job - jobs_.data());
    results_[index].completion_s = job.staying + took + job.asked->submission_s;
    results_[index].last_gpus = job.gpus();
  }
  job.service += took * job.gpus();
  job.staying += took;
  job.running += took;
}

void World::end_jobs() {
  for (const int running : running_)
    if (job(running).state == State::kEnded) release(running);
  std::erase_if(running_, [&](int index) { return job(index).state == State::kEnded; });
}

void World::admit() {
  arrived_.clear();
  while (next_arrival_ < by_submission_.size()) {
    Job& next = job(by_submission_[next_arrival_]);
    if (next.asked->submission_s > now_) break;
    next.state = State::kPending;
    arrived_.push_back(by_submission_[next_arrival_++]);
  }
  pending_.insert(pending_.end(), arrived_.begin(), arrived_.end());
}

int World::free_gpus() const { return std::accumulate(free_.begin(), free_.end(), 0); }

std::vector<int> World::counts_of(const std::vector<int>& nodes) const {
  std::vector<int> counts;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (i > 0 && nodes[i] == nodes[i - 1])
      ++counts.back();
    else
      counts.push_back(1);
  return counts;
}

Result<double> World::predicted(int index, int gpus) {
  const Job& asked = job(index);
  auto& known = packed_[asked.kind];
  const auto at = static_cast<std::size_t>(gpus);
  if (known.size() <= at) known.resize(at + 1);
  if (!known[at]) {
    YMIR_TRY_ASSIGN(const StepRate rate,
                    profile_->rate(*asked.kind, packed_placement(gpus, gpus_per_node_)));
    known[at] = rate;
  }
  const double left = asked.kind->samples - asked.progress;
  return std::nearbyint(left / static_cast<double>(known[at]->samples) *
                        known[at]->predicted_seconds);
}

void World::release(int index) {
  Job& held = job(index);
  for (const int node : held.nodes) ++free_[static_cast<std::size_t>(node)];
  results_[static_cast<std::size_t>(index)].gpu_seconds += (now_ - held.placed_at) * held.gpus();
  held.nodes.clear();
  changes_.push_back({.at_s = now_, .job = index});
}

void World::stop(int index) {
  release(index);
  job(index).state = State::kPending;
  erase(running_, index);
  pending_.push_back(index);
}

// Fewest nodes: the best fit where one node can do, the emptiest first where none can.
std::optional<std::vector<int>> World::find_nodes(int gpus) const {
  if (free_gpus() < gpus) return std::nullopt;
  std::vector<int> order(free_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto free_of = [&](int node) { return free_[static_cast<std::size_t>(node)]; };
  std::ranges::stable_sort(order, {}, [&](int node) {
    if (gpus > gpus_per_node_) return -free_of(node);
    return free_of(node) >= gpus ? free_of(node) : INT_MAX;
  });
  std::vector<int> nodes;
  int used = 0;
  for (const int node : order) {
    const int take = std::min(free_of(node), gpus - static_cast<int>(nodes.size()));
    if (take == 0) continue;
    nodes.insert(nodes.end(), static_cast<std::size_t>(take), node);
    ++used;
  }
  if ((used - 1) * gpus_per_node_ >= gpus) return std::nullopt;
  std::ranges::sort(nodes);
  return nodes;
}

Result<> World::start(const std::vector<Start>& starts) {
  std::vector<Start> order = starts;
  std::ranges::stable_sort(order, std::greater{}, &Start::gpus);
  for (const Start& next : order) {
    Job& held = job(next.job);
    auto nodes = find_nodes(next.gpus);
    if (!nodes) continue;
    YMIR_TRY_ASSIGN(held.rate, profile_->rate(*held.kind, counts_of(*nodes)));
    for (const int node : *nodes) --free_[static_cast<std::size_t>(node)];
    held.nodes = *std::move(nodes);
    held.state = State::kRunning;
    held.switch_left = checkpoint_s_ + held.kind->switch_s;
    held.placed_at = now_;
    if (held.starts++ == 0) results_[static_cast<std::size_t>(next.job)].first_start_s = now_;
    changes_.push_back({.at_s = now_, .job = next.job, .nodes = held.nodes});
  }
  for (const Start& next : starts)
    if (job(next.job).state == State::kRunning) {
      erase(pending_, next.job);
      running_.push_back(next.job);
    }
  return Ok{};
}

Run World::report(std::int64_t rounds) const {
  Run run{.jobs = results_, .changes = changes_, .rounds = rounds};
  int censored = 0;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    run.jobs[i].finished = jobs_[i].state == State::kEnded;
    run.jobs[i].queueing_s = jobs_[i].pending;
    run.jobs[i].restarts = std::max(0, jobs_[i].starts - 1);
    censored += run.jobs[i].finished ? 0 : 1;
  }
  if (censored > 0)
    run.notes.push_back(fmt::format("{} jobs not served within {} rounds", censored, rounds));
  return run;
}

}  // namespace ymir::artifact::titan
