#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/schedule/test_round.h"

namespace ymir {
namespace {

using testing::HasSubstr;

Assignment normal(std::uint64_t job, int gpus) {
  return {.mode = Mode::kNormal, .job = JobId{job}, .partner = {}, .gpus = gpus};
}
Assignment after(std::uint64_t target, std::uint64_t source, int gpus = 1) {
  return {.mode = Mode::kTemporal,
          .job = JobId{target},
          .partner = JobId{source},
          .gpus = gpus,
          .strength = 0.5};
}
Assignment together(std::uint64_t first, std::uint64_t second, int gpus = 1) {
  return {.mode = Mode::kSpatial, .job = JobId{first}, .partner = JobId{second}, .gpus = gpus};
}

// A plan of these lines in which everybody else waits.
Plan plan_of(const TestRound& test, std::vector<Assignment> lines) {
  Plan plan;
  std::set<JobId> placed;
  for (const Assignment& what : lines) {
    plan.assignments.push_back({.what = what});
    placed.insert(what.job);
    if (what.partner) placed.insert(*what.partner);
  }
  for (const auto& [id, job] : test.cluster.jobs)
    if (job.active() && !placed.contains(id)) plan.waiting.push_back({id, "no_capacity"});
  return plan;
}

std::string fault(const TestRound& test, std::vector<Assignment> lines) {
  const auto result = check_plan(test.round(), plan_of(test, std::move(lines)));
  return result ? "" : result.error().message;
}

TestRound three_jobs() {
  TestRound test({4});
  for (std::uint64_t id : {1, 2, 3}) test.job(id, 4);
  return test;
}

TEST(CheckPlan, AcceptsAPlanInEachMode) {
  const TestRound test = three_jobs();

  EXPECT_EQ(fault(test, {normal(1, 2), normal(2, 1)}), "");
  EXPECT_EQ(fault(test, {after(2, 1, 4)}), "");
  EXPECT_EQ(fault(test, {together(1, 3, 2), normal(2, 2)}), "");
}

TEST(CheckPlan, RefusesAJobThatStandsTwice) {
  const TestRound test = three_jobs();

  EXPECT_THAT(fault(test, {normal(1, 1), normal(1, 1)}), HasSubstr("stands twice: j1"));
  EXPECT_THAT(fault(test, {normal(1, 1), after(2, 1)}), HasSubstr("stands twice: j1"));
}

TEST(CheckPlan, RefusesMoreGpusThanThereAre) {
  const TestRound test = three_jobs();

  EXPECT_THAT(fault(test, {normal(1, 4), normal(2, 1)}), HasSubstr("5 GPUs of 4"));
}

TEST(CheckPlan, RefusesARunThatSpansNodes) {
  TestRound test({2, 2});
  test.job(1, 4);

  EXPECT_THAT(fault(test, {normal(1, 4)}), HasSubstr("find no place"));
}

TEST(CheckPlan, RefusesASizeThatTheJobDoesNotAllow) {
  TestRound test = three_jobs();
  test.cluster.jobs.at(JobId{1}).spec.sizes = {1, 4};

  EXPECT_THAT(fault(test, {normal(1, 2)}), HasSubstr("no size of j1"));
}

TEST(CheckPlan, RefusesEndedHeldAndUnknownJobs) {
  TestRound test = three_jobs();
  test.cluster.jobs.at(JobId{1}).state = JobState::kFailed;
  test.cluster.jobs.at(JobId{2}).held = true;

  EXPECT_NE(fault(test, {normal(1, 1)}), "");
  EXPECT_NE(fault(test, {normal(2, 1)}), "");
  EXPECT_NE(fault(test, {normal(9, 1)}), "");
}

TEST(CheckPlan, RefusesAPairWithoutConsent) {
  TestRound test = three_jobs();
  test.cluster.jobs.at(JobId{1}).spec.sharing.give = false;
  test.cluster.jobs.at(JobId{3}).spec.sharing.trust_domain = "others";

  EXPECT_THAT(fault(test, {after(2, 1)}), HasSubstr("not allowed"));
  EXPECT_EQ(fault(test, {after(1, 2)}), "") << "j1 may still take";
  EXPECT_THAT(fault(test, {together(1, 2)}), HasSubstr("not allowed"));
  EXPECT_THAT(fault(test, {after(2, 3)}), HasSubstr("two trust domains"));
}

TEST(CheckPlan, RefusesAPairOfTwoBackbonesOrAdapterShapes) {
  TestRound test = three_jobs();
  test.cluster.jobs.at(JobId{1}).facts.backbone = "bert";
  test.cluster.jobs.at(JobId{2}).spec.method.rank = 16;

  EXPECT_THAT(fault(test, {after(2, 1)}), HasSubstr("two backbones"));
  EXPECT_THAT(fault(test, {after(2, 3)}), HasSubstr("two shapes"));
}

TEST(CheckPlan, RefusesAPairThatWasSplitBefore) {
  TestRound test = three_jobs();
  test.cluster.jobs.at(JobId{2}).barred.insert(JobId{1});

  EXPECT_THAT(fault(test, {after(2, 1)}), HasSubstr("split"));
  EXPECT_THAT(fault(test, {together(1, 2)}), HasSubstr("split"));
}

TEST(CheckPlan, LetsAPairBeginOnlyWithoutProgressButGoOnWithIt) {
  TestRound test = three_jobs();
  test.runs_alone(2, 1);

  EXPECT_THAT(fault(test, {after(2, 1)}), HasSubstr("has progress: j2"));
  EXPECT_EQ(fault(test, {after(1, 2)}), "") << "a source may have progress";
  EXPECT_THAT(fault(test, {together(1, 2)}), HasSubstr("has progress: j2"));

  test.cluster.runs.clear();
  test.runs(together(1, 2), {JobId{1}, JobId{2}});
  EXPECT_EQ(fault(test, {together(1, 2, 2)}), "");
}

TEST(CheckPlan, ReadsAFinishedSourceForSeveralTargets) {
  TestRound test = three_jobs();
  test.cluster.jobs.at(JobId{1}).state = JobState::kSucceeded;

  EXPECT_EQ(fault(test, {after(2, 1), after(3, 1)}), "");
}

TEST(CheckPlan, RefusesAStrengthOutsideItsRange) {
  const TestRound test = three_jobs();
  Assignment what = after(2, 1);
  what.strength = 0;

  EXPECT_THAT(fault(test, {what}), HasSubstr("strength"));
}

TEST(CheckPlan, WantsAReasonForEachJobThatWaits) {
  const TestRound test = three_jobs();
  Plan plan = plan_of(test, {normal(1, 1)});
  plan.waiting.pop_back();

  const auto result = check_plan(test.round(), plan);

  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("neither runs nor waits: j3"));
}

TEST(CheckPlan, RefusesAValueAboveItsBound) {
  const TestRound test = three_jobs();
  Plan plan = plan_of(test, {});
  plan.value = 3;

  EXPECT_FALSE(check_plan(test.round(), plan));
}

}  // namespace
}  // namespace ymir
