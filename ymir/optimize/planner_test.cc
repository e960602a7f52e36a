#include "ymir/optimize/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <numeric>
#include <thread>

#include "ymir/optimize/check.h"
#include "ymir/optimize/generate.h"
#include "ymir/optimize/test_instances.h"

namespace ymir {
namespace {

std::string message(const Result<>& result) { return result ? "" : result.error().message; }

// A plan in terms that do not depend on the order of jobs.
using Plan = std::map<std::uint64_t, std::array<std::uint64_t, 4>>;
Plan plan_by_key(const RoundProblem& problem, const Solution& solution) {
  Plan plan;
  for (const Choice& c : solution.chosen) {
    const std::uint64_t other = c.second == kNoJob ? 0 : problem.key(c.second);
    plan[problem.key(c.first)] = {other, c.option.gpus, c.option.type, c.option.mode};
  }
  return plan;
}

Solution solve_checked(Planner& planner, const RoundProblem& problem, const Limits& limits = {}) {
  EXPECT_EQ(message(problem.validate()), "");
  Solution solution = planner.solve(problem, limits);
  EXPECT_EQ(message(check_solution(problem, solution)), "");
  return solution;
}

void expect_exact(Rng& rng, const InstanceShape& shape, int count) {
  Planner planner;
  for (int k = 0; k < count; ++k) {
    const RoundProblem problem = make_problem(random_instance(rng, shape));
    const Solution solution = solve_checked(planner, problem);
    ASSERT_EQ(solution.value, exhaustive_value(problem)) << k;
    ASSERT_EQ(solution.proof, Proof::kOptimal) << k;
    ASSERT_TRUE(solution.canonical) << k;
  }
}

RoundProblem generated(const GenerateOptions& options) {
  RoundProblem problem;
  Generator(options).build(problem);
  return problem;
}

// ------------------------------------------------------------------------------------ exactness

TEST(Planner, FindsTheOptimumOfEveryTinyProblem) {
  Rng rng(1);
  expect_exact(rng, {}, rounds(20'000, 100'000));
}

TEST(Planner, FindsTheOptimumWithSeveralTypes) {
  Rng rng(2);
  expect_exact(rng, {.max_jobs = 7, .max_types = 3}, rounds(3'000, 30'000));
}

TEST(Planner, FindsTheOptimumWithExtraRows) {
  Rng rng(3);
  expect_exact(rng, {.max_jobs = 7, .max_types = 2, .max_extra_rows = 2}, rounds(3'000, 30'000));
}

TEST(Planner, FindsTheOptimumWithBlockRows) {
  Rng rng(4);
  expect_exact(rng, {.max_jobs = 7, .max_types = 2, .max_extra_rows = 1, .blocks = true},
               rounds(3'000, 30'000));
}

TEST(Planner, ProvesSmallUtilitiesOnAwkwardSizes) {
  Rng rng(5);
  Planner planner;
  int proved = 0;
  const int count = rounds(150, 1'000);

  for (int k = 0; k < count; ++k) {
    const RoundProblem problem = make_problem(random_instance(
        rng,
        {.min_jobs = 20, .max_jobs = 80, .max_types = 2, .max_extra_rows = 1, .density = 0.2}));
    proved += solve_checked(planner, problem).proof == Proof::kOptimal;
  }

  EXPECT_GE(proved, count * 98 / 100);
}

TEST(Planner, PricesOddCyclesOfEqualPairs) {
  for (const int length : {3, 5, 9, 31}) {
    RoundProblem problem;
    problem.reset(std::vector<Capacity>{{length, {}}});
    for (int j = 0; j < length; ++j) problem.add_job(j + 1, std::vector<Option>{{2, 1, 0, 0}});
    for (int j = 0; j < length; ++j) {
      problem.add_pair(j, (j + 1) % length, std::vector<Option>{{10, 2, 0, 3}});
    }
    Planner planner;

    const Solution solution = solve_checked(planner, problem);

    EXPECT_EQ(solution.value, 10 * (length / 2) + 2);
    EXPECT_EQ(solution.proof, Proof::kOptimal);
  }
}

TEST(Planner, RoundsARowDownToWhatItsSizesCanUse) {
  RoundProblem problem;
  problem.reset(std::vector<Capacity>{{30, {}}});
  for (int j = 0; j < 12; ++j) {
    problem.add_job(j + 1, std::vector<Option>{{100 + j, 4, 0, 0}, {180 + j, 8, 0, 0}});
  }
  Planner planner;

  const Solution solution = solve_checked(planner, problem);

  EXPECT_EQ(problem.rows()[0].capacity, 28);
  EXPECT_EQ(solution.value, 7 * 100 + 5 + 6 + 7 + 8 + 9 + 10 + 11);
}

// --------------------------------------------------------------------------- degenerate problems

TEST(Planner, AnswersProblemsWithNothingToDecide) {
  Planner planner;
  RoundProblem none, idle, no_gpus, oversized;
  none.reset(std::vector<Capacity>{{8, {}}});
  idle.reset(std::vector<Capacity>{{8, {}}});
  idle.add_job(1, {});
  no_gpus.reset(std::vector<Capacity>{{0, {}}});
  no_gpus.add_job(1, std::vector<Option>{{5, 1, 0, 0}});
  oversized.reset(std::vector<Capacity>{{4, {}}});
  oversized.add_job(1, std::vector<Option>{{5, 8, 0, 0}, {3, 4, 0, 0}});

  for (const RoundProblem* problem : {&none, &idle, &no_gpus}) {
    const Solution solution = solve_checked(planner, *problem);
    EXPECT_TRUE(solution.chosen.empty());
    EXPECT_EQ(solution.value, 0);
    EXPECT_EQ(solution.bound, 0);
    EXPECT_EQ(solution.proof, Proof::kOptimal);
  }
  EXPECT_EQ(solve_checked(planner, oversized).value, 3);
}

TEST(Planner, NoTypesAtAllIsAnEmptyPlan) {
  RoundProblem problem;
  problem.reset({});
  problem.add_job(1, {});
  Planner planner;

  EXPECT_EQ(solve_checked(planner, problem).value, 0);
}

TEST(Planner, CapacityThatDoesNotBindHasNoPrice) {
  RoundProblem problem;
  problem.reset(std::vector<Capacity>{{1000, {}}});
  for (int j = 0; j < 6; ++j) problem.add_job(j + 1, std::vector<Option>{{10 + j, 4, 0, 0}});
  Planner planner;

  const Solution solution = solve_checked(planner, problem);

  EXPECT_EQ(solution.value, 75);
  EXPECT_EQ(solution.certificate.row_price[0], 0);
}

TEST(Planner, TwoJobsThatFitOnlyAsAPairRunAsAPair) {
  RoundProblem problem;
  problem.reset(std::vector<Capacity>{{4, {}}});
  problem.add_job(1, std::vector<Option>{{10, 4, 0, 0}});
  problem.add_job(2, std::vector<Option>{{10, 4, 0, 0}});
  problem.add_pair(0, 1, std::vector<Option>{{12, 4, 0, 3}});
  Planner planner;

  const Solution solution = solve_checked(planner, problem);

  ASSERT_EQ(solution.chosen.size(), 1u);
  EXPECT_EQ(solution.chosen[0].second, 1);
}

TEST(Planner, WithoutPairsItIsAnElasticScheduler) {
  GenerateOptions options{500, 240, 0, 1, 1};
  RoundProblem problem = generated(options), filtered;
  filtered.reset(problem.types());
  std::vector<Option> alone;
  for (JobIndex j = 0; j < problem.num_jobs(); ++j) {
    alone.clear();
    for (const KeptOption& c : problem.alone(j)) alone.push_back(problem.option(c));
    filtered.add_job(problem.key(j), alone);
  }
  for (JobIndex j = 1; j < filtered.num_jobs(); ++j) filtered.add_pair(0, j, {});  // all filtered
  RoundProblem bare = filtered;
  Planner planner;

  const Solution with = solve_checked(planner, filtered), without = solve_checked(planner, bare);

  EXPECT_EQ(with.proof, Proof::kOptimal);
  EXPECT_EQ(plan_by_key(filtered, with), plan_by_key(bare, without));
}

TEST(Planner, AmongIdenticalJobsTheTieOrderDecides) {
  Rng rng(9);
  Instance instance;
  instance.types = {{13, {}}};
  for (int j = 0; j < 60; ++j) {
    instance.jobs.push_back({rng.next64(), {{10, 1, 0, 0}, {18, 2, 0, 0}}, {}});
  }
  std::vector<std::size_t> order(instance.jobs.size());
  std::iota(order.rbegin(), order.rend(), 0);
  Planner planner;

  const RoundProblem one = make_problem(instance), other = make_problem(instance, order);
  const Solution first = solve_checked(planner, one), second = solve_checked(planner, other);

  EXPECT_EQ(first.value, 130);
  EXPECT_TRUE(first.canonical);
  EXPECT_EQ(plan_by_key(one, first), plan_by_key(other, second));
}

// ---------------------------------------------------------------------------------- properties

TEST(Planner, TheOrderOfJobsPairsAndOptionsDoesNotMatter) {
  Rng rng(6);
  Planner planner;

  for (int k = 0; k < rounds(200, 4'000); ++k) {
    const Instance instance = random_instance(
        rng, {.max_jobs = 40, .max_types = 2, .max_extra_rows = 1, .blocks = true, .density = 0.2});
    std::vector<std::size_t> order(instance.jobs.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t j = order.size(); j > 1; --j) std::swap(order[j - 1], order[rng.below(j)]);
    const RoundProblem one = make_problem(instance), other = make_problem(instance, order, true);

    const Solution first = solve_checked(planner, one), second = solve_checked(planner, other);

    ASSERT_TRUE(first.canonical && second.canonical) << k;
    ASSERT_EQ(plan_by_key(one, first), plan_by_key(other, second)) << k;
  }
}

TEST(Planner, AWarmStartGivesTheSamePlan) {
  Rng rng(7);
  Planner warm;
  const RoundProblem base = generated({150, 100, 0.1, 3, 1});
  std::vector<double> drift(base.num_jobs(), 1);
  std::vector<std::uint64_t> keys(base.num_jobs());
  std::iota(keys.begin(), keys.end(), 1);
  int warm_rounds = 0;

  for (int round = 0; round < rounds(100, 1'000); ++round) {
    RoundProblem problem;
    problem.reset(base.types());
    std::vector<Option> options;
    const auto scaled = [&](std::span<const KeptOption> candidates, double factor) {
      options.clear();
      for (const KeptOption& c : candidates) {
        options.push_back(base.option(c));
        options.back().utility = static_cast<std::int32_t>(options.back().utility * factor) / 1000;
      }
    };
    for (JobIndex j = 0; j < base.num_jobs(); ++j) {
      drift[j] *= rng.uniform(0.97, 1.03);
      if (rng.chance(0.02)) keys[j] += 1'000'000;  // ended; another has come
      scaled(base.alone(j), drift[j]);
      problem.add_job(keys[j], options);
    }
    for (const PairEdge& pair : base.pairs()) {
      if (rng.chance(0.05)) continue;
      scaled(base.together(pair), (drift[pair.first] + drift[pair.second]) / 2);
      problem.add_pair(pair.first, pair.second, options);
    }

    const Solution hot = solve_checked(warm, problem, {.warm_from_jobs = 0});
    const Solution cold = Planner().solve(problem);

    ASSERT_EQ(hot.value, cold.value) << round;
    ASSERT_TRUE(hot.canonical) << round;
    ASSERT_EQ(plan_by_key(problem, hot), plan_by_key(problem, cold)) << round;
    warm_rounds += hot.effort.warm;
  }

  EXPECT_GE(warm_rounds, rounds(100, 1'000) - 1);
}

TEST(Planner, OneMoreCandidateNeverLowersTheValue) {
  Rng rng(8);
  Planner planner;

  for (int k = 0; k < rounds(100, 1'000); ++k) {
    Instance instance = random_instance(rng, {.min_jobs = 2, .max_jobs = 20, .max_types = 2});
    const std::int64_t before = solve_checked(planner, make_problem(instance)).value;
    instance.jobs[rng.below(instance.jobs.size())].alone.push_back(
        {static_cast<std::int32_t>(rng.between(1, 1000)), 2, 0, 0});

    EXPECT_GE(solve_checked(planner, make_problem(instance)).value, before);
  }
}

TEST(Planner, DoublingEveryUtilityKeepsThePlan) {
  Rng rng(10);
  Planner planner;

  for (int k = 0; k < rounds(100, 1'000); ++k) {
    Instance instance = random_instance(rng, {.max_jobs = 30, .max_types = 2, .density = 0.2});
    const RoundProblem once = make_problem(instance);
    for (auto& job : instance.jobs) {
      for (Option& option : job.alone) option.utility *= 2;
    }
    for (auto& pair : instance.pairs) {
      for (Option& option : pair.together) option.utility *= 2;
    }
    const RoundProblem twice = make_problem(instance);

    const Solution first = solve_checked(planner, once), second = solve_checked(planner, twice);

    ASSERT_EQ(2 * first.value, second.value);
    ASSERT_EQ(plan_by_key(once, first), plan_by_key(twice, second)) << k;
  }
}

// ------------------------------------------------------------------------------------- overflow

TEST(Planner, SolvesAtTheUtilityLimitAndRefusesOneAbove) {
  for (const int jobs : {3, 200}) {
    for (const int gpus : {4, 5'000}) {
      RoundProblem problem;
      problem.reset(std::vector<Capacity>{{gpus, {}}});
      const std::int64_t limit = problem.utility_limit(jobs);
      const auto most = static_cast<std::int32_t>(limit);
      for (int j = 0; j < jobs; ++j) {
        problem.add_job(j + 1, std::vector<Option>{{most - j, 1, 0, 0}, {most, 2, 0, 0}});
      }
      for (int j = 1; j < jobs; ++j)
        problem.add_pair(j - 1, j, std::vector<Option>{{most, 1, 0, 3}});
      Planner planner;

      const Solution solution = solve_checked(planner, problem);

      EXPECT_EQ(solution.proof, Proof::kOptimal);
      EXPECT_GT(solution.value, 0);
    }
  }
  RoundProblem large;
  large.reset(std::vector<Capacity>{{10'000, {}}});
  const std::int64_t limit = large.utility_limit(10'000);
  ASSERT_LT(limit, INT32_MAX);
  for (int j = 0; j < 10'000; ++j) {
    const auto utility = static_cast<std::int32_t>(limit + (j == 77 ? 1 : 0));
    large.add_job(j + 1, std::vector<Option>{{utility, 1, 0, 0}});
  }
  EXPECT_NE(message(large.validate()).find("is above"), std::string::npos);
  EXPECT_GE(limit, 1 << 20);
}

TEST(RoundProblemTest, NamesWhatIsWrong) {
  const auto fault = [](const auto& build) {
    RoundProblem problem;
    problem.reset(std::vector<Capacity>{{8, {}}}, std::vector<int>{4});
    build(problem);
    return message(problem.validate());
  };
  const std::vector<Option> one = {{5, 1, 0, 0}};
  using Problem = RoundProblem;

  EXPECT_EQ(fault([&](Problem& p) { p.add_job(1, one); }), "");
  EXPECT_NE(fault([&](Problem& p) { p.add_job(1, one), p.add_job(1, one); }).find("twice"),
            std::string::npos);
  EXPECT_NE(fault([&](Problem& p) { p.add_job(1, one), p.add_pair(0, 0, one); }), "");
  EXPECT_NE(fault([&](Problem& p) { p.add_job(1, one), p.add_pair(0, 3, one); }), "");
  EXPECT_NE(fault([&](Problem& p) { p.add_job(1, std::vector<Option>{{-1, 1, 0, 0}}); }), "");
  EXPECT_NE(fault([&](Problem& p) { p.add_job(1, std::vector<Option>{{1, 0, 0, 0}}); }), "");
  EXPECT_NE(fault([&](Problem& p) { p.add_job(1, std::vector<Option>{{1, 1, 9, 0}}); }), "");
  EXPECT_NE(fault([&](Problem& p) { p.add_job(1, one, std::vector<RowShare>{{5, 16}}); }), "");
  EXPECT_NE(fault([&](Problem& p) { p.add_job(1, one, std::vector<RowShare>{{0, 17}}); }), "");
  EXPECT_NE(fault([&](Problem& p) { p.reset(std::vector<Capacity>{{-3, {}}}); }), "");
}

// ------------------------------------------------------------------------------- effort and stop

TEST(Planner, HalfTheUsualEffortCostsLittle) {
  const int least = rounds(1'000, 1'500), most = rounds(2'000, 10'000);
  for (const auto& [jobs, seed] : {std::pair{least, 1}, {least, 2}, {most, 1}, {most, 2}}) {
    const RoundProblem problem = generated({jobs, jobs, 0.02, static_cast<std::uint64_t>(seed), 1});
    Planner planner;
    const Limits cold{.warm_from_jobs = 1 << 30};
    const Solution whole = solve_checked(planner, problem, cold);
    Limits half = cold;
    half.max_matchings = whole.effort.matchings / 2;
    half.max_states = whole.effort.states / 2;

    const Solution solution = solve_checked(planner, problem, half);

    EXPECT_EQ(whole.proof, Proof::kOptimal);
    EXPECT_LE(solution.effort.matchings, half.max_matchings + 1);
    EXPECT_LE(solution.value, whole.value);
    EXPECT_GE(solution.bound, whole.value);
    EXPECT_GE(static_cast<double>(solution.value), 0.999 * static_cast<double>(whole.value));
  }
}

TEST(Planner, AnyEffortLimitGivesAPlanWithABound) {
  Rng rng(11);
  Planner planner;

  for (int k = 0; k < rounds(300, 3'000); ++k) {
    const RoundProblem problem = make_problem(random_instance(
        rng, {.max_jobs = 30, .max_types = 2, .max_extra_rows = 1, .density = 0.3}));
    const Solution exact = solve_checked(planner, problem);
    const Limits limits{.relative_gap = rng.chance(0.5) ? 0.05 : 0,
                        .max_states = rng.between(0, 50),
                        .max_matchings = static_cast<int>(rng.between(1, 8))};

    const Solution solution = solve_checked(planner, problem, limits);

    ASSERT_LE(solution.value, exact.value);
    ASSERT_GE(solution.bound, exact.value);
    ASSERT_NE(solution.proof, Proof::kDeadline);
  }
}

TEST(Planner, AnAllowedGapIsKept) {
  Planner planner;
  for (const double gap : {1e-4, 1e-3, 1e-2, 0.1}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const RoundProblem problem = generated({200, 120, 0.1, seed, 1});

      const Solution solution = solve_checked(planner, problem, {.relative_gap = gap});

      EXPECT_GE(static_cast<double>(solution.value),
                (1 - gap) * static_cast<double>(solution.bound));
    }
  }
}

TEST(Planner, StoppedAtOnceItStillGivesAFeasiblePlanAndABound) {
  const RoundProblem problem = generated({400, 200, 0.1, 1, 1});
  Planner planner;
  const std::int64_t best = solve_checked(planner, problem).value;
  std::stop_source source;
  source.request_stop();

  const Solution solution = planner.solve(problem, {}, source.get_token());

  EXPECT_EQ(message(check_solution(problem, solution)), "");
  EXPECT_EQ(solution.proof, Proof::kDeadline);
  EXPECT_GT(solution.value, best / 4);
  EXPECT_GE(solution.bound, best);
}

TEST(Planner, StoppedAnywhereItGivesAFeasiblePlanAndABound) {
  const RoundProblem problem = generated({600, 300, 0.1, 2, 1});
  Planner planner;
  const std::int64_t best = solve_checked(planner, problem).value;
  int stopped = 0;

  for (int k = 0; k < 40; ++k) {
    std::stop_source source;
    std::atomic<bool> started = false;
    std::thread stopper([&] {
      while (!started) {
      }
      for (volatile int spin = 0; spin < k * 200'000;) spin = spin + 1;
      source.request_stop();
    });
    started = true;
    const Solution solution = planner.solve(problem, {}, source.get_token());
    stopper.join();

    ASSERT_EQ(message(check_solution(problem, solution)), "") << k;
    ASSERT_LE(solution.value, best);
    ASSERT_GE(solution.bound, best);
    stopped += solution.proof == Proof::kDeadline;
  }

  EXPECT_GT(stopped, 0);
}

TEST(Planner, RefusesLimitsOutOfRange) {
  EXPECT_FALSE((Limits{.relative_gap = -1}.validate()));
  EXPECT_FALSE((Limits{.relative_gap = 1}.validate()));
  EXPECT_FALSE((Limits{.max_states = -1}.validate()));
  EXPECT_FALSE((Limits{.max_matchings = 0}.validate()));
  EXPECT_TRUE(Limits{}.validate());
}

// Effort is counted, so it must be the same on every machine and build: a change here is a change
// of the algorithm, and of every decision that an effort limit cuts short.
TEST(Planner, TakesTheEffortItIsKnownToTake) {
  RoundProblem problem;
  problem.reset(std::vector<Capacity>{{41, {}}});
  Rng rng(12);
  const auto option = [&](std::int64_t low, int gpus) {
    return Option{static_cast<std::int32_t>(rng.between(low, 2 * low)),
                  static_cast<std::uint16_t>(gpus), 0, 0};
  };
  for (int j = 0; j < 60; ++j) {
    problem.add_job(j + 1, std::vector<Option>{option(3000, 1), option(5000, 2), option(8000, 4)});
  }
  for (int k = 0; k < 300; ++k) {
    const auto i = static_cast<JobIndex>(rng.below(60)), j = static_cast<JobIndex>(rng.below(60));
    if (i != j) problem.add_pair(i, j, std::vector<Option>{option(6000, 1), option(9000, 4)});
  }

  const Solution solution = Planner().solve(problem);

  EXPECT_EQ(solution.proof, Proof::kOptimal);
  EXPECT_EQ(solution.effort.matchings, 15);
  EXPECT_EQ(solution.effort.searches, 93);
  EXPECT_EQ(solution.effort.active_edges, 155);
  EXPECT_EQ(solution.effort.states, 7953);
}

}  // namespace
}  // namespace ymir
