#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ymir/schedule/capacity.h"
#include "ymir/schedule/packing.h"
#include "ymir/schedule/passes.h"

namespace ymir {

namespace {

// The constants of Utility are meant for rounds of two minutes; with other rounds all times are
// counted in these.
constexpr double kUsualRound = 120;

// Speeds of a job on each size that it has alone, in parts of what is left of it a second.
std::vector<SpeedPoint> speeds_of(const std::vector<const Offer*>& alone) {
  std::map<int, double> speed;
  for (const Offer* offer : alone) {
    const double seconds =
        offer->candidate->members.front().finish_in.p50 - offer->candidate->switch_cost.count();
    speed[offer->what().gpus] = 1 / std::max(seconds, 1e-3);
  }
  std::vector<SpeedPoint> points;
  for (const auto& [gpus, each] : speed) points.push_back({static_cast<double>(gpus), each});
  return points;
}

// Whole rounds since the job last made progress: 0 while it trains. B of A->B does not.
int idle_rounds(const Snapshot& cluster, const JobView& job) {
  const auto run = cluster.runs.find(job.run);
  if (run != cluster.runs.end() && !run->second.profile && run->second.started) return 0;
  const double idle = (cluster.now - job.last_progress).count();
  return std::max(0, static_cast<int>(idle / std::max(cluster.round_length.count(), 1e-3)));
}

class Weigher {
 public:
  explicit Weigher(Draft& draft)
      : draft_(draft),
        utility_(draft.options.utility),
        scale_(kUsualRound / std::max(draft.cluster().round_length.count(), 1e-3)) {
    std::map<JobId, std::vector<const Offer*>> alone;
    for (const Offer& offer : draft.offers)
      if (!offer.shared()) alone[offer.first].push_back(&offer);
    const double fair = static_cast<double>(draft.cluster().num_gpus()) /
                        static_cast<double>(std::max<std::size_t>(alone.size(), 1));
    double uses = 0;  // of more GPUs, all jobs together
    double work = 0;  // GPU-seconds on hand
    for (const auto& [id, offers] : alone) {
      const std::vector<SpeedPoint> speeds = speeds_of(offers);
      JobFacts& facts = facts_[id] = facts_alone(id, *offers.front(), speeds, fair);
      facts.pressure = use_of_more(speeds, fair);
      uses += facts.pressure;
      work += facts.work;
    }
    const double hours = work / draft.cluster().num_gpus() / 3600;
    for (auto& [id, facts] : facts_) {
      // GPU time that one job wastes would have brought the others forward, if they can use it.
      facts.pressure = std::max(0.0, uses - facts.pressure) / draft.cluster().num_gpus();
      facts.queue = hours / fair;
    }
  }

  CandidateFacts facts_of(const Offer& offer) const {
    CandidateFacts facts{
        .transfer_weight = offer.shared() ? offer.candidate->transfer_weight.p50 : 1,
        .gpus = offer.what().gpus,
        .switching = offer.candidate->switch_cost * scale_,
        .unchanged = offer.goes_on};
    for (const MemberForecast& member : offer.candidate->members)
      facts.members.push_back(
          {.job = facts_.at(member.job),
           .finish = Seconds(member.finish_in.p50 * scale_),
           .progresses = std::ranges::count(offer.progressing, member.job) > 0});
    return facts;
  }
  const Utility& utility() const { return utility_; }
  bool knows(const Offer& offer) const {
    return std::ranges::all_of(offer.candidate->members, [this](const MemberForecast& member) {
      return facts_.contains(member.job);
    });
  }

  // The largest "smallest size" among the jobs of the hard tier; 0 when there are none.
  int tier_gpus() const {
    std::map<JobId, int> smallest;
    for (const Offer& offer : draft_.offers) {
      if (offer.shared() || !utility_.in_tier(facts_.at(offer.first))) continue;
      const auto [at, fresh] = smallest.emplace(offer.first, offer.what().gpus);
      if (!fresh) at->second = std::min(at->second, offer.what().gpus);
    }
    int most = 0;
    for (const auto& [id, gpus] : smallest) most = std::max(most, gpus);
    return most;
  }
  std::int64_t num_jobs() const { return std::ssize(facts_); }

 private:
  JobFacts facts_alone(JobId id, const Offer& any, const std::vector<SpeedPoint>& speeds,
                       double fair) const {
    const JobView& job = draft_.job(id);
    const double speed = std::max(speed_at_share(speeds, fair), 1e-12);
    const double left = any.candidate->members.front().steps.p50;
    const double whole = (static_cast<double>(job.steps_done) + left) / std::max(left, 1.0);
    double work = std::numeric_limits<double>::infinity();  // GPU-seconds
    for (const SpeedPoint& size : speeds) work = std::min(work, size.gpus / size.speed);
    return {.age = (draft_.cluster().now - job.submitted) * scale_,
            .fair_remaining = Seconds(scale_ / speed),
            .isolated = Seconds(scale_ * std::max(whole, 1.0) / speed),
            .idle_rounds = idle_rounds(draft_.cluster(), job),
            .work = work * scale_};
  }

  const Draft& draft_;
  Utility utility_;
  double scale_ = 1;
  std::map<JobId, JobFacts> facts_;
};

bool power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

}  // namespace

Capacity capacity_of(const Draft& draft) {
  Capacity capacity{.gpus = draft.cluster().num_gpus(), .blocks = {}};
  if (draft.cluster().places.size() == 1) return capacity;  // its slots are all alike
  const int largest = largest_node(draft.cluster());
  const bool equal_nodes = std::ranges::all_of(
      draft.cluster().places, [&](const auto& entry) { return entry.second.num_slots == largest; });
  const bool powers = std::ranges::all_of(
      draft.offers, [](const Offer& offer) { return power_of_two(offer.what().gpus); });
  if (!powers || (power_of_two(largest) && equal_nodes)) return capacity;
  for (int block = 1; block <= largest; block *= 2) {
    int count = 0;
    for (const auto& [id, place] : draft.cluster().places) count += place.num_slots / block;
    capacity.blocks.push_back(count);
  }
  return capacity;
}

Result<> weigh(Draft& draft) {
  const Weigher weigher(draft);
  std::vector<double> values(draft.offers.size());
  double most = 0;
  for (std::size_t i = 0; i < draft.offers.size(); ++i) {
    Offer& offer = draft.offers[i];
    if (!offer.dropped.empty()) continue;
    if (!weigher.knows(offer)) {
      offer.dropped = "no_forecast alone";
      continue;
    }
    values[i] = weigher.utility().value(weigher.facts_of(offer));
    if (!std::isfinite(values[i]) || values[i] < 0)
      return Error{ErrorCode::kInternal,
                   fmt::format("utility {} of {}", values[i], to_string(offer.what().job))};
    most = std::max(most, values[i]);
  }
  RoundProblem rows;
  const Capacity capacity = capacity_of(draft);
  rows.reset(std::span(&capacity, 1));
  const int tier = weigher.tier_gpus();
  draft.quantum = utility_unit(most, tier, rows.utility_limit(weigher.num_jobs()));
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < draft.offers.size(); ++i) {
    if (!draft.offers[i].dropped.empty()) continue;
    draft.offers[i].utility = std::max<std::int64_t>(1, std::llround(values[i] * draft.quantum));
    largest = std::max(largest, draft.offers[i].utility);
  }
  if (tier == 0) return Ok{};
  const std::int64_t bonus = tier_bonus(largest, tier);
  for (Offer& offer : draft.offers)
    if (offer.dropped.empty())
      offer.utility += bonus * weigher.utility().tier_members(weigher.facts_of(offer));
  return Ok{};
}

Result<> dominance(Draft& draft) {
  std::map<std::pair<JobId, JobId>, std::vector<Offer*>> groups;
  for (Offer& offer : draft.offers)
    if (offer.dropped.empty()) groups[{offer.first, offer.second}].push_back(&offer);
  for (auto& [group, offers] : groups) {
    std::ranges::stable_sort(offers, {}, [](const Offer* offer) {
      return std::pair(offer->what().gpus, -offer->utility);
    });
    const Offer* best = nullptr;
    for (Offer* offer : offers) {
      if (best && offer->utility <= best->utility)
        offer->dropped =
            fmt::format("dominated_by {} gpus={}", to_string(best->what().mode), best->what().gpus);
      else
        best = offer;
    }
  }
  return Ok{};
}

}  // namespace ymir
