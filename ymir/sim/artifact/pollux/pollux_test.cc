// The published completion times of the Pollux study, met job by job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "ymir/base/csv.h"
#include "ymir/base/file.h"
#include "ymir/sim/artifact/artifact.h"
#include "ymir/sim/artifact/pollux/world.h"

namespace ymir::artifact {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kData = YMIR_SOURCE_DIR "/../shared/data";
const char* const kWorkloads[] = {"workload-1", "workload-2", "workload-3", "workload-6"};

bool have_data() { return std::filesystem::exists(kData + "/golden/pollux/tiresias.csv"); }

const Policy& policy(const std::string& name) {
  for (const Policy& known : policies())
    if (known.name == name) return known;
  ADD_FAILURE() << "no policy " << name;
  return policies().front();
}

Options options(std::map<std::string, std::string> settings = {}) {
  return {.nodes = 16,
          .gpus_per_node = 4,
          .profiles = kData + "/profiles/pollux",
          .settings = std::move(settings)};
}

Result<Run> run(const std::string& name, const std::string& workload, const Options& options) {
  YMIR_TRY_ASSIGN(const Trace trace,
                  read_trace("pollux", kData + "/traces/pollux/" + workload + ".csv"));
  return policy(name).run(trace, options);
}

std::map<std::string, double> golden(const std::string& name, const std::string& workload) {
  const std::string file = kData + "/golden/pollux/" + name + ".csv";
  const std::string text = *read_file(file);
  CsvRows rows(file, text);
  const auto at = rows.columns({"workload", "job", "jct_s"});
  std::map<std::string, double> jct_s;
  while (rows.next())
    if (rows.text(at[0]) == workload) jct_s[rows.name(at[1])] = rows.number(at[2], 0, 1e9);
  EXPECT_TRUE(rows.ok());
  return jct_s;
}

// Names the first job that differs, by order of submission.
void expect_equal(const Run& run, const std::map<std::string, double>& golden) {
  ASSERT_EQ(run.jobs.size(), golden.size());
  for (std::size_t i = 0; i < run.jobs.size(); ++i) {
    const JobResult& job = run.jobs[i];
    ASSERT_TRUE(golden.contains(job.name)) << job.name;
    const double jct_s = job.completion_s - job.submission_s, expected = golden.at(job.name);
    if (job.finished && std::abs(jct_s - expected) <= 1e-6) continue;
    std::string timeline;
    for (const Change& change : run.changes)
      if (change.job == static_cast<int>(i))
        timeline += " " + std::to_string(change.at_s) + ":" + std::to_string(change.nodes.size());
    FAIL() << job.name << " took " << jct_s << " s, published " << expected
           << "; GPUs by time:" << timeline;
  }
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, EqualsThePublishedCompletionTimes) {
  if (!have_data()) GTEST_SKIP() << "no reference data: " << kData;

  for (const std::string workload : kWorkloads) {
    const auto result = run(GetParam() + "@pollux", "workloads/" + workload, options());

    ASSERT_TRUE(result) << result.error().message;
    SCOPED_TRACE(workload);
    expect_equal(*result, golden(GetParam(), workload));
  }
}

INSTANTIATE_TEST_SUITE_P(PolluxWorld, Golden, testing::Values("tiresias", "optimus"));

}  // namespace
}  // namespace ymir::artifact
