#include "ymir/sim/artifact/pollux/baselines.h"

#include <algorithm>

namespace ymir::artifact::pollux {
namespace {

// The lists that stay, freed of those that do not.
std::vector<NodeList> held_by_active(const Round& round) {
  std::vector<NodeList> held(round.jobs.size());
  for (const std::size_t i : round.active) held[i] = round.jobs[i].nodes;
  return held;
}

}  // namespace

Result<std::vector<NodeList>> Tiresias::decide(const Round& round) {
  account(round);
  std::vector<NodeList> held = held_by_active(round);
  int budget = round.cluster.gpus();
  for (const auto& queue : queues_)
    for (const std::size_t i : queue) {
      const int gpus = round.jobs[i].trace->gpus;
      state_[i].running = gpus <= budget;
      if (state_[i].running)
        budget -= gpus;
      else
        held[i].clear();
    }
  std::vector<int> free = free_gpus(round.cluster, held);
  for (const auto& queue : queues_)
    for (const std::size_t i : queue)
      if (state_[i].running && held[i].empty())
        held[i] = take_emptiest_first(round.jobs[i].trace->gpus, free);
  return held;
}

// Brings queues and service up to now.
void Tiresias::account(const Round& round) {
  state_.resize(round.jobs.size());
  for (auto& queue : queues_)
    std::erase_if(queue, [&](std::size_t i) { return round.jobs[i].completion_s.has_value(); });
  for (const std::size_t i : round.active) {
    if (state_[i].known) continue;
    state_[i].known = true;
    queues_[0].push_back(i);
  }
  for (const std::size_t i : round.active) {
    State& state = state_[i];
    if (state.running) {
      state.executed_s += round.now_s - state.last_check_s;
      const auto place = std::ranges::find(queues_[0], i);
      if (place != queues_[0].end() &&
          state.executed_s * round.jobs[i].trace->gpus >= limit_gpu_s_) {
        queues_[0].erase(place);
        queues_[1].push_back(i);
      }
    }
    state.last_check_s = round.now_s;
  }
}

Result<double> Optimus::step_seconds(const Job& job, int replicas, int gpus_per_node) {
  const int batch = static_cast<int>(job.trace->batch_size);
  const auto key = std::tuple(job.app, batch, replicas);
  if (const auto known = step_s_.find(key); known != step_s_.end()) return known->second;
  const PolluxSplit split = job.app->split(batch, replicas, PolluxAlone::kAlways);
  YMIR_TRY_ASSIGN(const PolluxStepTime time,
                  job.app->step_time(packed_placement(replicas, gpus_per_node), split.atomic));
  return step_s_[key] = PolluxApplication::step_seconds(time, split);
}

Result<std::vector<NodeList>> Optimus::decide(const Round& round) {
  struct Claim {
    std::size_t job = 0;
    int gpus = 0, cap = 0;
    double steps_left = 0, gain = 0;
  };
  int budget = round.cluster.gpus();
  // What one more GPU saves a job.
  const auto price = [&](Claim& claim) -> Result<> {
    const Job& job = round.jobs[claim.job];
    claim.gain = 0;
    if (claim.gpus + 1 > claim.cap || claim.gpus + 1 > round.cluster.gpus()) return Ok{};
    YMIR_TRY_ASSIGN(const double now, step_seconds(job, claim.gpus, round.cluster.gpus_per_node));
    YMIR_TRY_ASSIGN(const double then,
                    step_seconds(job, claim.gpus + 1, round.cluster.gpus_per_node));
    claim.gain = (now - then) * claim.steps_left;
    return Ok{};
  };
  std::vector<Claim> claims;
  for (const std::size_t i : round.active) {
    const Job& job = round.jobs[i];
    const auto batch = static_cast<double>(job.trace->batch_size);
    Claim claim{.job = i};
    // The artifact keeps the smallest application on one GPU.
    claim.cap =
        job.app->name == "ncf" ? 1 : static_cast<int>(job.trace->batch_size / job.app->min_local);
    claim.steps_left = job.epoch >= job.app->last_epoch()
                           ? 1
                           : job.app->iterations(batch, job.app->last_epoch()) -
                                 job.app->iterations(batch, job.epoch);
    if (budget >= 1) {
      claim.gpus = 1;
      --budget;
      if (budget >= 1) YMIR_TRY(price(claim));
    }
    claims.push_back(claim);
  }
  while (budget > 0) {
    const auto best =
        std::max_element(claims.begin(), claims.end(),
                         [](const Claim& a, const Claim& b) { return a.gain < b.gain; });
    if (best->gain <= 0) break;
    ++best->gpus;
    --budget;
    YMIR_TRY(price(*best));
  }
  std::vector<NodeList> held = held_by_active(round);
  for (const Claim& claim : claims)
    if (static_cast<int>(held[claim.job].size()) != claim.gpus) held[claim.job].clear();
  std::vector<int> free = free_gpus(round.cluster, held);
  std::ranges::stable_sort(claims, {}, &Claim::gpus);
  for (const Claim& claim : claims)
    if (held[claim.job].empty()) held[claim.job] = take_emptiest_first(claim.gpus, free);
  return held;
}

}  // namespace ymir::artifact::pollux
