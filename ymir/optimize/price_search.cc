#include "ymir/optimize/price_search.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "ymir/optimize/master.h"

namespace ymir {
namespace {

__extension__ typedef __int128 Wide;  // products of a value and a number of GPUs

constexpr int kMaxNarrowings = 60, kMaxCuts = 120;
constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

std::int64_t even(std::int64_t price) { return price & ~std::int64_t{1}; }

}  // namespace

// Bisects the common price per GPU at which the jobs alone use what there is.
void PriceSearch::start(const RoundProblem& problem) {
  std::vector<std::int64_t> price(prices_.num_rows(), 0);
  std::int64_t capacity = 0, low = 0, high = 0;
  for (int r = 0; r < prices_.num_rows(); ++r) {
    if (prices_.rows()[r].min_gpus == 1) capacity += prices_.rows()[r].capacity;
  }
  for (const KeptOption& c : problem.alone_candidates()) {
    high = std::max(high, prices_.scaled(c) / problem.sizes()[c.size].gpus + 2);
  }
  high = even(high + 1);
  for (int k = 0; k < 16 && high - low > 2; ++k) {
    const std::int64_t middle = even(low + (high - low) / 2);
    std::int64_t used = 0;
    for (JobIndex j = 0; j < problem.num_jobs(); ++j) {
      std::int64_t best = 0, gpus = 0;
      for (const KeptOption& c : problem.alone(j)) {
        const std::int64_t size = problem.sizes()[c.size].gpus;
        if (const std::int64_t worth = prices_.scaled(c) - middle * size; worth > best) {
          best = worth;
          gpus = size;
        }
      }
      used += gpus;
    }
    (used > capacity ? low : high) = middle;
  }
  for (int r = 0; r < prices_.num_rows(); ++r) {
    if (prices_.rows()[r].min_gpus == 1) price[r] = std::min(high, prices_.highest(r));
  }
  prices_.set(price);
}

bool PriceSearch::run(std::int64_t tolerance) {
  distance_ = kUnknown;
  const bool finished = prices_.num_rows() == 1 ? one_row(tolerance) : several_rows(tolerance);
  if (!finished) return false;
  if (graph_.bound() - best_bound_ <= tolerance) return true;
  prices_.set(best_price_);
  return evaluate();
}

bool PriceSearch::evaluate() {
  --matchings_left_;
  if (!graph_.evaluate()) return false;
  if (graph_.bound() < best_bound_) {
    best_bound_ = graph_.bound();
    best_price_.assign(prices_.by_row().begin(), prices_.by_row().end());
  }
  return true;
}

// The choice fits and wastes nothing that has a price: it is optimal for the active pairs.
bool PriceSearch::closed() {
  for (int r = 0; r < prices_.num_rows(); ++r) {
    const std::int64_t left = prices_.rows()[r].capacity - graph_.used()[r];
    if (left < 0 || (left > 0 && prices_.by_row()[r] > 0)) return false;
  }
  distance_ = 0;
  return true;
}

// Would any price up to twice the present one lower the bound by no more than the tolerance? What
// it can is at most the change of price times what is left or overdrawn.
bool PriceSearch::near(std::int64_t tolerance) {
  Wide gain = 0;
  for (int r = 0; r < prices_.num_rows(); ++r) {
    const std::int64_t left = prices_.rows()[r].capacity - graph_.used()[r];
    const std::int64_t price = prices_.by_row()[r];
    if (left < 0 && price == 0) return false;
    gain += static_cast<Wide>(price) * (left < 0 ? -left : left);
  }
  if (gain > tolerance) return false;
  distance_ = static_cast<std::int64_t>(gain);
  return true;
}

std::vector<std::int32_t> PriceSearch::end_pairs() const {
  std::vector<std::int32_t> pairs = over_.pairs;
  pairs.insert(pairs.end(), under_.pairs.begin(), under_.pairs.end());
  for (const auto& recent : recent_) pairs.insert(pairs.end(), recent.begin(), recent.end());
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

// ------------------------------------------------------------------------------------- one row

bool PriceSearch::evaluate_at(std::int64_t price) {
  const std::int64_t clamped[] = {std::clamp<std::int64_t>(even(price), 0, prices_.highest(0))};
  prices_.set(clamped);
  if (!evaluate()) return false;
  const bool over = graph_.used()[0] > prices_.rows()[0].capacity;
  End& end = over ? over_ : under_;
  end.known = true;
  end.price = clamped[0];
  end.value = graph_.value();
  end.used = graph_.used()[0];
  end.pairs.clear();
  graph_.matched_pairs(end.pairs);
  return true;
}

bool PriceSearch::one_row(std::int64_t tolerance) {
  if (edges_ != graph_.active().size()) {
    edges_ = graph_.active().size();
    best_bound_ = kUnknown;
    over_.known = under_.known = false;
    steps_ = 0;
    if (!evaluate_at(prices_.by_row()[0])) return false;
  }
  for (int k = 0; !closed() && !near(tolerance) && k < kMaxNarrowings && !spent(); ++k) {
    std::int64_t price = 0;
    if (over_.known && under_.known) {
      // Where the two lines value + price * (capacity - used) cross: exact at a kink. In turn with
      // it where a straight line between the uses meets the capacity: better while far from one.
      const std::int64_t rise = over_.value - under_.value, run = over_.used - under_.used;
      const auto below = static_cast<std::int64_t>(static_cast<Wide>(rise) *
                                                   (prices_.rows()[0].capacity - over_.used) / run);
      distance_ = best_bound_ - (over_.value + below);
      if (graph_.bound() - best_bound_ + distance_ <= tolerance) return true;
      price = rise / run;
      if (k % 2 == 0) {
        const Wide part = static_cast<Wide>(under_.price - over_.price) *
                          (over_.used - prices_.rows()[0].capacity) / run;
        price = over_.price + static_cast<std::int64_t>(part);
      }
      price = std::max(even(price), over_.price + 2);
      if (price >= under_.price) {
        distance_ = 0;
        return true;
      }
    } else {
      price = step();
    }
    if (!evaluate_at(price)) return false;
  }
  return true;
}

// Beyond the end known, in proportion to what is left or overdrawn, a little too far; further the
// longer it takes.
std::int64_t PriceSearch::step() {
  const std::int64_t capacity = prices_.rows()[0].capacity, highest = prices_.highest(0);
  const bool up = graph_.used()[0] > capacity;
  const End& end = up ? over_ : under_;
  const Wide off = (Wide{2} << std::min(steps_++ / 2, 30)) * std::abs(end.used - capacity);
  const Wide step = off * std::max(end.price, highest >> 12) / std::max(end.used, capacity);
  const auto change = static_cast<std::int64_t>(std::clamp<Wide>(step, 2, highest));
  return up ? end.price + change : end.price - change;
}

// --------------------------------------------------------------------------------- several rows

bool PriceSearch::several_rows(std::int64_t tolerance) {
  best_bound_ = kUnknown;
  std::vector<std::int64_t> highest(prices_.num_rows());
  for (int r = 0; r < prices_.num_rows(); ++r) highest[r] = prices_.highest(r);
  Master master(highest);
  // Choices stay possible when pairs are added: the cuts of earlier runs still hold.
  for (const Cut& cut : cuts_) master.add_cut(cut.value, cut.left);
  std::vector<std::int64_t> next(prices_.by_row().begin(), prices_.by_row().end());
  for (int k = 0; k < kMaxCuts; ++k) {
    prices_.set(next);
    if (!evaluate()) return false;
    if (recent_.size() == 6) recent_.erase(recent_.begin());
    recent_.emplace_back();
    graph_.matched_pairs(recent_.back());
    if (closed() || near(tolerance) || spent()) return true;
    Cut cut{graph_.value(), std::vector<std::int64_t>(prices_.num_rows())};
    for (int r = 0; r < prices_.num_rows(); ++r) {
      cut.left[r] = prices_.rows()[r].capacity - graph_.used()[r];
    }
    master.add_cut(cut.value, cut.left);
    cuts_.push_back(std::move(cut));
    std::int64_t least = 0;
    const std::vector<std::int64_t> proposal = master.solve(least);
    distance_ = best_bound_ - least;
    if (graph_.bound() - best_bound_ + distance_ <= tolerance) return true;
    const std::vector<std::int64_t> last = next;
    for (int r = 0; r < prices_.num_rows(); ++r) {
      const std::int64_t p = std::min(proposal[r], highest[r]);
      // Part of the way from the best point, after the first steps: damps the swinging.
      const std::int64_t damped = best_price_[r] + (p - best_price_[r]) / 10 * 7;
      next[r] = even(k < 3 || p - best_price_[r] == 0 ? p : damped);
    }
    if (next == last) return true;
  }
  return true;
}

}  // namespace ymir
