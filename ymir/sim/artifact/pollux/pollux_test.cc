// The published completion times of the Pollux study, met job by job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
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

INSTANTIATE_TEST_SUITE_P(Pollux, Golden, testing::Values("tiresias", "optimus"));

// Ratios of our completion times to the published ones, ascending; and of their sums.
struct Ratios {
  std::vector<double> of_jobs{};
  double of_means = 0;
  double quantile(double p) const {
    const double rank = p * static_cast<double>(of_jobs.size() - 1);
    const auto low = static_cast<std::size_t>(rank);
    const double next = of_jobs[std::min(low + 1, of_jobs.size() - 1)];
    return of_jobs[low] + (rank - static_cast<double>(low)) * (next - of_jobs[low]);
  }
};

Ratios compare(const Run& run, const std::map<std::string, double>& golden) {
  Ratios ratios;
  double ours = 0, published = 0;
  for (const JobResult& job : run.jobs) {
    const double jct_s = job.completion_s - job.submission_s;
    ratios.of_jobs.push_back(jct_s / golden.at(job.name));
    ours += jct_s;
    published += golden.at(job.name);
  }
  std::ranges::sort(ratios.of_jobs);
  ratios.of_means = ours / published;
  return ratios;
}

// About 10 CPU-minutes.
TEST(PolluxBand, LiesAroundThePublishedResultsOverFiveSeeds) {
  if (!have_data()) GTEST_SKIP() << "no reference data: " << kData;
  if (std::getenv("YMIR_NIGHTLY") == nullptr) GTEST_SKIP() << "runs with YMIR_NIGHTLY=1";

  for (const std::string workload : kWorkloads) {
    Ratios all;
    for (const char* seed : {"1", "2", "3", "4", "5"}) {
      const auto result = run("pollux", "workloads/" + workload, options({{"pollux.seed", seed}}));
      ASSERT_TRUE(result) << result.error().message;
      const Ratios one = compare(*result, golden("pollux", workload));
      all.of_means += one.of_means / 5;
      all.of_jobs.insert(all.of_jobs.end(), one.of_jobs.begin(), one.of_jobs.end());
    }
    std::ranges::sort(all.of_jobs);

    EXPECT_NEAR(all.of_means, 1, 0.05) << workload;
    EXPECT_GE(all.quantile(0.05), 0.75) << workload;
    EXPECT_NEAR(all.quantile(0.5), 1, 0.03) << workload;
    EXPECT_LE(all.quantile(0.95), 1.35) << workload;
  }
}

// The first 24 jobs of a workload, up to the arrival of the next, do not know of the rest: those of
// them that had ended by then can be compared. One seed, a fifth of the generations: a wider band.
TEST(PolluxBand, LiesNearThePublishedResultsAtTheStartOfAWorkload) {
  if (!have_data()) GTEST_SKIP() << "no reference data: " << kData;
  auto trace = read_trace("pollux", kData + "/traces/pollux/workloads/workload-1.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  const double next_s = trace->jobs[24].submission_s;
  trace->jobs.resize(24);
  const auto published = golden("pollux", "workload-1");

  const auto result =
      policy("pollux").run(*trace, options({{"pollux.seed", "1"}, {"pollux.generations", "20"}}));

  ASSERT_TRUE(result) << result.error().message;
  artifact::Run ended = *result;
  std::erase_if(ended.jobs, [&](const JobResult& job) {
    return job.submission_s + published.at(job.name) > next_s;
  });
  ASSERT_GT(ended.jobs.size(), 10U);
  const Ratios ratios = compare(ended, published);
  EXPECT_NEAR(ratios.of_means, 1, 0.15);
  EXPECT_NEAR(ratios.quantile(0.5), 1, 0.10);
}

// Six jobs on 2 x 4 GPUs, quick enough to run twice.
Trace small_trace() {
  Trace trace{.format = "pollux", .file = "small.csv"};
  for (int i = 0; i < 6; ++i)
    trace.jobs.push_back({.name = "job" + std::to_string(i),
                          .application = i % 2 == 0 ? "ncf" : "cifar10",
                          .submission_s = 100.0 * i,
                          .gpus = i % 2 == 0 ? 1 : 4,
                          .batch_size = i % 2 == 0 ? 32768 : 1024,
                          .line = i + 2});
  return trace;
}

Options small_options(std::map<std::string, std::string> settings = {}) {
  Options small = options(std::move(settings));
  small.nodes = 2;
  return small;
}

TEST(PolluxPolicy, GivesTheSameRunForTheSameSeed) {
  if (!have_data()) GTEST_SKIP() << "no reference data: " << kData;
  const auto changes = [](const char* seed) {
    std::vector<std::pair<double, std::vector<int>>> out;
    const auto result = policy("pollux").run(
        small_trace(), small_options({{"pollux.seed", seed}, {"pollux.generations", "3"}}));
    EXPECT_TRUE(result);
    for (const Change& change : result->changes) out.emplace_back(change.at_s, change.nodes);
    return out;
  };

  EXPECT_EQ(changes("4"), changes("4"));
  EXPECT_NE(changes("4"), changes("5"));
}

// What must hold whatever the policy decides.
TEST(PolluxWorld, AccountsForEveryGpuSecond) {
  if (!have_data()) GTEST_SKIP() << "no reference data: " << kData;

  for (const char* name : {"tiresias@pollux", "optimus@pollux", "pollux"}) {
    const auto result =
        policy(name).run(small_trace(), small_options({{"pollux.generations", "3"}}));

    ASSERT_TRUE(result) << result.error().message;
    for (std::size_t i = 0; i < result->jobs.size(); ++i) {
      const JobResult& job = result->jobs[i];
      double held = 0, without = 0, since = job.submission_s;
      std::size_t gpus = 0;
      const auto until = [&](double now_s) {
        (gpus == 0 ? without : held) +=
            (now_s - since) * (gpus == 0 ? 1.0 : static_cast<double>(gpus));
        since = now_s;
      };
      for (const Change& change : result->changes) {
        if (change.job != static_cast<int>(i)) continue;
        until(change.at_s);
        gpus = change.nodes.size();
      }
      EXPECT_TRUE(job.finished);
      EXPECT_EQ(gpus, 0u) << "to the end of the round in which it ended";
      EXPECT_NEAR(job.gpu_seconds, held, 1e-6) << name << " " << job.name;
      EXPECT_NEAR(job.queueing_s, without, 1e-6) << name << " " << job.name;
      EXPECT_GE(job.first_start_s, job.submission_s);
    }
  }
}

TEST(PolluxWorld, RefusesJobsItCannotKnow) {
  if (!have_data()) GTEST_SKIP() << "no reference data: " << kData;
  const auto message = [](auto change) {
    Trace trace = small_trace();
    change(trace.jobs[1]);
    return policy("tiresias@pollux").run(trace, small_options()).error().message;
  };

  EXPECT_THAT(message([](TraceJob& job) { job.gpus = 9; }),
              HasSubstr("small.csv:3: job1: asks for 9 GPUs of 8"));
  EXPECT_THAT(message([](TraceJob& job) { job.application = "gpt"; }),
              HasSubstr("no profile of the application: gpt"));
  EXPECT_THAT(message([](TraceJob& job) { job.batch_size = 64; }), HasSubstr("batch 64"));
}

TEST(PolluxWorld, RefusesUnknownSettingsAndBadClusters) {
  Options wide = small_options();
  wide.gpus_per_node = 10;

  EXPECT_THAT(
      policy("pollux").run(small_trace(), small_options({{"pollux.sede", "1"}})).error().message,
      HasSubstr("pollux.seed"));
  EXPECT_THAT(policy("pollux").run(small_trace(), wide).error().message,
              HasSubstr("gpus_per_node"));
}

TEST(PolluxWorld, PlacesOnTheEmptiestNodesFirst) {
  std::vector<int> free = {1, 4, 4, 2};

  const pollux::NodeList nodes = pollux::take_emptiest_first(6, free);

  EXPECT_THAT(nodes, ElementsAre(1, 1, 1, 1, 2, 2));
  EXPECT_THAT(free, ElementsAre(1, 0, 2, 2));
  EXPECT_THAT(pollux::run_lengths(nodes), ElementsAre(4, 2));
}

}  // namespace
}  // namespace ymir::artifact
