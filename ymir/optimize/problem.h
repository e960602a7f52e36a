// RoundProblem: one scheduling round as numbers.
//
//   max  sum of utility   over plans in which every job is in at most one chosen candidate and
//                         no capacity row is charged more than it has
//
// A candidate is one job alone, or two jobs together, on a number of GPUs of one type. The solver
// knows no jobs, modes or times: `key` is the stable identity of a job (ties are broken by it, so
// the plan does not depend on the order of calls) and `mode` is handed back as it was given.
//
// Rows: per type one GPU row (sum of gpus <= Capacity::gpus) and, when blocks are given, one row
// per k >= 1 (sum of gpus of candidates with gpus >= 2^k <= 2^k * blocks[k]: with power-of-two
// sizes this is exactly what lets every candidate lie on as few nodes as it needs); then the extra
// rows, counted in 1/32 GPU: a job alone charges 2 * gpus * sixteenths, a pair
// gpus * (sixteenths of one + sixteenths of the other).
//
// add_* apply exact dominance: per type and size the best mode stays (equal utilities: the lower
// number, so give a pair in the order of its keys), and more GPUs must bring more utility.
// Candidates that bring nothing or fit no row are dropped. A wrong call is remembered and told by
// validate(); the problem must not be solved then. Keeps its memory between rounds. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

using JobIndex = std::int32_t;  // position in this round's problem
inline constexpr JobIndex kNoJob = -1;

struct Option {
  std::int32_t utility = 0;
  std::uint16_t gpus = 0;
  std::uint8_t type = 0, mode = 0;
};

struct Capacity {
  int gpus = 0;
  std::vector<int> blocks;  // blocks[k] = sum over nodes of floor(free / 2^k); empty: equal nodes
};

struct RowShare {
  int row = 0, sixteenths = 16;  // index into extra_rows; part of its GPUs the job charges, 0..16
};

// How an option is kept: 8 bytes, type and GPUs behind `size`, tie noise from the job keys.
struct KeptOption {
  std::int32_t utility = 0;
  std::uint16_t size = 0;  // index into RoundProblem::sizes()
  std::uint8_t mode = 0, noise = 0;
};

struct SizeClass {
  std::uint8_t type = 0;
  std::uint16_t gpus = 0;
};

struct PairEdge {
  JobIndex first = kNoJob, second = kNoJob;
  std::uint32_t begin = 0, count = 0;  // its candidates in RoundProblem::pair_candidates()
};

struct Row {
  int type = -1;              // GPU type, -1 for an extra row
  int min_gpus = 0;           // candidates below this size are not charged (block rows)
  int extra = -1;             // index into extra_rows, -1 for a GPU or block row
  std::int64_t capacity = 0;  // rounded down to a multiple of `unit`
  std::int64_t unit = 1;      // every charge is a multiple of it
};

class RoundProblem {
 public:
  // Empties the problem. `extra_rows` are capacities in GPUs.
  void reset(std::span<const Capacity> types, std::span<const int> extra_rows = {});
  // Lowers the capacities by what is held outside, by row in the order of rows(); before add_job.
  void reserve(std::span<const std::int64_t> by_row);
  JobIndex add_job(std::uint64_t key, std::span<const Option> alone,
                   std::span<const RowShare> shares = {});
  // At most once per pair of jobs is usual; given twice, the candidates add up.
  void add_pair(JobIndex first, JobIndex second, std::span<const Option> together);
  // Names the first wrong call, a key given twice, or utilities above utility_limit().
  Result<> validate() const;

  // Largest utility with which no sum of the solver can overflow, for `num_jobs` jobs in these
  // rows. Utilities are usually chosen as multiples of a quantum such that they stay below.
  std::int64_t utility_limit(std::int64_t num_jobs) const;

  int num_jobs() const { return static_cast<int>(keys_.size()); }
  int num_types() const { return static_cast<int>(types_.size()); }
  std::span<const Capacity> types() const { return types_; }
  std::span<const int> extra_rows() const { return extra_rows_; }
  std::uint64_t key(JobIndex job) const { return keys_[static_cast<std::size_t>(job)]; }
  std::span<const KeptOption> alone(JobIndex job) const;
  std::span<const RowShare> shares(JobIndex job) const;
  std::uint32_t alone_begin(JobIndex job) const { return alone_begin_[std::size_t(job)]; }
  std::span<const KeptOption> alone_candidates() const { return alone_; }
  std::span<const PairEdge> pairs() const { return pairs_; }
  std::span<const KeptOption> pair_candidates() const { return together_; }
  std::span<const KeptOption> together(const PairEdge& pair) const {
    return std::span(together_).subspan(pair.begin, pair.count);
  }
  std::span<const SizeClass> sizes() const { return sizes_; }
  std::int32_t max_utility() const { return max_utility_; }
  std::vector<Row> rows() const;  // in the order types (GPU row, block rows), extra rows
  // Twice the most the job can be worth: max of 2 * utility alone and utility in a pair. Half the
  // sum over the jobs bounds every plan.
  std::int64_t reach(JobIndex job) const { return reach_[static_cast<std::size_t>(job)]; }
  Option option(const KeptOption& candidate) const;

 private:
  std::int64_t keep(std::span<const Option> options, JobIndex first, JobIndex second,
                    std::vector<KeptOption>& out);
  bool fits_alone(const Option& option, JobIndex first, JobIndex second) const;
  void set_rows();
  std::uint16_t size_class(std::uint8_t type, std::uint16_t gpus);
  void fault(std::string what);

  std::vector<Capacity> types_;
  std::vector<Row> raw_rows_;               // before rounding to units
  std::vector<std::int32_t> first_row_of_;  // by type
  std::vector<int> extra_rows_;
  std::vector<std::uint64_t> keys_;
  std::vector<std::uint32_t> alone_begin_, share_begin_;
  std::vector<KeptOption> alone_, together_;
  std::vector<RowShare> shares_;
  std::vector<std::int64_t> reach_;  // per job: max of 2 * utility alone and utility in a pair
  std::vector<PairEdge> pairs_;
  std::vector<SizeClass> sizes_;
  std::vector<std::vector<std::int32_t>> size_index_;  // [type][gpus] -> index into sizes_, or -1
  std::vector<Option> sorted_;                         // scratch of keep()
  std::int32_t max_utility_ = 0;
  std::string fault_;
};

// 64 well-mixed bits of two numbers; the tie order of the solver is built on it.
inline std::uint64_t mix_bits(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15u + (b ^ 0x2545f4914f6cdd1du);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
// The identity of a job alone, or of two together in either order.
inline std::uint64_t candidate_identity(std::uint64_t key) { return mix_bits(key, ~key); }
inline std::uint64_t candidate_identity(std::uint64_t a, std::uint64_t b) {
  return a < b ? mix_bits(a, b) : mix_bits(b, a);
}

}  // namespace ymir
