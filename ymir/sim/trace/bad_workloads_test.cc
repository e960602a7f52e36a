// Workloads that are wrong, each by a name of its own: the linter tells the line, simulate refuses
// with exit code 2, and nothing crashes or is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ymir/base/file.h"
#include "ymir/sim/command.h"
#include "ymir/sim/trace/lint.h"

namespace ymir {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kTiresias =
    "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n";

class BadWorkload : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::temp_directory_path() /
        (std::string("ymir_bad_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& bytes, const std::string& name = "w") const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  SimCommandOutput lint(const std::string& path, const std::string& format = "tiresias") const {
    return run_lint_command({.file = path, .format = format, .nodes = 2, .gpus_per_node = 4});
  }
  // What is said of the path, which simulate must refuse too.
  std::string fault_of(const std::string& path, const std::string& format = "tiresias") const {
    const SimCommandOutput linted = lint(path, format);
    EXPECT_NE(linted.exit_code, 0);
    const SimCommandOutput run =
        run_simulate_command({.workload = path,
                              .format = format,
                              .policies = {format == "tiresias" ? "fifo@events" : "fifo"},
                              .nodes = 2,
                              .gpus_per_node = 4,
                              .out = folder_ / "out"},
                             {});
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_THAT(run.err, StartsWith("ymir: "));
    EXPECT_FALSE(fs::exists(folder_ / "out")) << "nothing may be written";
    return linted.out + linted.err;
  }
  std::string fault_of_rows(const std::string& rows) const {
    return fault_of(file(kTiresias + rows));
  }

  fs::path folder_;
};

TEST_F(BadWorkload, ThatOverloadsTheClusterIsToldFromWhichLineOn) {
  const SimCommandOutput linted =
      lint(file(std::string(kTiresias) + "0,1,0,9,v,10,0\n1,8,100,9,v,500,0\n2,8,200,9,v,500,0\n"));

  EXPECT_EQ(linted.exit_code, 0) << "it can be run";
  EXPECT_THAT(linted.out, HasSubstr("load 5.01 > 1"));
  EXPECT_THAT(linted.out, HasSubstr("from line 3 on (1, at 100 s) there is always work left"));
}

TEST_F(BadWorkload, WithAJobLargerThanTheCluster) {
  EXPECT_THAT(fault_of_rows("0,1,0,9,v,10,0\n1,9,0,9,v,10,0\n"),
              HasSubstr("w:3: asks for 9 GPUs, the cluster has 8"));
}

TEST_F(BadWorkload, WithANegativeTime) {
  EXPECT_THAT(fault_of_rows("0,1,0,9,v,10,0\n1,1,-5,9,v,10,0\n"),
              HasSubstr("w:3: column `submit_time`"));
}

TEST_F(BadWorkload, WhoseJobsTakeANegativeTime) {
  EXPECT_THAT(fault_of_rows("0,1,0,9,v,-10,0\n"), HasSubstr("w:2: column `duration`"));
}

TEST_F(BadWorkload, WithANumberThatIsNone) {
  EXPECT_THAT(fault_of_rows("0,1,nan,9,v,10,0\n"), HasSubstr("w:2: column `submit_time`"));
  EXPECT_THAT(fault_of_rows("0,inf,0,9,v,10,0\n"), HasSubstr("w:2: column `num_gpu`"));
  EXPECT_THAT(fault_of_rows("0,1,0,9,v,1e999,0\n"), HasSubstr("w:2: column `duration`"));
  EXPECT_THAT(fault_of_rows("0,99999999999999999999,0,9,v,1,0\n"),
              HasSubstr("w:2: column `num_gpu`"));
}

TEST_F(BadWorkload, WithRowsOutOfOrderIsReadAndWarnedOf) {
  const SimCommandOutput linted =
      lint(file(std::string(kTiresias) + "0,1,60,9,v,10,0\n1,1,0,9,v,10,0\n"));

  EXPECT_EQ(linted.exit_code, 0);
  EXPECT_THAT(linted.out, HasSubstr("unsorted: the job of line 3"));
}

TEST_F(BadWorkload, ThatBeginsWithAByteOrderMark) {
  EXPECT_THAT(fault_of(file("\xef\xbb\xbf" + std::string(kTiresias) + "0,1,0,9,v,10,0\n")),
              HasSubstr("w:1: begins with a byte order mark"));
}

TEST_F(BadWorkload, WithARowOfAnotherWidth) {
  EXPECT_THAT(fault_of_rows("0,1,0,9,v,10,0\n1,1,0,9,v,10\n"),
              HasSubstr("w:3: 6 columns where the header names 7"));
}

TEST_F(BadWorkload, WithTwoJobsOfOneName) {
  EXPECT_THAT(fault_of_rows("0,1,0,9,v,10,0\n1,1,0,9,v,10,0\n0,1,0,9,v,10,0\n"),
              HasSubstr("w:4: the name is taken by line 2: 0"));
}

TEST_F(BadWorkload, WithCarriageReturnsAndQuotesIsARightOne) {
  const SimCommandOutput linted =
      lint(file("job_id,num_gpu,submit_time,iterations,model_name,duration,interval\r\n"
                "\"a,\"\"b\",1,0,9,v,10,0\r\n"));

  EXPECT_EQ(linted.exit_code, 0) << linted.out;
}

TEST_F(BadWorkload, WithAQuoteThatNeverEnds) {
  EXPECT_THAT(fault_of_rows("\"0,1,0,9,v,10,0\n"), HasSubstr("w:2: "));
}

TEST_F(BadWorkload, ThatIsEmpty) { EXPECT_THAT(fault_of(file("")), HasSubstr("w: is empty")); }

TEST_F(BadWorkload, ThatIsOnlyAHeader) {
  EXPECT_THAT(fault_of(file(kTiresias)), HasSubstr("w: no jobs"));
}

TEST_F(BadWorkload, ThatIsNoText) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>((i * 131 + (i >> 3)) & 0xff);

  EXPECT_THAT(fault_of(file(bytes)), HasSubstr("w:1: "));
}

TEST_F(BadWorkload, WithALineThatNeverEnds) {
  EXPECT_THAT(fault_of(file(std::string(kTiresias) + std::string(1 << 20, '7'))),
              HasSubstr("w:2: "));
}

TEST_F(BadWorkload, ThatIsLargerThanAGibibyteIsNotEvenRead) {
  const std::string path = file("x");
  fs::resize_file(path, (std::uintmax_t{1} << 30) + 1);  // a hole: takes no space

  EXPECT_THAT(fault_of(path), HasSubstr("w"));
}

TEST_F(BadWorkload, ThatIsAFolderOrIsNotThere) {
  fs::create_directories(folder_ / "folder");

  EXPECT_THAT(fault_of(folder_ / "folder"), HasSubstr("folder"));
  EXPECT_THAT(fault_of(folder_ / "nothing"), HasSubstr("nothing"));
}

TEST_F(BadWorkload, OfAnUnknownFormat) {
  const SimCommandOutput linted = lint(file("x"), "csv");

  EXPECT_EQ(linted.exit_code, 2);
  EXPECT_THAT(linted.err, HasSubstr("unknown format of a trace: csv (known: pollux"));
}

TEST_F(BadWorkload, InOurOwnFormatNamesItsLines) {
  const std::string header = "{\"format\":\"ymir\",\"nodes\":2,\"gpus_per_node\":4}\n";
  const std::string a = "{\"name\":\"a\",\"backbone\":\"m\",\"task\":\"t\",\"at\":5}\n";
  const auto fault = [&](const std::string& lines) {
    return fault_of(file(header + lines), "ymir");
  };

  EXPECT_THAT(fault(a + a), HasSubstr("w:3: the name is taken by line 2: a"));
  EXPECT_THAT(fault(a + "{\"name\":\"b\",\"backbone\":\"m\",\"task\":\"t\",\"at\":4}\n"),
              HasSubstr("w:3: submitted before the job above it"));
  EXPECT_THAT(fault(a + "{\"name\":\"b\",\"backbone\":\"m\",\"task\":\"t\",\"at\":-1}\n"),
              HasSubstr("w:3: at must be"));
  EXPECT_THAT(fault(a + "{\"name\":"), HasSubstr("w:3: "));
  EXPECT_THAT(fault(""), HasSubstr("w: no jobs"));
  EXPECT_THAT(fault_of(file(a), "ymir"), HasSubstr("w:1: the first line must be"));
  EXPECT_THAT(fault_of(file("\xef\xbb\xbf" + header + a), "ymir"), HasSubstr("w:1: "));
}

// What only the profiles tell.
class BadForProfiles : public BadWorkload {
 protected:
  void SetUp() override {
    BadWorkload::SetUp();
    const char* given = std::getenv("YMIR_SHARED");
    shared_ = fs::path(given ? given : YMIR_SOURCE_DIR "/../shared") / "data";
    if (!fs::exists(shared_)) GTEST_SKIP() << "no data in " << shared_;
  }
  std::string fault_with_profiles(const std::string& format, const std::string& text) const {
    const SimCommandOutput linted = run_lint_command({.file = file(text),
                                                      .format = format,
                                                      .profiles = shared_ / "profiles" / format,
                                                      .nodes = 8,
                                                      .gpus_per_node = 4});
    EXPECT_EQ(linted.exit_code, 1);
    return linted.out;
  }
  fs::path shared_;
};

TEST_F(BadForProfiles, IsAModelThatNobodyHasMeasured) {
  EXPECT_THAT(fault_with_profiles(
                  "titan",
                  "name,submission_time,application,num_gpus,target_batch_size,target_lr,"
                  "target_gradient_steps,target_metric\na,45,vit@nothing,1,48,4e-5,8,0.99\n"),
              HasSubstr("w:2: jobs_effective.csv knows no vit@nothing"));
  EXPECT_THAT(fault_with_profiles("pollux",
                                  "name,time,application,num_replicas,batch_size\n"
                                  "a,1,cifar11,1,128\n"),
              HasSubstr("w:2: "));
}

TEST_F(BadForProfiles, TheFirstTracesOfThePredecessorHaveTheLoadsThatAreKnownOfThem) {
  const auto load = [&](const std::string& name) {
    const auto linted = lint_file("titan", shared_ / "traces/titan" / ("FM-1-" + name + ".csv"),
                                  {.profiles = shared_ / "profiles/titan",
                                   .nodes = 8,
                                   .gpus_per_node = 4,
                                   .window_s = 8 * 3600});
    EXPECT_TRUE(linted) << linted.error().message;
    EXPECT_EQ(linted->num_faults, 0u);
    return linted->load.load;
  };

  EXPECT_NEAR(load("roberta-base"), 0.38, 0.005);
  EXPECT_NEAR(load("roberta-large"), 0.36, 0.005);
  EXPECT_NEAR(load("vit"), 0.94, 0.005);
  EXPECT_NEAR(load("vit-large"), 0.81, 0.005);
}

// Generated from the profiles, written, linted, run under several policies, and compared.
TEST_F(BadForProfiles, TheMeasuredTasksOfThePaperRunFromEndToEnd) {
  const std::string path = folder_ / "w.jsonl";
  WorkloadCommand command{.options = {.num_jobs = 60,
                                      .num_gpus = 32,
                                      .load = 1.2,
                                      .seed = 2,
                                      .tasks = "paper27-measured",
                                      .profiles = shared_ / "profiles/titan",
                                      .domains = 2},
                          .out = path};
  ASSERT_EQ(run_generate_command(command).exit_code, 0);

  const SimCommandOutput linted = run_lint_command({.file = path});
  const SimCommandOutput run =
      run_simulate_command({.workload = path,
                            .policies = {"ymir", "ymir:no-transfer", "sia", "themis:auction",
                                         "optimus:loss-fit", "srtf"},
                            .out = folder_ / "out"},
                           {});

  EXPECT_EQ(linted.exit_code, 0) << linted.out;
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const char* name : {"ymir", "sia", "themis:auction", "optimus:loss-fit"})
    EXPECT_TRUE(fs::exists(folder_ / "out" / name / "summary.json")) << name;
  EXPECT_TRUE(fs::exists(folder_ / "out/report.html"));
}

TEST_F(BadForProfiles, EveryPublicSimulatorBreaksNoInvariantOnItsOwnTraces) {
  const auto broken = [&](const std::string& format, const std::string& trace,
                          const std::vector<std::string>& policies, int nodes) {
    return run_simulate_command({.workload = shared_ / "traces" / trace,
                                 .format = format,
                                 .profiles = shared_ / "profiles" / format,
                                 .policies = policies,
                                 .nodes = nodes,
                                 .gpus_per_node = 4,
                                 .out = folder_ / "out"},
                                {})
        .err;
  };

  EXPECT_THAT(broken("pollux", "pollux/workloads/workload-6.csv",
                     {"tiresias@pollux", "optimus@pollux"}, 16),
              testing::Not(HasSubstr("ymir: ")));
  EXPECT_THAT(broken("titan", "titan/FM-1-roberta-large.csv",
                     {"srtf@titan", "tiresias@titan", "optimus@titan", "themis@titan", "titan"}, 8),
              testing::Not(HasSubstr("ymir: ")));
  EXPECT_THAT(broken("tiresias", "tiresias/200_job.csv", {"tiresias@events", "srtf@events"}, 4),
              testing::Not(HasSubstr("ymir: ")));
}

}  // namespace
}  // namespace ymir
