#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "ymir/base/csv.h"
#include "ymir/sim/artifact/artifact.h"
#include "ymir/sim/artifact/titan/objective.h"

namespace ymir::artifact {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Policy policy_named(const std::string& name) {
  for (const Policy& policy : titan_policies())
    if (policy.name == name) return policy;
  ADD_FAILURE() << "no policy " << name;
  return {};
}

const std::vector<std::string> kTraces = {"FM-1-roberta-base", "FM-1-roberta-large", "FM-1-vit",
                                          "FM-1-vit-large"};

// Published traces, profiles and results, which the repository does not hold.
class Published : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(data)) GTEST_SKIP() << "the published data are absent: " << data;
  }
  Trace trace(const std::string& name) const {
    auto read = read_trace("titan", data + "/traces/titan/" + name + ".csv");
    EXPECT_TRUE(read) << read.error().message;
    return *std::move(read);
  }
  Result<artifact::Run> run(const std::string& policy, const Trace& trace,
                            std::map<std::string, std::string> settings = {},
                            double interval = 0) const {
    return policy_named(policy).run(trace, {.nodes = 8,
                                            .gpus_per_node = 4,
                                            .interval_s = interval,
                                            .profiles = data + "/profiles/titan",
                                            .settings = std::move(settings)});
  }
  std::string data = YMIR_SOURCE_DIR "/../shared/data";
};

double mean_jct(const Run& run) {
  double sum = 0;
  for (const JobResult& job : run.jobs) sum += job.completion_s - job.submission_s;
  return sum / static_cast<double>(run.jobs.size());
}

std::string timeline(const Run& run, std::size_t job) {
  std::string text;
  for (const Change& change : run.changes)
    if (change.job == static_cast<int>(job))
      text += " " + std::to_string(change.at_s) + "s:" + std::to_string(change.nodes.size());
  return text;
}

struct PublishedJob {
  double completion_s = 0, pending_s = 0;
  std::int64_t starts = 0, gpus = 0;
};

// By name.
std::map<std::string, PublishedJob> read_published(const std::string& file) {
  std::map<std::string, PublishedJob> jobs;
  const auto read = read_csv(
      file, {"name", "completion_time", "pending_time", "num_restarts", "target_num_gpus"},
      [&](CsvRows& row, const std::vector<std::size_t>& at) {
        jobs[row.name(at[0])] = {row.number(at[1], 0, 1e9), row.number(at[2], 0, 1e9),
                                 row.whole(at[3], 0, 1 << 20), row.whole(at[4], 0, 1 << 20)};
      });
  EXPECT_TRUE(read) << read.error().message;
  return jobs;
}

class GoldenTitan : public Published, public testing::WithParamInterface<std::string> {};

TEST_P(GoldenTitan, EveryJobEndsAndWaitsAndStartsAsPublished) {
  for (const std::string& name : kTraces) {
    const auto golden = read_published(data + "/golden/titan/" + GetParam() + "/" + name + ".csv");

    const auto result = run(GetParam() + "@titan", trace(name));

    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->jobs.size(), golden.size());
    for (std::size_t i = 0; i < result->jobs.size(); ++i) {
      const JobResult& job = result->jobs[i];
      ASSERT_TRUE(golden.contains(job.name)) << job.name;
      const PublishedJob& published = golden.at(job.name);
      ASSERT_TRUE(job.finished) << job.name;
      ASSERT_NEAR(job.completion_s, published.completion_s, 1e-6)
          << name << ": the first job that differs is " << job.name << ", which held GPUs at"
          << timeline(*result, i) << "; published: " << published.starts << " starts, waited "
          << published.pending_s << " s, at last " << published.gpus << " GPUs";
      ASSERT_NEAR(job.queueing_s, published.pending_s, 1e-6) << name << " " << job.name;
      ASSERT_EQ(job.restarts + 1, published.starts) << name << " " << job.name;
      ASSERT_EQ(job.last_gpus, published.gpus) << name << " " << job.name;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Published, GoldenTitan,
                         testing::Values("srtf", "tiresias", "optimus", "themis"),
                         [](const auto& policy) { return policy.param; });

struct Reference {
  std::string policy{};
  std::map<std::string, std::string> settings{};
  double interval_s = 0;
  std::vector<double> mean_jct_s{};
  std::vector<int> starts{};  // empty: not known
};

class ReferenceValues : public Published {
 protected:
  void check(const Reference& reference) const {
    for (std::size_t i = 0; i < kTraces.size(); ++i) {
      const auto result =
          run(reference.policy, trace(kTraces[i]), reference.settings, reference.interval_s);
      ASSERT_TRUE(result) << result.error().message;
      EXPECT_NEAR(mean_jct(*result) / reference.mean_jct_s[i], 1, 0.02) << kTraces[i];
      int starts = 0;
      for (const JobResult& job : result->jobs) starts += job.restarts + 1;
      if (!reference.starts.empty()) {
        EXPECT_EQ(starts, reference.starts[i]) << kTraces[i];
      }
    }
  }
};

TEST_F(ReferenceValues, TitanWithoutMergingAndTheFewestGpusAmongEqualPlans) {
  check({.policy = "titan",
         .mean_jct_s = {687.74, 676.19, 1368.77, 1515.66},
         .starts = {347, 152, 684, 595}});
}

TEST_F(ReferenceValues, TitanWithoutMergingAndTheMostGpusAmongEqualPlans) {
  check({.policy = "titan",
         .settings = {{"titan.ties", "most"}},
         .mean_jct_s = {666.98, 645.24, 1365.79, 1507.40}});
}

TEST_F(ReferenceValues, OptimusThatReadsItsOwnJob) {
  check({.policy = "optimus@titan",
         .settings = {{"optimus.last_job", "off"}},
         .mean_jct_s = {733.81, 1201.30, 1597.02, 1529.73}});
  check({.policy = "optimus@titan",
         .settings = {{"optimus.last_job", "off"}},
         .interval_s = 120,
         .mean_jct_s = {746.7, 1122.6, 1491.6, 1544.8}});
}

TEST_F(ReferenceValues, AShorterIntervalAloneMakesTheOthersFaster) {
  check({.policy = "tiresias@titan",
         .interval_s = 120,
         .mean_jct_s = {1128.9, 1686.9, 4233.2, 2856.5}});
  check(
      {.policy = "srtf@titan", .interval_s = 120, .mean_jct_s = {1097.4, 1662.9, 2626.2, 2637.8}});
}

TEST_F(Published, EveryTraceRunsUnderEveryPolicyAndEndsWithoutAJobOnAGpu) {
  for (const auto& entry : std::filesystem::directory_iterator(data + "/traces/titan")) {
    if (entry.path().extension() != ".csv") continue;
    const Trace jobs = trace(entry.path().stem().string());
    for (const Policy& policy : titan_policies()) {
      const auto result = run(policy.name, jobs);
      ASSERT_TRUE(result) << policy.name << " " << jobs.file << ": " << result.error().message;
      std::vector<int> free(8, 4);
      std::vector<std::vector<int>> held(jobs.jobs.size());
      for (const Change& change : result->changes) {
        auto& of_job = held[static_cast<std::size_t>(change.job)];
        for (const int node : of_job) ++free[static_cast<std::size_t>(node)];
        of_job = change.nodes;
        for (const int node : of_job) ASSERT_GE(--free[static_cast<std::size_t>(node)], 0);
      }
      EXPECT_THAT(free, testing::Each(4));
      for (const JobResult& job : result->jobs) EXPECT_TRUE(job.finished) << job.name;
    }
  }
}

TEST_F(Published, TheMoreAPolicyKnowsTheShorterTheMean) {
  const std::vector<std::string> policies = {"titan", "optimus@titan", "themis@titan", "srtf@titan",
                                             "tiresias@titan"};
  for (const std::string& name : kTraces) {
    const Trace jobs = trace(name);
    double before = 0;
    for (const std::string& policy : policies) {
      const auto result = run(policy, jobs);

      ASSERT_TRUE(result) << result.error().message;
      EXPECT_GT(mean_jct(*result), before) << policy << " on " << name;
      before = mean_jct(*result);
    }
  }
}

TEST_F(Published, OtherClustersAndIntervalsRunOrNameTheLookUpThatNoTableHolds) {
  const Trace jobs = trace("FM-1-vit");
  for (const Policy& policy : titan_policies())
    for (const auto& [nodes, width, interval] :
         {std::tuple{4, 4, 120.0}, {16, 4, 120.0}, {20, 2, 60.0}, {4, 8, 300.0}}) {
      const auto result = policy.run(jobs, {.nodes = nodes,
                                            .gpus_per_node = width,
                                            .interval_s = interval,
                                            .profiles = data + "/profiles/titan"});

      if (!result) {
        EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
        EXPECT_THAT(result.error().message, HasSubstr("no step time of vit at placement"));
      } else {
        EXPECT_EQ(result->jobs.size(), jobs.jobs.size());
      }
    }
}

TEST_F(Published, TwoRunsAreEqual) {
  const Trace jobs = trace("FM-1-roberta-large");

  const auto first = run("themis@titan", jobs), second = run("themis@titan", jobs);

  ASSERT_TRUE(first && second);
  ASSERT_EQ(first->changes.size(), second->changes.size());
  for (std::size_t i = 0; i < first->jobs.size(); ++i)
    EXPECT_EQ(first->jobs[i].completion_s, second->jobs[i].completion_s);
}

TEST_F(Published, AJobOfNoKnownKindIsAnErrorWithItsLine) {
  Trace jobs = trace("FM-1-roberta-large");
  jobs.jobs[2].learning_rate = "7";

  const auto result = run("srtf@titan", jobs);

  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("FM-1-roberta-large.csv:4: "));
  EXPECT_THAT(result.error().message, HasSubstr("with rate 7"));
}

TEST_F(Published, AJobLargerThanTheClusterIsAnError) {
  Trace jobs = trace("FM-1-roberta-large");
  jobs.jobs[0].gpus = 33;

  const auto result = run("tiresias@titan", jobs);

  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("asks for 33 GPUs of 32"));
}

TEST_F(Published, SettingsAreCheckedAndTheNearestKeyIsTold) {
  const Trace jobs = trace("FM-1-roberta-large");

  const auto key = run("titan", jobs, {{"titan.tie", "most"}});
  const auto word = run("titan", jobs, {{"titan.ties", "many"}});
  const auto number = run("themis@titan", jobs, {{"themis.keep", "1.5"}});
  const auto of_another = run("titan", jobs, {{"themis.keep", "0.5"}});

  EXPECT_EQ(key.error().message, "no such setting: titan.tie, did you mean titan.ties");
  EXPECT_EQ(word.error().message, "titan.ties is one of fewest, most: many");
  EXPECT_EQ(number.error().message, "themis.keep is a number of 0 to 1: 1.5");
  EXPECT_TRUE(of_another);
}

TEST_F(Published, AJobThatIsNeverServedIsCensoredAndSaid) {
  Trace jobs = trace("FM-1-roberta-large");
  jobs.jobs.resize(1);

  const auto result = run("themis@titan", jobs, {{"themis.keep", "0"}});

  ASSERT_TRUE(result);
  EXPECT_FALSE(result->jobs[0].finished);
  EXPECT_THAT(result->notes, testing::Contains(HasSubstr("1 jobs not served")));
}

}  // namespace

namespace titan {
namespace {

// All plans, one after the other.
struct Plan {
  double cost = 0;
  int total = 0;
  std::vector<int> counts{};
};

void enumerate(const std::vector<std::vector<Choice>>& choices, int budget, Plan plan,
               std::vector<Plan>& plans) {
  if (plan.counts.size() == choices.size()) return plans.push_back(std::move(plan));
  for (const Choice& choice : choices[plan.counts.size()]) {
    if (plan.total + choice.gpus > budget) continue;
    Plan longer = plan;
    longer.cost += choice.cost;
    longer.total += choice.gpus;
    longer.counts.push_back(choice.gpus);
    enumerate(choices, budget, std::move(longer), plans);
  }
}

TEST(Cheapest, IsTheBestOfAllPlansWithTiesByGpusThenByOrder) {
  std::uint32_t state = 7;
  const auto next = [&](std::uint32_t below) {
    return (state = state * 1664525u + 1013904223u) / 7 % below;
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<Choice>> choices(1 + next(4));
    for (auto& of_job : choices) {
      of_job = {{0, 8}};
      for (int gpus = 1; gpus <= 4; ++gpus) of_job.push_back({gpus, 0.5 * next(8)});
    }
    const int budget = static_cast<int>(next(8));
    for (const Ties ties : {Ties::kFewest, Ties::kMost}) {
      std::vector<Plan> plans;
      enumerate(choices, budget, {}, plans);
      const Plan best = *std::ranges::min_element(plans, {}, [&](const Plan& plan) {
        return std::tuple(plan.cost, ties == Ties::kFewest ? plan.total : -plan.total, plan.counts);
      });

      EXPECT_EQ(cheapest(choices, budget, ties), best.counts) << "round " << round;
    }
  }
}

TEST(Cheapest, SumsThatDifferByNoiseOnlyAreEqual) {
  const std::vector<std::vector<Choice>> choices = {{{0, 1}, {1, 0.1 + 0.2}, {2, 0.3}}};

  EXPECT_THAT(cheapest(choices, 2, Ties::kFewest), ElementsAre(1));
  EXPECT_THAT(cheapest(choices, 2, Ties::kMost), ElementsAre(2));
}

}  // namespace
}  // namespace titan
}  // namespace ymir::artifact
