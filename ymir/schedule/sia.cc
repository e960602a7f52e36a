#include "ymir/schedule/sia.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ymir/schedule/budget_walk.h"
#include "ymir/schedule/cheapest.h"
#include "ymir/schedule/settings.h"

namespace ymir {

namespace {

constexpr double kUnit = 1e6;  // of costs: whole numbers

// G^p of one size, as a cost; nothing where the change would cost the job all that it has done.
std::optional<std::int64_t> cost_of(const AloneJob& job, const Candidate& size, Time now,
                                    const SiaOptions& options) {
  double slowest = 0;
  for (const Candidate* each : job.sizes) slowest = std::max(slowest, AloneJob::seconds(*each));
  double goodput = slowest / std::max(AloneJob::seconds(size), 1e-9);
  const double age = (now - job.job->submitted).count();
  if (job.job->starts > 0 && size.what.gpus != job.held && age >= options.restart_s) {
    const double restarts = std::max(0, job.job->starts - 1);
    goodput *= std::max(age - restarts * options.restart_s, 0.0) / (age + options.restart_s);
  }
  if (!(goodput > 0)) return std::nullopt;
  const double value = std::pow(goodput, options.p);
  const double told = options.round_off ? std::nearbyint(value * 100) / 100 : value;
  return static_cast<std::int64_t>(std::llround(std::min(told, 1e6) * kUnit));
}

}  // namespace

Result<SiaOptions> SiaOptions::from(const std::map<std::string, std::string>& settings) {
  SiaOptions options;
  SettingsReader reader("sia", settings);
  reader.number("p", options.p)
      .number("lambda", options.lambda)
      .number("restart", options.restart_s)
      .flag("round", options.round_off);
  YMIR_TRY(reader.done());
  YMIR_TRY(options.validate());
  return options;
}

Result<> SiaOptions::validate() const {
  const auto wrong = [](const char* what, double value) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("sia.{}: {}", what, value)};
  };
  if (!(p >= -10 && p < 0)) return wrong("p must be in [-10, 0)", p);
  if (!(lambda >= 0 && lambda <= 1e6)) return wrong("lambda must be in 0..1e6", lambda);
  if (!(restart_s >= 0 && restart_s <= 1e6)) return wrong("restart must be in 0..1e6", restart_s);
  return Ok{};
}

Result<Decision> Sia::decide(const Round& round) const {
  Decision decision;
  const AloneRound alone(round);
  decision.plan.waiting = alone.waiting();
  std::vector<const AloneJob*> order;
  for (const AloneJob& job : alone.jobs()) order.push_back(&job);
  std::ranges::stable_sort(order, {}, [](const AloneJob* job) { return job->job->submitted; });

  std::vector<CheapestOptions> options;
  std::vector<std::vector<const Candidate*>> sizes;  // of each option but the first
  for (const AloneJob* job : order) {
    CheapestOptions mine{{0, static_cast<std::int64_t>(std::llround(options_.lambda * kUnit))}};
    std::vector<const Candidate*> on_offer;
    const bool starting = job->held > 0 && !job->started;
    for (const Candidate* size : job->sizes) {
      if (starting && size->what.gpus != job->held) continue;
      const auto cost = cost_of(*job, *size, round.cluster.now, options_);
      if (!cost) continue;
      mine.push_back({size->what.gpus, starting ? -1'000'000'000 : *cost});
      on_offer.push_back(size);
    }
    options.push_back(std::move(mine));
    sizes.push_back(std::move(on_offer));
  }
  YMIR_TRY_ASSIGN(const std::vector<std::size_t> chosen,
                  cheapest(options, round.cluster.num_gpus()));

  std::vector<Request> taken;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (chosen[i] > 0)
      taken.push_back({order[i], sizes[i][chosen[i] - 1]});
    else
      decision.plan.waiting.push_back(
          {order[i]->job->id, fmt::format("no_capacity gpus={}", order[i]->smallest()->what.gpus)});
  }
  give(round, taken, decision.plan);
  return decision;
}

std::map<std::string, std::string> Sia::constants() const {
  return {{"p", fmt::format("{}", options_.p)},
          {"lambda", fmt::format("{}", options_.lambda)},
          {"restart", fmt::format("{}", options_.restart_s)},
          {"round", options_.round_off ? "on" : "off"}};
}

}  // namespace ymir
