#include "ymir/optimize/greedy.h"

#include <algorithm>

namespace ymir {
namespace {

__extension__ typedef __int128 Wide;

constexpr std::int64_t kUnit = 8;  // of the factor on the prices
constexpr std::int64_t kHighest = 64 * kUnit;

class Greedy {
 public:
  Greedy(const RoundProblem& problem, const Prices& prices, const ActiveGraph& graph)
      : problem_(problem), prices_(prices), graph_(graph) {}

  std::vector<Pick> plan() {
    used_.assign(prices_.num_rows(), 0);
    at_.assign(problem_.num_jobs(), kIdle);
    std::vector<Pick> picks = fitting_choice();
    std::sort(picks.begin(), picks.end(), [&](const Pick& a, const Pick& b) {
      return denser({a, candidate(a).utility, gpus(a)}, {b, candidate(b).utility, gpus(b)});
    });
    for (const Pick& pick : picks) take(pick);
    improve();
    return std::move(plan_);
  }

 private:
  static constexpr std::int32_t kIdle = -1, kSecond = -2;  // kSecond: in the plan of its partner
  struct Change {  // of a job or pair to another candidate, and what it brings and takes
    Pick pick;
    std::int64_t utility = 0, gpus = 0;
  };

  const KeptOption& candidate(const Pick& pick) const {
    return pick.pair < 0 ? problem_.alone_candidates()[pick.candidate]
                         : problem_.pair_candidates()[pick.candidate];
  }
  std::int64_t gpus(const Pick& pick) const { return problem_.sizes()[candidate(pick).size].gpus; }
  JobIndex partner(const Pick& pick) const {
    return pick.pair < 0 ? kNoJob : problem_.pairs()[pick.pair].second;
  }
  void charge(const Pick& pick, std::int64_t sign) {
    prices_.charge(pick.job, partner(pick), candidate(pick), sign, used_);
  }
  bool fits() const {
    for (int r = 0; r < prices_.num_rows(); ++r) {
      if (used_[r] > prices_.rows()[r].capacity) return false;
    }
    return true;
  }
  bool full() const {
    for (int r = 0; r < prices_.num_rows(); ++r) {
      const Row& row = prices_.rows()[r];
      if (row.min_gpus == 1 && used_[r] < row.capacity) return false;
    }
    return true;
  }
  bool denser(const Change& a, const Change& b) const {
    const std::int64_t left = a.utility * std::max<std::int64_t>(b.gpus, 0);
    const std::int64_t right = b.utility * std::max<std::int64_t>(a.gpus, 0);
    if (left != right) return left > right;
    if (a.pick.job != b.pick.job) return problem_.key(a.pick.job) < problem_.key(b.pick.job);
    return a.pick.candidate < b.pick.candidate;
  }

  std::vector<Pick> choice_at(std::int64_t factor);
  std::vector<Pick> fitting_choice();
  void take(const Pick& pick);
  void improve();
  void add_change(std::int32_t pair, JobIndex job, const Pick* held, std::vector<Change>& changes);
  bool replace(Pick& held, const Pick& by);

  const RoundProblem& problem_;
  const Prices& prices_;
  const ActiveGraph& graph_;
  Prices scaled_;
  std::vector<std::int64_t> used_, price_;
  std::vector<Pick> plan_;
  std::vector<std::int32_t> at_;  // by job: index into plan_
};

// What every matched pair and every other job likes best at prices times factor / kUnit; used_ is
// what that charges.
std::vector<Pick> Greedy::choice_at(std::int64_t factor) {
  price_.clear();
  for (int r = 0; r < prices_.num_rows(); ++r) {
    const Wide price = static_cast<Wide>(prices_.by_row()[r]) * factor / kUnit;
    const auto capped = static_cast<std::int64_t>(std::min<Wide>(price, prices_.highest(r)));
    price_.push_back(capped & ~std::int64_t{1});
  }
  scaled_.set(price_);
  std::vector<Pick> picks = graph_.choice(scaled_);
  std::fill(used_.begin(), used_.end(), 0);
  for (const Pick& pick : picks) charge(pick, 1);
  return picks;
}

// The choice at the least factor >= 1 at which it fits; where none makes it fit, that at the
// prices.
std::vector<Pick> Greedy::fitting_choice() {
  scaled_ = prices_;
  std::vector<Pick> best = choice_at(kUnit);
  std::int64_t over = kUnit, fit = kUnit;
  const auto look_at = [&](std::int64_t factor) {
    std::vector<Pick> picks = choice_at(factor);
    (fits() ? fit : over) = factor;
    if (fits()) best = std::move(picks);
  };
  for (std::int64_t step = 1; !fits() && over + step <= kHighest; step *= 2) {
    look_at(over + step);
  }
  while (fit - over > 1) look_at(over + (fit - over) / 2);
  std::fill(used_.begin(), used_.end(), 0);
  return best;
}

void Greedy::take(const Pick& pick) {
  charge(pick, 1);
  if (!fits()) {
    charge(pick, -1);
    return;
  }
  at_[pick.job] = static_cast<std::int32_t>(plan_.size());
  if (partner(pick) != kNoJob) at_[partner(pick)] = kSecond;
  plan_.push_back(pick);
}

// The densest change of a job or pair to a candidate that brings more than `held` (if any) and fits
// in its place.
void Greedy::add_change(std::int32_t pair, JobIndex job, const Pick* held,
                        std::vector<Change>& changes) {
  const std::int64_t utility = held ? candidate(*held).utility : 0;
  const std::int64_t taken = held ? gpus(*held) : 0;
  if (held) charge(*held, -1);
  const auto options = pair < 0 ? problem_.alone(job) : problem_.together(problem_.pairs()[pair]);
  std::uint32_t k = pair < 0 ? problem_.alone_begin(job) : problem_.pairs()[pair].begin;
  Change best;
  for (const KeptOption& option : options) {
    const Pick pick{pair, job, k++};
    const Change change{pick, option.utility - utility, gpus(pick) - taken};
    if (change.utility <= 0 || (best.utility > 0 && !denser(change, best))) continue;
    charge(pick, 1);
    if (fits()) best = change;
    charge(pick, -1);
  }
  if (best.utility > 0) changes.push_back(best);
  if (held) charge(*held, 1);
}

bool Greedy::replace(Pick& held, const Pick& by) {
  charge(held, -1);
  charge(by, 1);
  const bool good = fits();
  if (good) {
    held = by;
  } else {
    charge(by, -1);
    charge(held, 1);
  }
  return good;
}

// Changes what is chosen, at most once each, and adds idle jobs, alone or in active pairs.
void Greedy::improve() {
  std::vector<Change> changes;
  if (full()) return;
  for (const Pick& pick : plan_) add_change(pick.pair, pick.job, &pick, changes);
  for (JobIndex j = 0; j < problem_.num_jobs(); ++j) {
    if (at_[j] == kIdle) add_change(-1, j, nullptr, changes);
  }
  for (const std::int32_t p : graph_.active()) {
    const PairEdge& pair = problem_.pairs()[p];
    if (at_[pair.first] == kIdle && at_[pair.second] == kIdle) {
      add_change(p, pair.first, nullptr, changes);
    }
  }
  const auto later = [&](const Change& a, const Change& b) { return denser(b, a); };
  std::make_heap(changes.begin(), changes.end(), later);
  std::vector<std::uint8_t> done(plan_.size(), 0);
  while (!changes.empty() && !full()) {
    std::pop_heap(changes.begin(), changes.end(), later);
    const Pick& pick = changes.back().pick;
    const std::int32_t at = at_[pick.job];
    if (at == kIdle && (pick.pair < 0 || at_[partner(pick)] == kIdle)) {
      take(pick);
    } else if (at >= 0 && at < static_cast<std::int32_t>(done.size()) && !done[at]) {
      done[at] = replace(plan_[at], pick);
    }
    changes.pop_back();
  }
}

}  // namespace

std::vector<Pick> greedy_plan(const RoundProblem& problem, const Prices& prices,
                              const ActiveGraph& graph) {
  return Greedy(problem, prices, graph).plan();
}

}  // namespace ymir
