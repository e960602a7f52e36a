// ActiveGraph: the relaxation at given row prices, on the pairs that matter.
//
// A round can offer a million pairs, of which a few per job can ever be in the matching. Only these
// "active" pairs are edges of the matching; price_out() looks through all the others and adds those
// that the duals undercut. When it adds none, the dual solution is feasible for every candidate and
// bound() is a proven bound on every plan, in scaled utility. One thread; memory is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ymir/optimize/matching.h"
#include "ymir/optimize/prices.h"
#include "ymir/optimize/problem.h"

namespace ymir {

// One chosen candidate, as an index into the problem's lists.
struct Pick {
  std::int32_t pair = -1;  // -1: `job` alone
  JobIndex job = kNoJob;
  std::uint32_t candidate = 0;  // into alone_candidates() or pair_candidates()
};

class ActiveGraph {
 public:
  using Stopped = std::function<bool()>;

  // Both references must outlive the use of the graph; `prices` may change between calls.
  void reset(const RoundProblem& problem, const Prices& prices, Stopped stopped);
  void activate(std::int32_t pair);
  void set_dual(JobIndex job, std::int64_t dual) { matching_.set_dual(job, dual); }
  void dissolve_sets() { matching_.dissolve(); }
  // Activates the `per_job` pairs of each job that gain most at the present prices.
  void seed(int per_job);

  // Matches at the present prices. False: stopped on the way.
  bool evaluate();
  std::int64_t bound() const { return bound_; }                 // of the last evaluation
  std::int64_t value() const { return value_; }                 // scaled, of its choice
  std::span<const std::int64_t> used() const { return used_; }  // by row, of its choice
  std::int64_t job_price(JobIndex j) const { return worth_alone_[j] + matching_.dual(j); }
  std::int64_t pair_price(const PairEdge& pair) const;  // both jobs and their sets
  const Matching& matching() const { return matching_; }
  // What the matched pairs and the other jobs like best at these prices; may overdraw rows.
  std::vector<Pick> choice(const Prices& prices) const;
  void matched_pairs(std::vector<std::int32_t>& out) const;  // appends
  // Active pairs inside one odd set.
  void pairs_inside_sets(std::vector<std::int32_t>& out) const;
  std::span<const std::int32_t> active() const { return active_; }

  // Activates undercut pairs, at most `per_job` for each job, and returns how many. Looks through
  // the pairs that were close to it at the last full pass first; when none of them is undercut (or
  // when `all` says so), through all pairs. -1: stopped.
  int price_out(int per_job, bool all = false);
  // After a pass over all pairs: what raising the duals would cost to be feasible as they are.
  std::int64_t violation() const { return violation_; }
  bool looked_at_all() const { return near_evaluation_ == evaluation_; }
  // After a pass over all pairs: the job prices raised so that they are feasible for every
  // candidate.
  std::vector<std::int64_t> feasible_job_prices() const;
  // All pairs with a candidate whose reduced cost may be <= slack. False: stopped.
  bool pairs_within(std::int64_t slack, std::vector<std::int32_t>& out);

 private:
  std::int64_t best_worth(const Prices& prices, const PairEdge& pair) const;
  std::int64_t best_worth(const PairEdge& pair) const { return best_worth(*prices_, pair); }
  void weigh_jobs();
  template <bool kExtra>
  void weigh_edges();
  bool most_worth_holds() const;
  bool look_at_all(std::int64_t margin);
  bool look_at_near();
  void note_undercut(std::int32_t pair, std::int64_t undercut);
  void offer(JobIndex job, std::int64_t gain, std::int32_t pair);
  void start_offers(int per_job);
  int take_offers();

  const RoundProblem* problem_ = nullptr;
  const Prices* prices_ = nullptr;
  Stopped stopped_;
  Matching matching_;
  std::vector<std::int32_t> active_;     // edge of the matching -> pair
  std::vector<std::uint8_t> is_active_;  // by pair
  std::vector<std::uint32_t> option_begin_;
  std::vector<KeptOption> options_;  // of the active pairs, side by side
  std::vector<std::int64_t> worth_alone_;
  std::vector<std::int32_t> best_alone_, best_option_;  // candidate index, -1: idle; by edge
  std::int64_t bound_ = 0, value_ = 0, violation_ = 0;
  std::vector<std::int64_t> used_, raised_, price_;
  // What each pair is worth at most, as long as no price falls below those it was taken at: most
  // pairs are passed over at this glance.
  std::vector<std::int64_t> most_worth_, most_worth_price_;
  Prices low_prices_;
  // Pairs of small reduced cost at the last full pass; complete for that evaluation.
  std::vector<std::int32_t> near_;
  std::int64_t near_margin_ = -1;
  int evaluation_ = 0, near_evaluation_ = -1;
  // The best few pairs of each job during one pass.
  struct Offer {
    std::int64_t gain = 0;
    std::int32_t pair = -1;
  };
  int per_job_ = 0;
  std::vector<Offer> offers_;
  std::vector<std::int32_t> num_offers_;
};

}  // namespace ymir
