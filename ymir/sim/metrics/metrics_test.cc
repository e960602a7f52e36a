#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ymir/sim/metrics/check_run.h"
#include "ymir/sim/metrics/statistics.h"
#include "ymir/sim/metrics/summary.h"
#include "ymir/sim/report/report.h"
#include "ymir/sim/report/tables.h"

namespace ymir {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Micro kSecond = 1'000'000;

// Two jobs on two GPUs: a runs 0..100 on both, of it 10 s switch; b waits for it and runs 100..150
// on one.
RunRecord two_jobs() {
  RunRecord record{.policy = "p", .nodes = 1, .gpus_per_node = 2};
  record.jobs = {{.name = "a",
                  .submission_s = 0,
                  .first_start_s = 10,
                  .completion_s = 100,
                  .finished = true,
                  .gpu_seconds = 180,
                  .requested_gpus = 2,
                  .mode = "normal"},
                 {.name = "b",
                  .submission_s = 20,
                  .first_start_s = 100,
                  .completion_s = 150,
                  .finished = true,
                  .queueing_s = 80,
                  .first_wait_s = 80,
                  .gpu_seconds = 50,
                  .requested_gpus = 1,
                  .mode = "normal"}};
  record.holds = {
      {.from = 0, .ready = 10 * kSecond, .to = 100 * kSecond, .jobs = {0}, .gpus = {0, 1}},
      {.from = 100 * kSecond,
       .ready = 100 * kSecond,
       .to = 150 * kSecond,
       .jobs = {1},
       .gpus = {1}}};
  return record;
}

SoloTruth solo() {
  return {.seconds = [](std::size_t i, int gpus) { return (i == 0 ? 180.0 : 50.0) / gpus; },
          .min_gpus = {1, 1},
          .max_gpus = {2, 2}};
}

TEST(Statistics, InterpolateBetweenOrderStatistics) {
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({10, 20}, 0.99), 19.9);
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
  EXPECT_DOUBLE_EQ(geometric_mean({1, 4}), 2);
}

TEST(Statistics, GiveTheIntervalOfStudentsT) {
  // Standard deviation 1, n = 3: 4.303 / sqrt(3).
  EXPECT_NEAR(half_width_95({1, 2, 3}), 2.4843, 1e-3);
  EXPECT_TRUE(std::isnan(half_width_95({1})));
  EXPECT_EQ(half_width_95({0.1, 0.1, 0.1}), 0) << "their mean is not 0.1 to the last digit";
}

TEST(GpuTime, AddsUpToTheMicrosecondAndTellsIdleTimeApart) {
  const GpuTime time = gpu_time(two_jobs());

  EXPECT_EQ(time.useful, 230 * kSecond);
  EXPECT_EQ(time.switching, 20 * kSecond);
  EXPECT_EQ(time.idle_waiting, 0);
  EXPECT_EQ(time.idle_empty, 50 * kSecond);
  EXPECT_EQ(time.sum(), 300 * kSecond);
}

TEST(GpuTime, CountsGpusThatAJobHoldsAfterItsEndAsBlocked) {
  RunRecord record = two_jobs();
  record.holds[1].to = 160 * kSecond;

  const GpuTime time = gpu_time(record);

  EXPECT_EQ(time.blocked, 10 * kSecond);
  EXPECT_EQ(time.sum(), 320 * kSecond);
}

TEST(CheckRun, FindsNothingInASoundRun) {
  EXPECT_THAT(check_run(two_jobs(), {.least_seconds = [](std::size_t) { return 50.0; }}),
              IsEmpty());
}

TEST(CheckRun, NamesTheInvariantThatIsBroken) {
  const auto broken = [](const std::function<void(RunRecord&)>& change) {
    RunRecord record = two_jobs();
    change(record);
    return check_run(record, {.least_seconds = [](std::size_t) { return 50.0; }});
  };

  EXPECT_THAT(broken([](RunRecord& r) { r.holds[1].from = 90 * kSecond; }),
              Contains(HasSubstr("R2: GPU 1 is used twice at 90 s, by b too")));
  EXPECT_THAT(broken([](RunRecord& r) { r.holds[1].gpus = {2}; }),
              Contains(HasSubstr("R2: b runs on GPU 2 of 2")));
  EXPECT_THAT(broken([](RunRecord& r) { r.jobs[1].gpu_seconds = 51; }),
              Contains(HasSubstr("R3: b was given 51 GPU-s and held 50")));
  EXPECT_THAT(broken([](RunRecord& r) { r.jobs[1].completion_s.reset(); }),
              Contains(HasSubstr("R4: b")));
  EXPECT_THAT(broken([](RunRecord& r) { r.holds[0].ready = 101 * kSecond; }),
              Contains(HasSubstr("R5: a run of a ends before it begins")));
  EXPECT_THAT(broken([](RunRecord& r) { r.jobs[1].completion_s = 140; }),
              Contains(HasSubstr("R6: b holds GPUs 10 s after its end")));
  EXPECT_THAT(
      broken([](RunRecord& r) {
        r.merges = {{.job = 1, .partner = 0, .split = 150 * kSecond - 1, .verdict = "split"}};
        r.holds[1].to = 150 * kSecond - 1;
      }),
      Contains(HasSubstr("R7: b was split")));
  EXPECT_THAT(broken([](RunRecord& r) {
                r.jobs[1].completion_s = 60;
                r.holds[1].from = r.holds[1].ready = 20 * kSecond;
                r.holds[1].to = 60 * kSecond;
              }),
              Contains(HasSubstr("R8: b took 40 s where the truth allows no less than 50 s")));
}

TEST(CheckRun, FindsGpuTimeThatDoesNotAddUp) {
  RunRecord record = two_jobs();
  record.holds[1].gpus = {0, 0};  // one GPU twice: held 100 GPU-s, but only one is busy

  const auto broken = check_run(record);

  EXPECT_THAT(broken, Contains(HasSubstr("R2: GPU 0 is used twice")));
}

TEST(Fairness, IsTheRatioToARunOnTheFairShare) {
  const auto rho = fairness(two_jobs(), solo());

  // a: active jobs 20 s one, 80 s two: 1.8 on average, a share of 2 / 1.8 GPUs.
  const double share = 2 / 1.8, speed = 1 / 180.0 + (1 / 90.0 - 1 / 180.0) * (share - 1);
  EXPECT_NEAR(rho.at("share")[0], 100 * speed, 1e-12);
  EXPECT_NEAR(rho.at("themis")[0], 100 / 90.0, 1e-12);
  EXPECT_NEAR(rho.at("static")[1], 130 / 50.0, 1e-12);
  EXPECT_NEAR(rho.at("resimulated")[0], 100 / 180.0, 1e-12);
  // b runs alone on one of two GPUs: no slower than its isolated share.
  EXPECT_NEAR(rho.at("gavel")[1], 130 / 50.0, 1e-12);
}

TEST(Summary, IsOverFinishedJobsAndCountsTheOthers) {
  RunRecord record = two_jobs();
  record.jobs[0].finished = false;
  const SoloTruth truth = solo();

  const SimulationSummary summary = summarise(record, {.solo = &truth});

  EXPECT_EQ(summary.finished, 1);
  EXPECT_EQ(summary.censored, 1);
  EXPECT_EQ(summary.avg_jct_s, 130);
  EXPECT_EQ(summary.avg_jct_with_censored_s, 115);
  EXPECT_NEAR(summary.avg_slowdown, 2.6, 1e-12);
  EXPECT_EQ(summary.makespan_s, 150);
}

TEST(PairTruth, CallsAPairMissedThatWasWorthItAndWrongThatWasNot) {
  Workload workload{.temporal = {{"m/x>m/y", 1.0}, {"m/y>m/x", -0.5}}};
  workload.jobs = {
      {.name = "a", .backbone = "m", .task = "x", .steps = 100, .step_time = 1},
      {.name = "b", .at = 20, .backbone = "m", .task = "y", .steps = 100, .step_time = 1}};
  JobModel model;
  model.add(JobId{1}, truth_of(workload.jobs[0]));
  model.add(JobId{2}, truth_of(workload.jobs[1]));
  const PairTruth pairs(workload, model);
  const RunRecord record = two_jobs();  // b starts when a has ended: it could have learnt from it

  const PairTruth::Missed missed = pairs.missed(record, 1.1);

  EXPECT_EQ(missed.count, 1);
  EXPECT_DOUBLE_EQ(missed.gain_s, 50);
  EXPECT_DOUBLE_EQ(pairs.temporal_weight(0, 1, 1, 0), 2);
  EXPECT_DOUBLE_EQ(pairs.temporal_weight(1, 0, 1, 0), 0.5);
  EXPECT_DOUBLE_EQ(pairs.least_seconds(1, 0), 50);
  EXPECT_EQ(pairs.missed(record, 3).count, 0);
}

TEST(Report, ComparesJobByJobAndNamesWhoPaidAndWhy) {
  const RunRecord base = two_jobs();
  RunRecord other = two_jobs();
  other.policy = "q";
  other.jobs[1].completion_s = 300;
  other.jobs[1].queueing_s = 230;
  other.jobs[1].waited_because = "no_capacity";
  const SimulationSummary base_summary = summarise(base, {}), other_summary = summarise(other, {});
  const SimulationReport report{.baseline = "p",
                                .config = "{}",
                                .records = {&base, &other},
                                .summaries = {&base_summary, &other_summary}};

  const auto compared = compare(report);
  const auto paid = losers(report);

  ASSERT_EQ(compared.size(), 2u);
  EXPECT_EQ(compared[1].jobs_compared, 2);
  EXPECT_DOUBLE_EQ(compared[1].share_worse, 0.5);
  EXPECT_NEAR(compared[1].numbers.at("avg_jct_s").ratio, 115.0 / 190, 1e-12);
  ASSERT_EQ(paid.size(), 1u);
  EXPECT_EQ(paid[0].job, "b");
  EXPECT_EQ(paid[0].cause, "waited 2m 30s more (no_capacity)");
}

TEST(Report, KeepsTheTextsOfJobsOutOfTheMarkup) {
  RunRecord record = two_jobs();
  record.jobs[0].name = "</script><script>alert(1)</script>";
  const SimulationSummary summary = summarise(record, {});

  const std::string html = write_simulation_report(
      {.baseline = "p", .config = "{}", .records = {&record}, .summaries = {&summary}});

  EXPECT_THAT(html, testing::Not(HasSubstr("<script>alert")));
}

TEST(Tables, QuoteNamesAndLeaveOutWhatIsNotThere) {
  RunRecord record = two_jobs();
  record.jobs[0].name = "a,\"b\"";
  record.jobs[1].finished = false;

  const std::string csv = jobs_csv(record);

  EXPECT_THAT(csv, HasSubstr("\n\"a,\"\"b\"\"\",,,0,10,100,100,0,180,0,2,normal,,,,,finished\n"));
  EXPECT_THAT(csv, HasSubstr("\nb,,,20,100,150,,80,50,0,1,normal,,,,,censored\n"));
  EXPECT_THAT(timeline_csv(record), HasSubstr("\n1,0,0,10,\"a,\"\"b\"\"\",switch\n"));
}

}  // namespace
}  // namespace ymir
