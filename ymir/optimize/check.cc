#include "ymir/optimize/check.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include <fmt/format.h>

namespace ymir {
namespace {

__extension__ typedef __int128 Wide;

Error fault(std::string what) {
  return {ErrorCode::kInvalidArgument, "solution: " + std::move(what)};
}

// What a candidate charges to a row; second == kNoJob: alone.
std::int64_t charge(const RoundProblem& problem, const Row& row, JobIndex first, JobIndex second,
                    const SizeClass& size) {
  if (row.extra < 0) {
    return size.type == row.type && size.gpus >= row.min_gpus ? size.gpus : 0;
  }
  std::int64_t sixteenths = 0;
  for (const RowShare& share : problem.shares(first)) {
    if (share.row == row.extra) sixteenths += share.sixteenths;
  }
  if (second == kNoJob) return 2 * sixteenths * size.gpus;
  for (const RowShare& share : problem.shares(second)) {
    if (share.row == row.extra) sixteenths += share.sixteenths;
  }
  return sixteenths * size.gpus;
}

bool equal(const Option& a, const Option& b) {
  return a.utility == b.utility && a.gpus == b.gpus && a.type == b.type && a.mode == b.mode;
}

Result<> check_jobs(const RoundProblem& problem, const Solution& solution) {
  std::vector<std::uint8_t> taken(problem.num_jobs(), 0);
  for (const Choice& choice : solution.chosen) {
    const JobIndex jobs[] = {choice.first, choice.second};
    for (int k = 0; k < (choice.second == kNoJob ? 1 : 2); ++k) {
      const JobIndex job = jobs[k];
      if (job < 0 || job >= problem.num_jobs()) return fault(fmt::format("no such job: {}", job));
      if (taken[job]++) return fault(fmt::format("job chosen twice: {}", job));
    }
  }
  return Ok{};
}

Result<> check_plan(const RoundProblem& problem, const Solution& solution) {
  YMIR_TRY(check_jobs(problem, solution));
  const std::vector<Row> rows = problem.rows();
  std::vector<std::int64_t> used(rows.size(), 0);
  // The pairs chosen, by their first job: one pass over the pairs finds whether they are offered.
  std::vector<const Choice*> chosen_by(problem.num_jobs(), nullptr);
  std::vector<std::uint8_t> offered(problem.num_jobs(), 0);
  const auto look = [&](const Choice& choice, std::span<const KeptOption> candidates) {
    for (const KeptOption& c : candidates) {
      if (offered[choice.first] || !equal(problem.option(c), choice.option)) continue;
      offered[choice.first] = 1;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        used[r] += charge(problem, rows[r], choice.first, choice.second, problem.sizes()[c.size]);
      }
    }
  };
  std::int64_t value = 0;
  for (const Choice& choice : solution.chosen) {
    value += choice.option.utility;
    chosen_by[choice.first] = &choice;
    if (choice.second == kNoJob) look(choice, problem.alone(choice.first));
  }
  for (const PairEdge& pair : problem.pairs()) {
    const Choice* choice = chosen_by[pair.first];
    if (choice && choice->second == pair.second) look(*choice, problem.together(pair));
  }
  for (const Choice& choice : solution.chosen) {
    if (!offered[choice.first]) {
      return fault(fmt::format("not offered: jobs {} {}", choice.first, choice.second));
    }
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (used[r] > rows[r].capacity) {
      return fault(fmt::format("row {} overdrawn: {} of {}", r, used[r], rows[r].capacity));
    }
  }
  if (value != solution.value) {
    return fault(fmt::format("value is {}, not {}", value, solution.value));
  }
  return Ok{};
}

// The prices are not negative, and sum to root_bound; the sets are odd.
Result<> check_bound(const RoundProblem& problem, const Certificate& certificate) {
  const std::vector<Row> rows = problem.rows();
  if (certificate.scale < 1 || certificate.row_price.size() != rows.size() ||
      certificate.job_price.size() != static_cast<std::size_t>(problem.num_jobs())) {
    return fault("certificate of another problem");
  }
  Wide bound = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (certificate.row_price[r] < 0) return fault(fmt::format("negative price of row {}", r));
    bound += static_cast<Wide>(certificate.row_price[r]) * rows[r].capacity;
  }
  for (const std::int64_t price : certificate.job_price) {
    if (price < 0) return fault("negative price of a job");
    bound += price;
  }
  for (const OddSet& set : certificate.odd_sets) {
    if (set.price < 0 || set.jobs.size() % 2 == 0) return fault("odd set is not one");
    for (std::size_t k = 0; k < set.jobs.size(); ++k) {
      const JobIndex job = set.jobs[k];
      if (job < 0 || job >= problem.num_jobs() || (k > 0 && job <= set.jobs[k - 1])) {
        return fault("odd set with a wrong job");
      }
    }
    bound += static_cast<Wide>(set.price) * static_cast<std::int64_t>(set.jobs.size() / 2);
  }
  if (bound != certificate.root_bound) return fault("root_bound is not what the prices sum to");
  return Ok{};
}

// No candidate is worth more than its jobs, its sets and what it charges cost.
Result<> check_prices(const RoundProblem& problem, const Certificate& certificate) {
  YMIR_TRY(check_bound(problem, certificate));
  const std::vector<Row> rows = problem.rows();
  std::vector<std::vector<std::int32_t>> sets_of(problem.num_jobs());
  for (std::size_t s = 0; s < certificate.odd_sets.size(); ++s) {
    for (const JobIndex job : certificate.odd_sets[s].jobs) {
      sets_of[job].push_back(static_cast<std::int32_t>(s));
    }
  }
  const auto undercut = [&](JobIndex first, JobIndex second, const KeptOption& c, Wide price) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (certificate.row_price[r] == 0) continue;
      price += static_cast<Wide>(certificate.row_price[r]) *
               charge(problem, rows[r], first, second, problem.sizes()[c.size]);
    }
    return price < static_cast<Wide>(certificate.scale) * c.utility;
  };
  for (JobIndex j = 0; j < problem.num_jobs(); ++j) {
    for (const KeptOption& c : problem.alone(j)) {
      if (undercut(j, kNoJob, c, certificate.job_price[j])) {
        return fault(fmt::format("job {} undercuts its price", j));
      }
    }
  }
  for (const PairEdge& pair : problem.pairs()) {
    Wide price =
        static_cast<Wide>(certificate.job_price[pair.first]) + certificate.job_price[pair.second];
    for (const std::int32_t set : sets_of[pair.first]) {
      const auto& others = sets_of[pair.second];
      const bool both = std::find(others.begin(), others.end(), set) != others.end();
      if (both) price += certificate.odd_sets[set].price;
    }
    for (const KeptOption& c : problem.together(pair)) {
      if (undercut(pair.first, pair.second, c, price)) {
        return fault(
            fmt::format("pair of jobs {} {} undercuts its price", pair.first, pair.second));
      }
    }
  }
  return Ok{};
}

}  // namespace

Result<> check_solution(const RoundProblem& problem, const Solution& solution) {
  YMIR_TRY(check_plan(problem, solution));
  YMIR_TRY(check_prices(problem, solution.certificate));
  if (solution.bound < solution.value) return fault("bound below the value");
  if (solution.bound > solution.certificate.root_bound / solution.certificate.scale) {
    return fault("bound above what the prices prove");
  }
  if ((solution.proof == Proof::kOptimal) != (solution.bound == solution.value)) {
    return fault("proof and bound do not agree");
  }
  return Ok{};
}

}  // namespace ymir
