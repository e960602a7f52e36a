#include "ymir/optimize/test_instances.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace ymir {
namespace {

constexpr std::array<std::array<int, 6>, 3> kSizes = {
    {{1, 2, 4, 8, 16, 32}, {1, 2, 3, 4, 5, 7}, {4, 8, 12, 16, 20, 24}}};

std::vector<Option> random_options(Rng& rng, const InstanceShape& shape, int types, int sizes,
                                   std::int64_t highest) {
  std::vector<Option> options;
  const std::int64_t count = rng.between(1, shape.max_options);
  for (std::int64_t k = 0; k < count; ++k) {
    options.push_back({static_cast<std::int32_t>(rng.between(0, highest)),
                       static_cast<std::uint16_t>(kSizes[sizes][rng.below(6)]),
                       static_cast<std::uint8_t>(rng.below(types)),
                       static_cast<std::uint8_t>(rng.below(4))});
    if (rng.chance(0.1)) options.push_back(options.back());
  }
  return options;
}

class Exhaustive {
 public:
  explicit Exhaustive(const RoundProblem& problem)
      : problem_(problem), left_(), taken_(problem.num_jobs(), 0), pairs_of_(problem.num_jobs()) {
    for (const Row& row : problem.rows()) left_.push_back(row.capacity);
    rows_ = problem.rows();
    for (const PairEdge& pair : problem.pairs()) {
      pairs_of_[std::min(pair.first, pair.second)].push_back(pair);
    }
  }
  std::int64_t best() {
    extend(0, 0);
    return best_;
  }

 private:
  std::int64_t charge(const Row& row, JobIndex i, JobIndex j, const KeptOption& c) const {
    const SizeClass& size = problem_.sizes()[c.size];
    if (row.extra < 0) return size.type == row.type && size.gpus >= row.min_gpus ? size.gpus : 0;
    std::int64_t sum = 0;
    for (const JobIndex job : {i, j}) {
      for (const RowShare& share : problem_.shares(job)) {
        if (share.row == row.extra) sum += share.sixteenths * size.gpus;
      }
    }
    return sum;  // alone is called with i == j: twice the share
  }
  bool take(JobIndex i, JobIndex j, const KeptOption& c, std::int64_t sign) {
    bool fits = true;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      left_[r] -= sign * charge(rows_[r], i, j, c);
      fits = fits && left_[r] >= 0;
    }
    return fits;
  }
  void extend(JobIndex job, std::int64_t value) {
    while (job < problem_.num_jobs() && taken_[job]) ++job;
    if (job == problem_.num_jobs()) {
      best_ = std::max(best_, value);
      return;
    }
    taken_[job] = 1;
    extend(job + 1, value);
    for (const KeptOption& c : problem_.alone(job)) {
      if (take(job, job, c, 1)) extend(job + 1, value + c.utility);
      take(job, job, c, -1);
    }
    for (const PairEdge& pair : pairs_of_[job]) {
      const JobIndex other = std::max(pair.first, pair.second);
      if (taken_[other]) continue;
      taken_[other] = 1;
      for (const KeptOption& c : problem_.together(pair)) {
        if (take(pair.first, pair.second, c, 1)) extend(job + 1, value + c.utility);
        take(pair.first, pair.second, c, -1);
      }
      taken_[other] = 0;
    }
    taken_[job] = 0;
  }

  const RoundProblem& problem_;
  std::vector<Row> rows_;
  std::vector<std::int64_t> left_;
  std::vector<std::uint8_t> taken_;
  std::vector<std::vector<PairEdge>> pairs_of_;
  std::int64_t best_ = 0;
};

}  // namespace

Instance random_instance(Rng& rng, const InstanceShape& shape) {
  Instance instance;
  const int types = static_cast<int>(rng.between(1, shape.max_types));
  const int sizes = static_cast<int>(rng.below(3));
  const std::array<std::int64_t, 3> heights = {6, 60, 1'000'000};
  const std::int64_t highest = heights[rng.below(3)];
  for (int t = 0; t < types; ++t) {
    Capacity capacity{static_cast<int>(rng.between(0, shape.max_capacity)), {}};
    if (shape.blocks && rng.chance(0.7)) {  // nodes of unequal free GPUs
      capacity.blocks.assign(4, 0);
      int left = capacity.gpus;
      while (left > 0) {
        const int free = static_cast<int>(rng.between(1, std::min(left, 8)));
        for (int k = 0; k < 4; ++k) capacity.blocks[k] += free >> k;
        left -= free;
      }
    }
    instance.types.push_back(capacity);
  }
  const std::int64_t extra = rng.between(0, shape.max_extra_rows);
  for (std::int64_t x = 0; x < extra; ++x) {
    instance.extra_rows.push_back(static_cast<int>(rng.between(0, shape.max_capacity)));
  }
  const std::int64_t jobs = rng.between(shape.min_jobs, shape.max_jobs);
  for (std::int64_t j = 0; j < jobs; ++j) {
    Instance::Job job{rng.next64(), {}, {}};
    if (!rng.chance(0.1)) job.alone = random_options(rng, shape, types, sizes, highest);
    for (std::int64_t x = 0; x < extra; ++x) {
      if (!rng.chance(0.5)) continue;
      const int sixteenths = rng.chance(0.6) ? 16 : static_cast<int>(rng.between(1, 16));
      job.shares.push_back({static_cast<int>(x), sixteenths});
    }
    if (j > 0 && rng.chance(0.2)) job.alone = instance.jobs.back().alone;  // ties
    instance.jobs.push_back(std::move(job));
  }
  const double density = shape.density >= 0 ? shape.density : rng.uniform(0.05, 1);
  for (std::size_t i = 0; i < instance.jobs.size(); ++i) {
    for (std::size_t j = i + 1; j < instance.jobs.size(); ++j) {
      if (!rng.chance(density)) continue;
      Instance::Pair pair{i, j, random_options(rng, shape, types, sizes, 2 * highest)};
      // Identity is in the order of the keys, so that it survives a new order of the jobs.
      if (instance.jobs[j].key < instance.jobs[i].key) std::swap(pair.first, pair.second);
      instance.pairs.push_back(std::move(pair));
      if (rng.chance(0.02)) instance.pairs.push_back(instance.pairs.back());
    }
  }
  return instance;
}

RoundProblem make_problem(const Instance& instance, const std::vector<std::size_t>& order,
                          bool reverse) {
  RoundProblem problem;
  problem.reset(instance.types, instance.extra_rows);
  std::vector<JobIndex> index(instance.jobs.size());
  const auto options = [&](std::vector<Option> given) {
    if (reverse) std::reverse(given.begin(), given.end());
    return given;
  };
  for (std::size_t k = 0; k < instance.jobs.size(); ++k) {
    const std::size_t at = order.empty() ? k : order[k];
    const Instance::Job& job = instance.jobs[at];
    index[at] = problem.add_job(job.key, options(job.alone), job.shares);
  }
  for (std::size_t k = 0; k < instance.pairs.size(); ++k) {
    const Instance::Pair& pair = instance.pairs[reverse ? instance.pairs.size() - 1 - k : k];
    problem.add_pair(index[pair.first], index[pair.second], options(pair.together));
  }
  return problem;
}

std::int64_t exhaustive_value(const RoundProblem& problem) { return Exhaustive(problem).best(); }

int rounds(int usual, int nightly) {
  return std::getenv("YMIR_NIGHTLY") != nullptr ? nightly : usual;
}

}  // namespace ymir
