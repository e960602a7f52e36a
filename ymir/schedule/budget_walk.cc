#include "ymir/schedule/budget_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "ymir/schedule/packing.h"

namespace ymir {

std::vector<Request> requests(const AloneRound& alone, bool largest, Plan& plan) {
  plan.waiting = alone.waiting();
  std::vector<Request> list;
  list.reserve(alone.jobs().size());
  for (const AloneJob& job : alone.jobs()) {
    const Candidate* size = job.held > 0 ? job.at(job.held)
                            : largest    ? job.sizes.back()
                                         : job.sizes.front();
    if (size != nullptr)
      list.push_back({&job, size});
    else  // the forecast does not have what it runs on
      plan.waiting.push_back({job.job->id, fmt::format("no_forecast gpus={}", job.held)});
  }
  return list;
}

void walk_down(const Round& round, std::span<const Request> list, bool backfill, Plan& plan) {
  int budget = round.cluster.num_gpus();
  std::vector<Request> taken;
  std::string behind{};  // the first that is left over: nobody starts after it without backfill
  for (const Request& request : list) {
    const int gpus = request.alone->what.gpus;
    const JobId id = request.job->job->id;
    if (gpus <= budget && (behind.empty() || backfill)) {
      budget -= gpus;
      taken.push_back(request);
      continue;
    }
    if (behind.empty()) {
      behind = "behind " + to_string(id);
      plan.waiting.push_back({id, fmt::format("no_capacity gpus={} free={}", gpus, budget)});
    } else {
      plan.waiting.push_back({id, behind});
    }
  }
  give(round, taken, plan);
}

void give(const Round& round, std::span<const Request> taken, Plan& plan) {
  std::vector<Load> loads;
  loads.reserve(taken.size());
  for (const Request& request : taken) {
    const bool stays = request.job->held == request.alone->what.gpus;
    loads.push_back({request.alone->what.gpus, stays ? request.job->place : PlaceId{}});
  }
  const std::vector<bool> room = pack(round.cluster, loads);
  std::vector<std::size_t> by_job(taken.size());
  std::iota(by_job.begin(), by_job.end(), std::size_t{0});
  std::ranges::sort(by_job, {}, [&](std::size_t i) { return taken[i].alone->what.job; });
  plan.assignments.reserve(taken.size());
  for (const std::size_t i : by_job) {
    if (room[i])
      plan.assignments.push_back({.what = taken[i].alone->what, .card = taken[i].alone->card});
    else
      plan.waiting.push_back(
          {taken[i].job->job->id, fmt::format("fragmented gpus={}", loads[i].gpus)});
  }
  std::ranges::sort(plan.waiting, {}, &Plan::Waiting::job);
  plan.proof = "heuristic";
}

Result<Decision> BudgetWalk::decide(const Round& round) const {
  using Key = BudgetWalkOptions::Key;
  struct Keyed {
    Request request{};
    bool waits_behind = false;  // what runs comes first, unless the policy preempts
    double key = 0;
    Time submitted{};
    JobId id{};
  };
  Decision decision;
  Plan& plan = decision.plan;
  const AloneRound alone(round);
  // A job on its only size offers to go on for nothing: its restart then costs what others' do.
  double dearest = 0;
  for (const AloneJob& job : alone.jobs()) dearest = std::max(dearest, job.restart_seconds());
  std::vector<Keyed> order;
  order.reserve(alone.jobs().size());
  for (const Request& request : requests(alone, options_.largest_size, plan)) {
    const AloneJob& job = *request.job;
    const Candidate* size = request.alone;
    double key = options_.key == Key::kSubmission ? 0 : size->members.front().finish_in.p50;
    if (key > 0 && job.held > 0 && options_.hysteresis)
      key -= job.restart_seconds() > 0 ? job.restart_seconds() : dearest;
    if (options_.key == Key::kTimeTimesGpus) key *= size->what.gpus;
    order.push_back({.request = request,
                     .waits_behind = !options_.preempts && job.held == 0,
                     .key = key,
                     .submitted = job.job->submitted,
                     .id = job.job->id});
  }
  std::ranges::sort(order, {}, [](const Keyed& each) {
    return std::tuple(each.waits_behind, each.key, each.submitted, each.id);
  });
  std::vector<Request> list;
  list.reserve(order.size());
  for (const Keyed& each : order) list.push_back(each.request);
  walk_down(round, list, options_.backfill, plan);
  return decision;
}

std::map<std::string, std::string> BudgetWalk::constants() const {
  std::map<std::string, std::string> constants{
      {"request", options_.largest_size ? "largest" : "smallest"}};
  if (options_.preempts) constants["hysteresis"] = options_.hysteresis ? "on" : "off";
  return constants;
}

}  // namespace ymir
