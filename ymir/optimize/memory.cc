#include "ymir/optimize/memory.h"

#include <algorithm>
#include <bit>

namespace ymir {
namespace {

__extension__ typedef __int128 Wide;

// Two jobs in one number, in either order; never 0, which marks a free place of the hash set.
std::uint64_t both(JobIndex i, JobIndex j) {
  const auto low = static_cast<std::uint64_t>(std::min(i, j));
  const auto high = static_cast<std::uint64_t>(std::max(i, j));
  return high << 32 | low;  // high >= 1
}

std::uint64_t spread(std::uint64_t value) { return value * 0x9e3779b97f4a7c15u; }

}  // namespace

bool Memory::fits(const RoundProblem& problem) const {
  return scale_ > 0 && num_types_ == problem.num_types() &&
         row_price_.size() == problem.rows().size();
}

void Memory::remember(const RoundProblem& problem, const Prices& prices, ActiveGraph& graph) {
  scale_ = prices.scale();
  num_types_ = problem.num_types();
  row_price_.assign(prices.by_row().begin(), prices.by_row().end());
  graph.dissolve_sets();
  dual_.clear();
  for (JobIndex j = 0; j < problem.num_jobs(); ++j) {
    dual_.emplace_back(problem.key(j), graph.matching().dual(j));
  }
  std::sort(dual_.begin(), dual_.end());
  active_.clear();
  for (const std::int32_t p : graph.active()) {
    const PairEdge& pair = problem.pairs()[p];
    active_.emplace_back(problem.key(pair.first), problem.key(pair.second));
  }
}

void Memory::recall(const RoundProblem& problem, Prices& prices, ActiveGraph& graph) {
  const auto now = [&](std::int64_t money) {
    return static_cast<std::int64_t>(static_cast<Wide>(money) * prices.scale() / scale_);
  };
  std::vector<std::int64_t> price(row_price_.size());
  for (std::size_t r = 0; r < price.size(); ++r) {
    const std::int64_t most = prices.highest(static_cast<int>(r));
    price[r] = std::min(now(row_price_[r]), most) & ~std::int64_t{1};
  }
  prices.set(price);

  jobs_.clear();
  for (JobIndex j = 0; j < problem.num_jobs(); ++j) jobs_.emplace_back(problem.key(j), j);
  std::sort(jobs_.begin(), jobs_.end());
  std::size_t k = 0;
  for (const auto& [key, job] : jobs_) {
    while (k < dual_.size() && dual_[k].first < key) ++k;
    const bool known = k < dual_.size() && dual_[k].first == key;
    graph.set_dual(job, known ? now(dual_[k].second) : 0);
  }

  const auto find = [&](std::uint64_t key) {
    const auto at = std::lower_bound(jobs_.begin(), jobs_.end(), std::pair{key, JobIndex{0}});
    return at != jobs_.end() && at->first == key ? at->second : kNoJob;
  };
  const std::size_t places = std::bit_ceil(2 * active_.size() + 2);
  const int shift = 64 - std::countr_zero(places);
  wanted_.assign(places, 0);
  for (const auto& [first, second] : active_) {
    const JobIndex i = find(first), j = find(second);
    if (i == kNoJob || j == kNoJob) continue;
    std::size_t place = spread(both(i, j)) >> shift;
    while (wanted_[place] != 0 && wanted_[place] != both(i, j)) place = (place + 1) % places;
    wanted_[place] = both(i, j);
  }
  for (std::size_t p = 0; p < problem.pairs().size(); ++p) {
    const PairEdge& pair = problem.pairs()[p];
    const std::uint64_t value = both(pair.first, pair.second);
    std::size_t place = spread(value) >> shift;
    while (wanted_[place] != 0 && wanted_[place] != value) place = (place + 1) % places;
    if (wanted_[place] == value) graph.activate(static_cast<std::int32_t>(p));
  }
}

}  // namespace ymir
