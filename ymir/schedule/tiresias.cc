#include "ymir/schedule/tiresias.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "ymir/schedule/budget_walk.h"
#include "ymir/schedule/settings.h"

namespace ymir {

namespace {

// What is remembered of a promoted job: what it had been served and had waited by then.
struct Since {
  double service = 0, run = 0, waited = 0;
};

std::map<JobId, Since> remembered(const Snapshot& cluster) {
  std::map<JobId, Since> since;
  if (!cluster.wish) return since;
  for (const Plan::Memory& line : cluster.wish->plan.memory)
    if (line.values.size() == 3)
      since.emplace_hint(since.end(), line.job,
                         Since{line.values[0], line.values[1], line.values[2]});
  return since;
}

struct Ranked {
  Request request{};
  std::size_t queue = 0;
  bool pending = false, fresh = false;  // fresh: never started
  Time since{};                         // first start, of a fresh one submission
  JobId id{};
};

class Queues {
 public:
  Queues(const TiresiasOptions& options, const Round& round)
      : options_(options), now_(round.cluster.now), since_(remembered(round.cluster)) {}

  // The queue of a job, which may be promoted now.
  std::size_t queue_of(const AloneJob& job, int gpus) {
    const double service = job.service(now_);
    const double run = service / std::max(gpus, 1);
    const Time first = job.job->first_started.value_or(now_);
    const double waited = std::max(0.0, (now_ - first).count() - run);
    const auto found = since_.find(job.job->id);
    const Since since = found == since_.end() ? Since{} : found->second;
    const double attained = options_.by_seconds ? run - since.run : service - since.service;
    std::size_t queue = 0;
    for (const double limit : options_.limits)
      queue += options_.beyond ? attained > limit : attained >= limit;
    const bool waits = job.held == 0 && run > since.run;
    if (options_.promote > 0 && queue > 0 && waits &&
        waited - since.waited >= options_.promote * (run - since.run)) {
      memory_.push_back({job.job->id, {service, run, waited}});
      return 0;
    }
    if (found != since_.end())
      memory_.push_back({job.job->id, {since.service, since.run, since.waited}});
    return queue;
  }

  std::vector<Plan::Memory> take_memory() { return std::move(memory_); }

 private:
  const TiresiasOptions& options_;
  Time now_;
  std::map<JobId, Since> since_;
  std::vector<Plan::Memory> memory_{};
};

}  // namespace

Result<TiresiasOptions> TiresiasOptions::from(const std::map<std::string, std::string>& settings) {
  TiresiasOptions options;
  const std::map<std::string, TiresiasOptions> presets{
      {"tiresias", {.limits = {3250, 7200}}},
      {"celeste", {.limits = {3600}, .promote = 8}},
      {"pollux", {.limits = {57'600}}},
      {"titan", {.limits = {14'400}}},
      {"lucid", {.limits = {18'000}, .beyond = true}}};
  if (const auto preset = settings.find("preset"); preset != settings.end())
    if (const auto known = presets.find(preset->second); known != presets.end())
      options = known->second;
  std::string preset, request = "smallest", service = "gpu_seconds";
  SettingsReader reader("tiresias", settings);
  reader.choice("preset", {"celeste", "lucid", "pollux", "tiresias", "titan"}, preset)
      .numbers("limits", options.limits)
      .number("promote", options.promote)
      .choice("request", {"smallest", "largest"}, request)
      .choice("service", {"gpu_seconds", "seconds"}, service);
  YMIR_TRY(reader.done());
  options.largest_size = request == "largest";
  options.by_seconds = service == "seconds";
  YMIR_TRY(options.validate());
  return options;
}

Result<> TiresiasOptions::validate() const {
  const auto bad = [](const std::string& what) {
    return Error{ErrorCode::kInvalidArgument, "tiresias." + what};
  };
  if (limits.empty() || limits.size() > 16) return bad("limits must be 1..16 numbers");
  for (std::size_t i = 0; i < limits.size(); ++i)
    if (!(limits[i] > 0) || (i > 0 && limits[i] <= limits[i - 1]))
      return bad(fmt::format("limits must be > 0 and grow: {}", limits[i]));
  if (!(promote >= 0)) return bad(fmt::format("promote must be >= 0: {}", promote));
  return Ok{};
}

Result<Decision> Tiresias::decide(const Round& round) const {
  Decision decision;
  Plan& plan = decision.plan;
  const AloneRound alone(round);
  Queues queues(options_, round);
  std::vector<Ranked> order;
  order.reserve(alone.jobs().size());
  for (const Request& request : requests(alone, options_.largest_size, plan)) {
    const AloneJob& job = *request.job;
    const Candidate* size = request.alone;
    const bool fresh = !job.job->first_started;
    order.push_back({.request = request,
                     .queue = queues.queue_of(job, size->what.gpus),
                     .pending = job.held == 0,
                     .fresh = fresh,
                     .since = fresh ? job.job->submitted : *job.job->first_started,
                     .id = job.job->id});
  }
  std::ranges::sort(order, {}, [](const Ranked& each) {
    return std::tuple(each.queue, each.pending, each.fresh, each.since, each.id);
  });
  std::vector<Request> list;
  list.reserve(order.size());
  for (const Ranked& each : order) list.push_back(each.request);
  walk_down(round, list, true, plan);
  plan.memory = queues.take_memory();
  plan.proof = "heuristic";
  return decision;
}

std::map<std::string, std::string> Tiresias::constants() const {
  return {{"limits", fmt::format("{}", fmt::join(options_.limits, ","))},
          {"promote", fmt::format("{}", options_.promote)},
          {"beyond", options_.beyond ? "on" : "off"},
          {"service", options_.by_seconds ? "seconds" : "gpu_seconds"},
          {"request", options_.largest_size ? "largest" : "smallest"}};
}

}  // namespace ymir
