#include "ymir/sim/metrics/bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "ymir/base/rng.h"
#include "ymir/sim/simulate.h"

namespace ymir {
namespace {

// --- every schedule there is, on a few GPUs, in time steps of one second ------------------------

struct SmallJob {
  int at = 0;
  int work = 1;              // units
  std::vector<int> speed{};  // units a second on 1, 2, .. GPUs
};

// The least sum of completion times less submissions, of all schedules that change at whole
// seconds.
class EverySchedule {
 public:
  EverySchedule(std::vector<SmallJob> jobs, int gpus) : jobs_(std::move(jobs)), gpus_(gpus) {}
  int least_sum() {
    std::vector<int> left;
    for (const SmallJob& job : jobs_) left.push_back(job.work);
    return from(0, left);
  }

 private:
  // What is still to be added to the sum: a job counts for each second in which it is there.
  int from(int now, const std::vector<int>& left) {
    if (std::ranges::all_of(left, [](int each) { return each <= 0; })) return 0;
    const auto [known, fresh] = seen_.try_emplace({now, left}, 0);
    if (!fresh) return known->second;
    int present = 0;
    for (std::size_t i = 0; i < left.size(); ++i) present += left[i] > 0 && jobs_[i].at <= now;
    std::vector<int> after = left;
    const int best = present + share_out(now, left, after, 0, gpus_);
    return seen_[{now, left}] = best;
  }
  int share_out(int now, const std::vector<int>& left, std::vector<int>& after, std::size_t job,
                int free) {
    if (job == left.size()) {
      const bool all_came = std::ranges::all_of(jobs_, [&](const auto& j) { return j.at <= now; });
      if (all_came && after == left) return 1'000'000;  // to wait for nobody
      return from(now + 1, after);
    }
    int best = share_out(now, left, after, job + 1, free);
    if (left[job] <= 0 || jobs_[job].at > now) return best;
    for (int gpus = 1; gpus <= std::min<int>(free, static_cast<int>(jobs_[job].speed.size()));
         ++gpus) {
      after[job] = std::max(0, left[job] - jobs_[job].speed[static_cast<std::size_t>(gpus) - 1]);
      best = std::min(best, share_out(now, left, after, job + 1, free - gpus));
      after[job] = left[job];
    }
    return best;
  }

  std::vector<SmallJob> jobs_;
  int gpus_ = 1;
  std::map<std::pair<int, std::vector<int>>, int> seen_;
};

std::vector<Demand> demands_of(const std::vector<SmallJob>& jobs) {
  std::vector<Demand> demands;
  for (const SmallJob& job : jobs) {
    Demand& demand = demands.emplace_back(Demand{.at = static_cast<double>(job.at)});
    for (std::size_t k = 0; k < job.speed.size(); ++k)
      demand.ways.push_back(
          {static_cast<double>(k + 1), static_cast<double>(job.work) / job.speed[k]});
  }
  return demands;
}

TEST(Bound, OnOneGpuIsTheBestOfAllSchedules) {
  Rng rng(1);
  for (int round = 0; round < 25; ++round) {
    std::vector<SmallJob> jobs;
    for (int i = 0; i < 4; ++i)
      jobs.push_back({.at = static_cast<int>(rng.below(6)),
                      .work = 1 + static_cast<int>(rng.below(5)),
                      .speed = {1}});

    const double bound = least_total_jct(demands_of(jobs), 1);

    EXPECT_NEAR(bound, EverySchedule(jobs, 1).least_sum(), 1e-9) << "round " << round;
  }
}

TEST(Bound, IsNeverAboveTheBestOfAllSchedulesAndOftenNear) {
  Rng rng(2);
  double bounds = 0, best = 0;
  for (int round = 0; round < 25; ++round) {
    std::vector<SmallJob> jobs;
    for (int i = 0; i < 3; ++i) {
      std::vector<int> speed{4, 7, 9};  // more GPUs help less and less
      speed.resize(1 + rng.below(3));
      jobs.push_back({.at = static_cast<int>(rng.below(4)),
                      .work = 4 * (1 + static_cast<int>(rng.below(5))),
                      .speed = std::move(speed)});
    }

    const double bound = least_total_jct(demands_of(jobs), 3, 40);

    const int least = EverySchedule(jobs, 3).least_sum();
    EXPECT_LE(bound, least + 1e-9) << "round " << round;
    bounds += bound;
    best += least;
  }
  EXPECT_GT(bounds, 0.7 * best);
}

TEST(Bound, OfALongJobAmongShortOnesIsMoreThanOfEitherAlone) {
  // The long one takes 100 s however many GPUs there are; the short ones fill the machine.
  std::vector<Demand> jobs{{.at = 0, .ways = {{1, 100}}}};
  for (int i = 0; i < 10; ++i) jobs.push_back({.at = 0, .ways = {{1, 4}, {4, 1}}});

  const double bound = least_total_jct(jobs, 4);

  // The best: one after the other on three GPUs, 4/3 s each, beside the long one.
  EXPECT_GT(bound, 0.9 * (100 + 55 * 4.0 / 3));
  EXPECT_LE(bound, 100 + 55 * 4.0 / 3);
}

// --- what jobs need
// -------------------------------------------------------------------------------

// Two tasks of a backbone: b is 1.5 times as fast after a; together a step takes 1.2 times as long.
Workload two_tasks() {
  Workload workload{.nodes = 1, .gpus_per_node = 4};
  workload.jobs = {{.name = "a1", .at = 0, .backbone = "m", .task = "a", .steps = 100},
                   {.name = "b1", .at = 1, .backbone = "m", .task = "b", .steps = 120}};
  for (WorkloadJob& job : workload.jobs) {
    job.steps_per_epoch = 1;
    job.step_time = 2;
    job.scaling = 0.9;
    job.max_gpus = 4;
  }
  workload.temporal["m/a>m/b"] = 0.5;
  workload.spatial["m/a+m/b"] = {0, 0.25, 1.2};
  return workload;
}

JobModel model_of_workload(const Workload& workload) {
  return model_of(scenario_of(workload, {.out = "-"}, "ymir"));
}

TEST(Bound, TakesTheMostFrugalSizeForServiceAndTheFastestForTime) {
  const Workload workload = two_tasks();

  const auto alone = least_demands(workload, model_of_workload(workload), 4, Sharing::kNone);

  EXPECT_NEAR(alone[0].least_service(), 100 * 2, 1e-9);                    // on one GPU
  EXPECT_NEAR(alone[0].least_seconds(), 100 * 2 / (4 * 0.9 * 0.9), 1e-9);  // on four
  EXPECT_NEAR(alone[1].least_service(), 120 * 2, 1e-9);
}

TEST(Bound, TakesTheBestPartnerThatThereIs) {
  Workload workload = two_tasks();
  const JobModel model = model_of_workload(workload);

  const auto temporal = least_demands(workload, model, 4, Sharing::kTemporal);
  const auto any = least_demands(workload, model, 4, Sharing::kAny);
  workload.jobs[0].share = false;
  const auto refused = least_demands(workload, model, 4, Sharing::kAny);

  EXPECT_NEAR(temporal[0].least_service(), 200, 1e-9);
  EXPECT_NEAR(temporal[1].least_service(), 240 / 1.5, 1e-9);
  EXPECT_NEAR(any[0].least_service(), 200 * 0.6, 1e-9);         // half of 1.2 steps
  EXPECT_NEAR(any[1].least_service(), 240 * 0.6 / 1.25, 1e-9);  // of fewer steps too
  EXPECT_NEAR(refused[1].least_service(), 240, 1e-9);
}

TEST(Bound, CountsWholeEpochsUnlessAMateCanFillThem) {
  Workload workload = two_tasks();
  for (WorkloadJob& job : workload.jobs) job.steps_per_epoch = 50;
  const JobModel model = model_of_workload(workload);

  const auto alone = least_demands(workload, model, 4, Sharing::kNone);
  const auto temporal = least_demands(workload, model, 4, Sharing::kTemporal);
  const auto any = least_demands(workload, model, 4, Sharing::kAny);

  EXPECT_NEAR(alone[1].least_service(), 150 * 2, 1e-9);
  EXPECT_NEAR(temporal[1].least_service(), 100 * 2, 1e-9);  // 80 steps are needed
  EXPECT_NEAR(any[1].least_service(), 240 * 0.6 / 1.25, 1e-9);
}

TEST(Bound, IsBelowWhatEveryPolicyReaches) {
  const auto workload = generate_workload(
      {.num_jobs = 60, .num_gpus = 8, .load = 1.5, .seed = 7, .useful_pairs = 0.5});
  ASSERT_TRUE(workload) << workload.error().message;
  const JobModel model = model_of_workload(*workload);
  const double all = least_total_jct(least_demands(*workload, model, 8, Sharing::kAny), 8) / 60;
  const double alone = least_total_jct(least_demands(*workload, model, 8, Sharing::kNone), 8) / 60;
  const SimulateOptions options{.policies = {"ymir", "ymir:no-transfer", "srsf", "optimus"},
                                .out = testing::TempDir() + "/bound"};

  const auto summaries = simulate(*workload, options, {});

  ASSERT_TRUE(summaries) << summaries.error().message;
  for (const SimulationSummary& summary : *summaries) {
    EXPECT_EQ(summary.finished, 60);
    EXPECT_GT(summary.avg_jct_s, summary.policy == "ymir" ? all : alone) << summary.policy;
    EXPECT_LT(summary.avg_jct_s, 20 * all) << summary.policy;
  }
  EXPECT_LT(all, alone);
}

}  // namespace
}  // namespace ymir
