#include "ymir/optimize/problem.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include <fmt/format.h>

namespace ymir {
namespace {

constexpr int kMaxTypes = 64;
constexpr int kMaxExtraRows = 256;
constexpr int kMaxCapacity = 1 << 24;

bool by_size(const Option& a, const Option& b) {
  if (a.type != b.type) return a.type < b.type;
  if (a.gpus != b.gpus) return a.gpus < b.gpus;
  if (a.utility != b.utility) return a.utility > b.utility;
  return a.mode < b.mode;
}

}  // namespace

void RoundProblem::reset(std::span<const Capacity> types, std::span<const int> extra_rows) {
  types_.assign(types.begin(), types.end());
  extra_rows_.assign(extra_rows.begin(), extra_rows.end());
  keys_.clear();
  alone_begin_.assign(1, 0);
  share_begin_.assign(1, 0);
  alone_.clear();
  together_.clear();
  shares_.clear();
  reach_.clear();
  pairs_.clear();
  sizes_.clear();
  size_index_.resize(std::min<std::size_t>(types_.size(), kMaxTypes));
  for (auto& index : size_index_) index.clear();
  max_utility_ = 0;
  fault_.clear();
  if (types_.size() > kMaxTypes) fault(fmt::format("more than {} GPU types", kMaxTypes));
  if (extra_rows_.size() > kMaxExtraRows) fault(fmt::format("more than {} rows", kMaxExtraRows));
  const auto bad = [](int value) { return value < 0 || value > kMaxCapacity; };
  for (const Capacity& type : types_) {
    if (bad(type.gpus)) fault(fmt::format("capacity not in 0..{}: {}", kMaxCapacity, type.gpus));
    if (type.blocks.size() > 16) fault("more than 16 block sizes");
    for (const int block : type.blocks) {
      if (bad(block)) fault(fmt::format("blocks not in 0..{}: {}", kMaxCapacity, block));
    }
  }
  for (const int row : extra_rows_) {
    if (bad(row)) fault(fmt::format("row capacity not in 0..{}: {}", kMaxCapacity, row));
  }
  if (!fault_.empty()) {  // nothing can be added to rows that make no sense
    types_.clear();
    extra_rows_.clear();
  }
  set_rows();
}

// The rows as they are given, charges counted one by one.
void RoundProblem::set_rows() {
  raw_rows_.clear();
  first_row_of_.clear();
  for (int t = 0; t < num_types(); ++t) {
    const Capacity& type = types_[t];
    first_row_of_.push_back(static_cast<std::int32_t>(raw_rows_.size()));
    raw_rows_.push_back({t, 1, -1, type.gpus, 1});
    for (int k = 1; k < static_cast<int>(type.blocks.size()); ++k) {
      raw_rows_.push_back({t, 1 << k, -1, std::int64_t{type.blocks[k]} << k, 1});
    }
  }
  first_row_of_.push_back(static_cast<std::int32_t>(raw_rows_.size()));
  for (int x = 0; x < static_cast<int>(extra_rows_.size()); ++x) {
    raw_rows_.push_back({-1, 0, x, std::int64_t{32} * extra_rows_[x], 1});
  }
}

void RoundProblem::reserve(std::span<const std::int64_t> by_row) {
  YMIR_CHECK(by_row.size() == raw_rows_.size() && keys_.empty(), "reserve() after reset()");
  for (std::size_t r = 0; r < by_row.size(); ++r) {
    if (by_row[r] < 0 || by_row[r] > raw_rows_[r].capacity) {
      fault(fmt::format("row {} has {}, not {} to reserve", r, raw_rows_[r].capacity, by_row[r]));
      continue;
    }
    raw_rows_[r].capacity -= by_row[r];
  }
}

JobIndex RoundProblem::add_job(std::uint64_t key, std::span<const Option> alone,
                               std::span<const RowShare> shares) {
  const auto job = static_cast<JobIndex>(keys_.size());
  keys_.push_back(key);
  for (const RowShare& share : shares) {
    if (share.row < 0 || share.row >= static_cast<int>(extra_rows_.size()) ||
        share.sixteenths < 0 || share.sixteenths > 16) {
      fault(fmt::format("job {}: bad share {}/16 of row {}", job, share.sixteenths, share.row));
    } else if (share.sixteenths > 0) {
      shares_.push_back(share);
    }
  }
  share_begin_.push_back(static_cast<std::uint32_t>(shares_.size()));
  reach_.push_back(2 * keep(alone, job, job, alone_));
  alone_begin_.push_back(static_cast<std::uint32_t>(alone_.size()));
  return job;
}

void RoundProblem::add_pair(JobIndex first, JobIndex second, std::span<const Option> together) {
  const auto known = [&](JobIndex job) { return job >= 0 && job < num_jobs(); };
  if (!known(first) || !known(second) || first == second) {
    fault(fmt::format("pair of jobs {} and {}: two jobs added before are needed", first, second));
    return;
  }
  const std::size_t begin = together_.size();
  const std::int64_t best = keep(together, first, second, together_);
  if (together_.size() == begin) return;
  reach_[first] = std::max(reach_[first], best);
  reach_[second] = std::max(reach_[second], best);
  pairs_.push_back({first, second, static_cast<std::uint32_t>(begin),
                    static_cast<std::uint32_t>(together_.size() - begin)});
}

// Appends what dominance leaves of `options`; first == second: alone. Returns the best utility.
std::int64_t RoundProblem::keep(std::span<const Option> options, JobIndex first, JobIndex second,
                                std::vector<KeptOption>& out) {
  const Option* in = options.data();
  if (!std::is_sorted(options.begin(), options.end(), by_size)) {
    sorted_.assign(options.begin(), options.end());
    std::sort(sorted_.begin(), sorted_.end(), by_size);
    in = sorted_.data();
  }
  const std::uint64_t identity = first == second ? candidate_identity(keys_[first])
                                                 : candidate_identity(keys_[first], keys_[second]);
  std::int32_t highest = 0, best = 0;
  for (std::size_t k = 0; k < options.size(); ++k) {
    const Option& option = in[k];
    if (k > 0 && option.type != in[k - 1].type) highest = 0;
    if (option.type >= types_.size() || option.utility < 0) {
      fault(fmt::format("option of type {} with utility {}: not in the problem", option.type,
                        option.utility));
      continue;
    }
    if (option.gpus == 0) {
      fault("an option needs at least one GPU");
      continue;
    }
    if (option.utility <= highest || !fits_alone(option, first, second)) continue;
    highest = option.utility;
    best = std::max(best, highest);
    const std::uint64_t bits = mix_bits(identity, std::uint64_t{option.type} << 16 | option.gpus);
    out.push_back({option.utility, size_class(option.type, option.gpus), option.mode,
                   static_cast<std::uint8_t>(bits & 63)});
  }
  max_utility_ = std::max(max_utility_, best);
  return best;
}

// A candidate that overdraws a row by itself is in no plan, and would only loosen the relaxation.
bool RoundProblem::fits_alone(const Option& option, JobIndex first, JobIndex second) const {
  for (int r = first_row_of_[option.type]; r < first_row_of_[option.type + 1]; ++r) {
    if (option.gpus >= raw_rows_[r].min_gpus && option.gpus > raw_rows_[r].capacity) return false;
  }
  if (extra_rows_.empty()) return true;
  const std::size_t first_extra = first_row_of_.back();
  for (const JobIndex one : {first, second}) {
    for (const RowShare& own : shares(one)) {
      std::int64_t sixteenths = 0;
      for (const JobIndex job : {first, second}) {
        for (const RowShare& share : shares(job)) {
          if (share.row == own.row) sixteenths += share.sixteenths;
        }
      }
      if (sixteenths * option.gpus > raw_rows_[first_extra + own.row].capacity) return false;
    }
  }
  return true;
}

std::uint16_t RoundProblem::size_class(std::uint8_t type, std::uint16_t gpus) {
  std::vector<std::int32_t>& index = size_index_[type];
  if (index.size() <= gpus) index.resize(gpus + 1, -1);
  if (index[gpus] < 0) {
    if (sizes_.size() > 0xffff) {
      fault("more than 65536 different sizes");
      return 0;
    }
    index[gpus] = static_cast<std::int32_t>(sizes_.size());
    sizes_.push_back({type, gpus});
  }
  return static_cast<std::uint16_t>(index[gpus]);
}

void RoundProblem::fault(std::string what) {
  if (fault_.empty()) fault_ = std::move(what);
}

std::span<const KeptOption> RoundProblem::alone(JobIndex job) const {
  const auto j = static_cast<std::size_t>(job);
  return std::span(alone_).subspan(alone_begin_[j], alone_begin_[j + 1] - alone_begin_[j]);
}

std::span<const RowShare> RoundProblem::shares(JobIndex job) const {
  const auto j = static_cast<std::size_t>(job);
  return std::span(shares_).subspan(share_begin_[j], share_begin_[j + 1] - share_begin_[j]);
}

Option RoundProblem::option(const KeptOption& candidate) const {
  const SizeClass& size = sizes_[candidate.size];
  return {candidate.utility, size.gpus, size.type, candidate.mode};
}

std::vector<Row> RoundProblem::rows() const {
  std::int64_t all_sizes = 0;
  for (const SizeClass& size : sizes_) all_sizes = std::gcd(all_sizes, std::int64_t{size.gpus});
  std::vector<Row> rows = raw_rows_;
  for (Row& row : rows) {
    std::int64_t unit = 0;
    if (row.extra >= 0) {
      for (const RowShare& share : shares_) {
        if (share.row == row.extra) unit = std::gcd(unit, std::int64_t{share.sixteenths});
      }
      unit *= all_sizes;
    } else {
      for (const SizeClass& size : sizes_) {
        const bool charged = size.type == row.type && size.gpus >= row.min_gpus;
        if (charged) unit = std::gcd(unit, std::int64_t{size.gpus});
      }
    }
    row.unit = std::max<std::int64_t>(1, unit);
    row.capacity -= row.capacity % row.unit;
  }
  return rows;
}

std::int64_t RoundProblem::utility_limit(std::int64_t num_jobs) const {
  std::int64_t capacity = 1;
  for (const Row& row : rows()) capacity += row.capacity / row.unit;
  const auto scale =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(128 * (num_jobs + 1))));
  const std::int64_t most = std::max(num_jobs + 1, capacity);
  return std::min<std::int64_t>((std::int64_t{1} << 61) / scale / most - 1, INT32_MAX);
}

Result<> RoundProblem::validate() const {
  const auto bad = [](std::string what) {
    return Error{ErrorCode::kInvalidArgument, "round problem: " + std::move(what)};
  };
  if (!fault_.empty()) return bad(fault_);
  if (num_jobs() > 1'000'000) return bad(fmt::format("more than 1000000 jobs: {}", num_jobs()));
  std::vector<std::uint64_t> keys = keys_;
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end()) return bad(fmt::format("key given twice: {}", *twice));
  if (const std::int64_t limit = utility_limit(num_jobs()); max_utility_ > limit) {
    return bad(fmt::format("utility {} is above {}, the most that {} jobs in these rows allow",
                           max_utility_, limit, num_jobs()));
  }
  return Ok{};
}

}  // namespace ymir
