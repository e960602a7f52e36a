#include "ymir/sim/oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ymir {
namespace {

using testing::HasSubstr;

// Ten waiting jobs, five of each of two families of one backbone.
struct Queue {
  Queue() {
    for (std::uint64_t id = 1; id <= 10; ++id) {
      model.add(JobId{id}, {.steps = 100 * static_cast<std::int64_t>(id),
                            .max_steps = 4000,
                            .family = id <= 5 ? "x" : "y"});
      JobView& job = now.jobs[JobId{id}];
      job.id = JobId{id};
      job.state = JobState::kQueued;
      job.facts.backbone = "one";
      job.spec.max_gpus = 2;
    }
    now.places[PlaceId{1}] = {.place = PlaceId{1}, .num_slots = 2};
  }
  Forecast forecast(OracleOptions options) const { return Oracle(model, options).forecast(now); }

  JobModel model;
  Snapshot now;
};

std::vector<const Candidate*> of(const Forecast& forecast, std::uint64_t job, Mode mode) {
  std::vector<const Candidate*> found;
  for (const Candidate& each : forecast.candidates)
    if (each.what.job == JobId{job} && each.what.mode == mode) found.push_back(&each);
  return found;
}

TEST(Oracle, OffersTheBestSourcesOfAFamilyThatHelpsAndNoOther) {
  Queue queue;
  queue.model.set_family_temporal("x", "y", 1.0);
  queue.model.set_family_temporal("y", "x", -0.5);

  const Forecast forecast = queue.forecast({.max_sources = 2});

  const auto sources = of(forecast, 10, Mode::kTemporal);
  ASSERT_EQ(sources.size(), 4u) << "two sources at two sizes";
  EXPECT_EQ(*sources[0]->what.partner, JobId{1}) << "the shortest wait";
  EXPECT_EQ(*sources[2]->what.partner, JobId{2});
  EXPECT_TRUE(of(forecast, 1, Mode::kTemporal).empty());
}

TEST(Oracle, TakesAFinishedSourceWithoutAnyWait) {
  Queue queue;
  queue.model.set_family_temporal("x", "y", 1.0);
  queue.now.jobs.at(JobId{3}).state = JobState::kSucceeded;

  const auto sources = of(queue.forecast({.max_sources = 1}), 10, Mode::kTemporal);

  ASSERT_EQ(sources.size(), 2u);
  EXPECT_EQ(*sources[0]->what.partner, JobId{3});
  EXPECT_DOUBLE_EQ(sources[0]->members[0].steps.p50, 500) << "half of 1000 steps";
}

TEST(Oracle, IsWrongByTheFactorsDrawnAndTheSameOnesAgain) {
  Queue queue;
  const OracleErrors errors{.seed = 3, .steps = {.sigma = 0.3}};

  const Forecast right = queue.forecast({});
  const Forecast wrong = queue.forecast({.errors = errors});
  const Forecast again = queue.forecast({.errors = errors});

  int different = 0;
  for (std::size_t i = 0; i < right.candidates.size(); ++i) {
    const double truth = right.candidates[i].members[0].steps.p50;
    const double believed = wrong.candidates[i].members[0].steps.p50;
    different += truth != believed;
    EXPECT_DOUBLE_EQ(believed, again.candidates[i].members[0].steps.p50);
    EXPECT_GT(believed / truth, 0.3);
    EXPECT_LT(believed / truth, 3);
  }
  EXPECT_GT(different, 15);
}

TEST(Oracle, BelievesWhatWasDeclaredWhenNothingElseIsKnown) {
  Queue queue;
  queue.model.set_family_temporal("x", "y", -0.5);

  const Forecast forecast = queue.forecast({.declared = true, .prior_gain = 0.25});

  EXPECT_DOUBLE_EQ(of(forecast, 10, Mode::kNormal)[0]->members[0].steps.p50, 4000);
  const auto sources = of(forecast, 10, Mode::kTemporal);
  ASSERT_FALSE(sources.empty());
  EXPECT_DOUBLE_EQ(sources[0]->members[0].steps.p50, 3200);
}

// Job 1 of 100 steps, a second each, has trained 40 s with job 2 and is taken back.
struct SplitPair {
  SplitPair(Mode mode, double metric, std::int64_t steps) {
    JobView& job = queue.now.jobs.at(JobId{1});
    job.spec.target.metric = "accuracy";
    job.merged = true;
    job.profile_steps = 5;
    job.transfers = {
        {.partner = JobId{2},
         .mode = mode,
         .run = RunId{7},
         .verdict = Transfer::Verdict::kSplit,
         .evaluations = {
             {.step = steps, .metrics = {{"accuracy", metric}}, .train_time = Seconds(40)}}}};
    queue.now.runs[RunId{7}] = {
        .run = RunId{7}, .what = {.mode = mode, .job = JobId{1}, .gpus = 1}, .stopping = true};
  }
  double lost() const {
    const Oracle oracle(queue.model, {.start_time = Seconds(3)});
    const auto settled = oracle.settle(queue.now, {JobId{1}});
    return settled.size() == 1 ? settled[0].extra.count() : -1;
  }
  Queue queue;
};

TEST(Oracle, ChargesASplitWithTheTimeTrainedAndAStartLessTheProgressKept) {
  Queue truth;
  SplitPair pair(Mode::kTemporal, truth.model.metric(JobId{1}, 0.25), 40);

  const double goes_on = pair.lost();
  pair.queue.now.runs.at(RunId{7}).goes_back = JobId{1};
  const double goes_back = pair.lost();

  EXPECT_NEAR(goes_on, 40 + 3 - (25 - 5), 1e-9);
  EXPECT_NEAR(goes_back, 40 + 3, 1e-9);
}

TEST(Oracle, ChargesASplitOfTwoTrainedTogetherWithTheSlowerSteps) {
  Queue truth;
  SplitPair pair(Mode::kSpatial, truth.model.metric(JobId{1}, 0.15), 20);  // 2 s a step

  const double lost = pair.lost();

  EXPECT_NEAR(lost, 40 + 3 - (15 - 5), 1e-9);
}

TEST(Oracle, ChargesASplitWithNothingWhereMoreWasKeptThanSpent) {
  Queue truth;
  const SplitPair pair(Mode::kTemporal, truth.model.metric(JobId{1}, 0.9), 40);

  EXPECT_EQ(pair.lost(), 0);
}

TEST(OracleErrors, ReadsALinkAndNamesWhatIsWrong) {
  OracleErrors errors;

  const auto plain = errors.read("error.gain", "0.2");
  const auto both = errors.read("error.steps", "bias:0.1,sigma:0.3");
  const auto other = errors.read("tau", "3");
  const auto bad = errors.read("error.gain", "wide");

  EXPECT_TRUE(plain && *plain);
  EXPECT_DOUBLE_EQ(errors.gain.sigma, 0.2);
  EXPECT_TRUE(both && *both);
  EXPECT_DOUBLE_EQ(errors.steps.bias, 0.1);
  EXPECT_TRUE(other && !*other);
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message, HasSubstr("error.gain=wide"));
}

}  // namespace
}  // namespace ymir
