#include "ymir/optimize/core.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "ymir/base/result.h"

namespace ymir {
namespace {

__extension__ typedef unsigned __int128 Mask;   // jobs of the frontier that are taken
__extension__ typedef unsigned __int128 Usage;  // what is used of each row, packed

constexpr int kMaxFrontier = 128;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::int64_t tie_hash(const RoundProblem& problem, const Pick& pick) {
  const bool alone = pick.pair < 0;
  const KeptOption& c = alone ? problem.alone_candidates()[pick.candidate]
                              : problem.pair_candidates()[pick.candidate];
  std::uint64_t identity = 0;
  if (alone) {
    identity = candidate_identity(problem.key(pick.job));
  } else {
    const PairEdge& pair = problem.pairs()[pick.pair];
    identity = candidate_identity(problem.key(pair.first), problem.key(pair.second));
  }
  const SizeClass& size = problem.sizes()[c.size];
  const std::uint64_t bits = mix_bits(~identity, std::uint64_t{size.type} << 16 | size.gpus);
  return static_cast<std::int64_t>(bits >> 24);  // 40 bits: the sum of 2^20 of them fits
}

// Counts of several rows in one integer, with a spare bit each, so that adding two of them and
// testing all rows against their capacities are single operations.
struct Packing {
  struct Field {
    int row = 0, shift = 0, bits = 0;  // counts in units of the row
  };
  std::vector<Field> fields;
  Usage capacity = 0, guards = 0;
  int width = 0;

  void clear() { *this = {}; }
  void add(int row, std::int64_t units) {
    const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(units))) + 1;
    if (width + bits <= 128) {
      fields.push_back({row, width, bits});
      capacity |= static_cast<Usage>(units) << width;
      guards |= static_cast<Usage>(1) << (width + bits - 1);
    }
    width += bits;
  }
  std::int64_t count(const Field& field, Usage used) const {
    const Usage mask = (static_cast<Usage>(1) << field.bits) - 1;
    return static_cast<std::int64_t>(used >> field.shift & mask);
  }
  // Both sides must fit by themselves.
  bool fits(Usage used) const { return ((capacity + guards - used) & guards) == guards; }
};

class Core::Impl {
 public:
  CoreResult run(const RoundProblem& problem, const Prices& prices, const ActiveGraph& graph,
                 std::span<const std::int32_t> pairs, std::int64_t delta, std::int64_t max_states,
                 const std::function<bool()>& stopped);

 private:
  struct Column {  // one candidate, or idleness
    Usage used = 0;
    std::int64_t loss = 0, tie = 0;
    Pick pick;  // candidate of idleness: job == kNoJob
  };
  struct CorePair {
    JobIndex first = kNoJob, second = kNoJob;
    std::int64_t set_price = 0;
    std::uint32_t begin = 0, end = 0;  // its columns
  };
  struct Link {
    JobIndex to = kNoJob;
    std::int32_t pair = 0;
  };
  struct State {
    Mask taken = 0;
    Usage used = 0;
    std::int64_t loss = 0;     // exact, but for the constant of the component's odd sets
    std::int64_t reduced = 0;  // sum of reduced costs: never above the loss
    std::int64_t tie = 0;
    std::int32_t trace = -1;  // chosen so far
  };
  struct Trace {
    std::int32_t before = -1;
    std::uint32_t column = 0;
  };
  struct Partial {  // a choice for the components merged so far
    Usage used = 0;
    std::int64_t loss = 0, tie = 0;
    std::int32_t before = -1, state = -1;
  };
  struct Table {
    std::vector<State> states;
    Usage most = 0;  // by row
  };

  void choose_rows(std::span<const std::int32_t> pairs);
  bool pack(JobIndex i, JobIndex j, const KeptOption& c, Usage& used);
  void collect_columns(std::span<const std::int32_t> pairs);
  void link_pairs();
  void components();
  void order(std::vector<JobIndex>& jobs);
  bool solve_component(const std::vector<JobIndex>& jobs);
  void odd_sets(const std::vector<JobIndex>& jobs);
  bool step(JobIndex job, int at);
  void keep_best();
  bool finish_component();
  bool merge_all();
  bool merge(const Table& table, std::span<const std::int64_t> reachable);
  std::int64_t waste(Usage used, std::span<const std::int64_t> reachable) const;
  void trace_back(std::int32_t trace);
  void trace_partial(const Partial& partial);

  // Every thousand steps the token is asked; false ends the work like too many states do.
  bool go_on() {
    if ((++looked_at_ & 1023) == 0 && (*stopped_)()) was_stopped_ = true;
    return !was_stopped_;
  }

  const RoundProblem* problem_ = nullptr;
  const Prices* prices_ = nullptr;
  const ActiveGraph* graph_ = nullptr;
  const std::function<bool()>* stopped_ = nullptr;
  bool was_stopped_ = false;
  std::int64_t looked_at_ = 0;
  std::int64_t delta_ = 0, max_states_ = 0;
  CoreResult result_;
  Packing packing_;
  std::vector<std::int64_t> charged_, most_charged_;
  std::vector<Column> columns_;  // by job, then by pair
  std::vector<std::uint32_t> alone_begin_;
  std::vector<CorePair> pairs_;
  std::vector<std::uint32_t> link_begin_;
  std::vector<Link> links_;
  std::vector<std::uint8_t> seen_;
  std::vector<std::int32_t> position_, slot_;
  Mask free_slots_ = 0;
  std::vector<JobIndex> frontier_, component_, all_components_;
  std::vector<std::uint32_t> component_begin_;
  std::vector<std::pair<std::int32_t, std::int32_t>> set_members_;  // set, position
  std::int64_t set_constant_ = 0;
  std::vector<std::int64_t> set_rest_;  // by position: what odd sets can still pay back
  std::vector<State> states_, next_;
  std::vector<Trace> traces_;
  std::vector<Table> tables_;
  std::size_t num_tables_ = 0;
  Usage base_used_ = 0;
  std::int64_t base_loss_ = 0, base_tie_ = 0;
  std::vector<Partial> partials_, shifted_, merged_, spare_;
  std::vector<Partial> history_;  // all partials of the merges before
  std::vector<std::int32_t> merge_order_;
  std::vector<std::int64_t> reachable_;  // by merge and field: most the later tables can use
};

// Rows without a price matter only if the columns at hand could overdraw them.
void Core::Impl::choose_rows(std::span<const std::int32_t> pairs) {
  packing_.clear();
  const int rows = prices_->num_rows();
  const auto by_row = prices_->by_row();
  bool all_priced = true;
  for (int r = 0; r < rows; ++r) all_priced = all_priced && by_row[r] > 0;
  most_charged_.assign(rows, 0);
  if (!all_priced) {
    std::vector<std::int64_t> most(static_cast<std::size_t>(problem_->num_jobs()) * rows, 0);
    const auto note = [&](JobIndex job) {
      for (int r = 0; r < rows; ++r) {
        std::int64_t& known = most[static_cast<std::size_t>(job) * rows + r];
        known = std::max(known, charged_[r]);
      }
    };
    for (JobIndex j = 0; j < problem_->num_jobs(); ++j) {
      for (const KeptOption& c : problem_->alone(j)) {
        if (graph_->job_price(j) - prices_->worth(j, c) > delta_) continue;
        std::fill(charged_.begin(), charged_.end(), 0);
        prices_->charge(j, kNoJob, c, 1, charged_);
        note(j);
      }
    }
    for (const std::int32_t p : pairs) {
      const PairEdge& pair = problem_->pairs()[p];
      for (const KeptOption& c : problem_->together(pair)) {
        if (graph_->pair_price(pair) - prices_->worth(pair, c) > delta_) continue;
        std::fill(charged_.begin(), charged_.end(), 0);
        prices_->charge(pair.first, pair.second, c, 1, charged_);
        note(pair.first);
        note(pair.second);
      }
    }
    for (std::size_t k = 0; k < most.size(); ++k) most_charged_[k % rows] += most[k];
  }
  for (int r = 0; r < rows; ++r) {
    const Row& row = prices_->rows()[r];
    if (by_row[r] > 0 || most_charged_[r] > row.capacity) packing_.add(r, row.capacity / row.unit);
  }
}

// False when the candidate alone overdraws a row.
bool Core::Impl::pack(JobIndex i, JobIndex j, const KeptOption& c, Usage& used) {
  used = 0;
  std::fill(charged_.begin(), charged_.end(), 0);
  prices_->charge(i, j, c, 1, charged_);
  for (const Packing::Field& field : packing_.fields) {
    const Row& row = prices_->rows()[field.row];
    if (charged_[field.row] > row.capacity) return false;
    used |= static_cast<Usage>(charged_[field.row] / row.unit) << field.shift;
  }
  return true;
}

void Core::Impl::collect_columns(std::span<const std::int32_t> pairs) {
  columns_.clear();
  alone_begin_.clear();
  pairs_.clear();
  Usage used = 0;
  for (JobIndex j = 0; j < problem_->num_jobs(); ++j) {
    alone_begin_.push_back(static_cast<std::uint32_t>(columns_.size()));
    const std::int64_t price = graph_->job_price(j);
    if (price <= delta_) columns_.push_back({0, price, 0, {}});
    std::uint32_t k = problem_->alone_begin(j);
    for (const KeptOption& c : problem_->alone(j)) {
      const std::int64_t loss = price - prices_->worth(j, c);
      const Pick pick{-1, j, k++};
      if (loss > delta_ || !pack(j, kNoJob, c, used)) continue;
      columns_.push_back({used, loss, tie_hash(*problem_, pick), pick});
    }
  }
  alone_begin_.push_back(static_cast<std::uint32_t>(columns_.size()));
  for (const std::int32_t p : pairs) {
    const PairEdge& pair = problem_->pairs()[p];
    CorePair core{pair.first, pair.second, graph_->matching().set_price(pair.first, pair.second),
                  static_cast<std::uint32_t>(columns_.size()), 0};
    const std::int64_t price = graph_->job_price(pair.first) + graph_->job_price(pair.second);
    std::uint32_t k = pair.begin;
    for (const KeptOption& c : problem_->together(pair)) {
      const std::int64_t loss = price - prices_->worth(pair, c);
      const Pick pick{p, pair.first, k++};
      if (loss + core.set_price > delta_ || !pack(pair.first, pair.second, c, used)) continue;
      columns_.push_back({used, loss, tie_hash(*problem_, pick), pick});
    }
    core.end = static_cast<std::uint32_t>(columns_.size());
    if (core.end > core.begin) pairs_.push_back(core);
  }
  result_.columns = static_cast<std::int64_t>(columns_.size());
}

void Core::Impl::link_pairs() {
  link_begin_.assign(problem_->num_jobs() + 1, 0);
  for (const CorePair& pair : pairs_) {
    ++link_begin_[pair.first];
    ++link_begin_[pair.second];
  }
  std::uint32_t sum = 0;
  for (std::uint32_t& begin : link_begin_) begin = sum += begin;
  links_.resize(2 * pairs_.size());
  for (int k = static_cast<int>(pairs_.size()) - 1; k >= 0; --k) {
    links_[--link_begin_[pairs_[k].first]] = {pairs_[k].second, k};
    links_[--link_begin_[pairs_[k].second]] = {pairs_[k].first, k};
  }
}

void Core::Impl::components() {
  seen_.assign(problem_->num_jobs(), 0);
  all_components_.clear();
  component_begin_.assign(1, 0);
  for (JobIndex root = 0; root < problem_->num_jobs(); ++root) {
    if (seen_[root]) continue;
    component_.assign(1, root);
    seen_[root] = 1;
    for (std::size_t k = 0; k < component_.size(); ++k) {
      for (std::uint32_t l = link_begin_[component_[k]]; l < link_begin_[component_[k] + 1]; ++l) {
        const JobIndex to = links_[l].to;
        if (seen_[to]) continue;
        seen_[to] = 1;
        component_.push_back(to);
      }
    }
    if (component_.size() > 2) order(component_);
    all_components_.insert(all_components_.end(), component_.begin(), component_.end());
    component_begin_.push_back(static_cast<std::uint32_t>(all_components_.size()));
  }
}

// An order with a narrow frontier: next comes the frontier job that opens the fewest new jobs.
void Core::Impl::order(std::vector<JobIndex>& jobs) {
  constexpr std::uint8_t kDone = 1, kUntouched = 2, kFrontier = 3;
  const auto degree = [&](JobIndex j) { return link_begin_[j + 1] - link_begin_[j]; };
  JobIndex start = jobs[0];
  for (const JobIndex j : jobs) {
    seen_[j] = kUntouched;
    if (degree(j) < degree(start)) start = j;
  }
  jobs.clear();
  frontier_.assign(1, start);
  seen_[start] = kFrontier;
  while (!frontier_.empty()) {
    std::size_t best = 0;
    int fewest = std::numeric_limits<int>::max();
    for (std::size_t k = 0; k < frontier_.size() && fewest > 0; ++k) {
      int opened = 0;
      for (std::uint32_t l = link_begin_[frontier_[k]]; l < link_begin_[frontier_[k] + 1]; ++l) {
        opened += seen_[links_[l].to] == kUntouched;
      }
      if (opened < fewest) {
        fewest = opened;
        best = k;
      }
    }
    const JobIndex job = frontier_[best];
    frontier_.erase(frontier_.begin() + static_cast<std::ptrdiff_t>(best));
    seen_[job] = kDone;
    jobs.push_back(job);
    for (std::uint32_t l = link_begin_[job]; l < link_begin_[job + 1]; ++l) {
      if (seen_[links_[l].to] != kUntouched) continue;
      seen_[links_[l].to] = kFrontier;
      frontier_.push_back(links_[l].to);
    }
  }
}

// The part of the loss that comes from odd sets: a constant (nothing inside is paired), lowered by
// the set price of every pair inside; set_rest_ bounds what pairs still to come can lower it by.
void Core::Impl::odd_sets(const std::vector<JobIndex>& jobs) {
  set_constant_ = 0;
  set_rest_.assign(jobs.size() + 1, 0);
  if (jobs.size() < 3) return;
  set_members_.clear();
  const Matching& matching = graph_->matching();
  for (const JobIndex j : jobs) {
    for (int set = matching.parent_set(j); set >= 0; set = matching.parent_set(set)) {
      if (matching.price_of_set(set) > 0) set_members_.emplace_back(set, position_[j]);
    }
  }
  std::sort(set_members_.begin(), set_members_.end());
  for (std::size_t begin = 0, end = 0; begin < set_members_.size(); begin = end) {
    const int set = set_members_[begin].first;
    while (end < set_members_.size() && set_members_[end].first == set) ++end;
    const auto size = static_cast<std::int64_t>(end - begin);
    YMIR_CHECK(size % 2 == 1, "an odd set reaches over two components");
    const std::int64_t price = matching.price_of_set(set);
    set_constant_ += price * (size / 2);
    std::size_t first_later = begin;
    for (int at = 0; at <= static_cast<int>(jobs.size()); ++at) {
      while (first_later < end && set_members_[first_later].second < at) ++first_later;
      set_rest_[at] += price * static_cast<std::int64_t>((end - first_later) / 2);
    }
  }
}

// Enumerates the component into states_. False: too large.
bool Core::Impl::solve_component(const std::vector<JobIndex>& jobs) {
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    position_[jobs[k]] = static_cast<std::int32_t>(k);
    slot_[jobs[k]] = -1;
  }
  odd_sets(jobs);
  states_.assign(1, State{});
  free_slots_ = ~static_cast<Mask>(0);
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    if (!step(jobs[k], static_cast<int>(k))) return false;
    if (states_.empty()) break;
  }
  for (State& state : states_) state.loss += set_constant_;
  return true;
}

// Decides one job in every state: already taken, alone or idle, or with a later job.
bool Core::Impl::step(JobIndex job, int at) {
  const std::int64_t allowed = delta_ - set_constant_ + set_rest_[at + 1];
  const Mask mine = slot_[job] >= 0 ? static_cast<Mask>(1) << slot_[job] : 0;
  next_.clear();
  for (std::uint32_t l = link_begin_[job]; l < link_begin_[job + 1]; ++l) {
    const JobIndex to = links_[l].to;
    if (position_[to] <= at || slot_[to] >= 0) continue;
    if (free_slots_ == 0) return false;
    int slot = 0;
    while ((free_slots_ >> slot & 1) == 0) ++slot;
    slot_[to] = slot;
    free_slots_ &= ~(static_cast<Mask>(1) << slot);
  }
  const auto extend = [&](const State& from, const Column& column, std::uint32_t index, Mask bit,
                          std::int64_t set_price) {
    const std::int64_t loss = from.loss + column.loss;
    const std::int64_t reduced = from.reduced + column.loss + set_price;
    const Usage used = from.used + column.used;
    if (reduced > delta_ || loss > allowed || !packing_.fits(used)) return;
    std::int32_t trace = from.trace;
    if (column.pick.job != kNoJob) {
      trace = static_cast<std::int32_t>(traces_.size());
      traces_.push_back({from.trace, index});
    }
    next_.push_back({from.taken | bit, used, loss, reduced, from.tie + column.tie, trace});
  };
  const std::size_t most = 2 * static_cast<std::size_t>(max_states_) + 1000;
  for (const State& state : states_) {
    if (!go_on() || next_.size() > most) return false;
    if ((state.taken & mine) != 0) {
      next_.push_back(state);
      next_.back().taken &= ~mine;
      continue;
    }
    for (std::uint32_t k = alone_begin_[job]; k < alone_begin_[job + 1]; ++k) {
      extend(state, columns_[k], k, 0, 0);
    }
    for (std::uint32_t l = link_begin_[job]; l < link_begin_[job + 1]; ++l) {
      const JobIndex to = links_[l].to;
      if (position_[to] <= at) continue;
      const Mask bit = static_cast<Mask>(1) << slot_[to];
      if ((state.taken & bit) != 0) continue;
      const CorePair& pair = pairs_[links_[l].pair];
      for (std::uint32_t k = pair.begin; k < pair.end; ++k) {
        extend(state, columns_[k], k, bit, pair.set_price);
      }
    }
  }
  if (slot_[job] >= 0) free_slots_ |= mine;
  keep_best();
  result_.states += static_cast<std::int64_t>(states_.size());
  return result_.states <= max_states_;
}

// Of states with the same taken jobs and use, the best stays.
void Core::Impl::keep_best() {
  if (next_.size() > 1) {
    std::sort(next_.begin(), next_.end(), [](const State& a, const State& b) {
      if (a.taken != b.taken) return a.taken < b.taken;
      if (a.used != b.used) return a.used < b.used;
      if (a.loss != b.loss) return a.loss < b.loss;
      return a.tie < b.tie;
    });
  }
  states_.clear();
  for (const State& state : next_) {
    if (!states_.empty() && states_.back().taken == state.taken &&
        states_.back().used == state.used) {
      continue;
    }
    states_.push_back(state);
  }
}

// Takes over states_ as a table, or into the base when there is no choice. False: no plan.
bool Core::Impl::finish_component() {
  if (states_.empty()) return false;
  if (states_.size() == 1) {
    const State& only = states_[0];
    base_used_ += only.used;
    base_loss_ += only.loss;
    base_tie_ += only.tie;
    if (!packing_.fits(base_used_) || base_loss_ > delta_) return false;
    trace_back(only.trace);
    return true;
  }
  if (num_tables_ == tables_.size()) tables_.emplace_back();
  Table& table = tables_[num_tables_++];
  table.states.assign(states_.begin(), states_.end());
  table.most = 0;
  for (const Packing::Field& field : packing_.fields) {
    std::int64_t most = 0;
    for (const State& state : states_) most = std::max(most, packing_.count(field, state.used));
    table.most |= static_cast<Usage>(most) << field.shift;
  }
  return true;
}

void Core::Impl::trace_back(std::int32_t trace) {
  for (; trace >= 0; trace = traces_[trace].before) {
    result_.plan.push_back(columns_[traces_[trace].column].pick);
  }
}

// Least loss from capacity that can no longer be used.
std::int64_t Core::Impl::waste(Usage used, std::span<const std::int64_t> reachable) const {
  std::int64_t loss = 0;
  for (std::size_t f = 0; f < packing_.fields.size(); ++f) {
    const Packing::Field& field = packing_.fields[f];
    const Row& row = prices_->rows()[field.row];
    const std::int64_t left = row.capacity / row.unit - packing_.count(field, used) - reachable[f];
    if (left > 0) loss += prices_->by_row()[field.row] * left * row.unit;
  }
  return loss;
}

// partials_ x table -> partials_, sorted by use. Each state shifts a sorted list, so lists are
// merged, not sorted.
bool Core::Impl::merge(const Table& table, std::span<const std::int64_t> reachable) {
  merged_.clear();
  for (std::size_t s = 0; s < table.states.size(); ++s) {
    const State& state = table.states[s];
    shifted_.clear();
    for (std::size_t k = 0; k < partials_.size(); ++k) {
      if (!go_on()) return false;
      const Partial& from = partials_[k];
      const Usage used = from.used + state.used;
      const std::int64_t loss = from.loss + state.loss;
      if (loss > delta_ || !packing_.fits(used)) continue;
      if (loss + waste(used, reachable) > delta_) continue;
      shifted_.push_back({used, loss, from.tie + state.tie,
                          static_cast<std::int32_t>(history_.size() + k),
                          static_cast<std::int32_t>(s)});
    }
    spare_.clear();
    std::size_t a = 0, b = 0;
    while (a < merged_.size() || b < shifted_.size()) {
      if (b == shifted_.size() || (a < merged_.size() && merged_[a].used < shifted_[b].used)) {
        spare_.push_back(merged_[a++]);
      } else if (a == merged_.size() || shifted_[b].used < merged_[a].used) {
        spare_.push_back(shifted_[b++]);
      } else {
        const Partial &x = merged_[a++], &y = shifted_[b++];
        spare_.push_back(x.loss != y.loss ? (x.loss < y.loss ? x : y) : (x.tie <= y.tie ? x : y));
      }
    }
    std::swap(merged_, spare_);
  }
  history_.insert(history_.end(), partials_.begin(), partials_.end());
  std::swap(partials_, merged_);
  result_.states += static_cast<std::int64_t>(partials_.size() / 8);  // cheaper than the others
  return result_.states <= max_states_;
}

// Merges the tables, smallest first, and keeps the best complete plan. False: too large.
bool Core::Impl::merge_all() {
  merge_order_.resize(num_tables_);
  for (std::size_t k = 0; k < num_tables_; ++k) merge_order_[k] = static_cast<std::int32_t>(k);
  std::sort(merge_order_.begin(), merge_order_.end(), [&](std::int32_t a, std::int32_t b) {
    const std::size_t left = tables_[a].states.size(), right = tables_[b].states.size();
    return left != right ? left < right : a < b;
  });
  const std::size_t width = packing_.fields.size();
  reachable_.assign((num_tables_ + 1) * width, 0);
  for (std::size_t k = num_tables_; k-- > 0;) {
    for (std::size_t f = 0; f < width; ++f) {
      reachable_[k * width + f] = reachable_[(k + 1) * width + f] +
                                  packing_.count(packing_.fields[f], tables_[merge_order_[k]].most);
    }
  }
  history_.clear();
  partials_.assign(1, {base_used_, base_loss_, base_tie_, -1, -1});
  for (std::size_t k = 0; k < num_tables_; ++k) {
    const auto later = std::span(reachable_).subspan((k + 1) * width, width);
    if (!merge(tables_[merge_order_[k]], later)) return false;
    if (partials_.empty()) return true;
  }
  const auto nothing = std::span(reachable_).subspan(num_tables_ * width, width);
  const Partial* best = nullptr;
  result_.loss = kNever;
  for (const Partial& partial : partials_) {
    const std::int64_t loss = partial.loss + waste(partial.used, nothing);
    if (loss > result_.loss || (loss == result_.loss && partial.tie >= result_.tie)) continue;
    best = &partial;
    result_.loss = loss;
    result_.tie = partial.tie;
  }
  if (best == nullptr) return true;
  result_.found = true;
  trace_partial(*best);
  return true;
}

void Core::Impl::trace_partial(const Partial& last) {
  const Partial* partial = &last;
  for (std::size_t k = num_tables_; k-- > 0;) {
    trace_back(tables_[merge_order_[k]].states[partial->state].trace);
    partial = &history_[partial->before];
  }
}

CoreResult Core::Impl::run(const RoundProblem& problem, const Prices& prices,
                           const ActiveGraph& graph, std::span<const std::int32_t> pairs,
                           std::int64_t delta, std::int64_t max_states,
                           const std::function<bool()>& stopped) {
  problem_ = &problem;
  prices_ = &prices;
  graph_ = &graph;
  delta_ = delta;
  max_states_ = max_states;
  stopped_ = &stopped;
  was_stopped_ = false;
  result_ = {};
  charged_.assign(prices.num_rows(), 0);
  position_.resize(problem.num_jobs());
  slot_.resize(problem.num_jobs());
  traces_.clear();
  num_tables_ = 0;
  base_used_ = 0;
  base_loss_ = base_tie_ = 0;

  const auto ended = [&](CoreEnd end) {
    result_.end = was_stopped_ ? CoreEnd::kStopped : end;
    return std::move(result_);
  };
  choose_rows(pairs);
  if (packing_.width > 128) return ended(CoreEnd::kTooLarge);
  collect_columns(pairs);
  link_pairs();
  components();
  for (std::size_t k = 0; k + 1 < component_begin_.size(); ++k) {
    if (!go_on()) return ended(CoreEnd::kStopped);
    component_.assign(all_components_.begin() + component_begin_[k],
                      all_components_.begin() + component_begin_[k + 1]);
    if (!solve_component(component_)) return ended(CoreEnd::kTooLarge);
    if (!finish_component()) return ended(CoreEnd::kComplete);  // no plan of so little loss
  }
  return ended(merge_all() ? CoreEnd::kComplete : CoreEnd::kTooLarge);
}

Core::Core() : impl_(std::make_unique<Impl>()) {}
Core::~Core() = default;

CoreResult Core::run(const RoundProblem& problem, const Prices& prices, const ActiveGraph& graph,
                     std::span<const std::int32_t> pairs, std::int64_t delta,
                     std::int64_t max_states, const std::function<bool()>& stopped) {
  return impl_->run(problem, prices, graph, pairs, delta, max_states, stopped);
}

}  // namespace ymir
