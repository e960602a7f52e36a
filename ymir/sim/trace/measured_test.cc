// The truths made from published measurements, against published results: other code, other world,
// the same jobs.
#include "ymir/sim/trace/measured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/base/text.h"
#include "ymir/sim/simulate.h"

namespace ymir {
namespace {

std::string shared_data() {
  const char* named = std::getenv("YMIR_SHARED");
  return (named ? std::string(named) : std::string(YMIR_SOURCE_DIR) + "/../shared") + "/data";
}

class Measured : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(shared_data() + "/profiles"))
      GTEST_SKIP() << "no public measurements beside the project";
  }
  static Workload titan(const std::string& name) {
    const auto trace = read_trace("titan", shared_data() + "/traces/titan/" + name);
    EXPECT_TRUE(trace) << trace.error().message;
    auto workload =
        titan_workload(*trace, shared_data() + "/profiles/titan", {.nodes = 8, .gpus_per_node = 4});
    EXPECT_TRUE(workload) << workload.error().message;
    workload->nodes = 8;
    workload->gpus_per_node = 4;
    return *std::move(workload);
  }
  static double mean_jct(const Workload& workload, const std::string& policy, double interval,
                         const std::map<std::string, std::string>& settings = {}) {
    const auto run = run_scenario(scenario_of(
        workload, {.policies = {policy}, .interval = Seconds(interval), .settings = settings},
        policy));
    EXPECT_TRUE(run) << run.error().message;
    double sum = 0;
    for (const auto& [id, job] : run->state.jobs) sum += (*job.finished - job.submitted).count();
    return sum / static_cast<double>(run->state.jobs.size());
  }
};

TEST_F(Measured, TitanJobsTakeThePublishedTimeOnFourGpus) {
  const Workload workload = titan("FM-1-roberta-base.csv");
  std::map<std::pair<std::string, std::string>, double> published;
  const std::string file = shared_data() + "/profiles/titan/throughput_per_job.csv";
  const std::string text = *read_file(file);
  for (const std::string_view line : split(text, '\n')) {
    const auto cells = split(line, ',');
    if (cells.size() == 10 && cells[2] == "4")
      published[{std::string(cells[0]), std::string(cells[1])}] = *parse_double(trim(cells[9]));
  }

  int compared = 0;
  for (const WorkloadJob& job : workload.jobs) {
    const std::string application = job.name.substr(0, job.name.rfind('-'));
    const std::string batch = job.task.substr(job.task.find("batch=") + 6);
    const auto found = published.find({application, batch});
    if (found == published.end()) continue;
    ++compared;
    // An epoch is a whole number of steps here: up to half a step of each is gained or lost.
    const double rounding = 0.5 / static_cast<double>(job.steps_per_epoch);
    EXPECT_NEAR(solo_seconds(job, 4) / found->second, 1, 0.01 + rounding) << job.name;
  }

  EXPECT_GT(compared, 50);
}

// Titan's simulator at rounds of 120 s: 1128.9 s (tiresias, which is FIFO with backfill here) and
// 1097.4 s (srtf, which preempts nobody there).
TEST_F(Measured, TitanWorldGivesTheMeansOfTheArtifactUnderTheSamePolicies) {
  const Workload workload = titan("FM-1-roberta-base.csv");

  const double tiresias = mean_jct(workload, "tiresias", 120);
  const double srtf = mean_jct(workload, "srtf:non-preemptive", 120);

  EXPECT_NEAR(tiresias / 1128.9, 1, 0.02);
  EXPECT_NEAR(srtf / 1097.4, 1, 0.02);
}

TEST_F(Measured, TitanPairsOfLanguageGainOneAfterTheOtherAndVisionTogether) {
  const Workload language = titan("FM-1-roberta-base.csv");
  const Workload vision = titan("FM-1-vit-large.csv");
  const auto useful = [](const Workload& workload) {
    int temporal = 0, spatial = 0;
    for (const auto& [pair, gain] : workload.temporal) temporal += gain > 0.1 ? 1 : 0;
    for (const auto& [pair, v] : workload.spatial) {
      const double speed = (2 + v[0] + v[1]) / 2 / (v[2] / 2);  // against one after the other
      spatial += speed > 2.2 ? 1 : 0;
    }
    return std::pair(temporal, spatial);
  };

  EXPECT_GT(useful(language).first, 10);
  EXPECT_LT(useful(vision).first, useful(language).first);
}

TEST_F(Measured, PolluxWorldGivesTheMeanOfTheArtifactUnderTiresias) {
  const auto trace =
      read_trace("pollux", shared_data() + "/traces/pollux/workloads/workload-1.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  const TruthOptions cluster{.nodes = 16, .gpus_per_node = 4};
  auto workload = pollux_workload(*trace, shared_data() + "/profiles/pollux", cluster);
  ASSERT_TRUE(workload) << workload.error().message;
  workload->nodes = 16;
  workload->gpus_per_node = 4;
  double published = 0;
  int jobs = 0;
  const std::string golden = *read_file(shared_data() + "/golden/pollux/tiresias.csv");
  for (const std::string_view line : split(golden, '\n')) {
    const auto cells = split(line, ',');
    if (cells.size() != 3 || cells[0] != "workload-1") continue;
    published += *parse_double(trim(cells[2]));
    ++jobs;
  }

  const double ours = mean_jct(*workload, "tiresias", 60, {{"tiresias.preset", "pollux"}});

  ASSERT_GT(jobs, 100);
  // There an ended job's GPUs stay blocked to the end of the round, so that it is slower.
  EXPECT_NEAR(ours / (published / jobs), 1, 0.08);
  EXPECT_LT(ours, published / jobs);
}

TEST_F(Measured, AnAdaptiveBatchIsNeverSlowerThanTheDeclaredOne) {
  auto trace = read_trace("pollux", shared_data() + "/traces/pollux/workloads/workload-1.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  trace->jobs.resize(8);  // a table of all batches takes its time
  const std::string profiles = shared_data() + "/profiles/pollux";
  const auto fixed = pollux_workload(*trace, profiles, {.nodes = 4, .gpus_per_node = 4});
  const auto adaptive = pollux_workload(
      *trace, profiles, {.nodes = 4, .gpus_per_node = 4, .settings = {{"batch", "adaptive"}}});
  ASSERT_TRUE(fixed && adaptive);

  for (std::size_t i = 0; i < fixed->jobs.size(); ++i)
    for (const int gpus : {1, 4, 16}) {
      if (gpus < fixed->jobs[i].min_gpus || gpus > fixed->jobs[i].max_gpus) continue;
      EXPECT_LT(solo_seconds(adaptive->jobs[i], gpus), solo_seconds(fixed->jobs[i], gpus) * 1.05)
          << fixed->jobs[i].name << " on " << gpus;
    }
}

}  // namespace
}  // namespace ymir
