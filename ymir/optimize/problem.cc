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
    if (option.type >= types_.size() || option.type >= kMaxTypes || option.utility < 0) {
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
  const Capacity& type = types_[option.type];
  if (option.gpus > type.gpus) return false;
  for (std::size_t k = 1; k < type.blocks.size() && option.gpus >> k > 0; ++k) {
    if (option.gpus > std::int64_t{type.blocks[k]} << k) return false;
  }
  if (extra_rows_.empty()) return true;
  for (const RowShare& own : shares(first)) {
    std::int64_t sixteenths = 0;
    for (const JobIndex job : {first, second}) {
      for (const RowShare& share : shares(job)) {
        if (share.row == own.row) sixteenths += share.sixteenths;
      }
    }
    if (sixteenths * option.gpus > std::int64_t{32} * extra_rows_[own.row]) return false;
  }
  if (first == second) return true;
  for (const RowShare& other : shares(second)) {  // rows of the second job alone
    if (other.sixteenths * option.gpus > 32 * extra_rows_[other.row]) return false;
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
  std::vector<Row> rows;
  const auto add = [&](Row row, std::int64_t unit) {
    row.unit = std::max<std::int64_t>(1, unit);
    row.capacity -= row.capacity % row.unit;
    rows.push_back(row);
  };
  for (int t = 0; t < num_types(); ++t) {
    const Capacity& type = types_[static_cast<std::size_t>(t)];
    for (std::size_t k = 0; k < std::max<std::size_t>(1, type.blocks.size()); ++k) {
      const int smallest = 1 << k;
      std::int64_t unit = 0;
      for (const SizeClass& size : sizes_) {
        if (size.type == t && size.gpus >= smallest) unit = std::gcd(unit, std::int64_t{size.gpus});
      }
      const std::int64_t whole = k == 0 ? type.gpus : std::int64_t{type.blocks[k]} << k;
      add({t, smallest, -1, whole, 1}, unit);
    }
  }
  std::int64_t gpus_unit = 0;
  for (const SizeClass& size : sizes_) gpus_unit = std::gcd(gpus_unit, std::int64_t{size.gpus});
  for (int x = 0; x < static_cast<int>(extra_rows_.size()); ++x) {
    std::int64_t unit = 0;
    for (const RowShare& share : shares_) {
      if (share.row == x) unit = std::gcd(unit, std::int64_t{share.sixteenths});
    }
    add({-1, 0, x, std::int64_t{32} * extra_rows_[static_cast<std::size_t>(x)], 1},
        unit * gpus_unit);
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
