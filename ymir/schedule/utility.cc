#include "ymir/schedule/utility.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace ymir {
namespace {

constexpr double kRound = 120;  // seconds: nothing is judged on a finer scale
constexpr double kHour = 3600;
constexpr double kUnfairLow = 0.25, kUnfairHigh = 8;
constexpr double kSizeLow = 1.0 / 8, kSizeHigh = 8;  // of shortness and of length
constexpr double kLargestUnit = 1 << 20;

double at_least_round(Seconds time) { return std::max(kRound, time.count()); }

// base^exponent for exponents that are multiples of 0.5: the same bits everywhere, as IEEE 754
// fixes the results of products and square roots.
double power(double base, double exponent) {
  const bool inverse = exponent < 0;
  const auto halves = static_cast<int>(2 * std::abs(exponent));
  double result = halves % 2 == 1 ? std::sqrt(base) : 1;
  for (int k = 0; k < halves / 2; ++k) result *= base;
  return inverse ? 1 / result : result;
}

double clipped_power(double base, double exponent) {
  return std::clamp(power(base, exponent), kSizeLow, kSizeHigh);
}

}  // namespace

Result<> UtilityOptions::validate() const {
  const auto bad = [](const char* name, const char* rule, double given) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("utility: {} must be {}: {}", name, rule, given)};
  };
  const auto half = [](double x) { return x >= 0 && x <= 8 && 2 * x == std::floor(2 * x); };
  if (!half(unfairness)) return bad("unfairness", "a multiple of 0.5 in 0..8", unfairness);
  if (!half(shortness)) return bad("shortness", "a multiple of 0.5 in 0..8", shortness);
  if (!half(length)) return bad("length", "a multiple of 0.5 in 0..8", length);
  if (!half(transfer)) return bad("transfer", "a multiple of 0.5 in 0..8", transfer);
  if (!(long_queue > 0 && long_queue <= 1e6)) {
    return bad("long_queue", "in (0, 1e6]", long_queue);
  }
  if (!(spread > 0 && spread <= 1e6)) return bad("spread", "in (0, 1e6]", spread);
  if (!(thrift >= 0 && thrift <= 1e6)) return bad("thrift", "in 0..1e6", thrift);
  if (!(tau >= 1 && tau <= 1e6)) return bad("tau", "in 1..1e6", tau);
  if (!(hold.count() >= 0 && hold.count() <= 1e9)) return bad("hold", "in 0..1e9", hold.count());
  if (!(hold_min > 0 && hold_min <= 1)) return bad("hold_min", "in (0, 1]", hold_min);
  if (!(least_transfer >= 0 && least_transfer <= 1e3)) {
    return bad("least_transfer", "in 0..1000", least_transfer);
  }
  if (hard_tier < 0) return bad("hard_tier", "0 (off) or more", hard_tier);
  return Ok{};
}

double speed_at_share(std::span<const SpeedPoint> points, double share) {
  YMIR_CHECK(!points.empty(), "a job without sizes");
  if (share <= points[0].gpus) return share / points[0].gpus * points[0].speed;
  for (std::size_t k = 1; k < points.size(); ++k) {
    const SpeedPoint &low = points[k - 1], &high = points[k];
    if (share > high.gpus) continue;
    return low.speed + (high.speed - low.speed) * (share - low.gpus) / (high.gpus - low.gpus);
  }
  return points.back().speed;
}

double use_of_more(std::span<const SpeedPoint> points, double share) {
  const double more = speed_at_share(points, 2 * share) / speed_at_share(points, share);
  return std::clamp(more - 1, 0.0, 1.0);
}

Utility::Utility(const UtilityOptions& options) : options_(options) {
  YMIR_CHECK(options.validate(), "utility options are not valid");
}

double Utility::priority(const JobFacts& job) const {
  const double fair = at_least_round(job.fair_remaining);
  const double whole = at_least_round(job.isolated);
  const double unfairness = std::clamp((job.age.count() + fair) / whole, kUnfairLow, kUnfairHigh);
  // Where many wait for hours, somebody waits long in any case: fewest if the short go first.
  const double calm = std::min(1.0, options_.long_queue / std::max(job.queue, 1e-9));
  return power(unfairness, options_.unfairness) * clipped_power(kHour / fair, options_.shortness) *
         (1 + calm * calm * (clipped_power(whole / kHour, options_.length) - 1));
}

// Counts only where it can be reset: otherwise a waiting B would lift its A round after round.
double Utility::ageing(const JobFacts& job, bool progresses) const {
  if (!progresses) return 1;
  const double waited = job.idle_rounds / options_.tau;
  return 1 + waited * waited;
}

double Utility::value(const CandidateFacts& candidate) const {
  YMIR_CHECK(!candidate.members.empty(), "a candidate without jobs");
  double sum = 0, finish = 0, work = 0;
  for (const MemberFacts& member : candidate.members) {
    finish = std::max(finish, member.finish.count());
    work += member.job.work;
  }
  // GPU-seconds that another size would have left to others; a start has to be paid at any size. Of
  // a pair each member answers for half.
  const double used = candidate.gpus * (finish - candidate.switching.count());
  const double wasted = std::max(0.0, used - work) / static_cast<double>(candidate.members.size());
  for (const MemberFacts& member : candidate.members) {
    const double toll = options_.thrift * member.job.pressure * wasted;
    const double speed_up =
        at_least_round(member.job.fair_remaining) / (at_least_round(member.finish) + toll);
    const double psi = (1 + options_.spread) * speed_up / (speed_up + options_.spread);
    sum += priority(member.job) * ageing(member.job, member.progresses) * psi;
  }
  double hold = 1;
  if (!candidate.unchanged) {
    const double life = std::max(kRound, std::min(options_.hold.count(), finish));
    // However long the switch takes, the candidate stays on offer: else its job would starve.
    hold = std::max(options_.hold_min, 1 - candidate.switching.count() / life);
  }
  return hold * power(candidate.transfer_weight, options_.transfer) * sum;
}

bool Utility::in_tier(const JobFacts& job) const {
  return options_.hard_tier > 0 && job.idle_rounds >= options_.hard_tier;
}

int Utility::tier_members(const CandidateFacts& candidate) const {
  int count = 0;
  for (const MemberFacts& member : candidate.members) {
    count += member.progresses && in_tier(member.job);
  }
  return count;
}

std::int64_t tier_bonus(std::int64_t largest, std::int64_t smallest_gpus) {
  return (smallest_gpus + 1) * largest + 1;
}

double utility_unit(double most, std::int64_t smallest_gpus, std::int64_t limit) {
  for (double unit = kLargestUnit; unit >= 0x1p-40; unit /= 2) {
    const double largest = most * unit + 1;  // rounding
    // Two members of one pair can both carry the bonus.
    const double bonus =
        smallest_gpus > 0 ? 2 * ((static_cast<double>(smallest_gpus) + 1) * largest + 1) : 0;
    if (largest + bonus <= static_cast<double>(limit)) return unit;
  }
  return 0x1p-40;
}

double wait_bound(const UtilityOptions& options, const WaitFacts& facts) {
  const double ratio = 2 * facts.smallest_gpus * facts.most_transfer * facts.priority_high *
                       facts.psi_high / (facts.priority_low * facts.psi_low * options.hold_min);
  const double block = facts.jobs / std::max(1.0, facts.served - facts.smallest_gpus + 1);
  return std::sqrt(ratio) * (block + 1 + options.tau) + block + 1;
}

double tier_wait_bound(const UtilityOptions& options, double tier_jobs, double smallest_gpus,
                       double gpus) {
  const double at_once = std::max(1.0, std::floor(gpus / smallest_gpus));
  return options.hard_tier + std::ceil(tier_jobs / at_once);
}

}  // namespace ymir
