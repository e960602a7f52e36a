// Utility: what a candidate is worth this round, before the solve. Numbers in, number out; it knows
// no snapshot and no clock.
//
//   rho      = clip((age + fair_remaining) / isolated, 0.25, 8)       unfairness; 1 = fair
//   priority = rho^unfairness * clip((3600 s / fair_remaining)^shortness, 1/8, 8)
//              * (1 + calm * (clip((isolated / 3600 s)^length, 1/8, 8) - 1))
//   calm     = min(1, long_queue / queue)^2;  queue = hours of work on hand x jobs for each GPU
//   ageing   = 1 + (idle rounds / tau)^2, for members that progress in this round; never clipped
//   toll     = thrift * pressure * GPU-seconds beyond what its most frugal size needs
//   speed-up = fair_remaining / (finish + toll)
//   psi      = (1 + spread) * speed-up / (speed-up + spread)     concave, 1 at the fair share
//   hold     = 1 when unchanged, else max(hold_min, 1 - switch / max(120 s, min(hold, finish)))
//   value    = hold * transfer_weight^transfer * sum over members of priority * ageing * psi
//
// Waiting ends for every job: ageing grows without bound and only a job's own progress resets it
// (wait_bound() is the proof in a number); jobs that made no progress for `hard_tier` rounds get a
// bonus that puts them first. Exponents are multiples of 0.5, taken by products and square roots:
// `pow` is not the same on every machine. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ymir/base/inline_vector.h"
#include "ymir/base/result.h"
#include "ymir/base/time.h"

namespace ymir {

// Defaults of length, spread, thrift and hold: measured on half of the public traces
// (docs/decisions/016-the-tail-of-the-objective.md); of long_queue, beside generated workloads.
struct UtilityOptions {
  double unfairness = 1;        // exponent of rho: pull of finish-time fairness
  double shortness = 0.5;       // exponent: bias to what ends soon; on the remaining work
  double length = 0.5;          // exponent of the whole work: long jobs yield less to short ones
  double long_queue = 0.7;      // hours x jobs a GPU up to which that holds in full; beyond it less
  double spread = 20;           // small: everybody gets a little; large: GPUs go where they scale
  double thrift = 0.75;         // weight of GPU time wasted on few per cent more speed; 0: none
  double transfer = 1;          // exponent of the transfer weight beyond the time it saves
  double tau = 60;              // rounds of waiting after which the priority has doubled
  Seconds hold{900};            // expected life of a configuration; smaller = stickier
  double hold_min = 0.25;       // of the value is left, however long a switch takes
  double least_transfer = 1.1;  // smallest transfer weight on offer (running pairs are exempt)
  int hard_tier = 60;           // rounds without progress; 0: off
  Result<> validate() const;
};

// One job, as the round sees it.
struct JobFacts {
  Seconds age{};             // since its submission
  Seconds fair_remaining{};  // to its end if it got its fair share from now on; >= 120 s is used
  Seconds isolated{};        // its whole work at the fair share; >= 120 s is used
  int idle_rounds = 0;       // since it last made progress itself (since submission if never)
  double queue = 0;          // hours of GPU time for all work on hand x jobs for each GPU
  double work = 0;           // GPU-seconds to its end on its most frugal size
  double pressure = 0;       // seconds that others lose, together, by a GPU-second it wastes
};

struct MemberFacts {
  JobFacts job{};
  Seconds finish{};        // to its end if the candidate is kept; >= 120 s is used
  bool progresses = true;  // false for B while it waits in A -> B
};

struct CandidateFacts {
  InlineVector<MemberFacts, 2> members{};  // one or two
  double transfer_weight = 1;              // 1 alone
  int gpus = 0;                            // 0: no toll
  Seconds switching{};                     // the larger of the members'
  bool unchanged = false;  // mode, partner, size and type are those of the last round
};

// The speed of a job on a fractional share of GPUs: between its sizes linear, time-sliced below the
// smallest, constant above the largest. Points ascend in gpus; speed > 0.
struct SpeedPoint {
  double gpus = 0, speed = 0;
};
double speed_at_share(std::span<const SpeedPoint> points, double share);
// What a job at that share makes of more GPUs: 1 = twice the speed of twice the share, 0 = nothing.
double use_of_more(std::span<const SpeedPoint> points, double share);

class Utility {
 public:
  explicit Utility(const UtilityOptions& options);  // options must be valid

  double priority(const JobFacts& job) const;
  double ageing(const JobFacts& job, bool progresses) const;
  double value(const CandidateFacts& candidate) const;  // > 0; multiply by unit() and round
  // Members that have waited so long that the hard tier counts them, and progress here.
  int tier_members(const CandidateFacts& candidate) const;
  bool in_tier(const JobFacts& job) const;
  const UtilityOptions& options() const { return options_; }

 private:
  UtilityOptions options_;
};

// Utility per tier member: serving one is worth more than all that can be lost by it. `largest` is
// the largest ordinary utility, `smallest_gpus` the largest smallest size among tier members.
std::int64_t tier_bonus(std::int64_t largest, std::int64_t smallest_gpus);
// The largest power of two <= 2^20 by which values up to `most` (and bonuses, when smallest_gpus is
// not 0) can be multiplied without exceeding `limit` (RoundProblem::utility_limit()).
double utility_unit(double most, std::int64_t smallest_gpus, std::int64_t limit);

// No job waits longer, in rounds, as long as its smallest size is on offer: ageing alone.
struct WaitFacts {
  double jobs = 0;                             // active jobs
  double served = 0;                           // candidates chosen in a round
  double smallest_gpus = 1;                    // of the job
  double priority_low = 0, priority_high = 0;  // over all jobs
  double psi_low = 0, psi_high = 0;            // over all candidates
  double most_transfer = 1;                    // highest transfer_weight^transfer
};
double wait_bound(const UtilityOptions& options, const WaitFacts& facts);
// The same for the hard tier: rounds until `tier_jobs` that need at most `smallest_gpus` each have
// run on `gpus`.
double tier_wait_bound(const UtilityOptions& options, double tier_jobs, double smallest_gpus,
                       double gpus);

}  // namespace ymir
