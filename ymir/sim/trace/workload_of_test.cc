#include "ymir/sim/trace/workload_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "ymir/base/file.h"

namespace ymir {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

Trace rigid_trace() {
  return {
      .format = "philly",
      .file = "f",
      .jobs = {{.name = "late", .submission_s = 50, .gpus = 8, .duration_s = 3.25, .line = 2},
               {.name = "early", .submission_s = 10, .gpus = 1, .duration_s = 86'400, .line = 3}}};
}

TEST(WorkloadOf, RunsARigidJobForTheFilesDurationOnWhatItAsksForAndNothingElse) {
  const auto workload = workload_of(rigid_trace(), "", {.nodes = 4, .gpus_per_node = 4});

  ASSERT_TRUE(workload) << workload.error().message;
  ASSERT_THAT(workload->jobs, SizeIs(2));
  EXPECT_EQ(workload->jobs[0].name, "early");
  EXPECT_DOUBLE_EQ(solo_seconds(workload->jobs[0], 1), 86'400);
  EXPECT_DOUBLE_EQ(solo_seconds(workload->jobs[1], 8), 3.25);
  EXPECT_EQ(workload->jobs[1].min_gpus, 8);
  EXPECT_EQ(workload->jobs[1].max_gpus, 8);
  EXPECT_FALSE(workload->jobs[1].share);
}

TEST(WorkloadOf, SaysWhichLineHasNoLengthAndThatAClusterIsMissing) {
  Trace trace = rigid_trace();
  const auto no_cluster = workload_of(trace, "", {});
  trace.jobs[1].duration_s = 0;
  const auto no_length = workload_of(trace, "", {.nodes = 1, .gpus_per_node = 4});

  EXPECT_THAT(no_cluster.error().message, HasSubstr("give --nodes and --gpus-per-node"));
  EXPECT_THAT(no_length.error().message, HasSubstr("f:3: how long it runs is not known"));
}

TEST(WorkloadOf, TakesTheSpeedOfAGavelJobFromTheProfiles) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "ymir_workload_of_gavel";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(write_file(folder / "throughputs.csv",
                         "job_type,gpus,steps_per_s\nResNet (batch size 8),2,4\n"));
  Trace trace{.format = "gavel",
              .file = "f",
              .jobs = {{.name = "0",
                        .application = "ResNet (batch size 8)",
                        .gpus = 2,
                        .steps = 100,
                        .line = 1}}};

  const auto workload = workload_of(trace, folder, {.nodes = 1, .gpus_per_node = 4});
  trace.jobs[0].gpus = 4;
  const auto no_speed = workload_of(trace, folder, {.nodes = 1, .gpus_per_node = 4});
  std::filesystem::remove_all(folder);

  ASSERT_TRUE(workload) << workload.error().message;
  EXPECT_DOUBLE_EQ(solo_seconds(workload->jobs[0], 2), 25);
  EXPECT_THAT(no_speed.error().message, HasSubstr("f:1: no throughput of"));
}

}  // namespace
}  // namespace ymir
