// Alone: what each active job could do by itself this round, as the textbook policies read a
// forecast: its sizes, ascending, and what it holds now. Points into the round; pure, any thread.
#pragma once

#include <span>
#include <vector>

#include "ymir/schedule/policy.h"

namespace ymir {

struct AloneJob {
  const JobView* job = nullptr;
  std::span<const Candidate* const> sizes{};  // ascending in GPUs, one a size, never empty
  PlaceId place{};                            // where it trains alone now
  int held = 0;                               // GPUs there; 0: it does not run

  const Candidate* at(int gpus) const;  // null: not on offer
  const Candidate* smallest() const { return sizes.front(); }
  // Seconds to its end once it runs on that many GPUs, no start counted.
  static double seconds(const Candidate& size);
  // What a stop would cost it later: the dearest start on offer.
  double restart_seconds() const;
  // GPU-seconds held so far, the run under way included (Tiresias' attained service).
  double service(Time now) const { return service_before + running_since(now) * held; }
  double running_since(Time now) const;

  double service_before = 0;
  std::optional<Time> started{};  // of the run under way
};

class AloneRound {
 public:
  explicit AloneRound(const Round& round);
  AloneRound(const AloneRound&) = delete;  // jobs() point into sizes_
  AloneRound& operator=(const AloneRound&) = delete;

  const std::vector<AloneJob>& jobs() const { return jobs_; }  // ascending by id
  // Active jobs that nothing can be asked for, and why.
  const std::vector<Plan::Waiting>& waiting() const { return waiting_; }

 private:
  std::vector<const Candidate*> sizes_{};
  std::vector<AloneJob> jobs_{};
  std::vector<Plan::Waiting> waiting_{};
};

}  // namespace ymir
