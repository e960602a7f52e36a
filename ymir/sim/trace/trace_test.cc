#include "ymir/sim/trace/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace ymir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kPollux = "name,time,application,num_replicas,batch_size\n";
constexpr const char* kTiresias =
    "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n";
constexpr const char* kPods =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n";

std::string fault_of(const std::string& format, const std::string& text) {
  const auto trace = parse_trace(format, "f", text);
  return trace ? "none" : trace.error().message;
}

TEST(Trace, ReadsAJobOfEachFormat) {
  const auto pollux = parse_trace("pollux", "f", std::string(kPollux) + "a,5,cifar10,4,512\r\n");
  const auto titan =
      parse_trace("titan", "f",
                  "name,submission_time,application,num_gpus,target_batch_size,target_lr,"
                  "target_gradient_steps,target_metric\na,45,vit@imagenet,1,48,4e-5,8,0.99\n");
  const auto philly = parse_trace("philly", "f",
                                  "timestamp,duration,num_gpus,gpu_time,cluster\n"
                                  "2017-10-09 07:01:55,66.0,1,66.0,x\n"
                                  "2017-10-09 07:01:50,2.0,8,16.0,x\n");
  const auto tiresias = parse_trace("tiresias", "f", std::string(kTiresias) + "0,2,7,606,v,164,3");
  const auto pods = parse_trace("alibaba2023", "f",
                                std::string(kPods) + "p,1,1,1,460,V100,LS,Running,10,50,20\n");
  const auto swf =
      parse_trace("swf", "f", "; a comment\n1 10 5 100 4 -1 -1 8 -1 -1 1 1 1 -1 1 -1 -1 -1\n");

  ASSERT_TRUE(pollux && titan && philly && tiresias && pods && swf);
  EXPECT_EQ(pollux->jobs[0].batch_size, 512);
  EXPECT_EQ(titan->jobs[0].learning_rate, "4e-5");
  EXPECT_EQ(titan->jobs[0].gradient_steps, 8);
  EXPECT_EQ(philly->jobs[0].submission_s, 5);
  EXPECT_EQ(philly->jobs[1].submission_s, 0);
  EXPECT_TRUE(philly->unsorted);
  EXPECT_EQ(tiresias->jobs[0].duration_s, 164);
  EXPECT_EQ(pods->jobs[0].duration_s, 30);
  EXPECT_THAT(pods->warnings, ElementsAre(HasSubstr("1 pods ask for a part of a GPU")));
  EXPECT_EQ(swf->jobs[0].gpus, 8);
  EXPECT_EQ(swf->jobs[0].duration_s, 100);
}

TEST(Trace, TellsTheTwoLayoutsOfGavelByTheirWidth) {
  const auto seven = parse_trace("gavel", "f", "A\tcd x\t-n\t1\t900\t1.5\t4\n");
  const auto ten = parse_trace("gavel", "f", "A\tx\tdir\t-n\t1\t900\t4\t1\t-1.0\t2.5\n");

  ASSERT_TRUE(seven && ten);
  for (const auto* trace : {&*seven, &*ten}) {
    EXPECT_EQ(trace->jobs[0].steps, 900);
    EXPECT_EQ(trace->jobs[0].gpus, 4);
  }
  EXPECT_EQ(seven->jobs[0].submission_s, 1.5);
  EXPECT_EQ(ten->jobs[0].submission_s, 2.5);
  EXPECT_THAT(fault_of("gavel", "A\tb\tc\n"), HasSubstr("f:1: 3 columns (knows the layouts of 7"));
  EXPECT_THAT(fault_of("gavel", "A\tcd x\t-n\t1\t900\t1.5\t4\nA\tx\n"),
              HasSubstr("f:2: 2 columns where the rows above have 7"));
}

TEST(Trace, NamesTheLineAndFieldOfWhatIsWrong) {
  const std::string head = kPollux;

  EXPECT_THAT(fault_of("pollux", head + "a,-1,cifar10,4,512\n"),
              HasSubstr("f:2: column `time`: must be a number in 0..10000000000: -1"));
  EXPECT_THAT(fault_of("pollux", head + "a,NaN,cifar10,4,512\n"), HasSubstr("`time`"));
  EXPECT_THAT(fault_of("pollux", head + "a,1,cifar10,0,512\n"), HasSubstr("`num_replicas`"));
  EXPECT_THAT(fault_of("pollux", head + "a,1,cifar10,4\n"),
              HasSubstr("f:2: 4 columns where the header names 5"));
  EXPECT_THAT(fault_of("pollux", head + "a,1,x,1,1\nb,2,x,1,1\na,3,x,1,1\n"),
              HasSubstr("f:4: the name is taken by line 2: a"));
  EXPECT_THAT(fault_of("pollux", "\xef\xbb\xbf" + head),
              HasSubstr("f:1: begins with a byte order"));
  EXPECT_THAT(fault_of("pollux", head), HasSubstr("f: no jobs"));
  EXPECT_THAT(fault_of("pollux", ""), HasSubstr("f: is empty"));
  EXPECT_THAT(fault_of("tiresias", head), HasSubstr("f:1: no column `job_id`"));
  EXPECT_THAT(fault_of("tiresias", std::string(kTiresias) + "0,2,7.5,606,v,164,3"),
              HasSubstr("`submit_time`: must be a whole number"));
  EXPECT_THAT(fault_of("philly", "timestamp,duration,num_gpus\n2017-13-09 07:01:55,1,1\n"),
              HasSubstr("f:2: column `timestamp`"));
  EXPECT_THAT(fault_of("alibaba2023", std::string(kPods) + "p,1,1,1,460,,LS,Running,10,5,\n"),
              HasSubstr("f:2: column `deletion_time`: is deleted before it began: 5"));
  EXPECT_THAT(fault_of("swf", "1 2 3\n"), HasSubstr("f:1: 3 fields where the format has 18"));
  EXPECT_THAT(fault_of("csv", ""), HasSubstr("unknown format of a trace: csv (known: pollux"));
}

TEST(Trace, ListsEveryFaultForALinterAndKeepsTheGoodRows) {
  const auto scan = scan_trace(
      "pollux", "f", std::string(kPollux) + "a,1,x,1,1\nb,-2,x,1,1\nc,3,x,0,1\nd,2,x,1,1\n");

  ASSERT_TRUE(scan);
  EXPECT_THAT(scan->faults, ElementsAre(HasSubstr("f:3:"), HasSubstr("f:4:")));
  EXPECT_THAT(scan->trace.jobs, SizeIs(2));
}

TEST(Trace, WarnsOfRowsOutOfOrderAndKeepsThem) {
  const auto trace = parse_trace("pollux", "f", std::string(kPollux) + "a,9,x,1,1\nb,2,x,1,1\n");

  ASSERT_TRUE(trace);
  EXPECT_TRUE(trace->unsorted);
  EXPECT_EQ(trace->jobs[0].name, "a");
  EXPECT_THAT(trace->warnings, ElementsAre(HasSubstr("unsorted: the job of line 3")));
}

RC_GTEST_PROP(Trace, ReadsAnyBytesWithoutACrash, (const std::string& text)) {
  for (const std::string& format : trace_formats()) {
    const auto scan = scan_trace(format, "f", text);
    RC_ASSERT(static_cast<bool>(scan));
    RC_ASSERT(scan->num_faults > 0 || !scan->trace.jobs.empty() || !scan->trace.nodes.empty());
  }
}

class PublishedTraces : public testing::Test {
 protected:
  void SetUp() override {
    const char* given = std::getenv("YMIR_SHARED");
    folder_ = std::filesystem::path(given ? given : YMIR_SOURCE_DIR "/../shared") / "data/traces";
    if (!std::filesystem::exists(folder_)) GTEST_SKIP() << "no data in " << folder_;
  }
  std::size_t jobs(const std::string& format, const std::string& file) const {
    const auto trace = read_trace(format, folder_ / file);
    EXPECT_TRUE(trace) << trace.error().message;
    return trace ? trace->jobs.size() : 0;
  }
  std::filesystem::path folder_;
};

TEST_F(PublishedTraces, AreReadWholeToTheLastRow) {
  EXPECT_EQ(jobs("titan", "titan/FM-1-vit.csv"), 320u);
  EXPECT_EQ(jobs("pollux", "pollux/workloads/workload-1.csv"), 160u);
  EXPECT_EQ(jobs("philly", "philly_82k.csv"), 82'247u);
  EXPECT_EQ(jobs("tiresias", "tiresias/60_job.csv"), 60u);
  EXPECT_EQ(jobs("gavel", "gavel/physical_10col.trace"), 96u);
  EXPECT_EQ(jobs("gavel", "gavel/msr_7col.trace"), 533u);
}

TEST_F(PublishedTraces, OfPodsComeWithTheNodesBesideThemAndSayWhatWasLeftOut) {
  const auto trace = read_trace("alibaba2023", folder_ / "alibaba2023/openb_pod_list_default.csv");

  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_THAT(trace->nodes, SizeIs(1213));
  EXPECT_EQ(trace->nodes[0].model, "P100");
  EXPECT_GT(trace->jobs.size(), 6000u);
  EXPECT_THAT(trace->warnings, testing::Contains(HasSubstr("1088 pods without a GPU left out")));
}

}  // namespace
}  // namespace ymir
