#include "ymir/optimize/active_graph.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace ymir {
namespace {

constexpr std::size_t kPollEvery = 4096;  // pairs looked at between two looks at the stop token
constexpr int kLowerings = 2;  // of the duals that choose the first pairs: more choose no better
constexpr int kNearParts = 8;  // a pair is near when its reduced cost is at most mean price / this

bool time_to_poll(std::size_t k) { return k % kPollEvery == kPollEvery - 1; }

}  // namespace

void ActiveGraph::reset(const RoundProblem& problem, const Prices& prices, Stopped stopped) {
  problem_ = &problem;
  prices_ = &prices;
  stopped_ = std::move(stopped);
  matching_.reset(problem.num_jobs());
  active_.clear();
  is_active_.assign(problem.pairs().size(), 0);
  option_begin_.assign(1, 0);
  options_.clear();
  worth_alone_.assign(problem.num_jobs(), 0);
  best_alone_.assign(problem.num_jobs(), -1);
  used_.assign(prices.rows().size(), 0);
  near_margin_ = -1;
  most_worth_price_.clear();
  evaluation_ = 0;
  near_evaluation_ = -1;
  bound_ = value_ = violation_ = 0;
}

void ActiveGraph::activate(std::int32_t pair) {
  if (is_active_[pair]) return;
  is_active_[pair] = 1;
  const PairEdge& edge = problem_->pairs()[pair];
  matching_.add_edge(edge.first, edge.second);
  active_.push_back(pair);
  const std::span<const KeptOption> together = problem_->together(edge);
  options_.insert(options_.end(), together.begin(), together.end());
  option_begin_.push_back(static_cast<std::uint32_t>(options_.size()));
}

inline std::int64_t ActiveGraph::best_worth(const Prices& prices, const PairEdge& pair) const {
  std::int64_t best = std::numeric_limits<std::int64_t>::min();
  for (const KeptOption& c : problem_->together(pair)) best = std::max(best, prices.worth(pair, c));
  return best;
}

// The best option of every active pair, and what it brings beyond its jobs alone.
template <bool kExtra>
void ActiveGraph::weigh_edges() {
  best_option_.resize(active_.size());
  for (std::size_t e = 0; e < active_.size(); ++e) {
    const JobIndex i = matching_.edge_u(static_cast<int>(e));
    const JobIndex j = matching_.edge_v(static_cast<int>(e));
    std::int64_t best = std::numeric_limits<std::int64_t>::min();
    std::uint32_t best_at = 0;
    for (std::uint32_t k = option_begin_[e]; k < option_begin_[e + 1]; ++k) {
      const std::int64_t worth =
          kExtra ? prices_->worth(i, j, options_[k]) : prices_->plain_worth(options_[k]);
      best_at = worth > best ? k : best_at;
      best = std::max(best, worth);
    }
    best_option_[e] = static_cast<std::int32_t>(best_at - option_begin_[e]);
    matching_.set_weight(static_cast<int>(e), best - worth_alone_[i] - worth_alone_[j]);
  }
}

void ActiveGraph::weigh_jobs() {
  for (JobIndex j = 0; j < problem_->num_jobs(); ++j) {
    worth_alone_[j] = 0;
    best_alone_[j] = -1;
    std::int32_t k = static_cast<std::int32_t>(problem_->alone_begin(j));
    for (const KeptOption& c : problem_->alone(j)) {
      if (const std::int64_t worth = prices_->worth(j, c); worth > worth_alone_[j]) {
        worth_alone_[j] = worth;
        best_alone_[j] = k;
      }
      ++k;
    }
  }
}

bool ActiveGraph::evaluate() {
  ++evaluation_;
  weigh_jobs();
  bound_ = std::accumulate(worth_alone_.begin(), worth_alone_.end(), prices_->of_all_capacity());
  if (stopped_()) return false;
  if (prices_->has_extra()) {
    weigh_edges<true>();
  } else {
    weigh_edges<false>();
  }
  if (stopped_()) return false;
  if (!matching_.run(stopped_)) return false;
  value_ = 0;
  std::fill(used_.begin(), used_.end(), 0);
  for (JobIndex j = 0; j < problem_->num_jobs(); ++j) {
    const int e = matching_.partner_edge(j);
    if (e < 0 && best_alone_[j] >= 0) {
      const KeptOption& c = problem_->alone_candidates()[best_alone_[j]];
      value_ += prices_->scaled(c);
      prices_->charge(j, kNoJob, c, 1, used_);
    } else if (e >= 0 && matching_.edge_u(e) == j) {
      const KeptOption& c = options_[option_begin_[e] + best_option_[e]];
      value_ += prices_->scaled(c);
      prices_->charge(j, matching_.edge_v(e), c, 1, used_);
      bound_ += matching_.weight(e);
    }
  }
  return true;
}

std::vector<Pick> ActiveGraph::choice(const Prices& prices) const {
  std::vector<Pick> picks;
  const auto best_of = [&](std::int32_t pair, JobIndex i, JobIndex j,
                           std::span<const KeptOption> options, std::uint32_t k) {
    std::pair<std::int64_t, Pick> best;
    for (const KeptOption& c : options) {
      const std::int64_t worth = j == kNoJob ? prices.worth(i, c) : prices.worth(i, j, c);
      if (worth > best.first) best = {worth, {pair, i, k}};
      ++k;
    }
    return best;
  };
  for (JobIndex j = 0; j < problem_->num_jobs(); ++j) {
    const int e = matching_.partner_edge(j);
    if (e >= 0 && matching_.edge_u(e) != j) continue;
    auto single = best_of(-1, j, kNoJob, problem_->alone(j), problem_->alone_begin(j));
    if (e >= 0) {
      const JobIndex other = matching_.edge_v(e);
      const PairEdge& pair = problem_->pairs()[active_[e]];
      const auto second =
          best_of(-1, other, kNoJob, problem_->alone(other), problem_->alone_begin(other));
      const auto both = best_of(active_[e], j, other, problem_->together(pair), pair.begin);
      if (both.first >= single.first + second.first) {
        single = both;
      } else if (second.first > 0) {
        picks.push_back(second.second);
      }
    }
    if (single.first > 0) picks.push_back(single.second);
  }
  return picks;
}

void ActiveGraph::matched_pairs(std::vector<std::int32_t>& out) const {
  for (JobIndex j = 0; j < problem_->num_jobs(); ++j) {
    const int e = matching_.partner_edge(j);
    if (e >= 0 && matching_.edge_u(e) == j) out.push_back(active_[e]);
  }
}

void ActiveGraph::pairs_inside_sets(std::vector<std::int32_t>& out) const {
  for (int e = 0; e < matching_.num_edges(); ++e) {
    if (matching_.same_set(matching_.edge_u(e), matching_.edge_v(e))) out.push_back(active_[e]);
  }
}

std::int64_t ActiveGraph::pair_price(const PairEdge& pair) const {
  return job_price(pair.first) + job_price(pair.second) +
         matching_.set_price(pair.first, pair.second);
}

// ----------------------------------------------------------------- the best few pairs of each job

void ActiveGraph::start_offers(int per_job) {
  per_job_ = per_job;
  offers_.resize(static_cast<std::size_t>(problem_->num_jobs()) * per_job);
  num_offers_.assign(problem_->num_jobs(), 0);
}

// Keeps the largest gains; the smallest of the kept stands first.
void ActiveGraph::offer(JobIndex job, std::int64_t gain, std::int32_t pair) {
  Offer* kept = &offers_[static_cast<std::size_t>(job) * per_job_];
  int& count = num_offers_[job];
  if (count == per_job_) {
    if (gain <= kept[0].gain) return;
    kept[0] = {gain, pair};
  } else {
    kept[count++] = {gain, pair};
    if (count < per_job_) return;
  }
  Offer* smallest = std::min_element(
      kept, kept + per_job_, [](const Offer& a, const Offer& b) { return a.gain < b.gain; });
  std::swap(kept[0], *smallest);
}

int ActiveGraph::take_offers() {
  const std::size_t before = active_.size();
  for (JobIndex j = 0; j < problem_->num_jobs(); ++j) {
    for (int k = 0; k < num_offers_[j]; ++k) {
      activate(offers_[static_cast<std::size_t>(j) * per_job_ + k].pair);
    }
  }
  return static_cast<int>(active_.size() - before);
}

// The pairs nearest to tight under duals that are feasible for all pairs: half of the best gain,
// then twice as low as a pair still leaves room for at both its ends. So a job that many gain from
// is taken by those that gain most from it, and the others get pairs they can have.
void ActiveGraph::seed(int per_job) {
  const std::span<const PairEdge> pairs = problem_->pairs();
  std::vector<std::int64_t>&dual = price_, &room = raised_;
  weigh_jobs();
  dual.assign(problem_->num_jobs(), 0);
  most_worth_.resize(pairs.size());
  most_worth_price_.assign(prices_->by_row().begin(), prices_->by_row().end());
  const auto gain = [&](std::size_t k) {
    return most_worth_[k] - worth_alone_[pairs[k].first] - worth_alone_[pairs[k].second];
  };
  const auto slack = [&](std::size_t k) {
    return dual[pairs[k].first] + dual[pairs[k].second] - gain(k);
  };
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    most_worth_[k] = best_worth(pairs[k]);
    for (const JobIndex job : {pairs[k].first, pairs[k].second}) {
      dual[job] = std::max(dual[job], gain(k) / 2);
    }
    if (time_to_poll(k) && stopped_()) return;
  }
  for (int times = 0; times < kLowerings; ++times) {
    room = dual;
    for (std::size_t k = 0; k < pairs.size(); ++k) {
      const std::int64_t left = slack(k);
      for (const JobIndex job : {pairs[k].first, pairs[k].second}) {
        room[job] = std::min(room[job], left);
      }
      if (time_to_poll(k) && stopped_()) return;
    }
    for (JobIndex j = 0; j < problem_->num_jobs(); ++j) dual[j] -= room[j] / 2;
  }
  start_offers(per_job);
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    if (time_to_poll(k) && stopped_()) return;
    if (gain(k) <= 0) continue;
    const std::int64_t left = slack(k);
    offer(pairs[k].first, -left, static_cast<std::int32_t>(k));
    offer(pairs[k].second, -left, static_cast<std::int32_t>(k));
  }
  take_offers();
}

// ------------------------------------------------------------------------------------- pricing

void ActiveGraph::note_undercut(std::int32_t pair, std::int64_t undercut) {
  const PairEdge& edge = problem_->pairs()[pair];
  offer(edge.first, undercut, pair);
  offer(edge.second, undercut, pair);
  std::int64_t& first = raised_[edge.first];
  std::int64_t& second = raised_[edge.second];
  if (const std::int64_t left = undercut - first - second; left > 0) {
    (first >= second ? first : second) += left;
    violation_ += left;
  }
}

// They hold while no price is lower, and are of use while none is much higher.
bool ActiveGraph::most_worth_holds() const {
  if (most_worth_price_.size() != prices_->by_row().size()) return false;
  for (std::size_t r = 0; r < most_worth_price_.size(); ++r) {
    const std::int64_t price = prices_->by_row()[r], taken_at = most_worth_price_[r];
    if (price < taken_at || price - taken_at > taken_at / 6) return false;
  }
  return true;
}

// Notes every undercut pair, and lists those whose reduced cost is at most `margin`.
bool ActiveGraph::look_at_all(std::int64_t margin) {
  price_.resize(problem_->num_jobs());
  for (JobIndex j = 0; j < problem_->num_jobs(); ++j) price_[j] = job_price(j);
  const bool known = most_worth_holds();
  if (!known) {
    most_worth_price_.assign(prices_->by_row().begin(), prices_->by_row().end());
    for (std::int64_t& price : most_worth_price_) price = (price - price / 32) & ~std::int64_t{1};
    low_prices_ = *prices_;
    low_prices_.set(most_worth_price_);
    most_worth_.resize(problem_->pairs().size());
  }
  near_.clear();
  const std::span<const PairEdge> pairs = problem_->pairs();
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    if (time_to_poll(k) && stopped_()) return false;
    const std::int64_t least = price_[pairs[k].first] + price_[pairs[k].second] - margin;
    if (!known) most_worth_[k] = best_worth(low_prices_, pairs[k]);
    if (most_worth_[k] < least) continue;
    const std::int64_t reduced = least + margin - best_worth(pairs[k]);
    if (reduced > margin) continue;
    near_.push_back(static_cast<std::int32_t>(k));
    if (reduced >= 0) continue;
    const std::int64_t undercut = -reduced - matching_.set_price(pairs[k].first, pairs[k].second);
    if (undercut > 0) note_undercut(near_.back(), undercut);
  }
  near_margin_ = margin;
  near_evaluation_ = evaluation_;
  return true;
}

bool ActiveGraph::look_at_near() {
  for (std::size_t k = 0; k < near_.size(); ++k) {
    if (time_to_poll(k) && stopped_()) return false;
    if (is_active_[near_[k]]) continue;
    const PairEdge& pair = problem_->pairs()[near_[k]];
    const std::int64_t worth = best_worth(pair);
    if (worth <= job_price(pair.first) + job_price(pair.second)) continue;
    if (const std::int64_t undercut = worth - pair_price(pair); undercut > 0) {
      note_undercut(near_[k], undercut);
    }
  }
  return true;
}

int ActiveGraph::price_out(int per_job, bool all) {
  start_offers(per_job);
  raised_.assign(problem_->num_jobs(), 0);
  violation_ = 0;
  if (near_evaluation_ >= 0 && !all) {
    if (!look_at_near()) return -1;
    if (violation_ > 0) return take_offers();
  }
  std::int64_t prices = 0;
  for (JobIndex j = 0; j < problem_->num_jobs(); ++j) prices += job_price(j);
  if (!look_at_all(prices / std::max(1, problem_->num_jobs()) / kNearParts)) return -1;
  return take_offers();
}

std::vector<std::int64_t> ActiveGraph::feasible_job_prices() const {
  std::vector<std::int64_t> price(problem_->num_jobs());
  for (JobIndex j = 0; j < problem_->num_jobs(); ++j) price[j] = job_price(j) + raised_[j];
  return price;
}

bool ActiveGraph::pairs_within(std::int64_t slack, std::vector<std::int32_t>& out) {
  if (near_evaluation_ != evaluation_ || near_margin_ < slack) {
    start_offers(1);
    if (!look_at_all(slack)) return false;
  }
  out.clear();
  for (const std::int32_t p : near_) {
    const PairEdge& pair = problem_->pairs()[p];
    if (best_worth(pair) >= job_price(pair.first) + job_price(pair.second) - slack) {
      out.push_back(p);
    }
  }
  return true;
}

}  // namespace ymir
