#include "ymir/schedule/budget_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>
#include <variant>

#include "ymir/schedule/packing.h"
#include "ymir/schedule/sizes.h"

namespace ymir {

namespace {

struct Request {
  const JobView* job = nullptr;
  const Candidate* alone = nullptr;  // at the requested number of GPUs
  PlaceId held{};                    // where it runs so now
  bool running = false;
  double key = 0;
};

using Alone = std::map<std::pair<JobId, int>, const Candidate*>;

Alone normal_candidates(const Forecast& forecast) {
  Alone alone;
  for (const Candidate& candidate : forecast.candidates)
    if (candidate.what.mode == Mode::kNormal && !candidate.members.empty())
      alone.emplace(std::pair{candidate.what.job, candidate.what.gpus}, &candidate);
  return alone;
}

// What a stop would cost the job later. The candidate that goes on as it is costs nothing now.
double restart_seconds(const Alone& alone, JobId job) {
  double most = 0;
  for (auto it = alone.lower_bound({job, 0}); it != alone.end() && it->first.first == job; ++it)
    most = std::max(most, it->second->switch_cost.count());
  return most;
}

// What the job asks for this round, or why it can't ask.
std::variant<Request, std::string> request_of(const Round& round, const Alone& alone,
                                              const JobView& job,
                                              const BudgetWalkOptions& options) {
  if (job.state == JobState::kProfiling) return "profile";
  const int largest = largest_node(round.cluster);
  const std::vector<int> sizes = sizes_of(job.spec, largest);
  if (sizes.empty()) return does_not_fit(job.spec, largest);
  Request request{.job = &job};
  int gpus = options.largest_size ? sizes.back() : sizes.front();
  if (const auto run = round.cluster.runs.find(job.run); run != round.cluster.runs.end() &&
                                                         !run->second.profile &&
                                                         run->second.what.mode == Mode::kNormal) {
    gpus = run->second.what.gpus;
    request.held = run->second.place;
    request.running = true;
  }
  const auto found = alone.find({job.id, gpus});
  if (found == alone.end()) return fmt::format("no_forecast gpus={}", gpus);
  request.alone = found->second;
  using Key = BudgetWalkOptions::Key;
  if (options.key == Key::kSubmission) return request;
  request.key = found->second->members.front().finish_in.p50;
  if (request.running && options.hysteresis) request.key -= restart_seconds(alone, job.id);
  if (options.key == Key::kTimeTimesGpus) request.key *= gpus;
  return request;
}

// Down the list while GPUs are left; what finds no node after all waits.
void walk(const Round& round, std::span<const Request> list, bool backfill, Plan& plan) {
  int budget = round.cluster.num_gpus();
  std::vector<const Request*> taken;
  std::optional<JobId> first_left;  // nobody behind it starts, unless the policy backfills
  for (const Request& request : list) {
    const int gpus = request.alone->what.gpus;
    if (gpus <= budget && (!first_left || backfill)) {
      budget -= gpus;
      taken.push_back(&request);
      continue;
    }
    if (!first_left) {
      first_left = request.job->id;
      plan.waiting.push_back(
          {request.job->id, fmt::format("no_capacity gpus={} free={}", gpus, budget)});
    } else {
      plan.waiting.push_back({request.job->id, "behind " + to_string(*first_left)});
    }
  }

  std::vector<Load> loads;
  for (const Request* request : taken) loads.push_back({request->alone->what.gpus, request->held});
  const std::vector<bool> room = pack(round.cluster, loads);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (room[i])
      plan.assignments.push_back({.what = taken[i]->alone->what, .card = taken[i]->alone->card});
    else
      plan.waiting.push_back({taken[i]->job->id, fmt::format("fragmented gpus={}", loads[i].gpus)});
  }
}

}  // namespace

Result<Decision> BudgetWalk::decide(const Round& round) const {
  Decision decision;
  Plan& plan = decision.plan;
  const Alone alone = normal_candidates(round.forecast);
  std::vector<Request> list;
  for (const auto& [id, job] : round.cluster.jobs) {
    if (!job.active()) continue;
    const auto request = request_of(round, alone, job, options_);
    if (const auto* why = std::get_if<std::string>(&request))
      plan.waiting.push_back({id, *why});
    else
      list.push_back(std::get<Request>(request));
  }
  std::ranges::sort(list, {}, [&](const Request& request) {
    const bool stays = request.running && !options_.preempts;
    return std::tuple(!stays, request.key, request.job->submitted, request.job->id);
  });
  walk(round, list, options_.backfill, plan);
  std::ranges::sort(plan.assignments, {}, [](const auto& line) { return line.what.job; });
  std::ranges::sort(plan.waiting, {}, &Plan::Waiting::job);
  plan.proof = "heuristic";
  return decision;
}

}  // namespace ymir
