#include "ymir/sim/trace/lint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ymir {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr const char* kHead =
    "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n";

TEST(LintOfAWorkload, NamesTheLineOfAJobThatIsLargerThanTheCluster) {
  const auto lint =
      lint_text("tiresias", "f", std::string(kHead) + "0,2,0,9,v,500,0\n1,9,5,9,v,500,5\n",
                {.nodes = 2, .gpus_per_node = 4});

  ASSERT_TRUE(lint) << lint.error().message;
  EXPECT_THAT(lint->faults, ElementsAre("f:3: asks for 9 GPUs, the cluster has 8"));
}

TEST(LintOfAWorkload, ReportsWhatTheJobsAskOfTheCluster) {
  const auto lint =
      lint_text("tiresias", "f", std::string(kHead) + "0,2,0,9,v,600,0\n1,4,3600,9,v,3000,3600\n",
                {.nodes = 1, .gpus_per_node = 4, .window_s = 7200});

  ASSERT_TRUE(lint) << lint.error().message;
  EXPECT_THAT(lint->faults, IsEmpty());
  EXPECT_DOUBLE_EQ(lint->load.load, (600 * 2 + 3000 * 4) / (4 * 7200.0));
  EXPECT_THAT(lint->load.load_by_hour, ElementsAre(1200 / 14'400.0, 12'000 / 14'400.0));
  EXPECT_DOUBLE_EQ(lint->load.peak_backlog_gpu_hours, 12'000 / 3600.0);
  EXPECT_THAT(lint->load.requests, ElementsAre(Pair(2, 1), Pair(4, 1)));
}

TEST(LintOfAWorkload, WarnsOfAQueueThatCannotDrainAndOfRowsOutOfOrder) {
  const auto lint =
      lint_text("tiresias", "f", std::string(kHead) + "0,4,60,9,v,900,0\n1,4,0,9,v,900,0\n",
                {.nodes = 1, .gpus_per_node = 4});

  ASSERT_TRUE(lint) << lint.error().message;
  EXPECT_THAT(lint->warnings, Contains(HasSubstr("unsorted: the job of line 3")));
  EXPECT_THAT(lint->warnings, Contains(HasSubstr("load 30.00 > 1")));
}

TEST(LintOfAWorkload, ListsTheFaultsOfEveryRowAndSaysThatNoLoadIsKnown) {
  const auto lint = lint_text("pollux", "f",
                              "name,time,application,num_replicas,batch_size\na,-1,x,1,1\n"
                              "b,nan,x,1,1\nc,1,x,1,1\n",
                              {});

  ASSERT_TRUE(lint) << lint.error().message;
  EXPECT_THAT(lint->faults, ElementsAre(HasSubstr("f:2:"), HasSubstr("f:3:")));
  EXPECT_THAT(lint->warnings, Contains(HasSubstr("no load report")));
  EXPECT_THAT(to_text("f", *lint), HasSubstr("fault: f:2: column `time`"));
}

}  // namespace
}  // namespace ymir
