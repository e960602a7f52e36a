#include "ymir/optimize/planner.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "ymir/base/result.h"
#include "ymir/optimize/active_graph.h"
#include "ymir/optimize/core.h"
#include "ymir/optimize/greedy.h"
#include "ymir/optimize/memory.h"
#include "ymir/optimize/price_search.h"
#include "ymir/optimize/prices.h"

namespace ymir {
namespace {

constexpr int kSeedPairs = 4, kPricedPairs = 3;  // activated per job: at the start, in one pass
constexpr std::int64_t kFineOneRow = 100'000'000, kFineRows = 10'000'000;  // parts of the bound
constexpr std::int64_t kViolationParts = 32;    // of it, how exact prices are while pairs come in
constexpr std::int64_t kParts = 1'000'000'000;  // relative_gap as an integer

__extension__ typedef __int128 Wide;

}  // namespace

Result<> Limits::validate() const {
  const auto bad = [](std::string what) {
    return Error{ErrorCode::kInvalidArgument, "limits: " + std::move(what)};
  };
  if (!(relative_gap >= 0 && relative_gap < 1)) {
    return bad(fmt::format("relative_gap must be in [0, 1): {}", relative_gap));
  }
  if (max_states < 0) return bad(fmt::format("max_states must not be negative: {}", max_states));
  if (warm_from_jobs < 0) {
    return bad(fmt::format("warm_from_jobs must not be negative: {}", warm_from_jobs));
  }
  if (max_matchings < 1) return bad(fmt::format("max_matchings must be > 0: {}", max_matchings));
  return Ok{};
}

class Planner::Solver {
 public:
  Solution solve(const RoundProblem& problem, const Limits& limits, std::stop_token stop);
  void forget() { memory_.forget(); }

 private:
  enum class Step { kDone, kStopped };
  struct Incumbent {
    std::vector<Pick> plan;
    std::int64_t scaled = 0, tie = 0;
  };

  void begin(const RoundProblem& problem, const Limits& limits, std::stop_token stop);
  bool find_prices();
  bool improve_incumbent();
  bool close_gap();
  std::int64_t allowed_gap(std::int64_t bound) const;
  bool near_enough() const;
  void offer(std::vector<Pick> plan);
  std::int64_t room() const { return root_bound_ - incumbent_.scaled; }
  std::int64_t proved_bound() const;
  Solution answer(bool stopped);
  void fill_certificate(Certificate& certificate) const;
  const KeptOption& candidate(const Pick& pick) const;
  std::int64_t utility(const Incumbent& incumbent) const;

  const RoundProblem* problem_ = nullptr;
  Limits limits_;
  std::int64_t gap_parts_ = 0;
  std::function<bool()> stopped_;
  Prices prices_;
  ActiveGraph graph_;
  Core core_;
  Memory memory_;
  int matchings_left_ = 0;
  std::vector<std::int32_t> end_pairs_, pool_;
  bool root_proved_ = false, root_priced_ = false;  // root_bound_ holds; with every rc >= 0
  std::int64_t root_bound_ = 0;
  std::int64_t covered_ = -1;  // no plan has a loss <= covered_
  bool canonical_ = false;
  Incumbent incumbent_;
  Effort effort_;
};

Solution Planner::Solver::solve(const RoundProblem& problem, const Limits& limits,
                                std::stop_token stop) {
  begin(problem, limits, std::move(stop));
  const bool finished = find_prices() && improve_incumbent() && close_gap();
  return answer(!finished);
}

void Planner::Solver::begin(const RoundProblem& problem, const Limits& limits,
                            std::stop_token stop) {
  problem_ = &problem;
  limits_ = limits;
  gap_parts_ = static_cast<std::int64_t>(limits.relative_gap * kParts);  // relative_gap once
  stopped_ = [token = std::move(stop)] { return token.stop_requested(); };
  prices_.reset(problem);
  graph_.reset(problem, prices_, stopped_);
  matchings_left_ = limits.max_matchings;
  end_pairs_.clear();
  root_proved_ = root_priced_ = canonical_ = false;
  root_bound_ = 0;
  covered_ = -1;
  incumbent_ = {};
  effort_ = {};
}

// Steps 1 to 4: prices of the jobs alone, the pairs that gain most there, then price search and
// pricing in turn until no pair undercuts the duals. The prices need be no better than the pairs:
// while many undercut, they would move again.
bool Planner::Solver::find_prices() {
  PriceSearch search(prices_, graph_, matchings_left_);
  effort_.warm = problem_->num_jobs() >= limits_.warm_from_jobs && memory_.fits(*problem_);
  if (effort_.warm) {
    memory_.recall(*problem_, prices_, graph_);
  } else {
    search.start(*problem_);
    graph_.seed(kSeedPairs);
  }
  const std::int64_t exact = prices_.num_rows() == 1 ? kFineOneRow : kFineRows;
  const std::int64_t parts = gap_parts_ > 0 ? std::min(exact, 8 * kParts / gap_parts_) : exact;
  std::int64_t tolerance = std::numeric_limits<std::int64_t>::max();
  bool many = true;  // while many pairs come in, the duals move too far for those near to suffice
  while (true) {
    if (!search.run(tolerance)) return false;
    effort_.active_edges = static_cast<int>(graph_.active().size());
    const bool last = matchings_left_ <= 0;
    const int added = graph_.price_out(kPricedPairs, many || last);
    many = added > effort_.active_edges / 16;
    ++effort_.pricing_passes;
    if (added < 0) return false;
    const std::int64_t fine = graph_.bound() / parts;
    if (last || (added == 0 && std::min(tolerance, search.distance()) <= fine)) break;
    tolerance = std::max(fine, graph_.violation() / kViolationParts);
  }
  root_priced_ = graph_.violation() == 0;
  root_proved_ = true;
  root_bound_ = graph_.bound() + graph_.violation();
  end_pairs_ = search.end_pairs();
  offer(greedy_plan(*problem_, prices_, graph_));
  effort_.root_gap = room();
  return true;
}

const KeptOption& Planner::Solver::candidate(const Pick& pick) const {
  return pick.pair < 0 ? problem_->alone_candidates()[pick.candidate]
                       : problem_->pair_candidates()[pick.candidate];
}

void Planner::Solver::offer(std::vector<Pick> plan) {
  Incumbent found{std::move(plan), 0, 0};
  for (const Pick& pick : found.plan) {
    found.scaled += prices_.scaled(candidate(pick));
    found.tie += tie_hash(*problem_, pick);
  }
  const bool better = found.scaled != incumbent_.scaled ? found.scaled > incumbent_.scaled
                                                        : found.tie < incumbent_.tie;
  if (better) incumbent_ = std::move(found);
}

std::int64_t Planner::Solver::allowed_gap(std::int64_t bound) const {
  return static_cast<std::int64_t>(static_cast<Wide>(bound) * gap_parts_ / kParts);
}

bool Planner::Solver::near_enough() const {
  return gap_parts_ > 0 && room() <= allowed_gap(root_bound_);
}

// Step 5: the best plan made of the pairs at the ends of the price search, all their sizes and all
// jobs alone. Small components, so this is quick; a good incumbent caps what step 6 must look at.
bool Planner::Solver::improve_incumbent() {
  pool_ = end_pairs_;
  graph_.matched_pairs(pool_);
  graph_.pairs_inside_sets(pool_);
  std::sort(pool_.begin(), pool_.end());
  pool_.erase(std::unique(pool_.begin(), pool_.end()), pool_.end());
  std::int64_t delta = std::max<std::int64_t>(4, root_bound_ / 10'000'000);
  while (room() > 0 && !near_enough()) {
    delta = std::min(delta, room());
    CoreResult found =
        core_.run(*problem_, prices_, graph_, pool_, delta, limits_.max_states, stopped_);
    effort_.states += found.states;
    if (found.end == CoreEnd::kStopped) return false;
    if (found.end == CoreEnd::kTooLarge) return true;
    const bool best_of_pool = found.found && found.loss <= delta;
    if (found.found) offer(std::move(found.plan));
    if (best_of_pool || delta >= room()) return true;
    delta *= 4;
  }
  return true;
}

// Steps 6 and 7: plans of small loss, then of larger, until the best one is known.
bool Planner::Solver::close_gap() {
  if (!root_priced_ || near_enough()) return true;
  std::int64_t listed = -1;
  for (std::int64_t delta = std::max<std::int64_t>(4, root_bound_ / kFineOneRow);; delta *= 4) {
    delta = std::min(delta, room());
    if (delta > listed) {
      listed = std::min(room(), std::max(16 * delta, root_bound_ / 50'000));
      if (!graph_.pairs_within(listed, pool_)) return false;
    }
    ++effort_.core_runs;
    CoreResult found =
        core_.run(*problem_, prices_, graph_, pool_, delta, limits_.max_states, stopped_);
    effort_.states += found.states;
    effort_.core_columns = found.columns;
    if (found.end == CoreEnd::kStopped) return false;
    if (found.end == CoreEnd::kTooLarge) return true;
    const bool proved = found.found && found.loss <= delta;
    if (found.found) offer(std::move(found.plan));
    if (proved) {
      covered_ = found.loss - 1;
      canonical_ = true;
      return true;
    }
    covered_ = delta;
    YMIR_CHECK(delta < room(), "the incumbent itself was not found");
    if (near_enough()) return true;
  }
}

std::int64_t Planner::Solver::utility(const Incumbent& incumbent) const {
  std::int64_t sum = 0;
  for (const Pick& pick : incumbent.plan) sum += candidate(pick).utility;
  return sum;
}

// No plan is worth more, in utility.
std::int64_t Planner::Solver::proved_bound() const {
  std::int64_t easy = 0;
  for (JobIndex j = 0; j < problem_->num_jobs(); ++j) easy += problem_->reach(j);
  easy /= 2;
  if (!root_proved_) return easy;
  return std::min(easy, (root_bound_ - (covered_ + 1)) / prices_.scale());
}

void Planner::Solver::fill_certificate(Certificate& certificate) const {
  certificate.scale = prices_.scale();
  if (root_proved_) {
    certificate.root_bound = root_bound_;
    certificate.row_price.assign(prices_.by_row().begin(), prices_.by_row().end());
    certificate.job_price = graph_.feasible_job_prices();
    certificate.odd_sets = graph_.matching().odd_sets();
    return;
  }
  // Free GPUs, and every job at the most it can be worth.
  certificate.row_price.assign(prices_.num_rows(), 0);
  for (JobIndex j = 0; j < problem_->num_jobs(); ++j) {
    certificate.job_price.push_back(problem_->reach(j) * (prices_.scale() / 2));
    certificate.root_bound += certificate.job_price.back();
  }
}

Solution Planner::Solver::answer(bool stopped) {
  if (stopped && !root_proved_) offer(greedy_plan(*problem_, prices_, graph_));
  Solution solution;
  const auto least_key = [&](const Choice& choice) {
    const std::uint64_t first = problem_->key(choice.first);
    return choice.second == kNoJob ? first : std::min(first, problem_->key(choice.second));
  };
  for (const Pick& pick : incumbent_.plan) {
    Choice choice{pick.job, kNoJob, problem_->option(candidate(pick))};
    if (pick.pair >= 0) choice.second = problem_->pairs()[pick.pair].second;
    solution.chosen.push_back(choice);
  }
  std::sort(solution.chosen.begin(), solution.chosen.end(),
            [&](const Choice& a, const Choice& b) { return least_key(a) < least_key(b); });
  solution.value = utility(incumbent_);
  solution.bound = std::max(solution.value, proved_bound());
  if (canonical_) solution.bound = solution.value;
  solution.canonical = canonical_;
  solution.proof = solution.bound == solution.value ? Proof::kOptimal
                   : stopped                        ? Proof::kDeadline
                                                    : Proof::kGap;
  fill_certificate(solution.certificate);
  effort_.matchings = limits_.max_matchings - matchings_left_;
  effort_.searches = graph_.matching().searches();
  solution.effort = effort_;
  if (root_proved_ && problem_->num_jobs() >= limits_.warm_from_jobs) {
    memory_.remember(*problem_, prices_, graph_);  // last: the odd sets are gone afterwards
  }
  return solution;
}

Planner::Planner() : solver_(std::make_unique<Solver>()) {}
Planner::~Planner() = default;
Planner::Planner(Planner&&) noexcept = default;
Planner& Planner::operator=(Planner&&) noexcept = default;

Solution Planner::solve(const RoundProblem& problem, const Limits& limits, std::stop_token stop) {
  return solver_->solve(problem, limits, std::move(stop));
}

void Planner::forget() { solver_->forget(); }

}  // namespace ymir
