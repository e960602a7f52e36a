#include "ymir/optimize/explain.h"

#include <algorithm>

#include <fmt/format.h>

namespace ymir {
namespace {

// By row, what the choice charges.
std::vector<std::int64_t> charges(const RoundProblem& problem, const Choice& choice) {
  std::vector<std::int64_t> charged;
  const Option& option = choice.option;
  for (const Row& row : problem.rows()) {
    std::int64_t sum = 0;
    if (row.extra < 0) {
      sum = option.type == row.type && option.gpus >= row.min_gpus ? option.gpus : 0;
    } else {
      const JobIndex other = choice.second == kNoJob ? choice.first : choice.second;
      for (const JobIndex job : {choice.first, other}) {
        for (const RowShare& share : problem.shares(job)) {
          if (share.row == row.extra) sum += share.sixteenths * option.gpus;
        }
      }
    }
    charged.push_back(sum);
  }
  return charged;
}

bool same(const Choice& a, const Choice& b) {
  const bool jobs = (a.first == b.first && a.second == b.second) ||
                    (b.second != kNoJob && a.first == b.second && a.second == b.first);
  return jobs && a.option.gpus == b.option.gpus && a.option.type == b.option.type &&
         a.option.mode == b.option.mode && a.option.utility == b.option.utility;
}

bool known(const RoundProblem& problem, const Choice& choice) {
  return choice.first >= 0 && choice.first < problem.num_jobs() && choice.second >= kNoJob &&
         choice.second < problem.num_jobs() && choice.first != choice.second;
}

}  // namespace

PriceTag price_tag(const RoundProblem& problem, const Solution& solution, const Choice& choice) {
  const Certificate& certificate = solution.certificate;
  PriceTag tag;
  YMIR_CHECK(known(problem, choice), "price of no candidate");
  tag.own = certificate.scale * choice.option.utility;
  const std::vector<std::int64_t> charged = charges(problem, choice);
  for (std::size_t r = 0; r < charged.size(); ++r) {
    tag.rows += certificate.row_price[r] * charged[r];
  }
  tag.jobs = certificate.job_price[choice.first];
  if (choice.second == kNoJob) return tag;
  tag.jobs += certificate.job_price[choice.second];
  for (const OddSet& set : certificate.odd_sets) {
    const auto holds = [&](JobIndex job) {
      return std::binary_search(set.jobs.begin(), set.jobs.end(), job);
    };
    if (holds(choice.first) && holds(choice.second)) tag.sets += set.price;
  }
  return tag;
}

std::int64_t regret(const RoundProblem& problem, const Solution& solution, const Choice& choice) {
  for (const Choice& chosen : solution.chosen) {
    if (same(chosen, choice)) return 0;
  }
  const std::int64_t rest =
      solution.certificate.root_bound - price_tag(problem, solution, choice).reduced_cost();
  const std::int64_t scale = solution.certificate.scale;
  // The best plan with the choice is worth at most rest / scale, rounded down.
  const std::int64_t most = rest >= 0 ? rest / scale : -((-rest + scale - 1) / scale);
  return std::max<std::int64_t>(0, solution.value - most);
}

Result<Solution> solve_forcing(const RoundProblem& problem, const Choice& choice,
                               const Limits& limits) {
  if (!known(problem, choice) || choice.option.type >= problem.num_types()) {
    return Error{ErrorCode::kInvalidArgument, "no such candidate to force"};
  }
  RoundProblem rest;
  rest.reset(problem.types(), problem.extra_rows());
  rest.reserve(charges(problem, choice));
  const auto gone = [&](JobIndex job) { return job == choice.first || job == choice.second; };
  std::vector<Option> options;
  const auto collect = [&](std::span<const KeptOption> candidates) {
    options.clear();
    for (const KeptOption& c : candidates) options.push_back(problem.option(c));
  };
  for (JobIndex j = 0; j < problem.num_jobs(); ++j) {
    collect(gone(j) ? std::span<const KeptOption>{} : problem.alone(j));
    rest.add_job(problem.key(j), options, problem.shares(j));
  }
  for (const PairEdge& pair : problem.pairs()) {
    if (gone(pair.first) || gone(pair.second)) continue;
    collect(problem.together(pair));
    rest.add_pair(pair.first, pair.second, options);
  }
  YMIR_TRY(rest.validate());
  Planner planner;
  Solution solution = planner.solve(rest, limits);
  const auto key = [&](const Choice& c) {
    const std::uint64_t first = problem.key(c.first);
    return c.second == kNoJob ? first : std::min(first, problem.key(c.second));
  };
  const auto before = [&](const Choice& a, const Choice& b) { return key(a) < key(b); };
  solution.chosen.insert(
      std::upper_bound(solution.chosen.begin(), solution.chosen.end(), choice, before), choice);
  solution.value += choice.option.utility;
  solution.bound += choice.option.utility;
  return solution;
}

std::string explain(const RoundProblem& problem, const Solution& solution, const Choice& choice,
                    std::string_view first_name, std::string_view second_name, double quantum) {
  const double unit = static_cast<double>(solution.certificate.scale) * quantum;
  const PriceTag tag = price_tag(problem, solution, choice);
  std::string who(first_name);
  if (choice.second != kNoJob) who += fmt::format(" with {}", second_name);
  const std::string what =
      fmt::format("{} GPU{} for {}", choice.option.gpus, choice.option.gpus == 1 ? "" : "s", who);
  double gpu_price = 0;
  const std::vector<Row> rows = problem.rows();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].type == choice.option.type && rows[r].min_gpus == 1) {
      gpu_price = static_cast<double>(solution.certificate.row_price[r]) / unit;
    }
  }
  for (const Choice& chosen : solution.chosen) {
    if (!same(chosen, choice)) continue;
    return fmt::format("{}: chosen, brings {:.3g}; GPU price now {:.3g}", what,
                       static_cast<double>(tag.own) / unit, gpu_price);
  }
  const std::string parts =
      fmt::format("it brings {:.3g}, its GPUs are worth {:.3g} to others and {} {:.3g} elsewhere",
                  static_cast<double>(tag.own) / unit, static_cast<double>(tag.rows) / unit, who,
                  static_cast<double>(tag.jobs + tag.sets) / unit);
  const std::int64_t lost = regret(problem, solution, choice);
  if (tag.reduced_cost() <= 0 || tag.own <= 0) {
    return fmt::format("{} would be as good ({}); GPU price now {:.3g}", what, parts, gpu_price);
  }
  return fmt::format(
      "{} would cost the others {:.1f}% more than it gains ({}); at least {:.3g} is lost; GPU "
      "price "
      "now {:.3g}",
      what, 100.0 * static_cast<double>(tag.reduced_cost()) / static_cast<double>(tag.own), parts,
      static_cast<double>(lost) / quantum, gpu_price);
}

}  // namespace ymir
