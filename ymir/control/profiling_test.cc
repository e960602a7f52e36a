#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/control/controller_fixture.h"

namespace ymir {
namespace {

using ::testing::SizeIs;

using ProfilingTest = ControllerTest;

TEST_F(ProfilingTest, ProfilesANewJobAndRunsItAfterwards) {
  options_.profiling.enabled = true;
  policy_.plan = [](const Snapshot& now) {
    std::vector<Assignment> plan;
    if (now.jobs.at(kA).profile_settled) plan.push_back(normal(kA));
    return plan;
  };
  start(1);
  submit({kA});
  const StartRun profile = newest_start();
  const JobState meanwhile = job(kA).state;
  Profile measured;
  measured.seconds = Seconds(4);
  world_.reach(kA, profile.run, 9);
  world_.happen(ProfileFinished{.job = kA, .run = profile.run, .profile = measured});
  world_.end_run(profile.run, "profile_done");

  happen({});

  EXPECT_TRUE(profile.profile);
  EXPECT_EQ(profile.profile_steps, 10) << "a tenth of 90 steps, at least 10";
  EXPECT_EQ(meanwhile, JobState::kProfiling);
  EXPECT_FALSE(newest_start().profile);
  EXPECT_EQ(newest_start().tasks[0].from_step, 9) << "the profile's steps count";
  EXPECT_EQ(job(kA).profile->seconds, Seconds(4));
}

TEST_F(ProfilingTest, ProfilesAJobInItsFirstStepsWhenThePlanStartsItUnprofiled) {
  options_.profiling.enabled = true;
  policy_.plan = [](const Snapshot& now) {
    std::vector<Assignment> plan{normal(kA)};
    if (now.jobs.contains(kB)) plan.push_back(normal(kB));
    return plan;
  };
  start(2);
  world_.on_start = [](const StartRun&) {};

  submit({kA, kB});

  for (const StartRun& order : world_.asked_for<StartRun>()) EXPECT_TRUE(order.profile);
  EXPECT_THAT(world_.asked_for<StartRun>(), SizeIs(2));
}

TEST_F(ProfilingTest, StartsJobsOverTheQuotaWithoutAProfile) {
  options_.profiling.enabled = true;
  options_.profiling.share = 0;
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  start(1);

  submit({kA});

  EXPECT_FALSE(newest_start().profile);
  EXPECT_EQ(job(kA).state, JobState::kRunning);
}

TEST_F(ProfilingTest, ProbesSourcesInTheProfileAndForJobsThatWait) {
  options_.profiling.enabled = true;
  beliefs_.probes = [](const Snapshot& now, JobId target) {
    std::vector<Estimator::ProbeWish> wishes;
    for (const auto& [id, other] : now.jobs)
      if (id != target && !other.adapter().empty() &&
          std::ranges::none_of(now.jobs.at(target).probes,
                               [&, source = id](const Probe& p) { return p.source == source; }))
        wishes.push_back({id, 0.5});
    return wishes;
  };
  policy_.plan = [](const Snapshot& now) {
    std::vector<Assignment> plan;
    if (!now.jobs.at(kA).ended() && now.jobs.at(kA).profile_settled) plan.push_back(normal(kA));
    return plan;
  };
  const auto end_profile = [&](JobId id, std::vector<Probe> probes) {
    const RunId run = job(id).run;
    Profile measured;
    measured.probes = std::move(probes);
    world_.happen(ProfileFinished{.job = id, .run = run, .profile = measured});
    world_.end_run(run, "profile_done");
    happen({});
  };
  start(1);
  submit({kA});
  world_.reach(kA, job(kA).run, 9);
  end_profile(kA, {});
  submit({kB});
  world_.end_run(job(kA).run);  // A leaves the slot for B's profile
  happen({});

  finish(kA);
  const StartRun in_profile = newest_start();
  end_profile(kB, {});
  const StartRun while_waiting = newest_start();
  end_profile(kB, {{.source = kA, .strength = 0.5, .value = 0.3}});

  EXPECT_TRUE(in_profile.profile);
  EXPECT_EQ(in_profile.profile_steps, 10);
  ASSERT_THAT(in_profile.probes, SizeIs(1));
  EXPECT_EQ(in_profile.probes[0].source_hash, "final");
  EXPECT_TRUE(while_waiting.profile);
  EXPECT_EQ(while_waiting.profile_steps, 0);
  EXPECT_THAT(while_waiting.probes, SizeIs(1));
  ASSERT_THAT(job(kB).probes, SizeIs(1));
  EXPECT_EQ(job(kB).probes[0].value, 0.3);
  EXPECT_EQ(job(kB).state, JobState::kQueued);
}

}  // namespace
}  // namespace ymir
