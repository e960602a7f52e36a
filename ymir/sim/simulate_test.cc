#include "ymir/sim/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/sim/command.h"

namespace ymir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

Workload small_workload() {
  return *generate_workload(
      {.num_jobs = 40, .num_gpus = 8, .load = 1.2, .seed = 3, .median_seconds = 400, .sigma = 0.8});
}

class SimulateTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("ymir_simulate_" + std::to_string(testing::UnitTest::GetInstance()->random_seed()) +
               "_" + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string read(const std::string& file) const { return *read_file(folder_ / file); }

  std::filesystem::path folder_;
};

TEST(Workload, ReadsBackWhatItWroteByteForByte) {
  const std::string text = to_text(small_workload());

  const auto again = parse_workload("w.jsonl", text);

  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_text(*again), text);
}

TEST(Workload, NamesTheLineOfAFault) {
  const auto no_header = parse_workload("w", "{\"name\":\"a\"}\n");
  const auto bad_steps =
      parse_workload("w",
                     "{\"format\":\"ymir\"}\n"
                     "{\"name\":\"a\",\"backbone\":\"m\",\"task\":\"t\",\"steps\":0}\n");
  const auto unsorted =
      parse_workload("w",
                     "{\"format\":\"ymir\"}\n"
                     "{\"name\":\"a\",\"backbone\":\"m\",\"task\":\"t\",\"at\":5}\n"
                     "{\"name\":\"b\",\"backbone\":\"m\",\"task\":\"t\",\"at\":4}\n");

  EXPECT_THAT(no_header.error().message, StartsWith("w:1: "));
  EXPECT_THAT(bad_steps.error().message, HasSubstr("w:2: steps must be"));
  EXPECT_THAT(unsorted.error().message, StartsWith("w:3: submitted before"));
}

TEST(Workload, IsOfferedTheLoadThatWasAskedFor) {
  const auto workload = generate_workload({.num_jobs = 2000, .load = 1.5, .seed = 9});

  ASSERT_TRUE(workload);
  EXPECT_THAT(workload->jobs, SizeIs(2000));
  EXPECT_NEAR(offered_load(*workload), 1.5, 0.1);
}

TEST(Workload, KeepsTheEarlierJobsWhenSomeAreAdded) {
  const auto fewer = generate_workload({.num_jobs = 10, .seed = 4});
  const auto more = generate_workload({.num_jobs = 20, .seed = 4});

  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(fewer->jobs[i].steps, more->jobs[i].steps);
    EXPECT_EQ(fewer->jobs[i].task, more->jobs[i].task);
  }
}

TEST(Workload, SpreadsArrivalsAsTheHoursSayAndKeepsItsParametersInTheHeader) {
  const auto workload = generate_workload(
      {.num_jobs = 400, .window_s = 4000, .seed = 5, .arrivals = "hourly:1,3", .zipf = 1});

  ASSERT_TRUE(workload) << workload.error().message;
  const auto early =
      std::ranges::count_if(workload->jobs, [](const auto& j) { return j.at < 2000; });
  EXPECT_NEAR(static_cast<double>(early), 100, 20);
  const auto again = parse_workload("w", to_text(*workload));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_text(*again), to_text(*workload));
  const auto header = parse_json(again->generator);
  ASSERT_TRUE(header);
  EXPECT_EQ((*header)["zipf"], 1);
  EXPECT_EQ((*header)["window_s"], 4000);
}

TEST(Workload, GivesSmallTasksToTheSmallestJobsAndPopularOnesToMore) {
  const auto even = generate_workload({.num_jobs = 3000, .seed = 2});
  const auto skewed = generate_workload({.num_jobs = 3000, .seed = 2, .zipf = 2});
  const auto share_of = [](const Workload& workload, const std::set<std::string>& tasks) {
    return static_cast<double>(std::ranges::count_if(
               workload.jobs, [&](const auto& job) { return tasks.contains(job.task); })) /
           static_cast<double>(workload.jobs.size());
  };

  ASSERT_TRUE(even && skewed);
  EXPECT_NEAR(share_of(*even, {"task1", "task2", "task3"}), 0.3, 0.03);
  EXPECT_NEAR(share_of(*even, {"task7", "task8", "task9"}), 0.1, 0.02);
  EXPECT_NEAR(share_of(*even, {"task4"}), 0.2, 0.03);
  EXPECT_GT(share_of(*skewed, {"task4"}), 0.4);
}

TEST(Workload, HasAsManyUsefulPairsAsTheDensitySays) {
  const auto workload = generate_workload({.num_jobs = 2000, .seed = 3, .useful_pairs = 0.3});

  ASSERT_TRUE(workload);
  int useful = 0, all = 0;
  for (const auto& [pair, gain] : workload->temporal) {
    const std::size_t arrow = pair.find('>');
    if (pair.substr(0, arrow) == pair.substr(arrow + 1)) continue;
    ++all;
    useful += gain > 0 ? 1 : 0;
    EXPECT_GT(gain, -1);
  }
  EXPECT_EQ(all, 3 * 72);
  EXPECT_NEAR(static_cast<double>(useful) / all, 0.3, 0.1);
}

TEST(Workload, RefusesOptionsThatMakeNoSenseAndNamesThem) {
  const auto fault = [](const WorkloadOptions& options) {
    const auto sound = options.validate();
    return sound ? std::string("none") : sound.error().message;
  };

  EXPECT_THAT(fault({.arrivals = "hourly:0,0"}), HasSubstr("not all 0"));
  EXPECT_THAT(fault({.arrivals = "daily"}), HasSubstr("arrivals must be"));
  EXPECT_THAT(fault({.shares = {1, 2}}), HasSubstr("three numbers"));
  EXPECT_THAT(fault({.gains = "measured"}), HasSubstr("needs tasks=paper27-measured"));
  EXPECT_THAT(fault({.tasks = "paper27-measured", .solo = "best"}), HasSubstr("solo must be"));
  EXPECT_THAT(fault({.solo = "p75"}), HasSubstr("needs tasks=paper27-measured"));
  EXPECT_THAT(fault({.tasks = "paper28"}), HasSubstr("paper28"));
}

TEST_F(SimulateTest, WritesTheFilesOfEachPolicy) {
  const Workload workload = small_workload();
  const SimulateOptions options{.policies = {"ymir", "srtf"}, .out = folder_.string()};

  const auto summaries = simulate(workload, options, {});

  ASSERT_TRUE(summaries) << summaries.error().message;
  ASSERT_THAT(*summaries, SizeIs(2));
  for (const SimulationSummary& summary : *summaries) {
    const std::string csv = read(summary.policy + "/jobs.csv");
    EXPECT_THAT(csv, StartsWith("job,backbone,dataset,submission_s,first_start_s,"));
    EXPECT_EQ(std::ranges::count(csv, '\n'), 41);
    const auto json = parse_json(read(summary.policy + "/summary.json"));
    ASSERT_TRUE(json);
    EXPECT_EQ((*json)["finished"], summary.finished);
    EXPECT_GE((*json)["gpu_seconds"]["idle"].get<double>(), 0);
    EXPECT_EQ(summary.finished + summary.censored, 40);
    EXPECT_GT(std::filesystem::file_size(folder_ / summary.policy / "events.jsonl"), 1000u);
  }
}

TEST_F(SimulateTest, WritesTheSameLogTwice) {
  const Workload workload = small_workload();
  SimulateOptions options{.policies = {"ymir"}, .noise = 0.01, .out = folder_ / "a"};
  ASSERT_TRUE(simulate(workload, options, {}));
  options.out = folder_ / "b";
  ASSERT_TRUE(simulate(workload, options, {}));

  EXPECT_TRUE(read("a/ymir/events.jsonl") == read("b/ymir/events.jsonl"));
}

TEST_F(SimulateTest, WritesTheSameFilesOnOneThreadAndOnFour) {
  const Workload workload = small_workload();
  SimulateOptions options{
      .policies = {"ymir", "srtf"}, .seeds = {1, 2}, .noise = 0.01, .out = folder_ / "one"};
  ASSERT_TRUE(simulate(workload, options, {}));
  options.out = folder_ / "four";
  options.threads = 4;
  ASSERT_TRUE(simulate(workload, options, {}));

  for (const std::string policy : {"ymir", "srtf"})
    for (const std::string seed : {"", "seed-2/"})
      for (const std::string file : {"events.jsonl", "jobs.csv", "timeline.csv", "pairs.csv"}) {
        const std::string path = policy + "/" + seed + file;
        EXPECT_TRUE(read("one/" + path) == read("four/" + path)) << path;
      }
  EXPECT_TRUE(read("one/seeds.csv") == read("four/seeds.csv"));
  EXPECT_FALSE(read("one/ymir/jobs.csv") == read("one/ymir/seed-2/jobs.csv"));
}

TEST_F(SimulateTest, DrawsAReportThatAsksForNothingFromOutside) {
  const SimulateOptions options{.policies = {"ymir", "fifo"}, .out = folder_.string()};

  ASSERT_TRUE(simulate(small_workload(), options, {}));
  const std::string html = read("report.html");

  for (const char* outside : {"http://", "https://", "<link", "<img", "src=", "@import", "url("})
    EXPECT_THAT(html, testing::Not(HasSubstr(outside)));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  const std::size_t begin = html.find("id=\"data\">") + 10;
  const auto data =
      parse_json(html.substr(begin, html.find("</script>", begin) - begin), {.max_bytes = 1 << 26});
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ((*data)["baseline"], "fifo");
  EXPECT_EQ((*data)["runs"].size(), 2u);
  EXPECT_EQ((*data)["runs"][0]["jobs"].size(), 40u);
  EXPECT_EQ((*data)["runs"][0]["paired"].size(), 40u);
  EXPECT_EQ((*data)["runs"][1]["unproved"], 0);       // fifo is a rule, nothing to prove
  const Json same = (*data)["runs"][1]["paired"][0];  // the baseline beside itself
  EXPECT_EQ(same[0], same[1]);
  EXPECT_GT((*data)["runs"][0]["holds"].size(), 40u);
  EXPECT_EQ((*data)["comparison"][1]["numbers"]["avg_jct_s"][2], 1);
}

TEST_F(SimulateTest, FinishesSoonerWithTransferThanWithout) {
  const Workload workload = small_workload();
  const SimulateOptions options{.policies = {"ymir:oracle", "ymir:no-transfer"},
                                .out = folder_.string()};

  const auto summaries = simulate(workload, options, {});

  ASSERT_TRUE(summaries);
  EXPECT_LT(summaries->at(0).avg_jct_s, summaries->at(1).avg_jct_s);
  EXPECT_GT(summaries->at(0).mode_share.at("temporal"), 0);
  EXPECT_EQ(summaries->at(1).mode_share.at("normal"), 1);
}

TEST_F(SimulateTest, IsACommandFromFileToFiles) {
  const std::string file = folder_ / "w.jsonl";
  std::filesystem::create_directories(folder_);
  WorkloadCommand generate{.options = {.num_jobs = 10, .num_gpus = 4, .load = 1, .seed = 2}};
  generate.out = file;
  ASSERT_EQ(run_generate_command(generate).exit_code, 0);

  const SimCommandOutput lint = run_lint_command({.file = file});
  const SimCommandOutput done = run_simulate_command(
      {.workload = file, .policies = {"fifo", "sjf"}, .out = folder_ / "out"}, {});
  const SimCommandOutput format =
      run_simulate_command({.workload = file, .format = "swf", .out = folder_ / "out"}, {});
  const SimCommandOutput absent = run_simulate_command({.workload = "no", .out = "x"}, {});

  EXPECT_EQ(lint.exit_code, 0);
  EXPECT_THAT(lint.out, HasSubstr("10 jobs, 4 GPUs"));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("\nsjf "));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out" / "sjf" / "summary.json"));
  EXPECT_EQ(format.exit_code, 2);
  EXPECT_EQ(absent.exit_code, 2);
}

TEST_F(SimulateTest, RefusesAnUnknownPolicyBeforeAnythingRuns) {
  const auto result =
      simulate(small_workload(), {.policies = {"ymir", "best"}, .out = folder_.string()}, {});

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(SimulateTest, SweepsOneSettingAndTellsTheConstantsOfEachPolicy) {
  SimulateOptions options{.policies = {"ymir", "srtf"},
                          .out = folder_.string(),
                          .sweep_key = "density",
                          .sweep_values = {0, 1}};

  const auto done = simulate(small_workload(), options, {});

  ASSERT_TRUE(done) << done.error().message;
  std::map<std::pair<std::string, std::string>, double> average;  // by value and policy
  const std::string csv = read("sweep.csv");
  for (const std::string_view line : split(csv, '\n'))
    if (const auto words = split(line, ','); words.size() == 5 && words[0] == "density")
      average[{std::string(words[1]), std::string(words[2])}] = *parse_double(words[3]);
  ASSERT_EQ(average.size(), 4u);
  EXPECT_LT((average[{"1", "ymir"}]), (average[{"0", "ymir"}])) << "all pairs help";
  EXPECT_EQ((average[{"1", "srtf"}]), (average[{"0", "srtf"}])) << "it never pairs";
  EXPECT_THAT(read("report.html"), HasSubstr("\"sweep_key\":\"density\""));
  const auto summary = parse_json(read("ymir/summary.json"));
  ASSERT_TRUE(summary);
  EXPECT_TRUE((*summary)["config"]["constants"].contains("partner_wait_max"));
  EXPECT_TRUE((*summary)["kept"].contains("right_yes"));
}

TEST_F(SimulateTest, TellsTheConstantsOfAPublicSimulatorAsTheyWereUsed) {
  const auto trace =
      scan_trace("tiresias", "t.csv",
                 "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
                 "1,4,0,9,m,100,0\n");
  ASSERT_TRUE(trace);

  const auto done = simulate(SimulationInput{.trace = trace->trace},
                             {.policies = {"tiresias@events"},
                              .nodes = 1,
                              .gpus_per_node = 4,
                              .settings = {{"tiresias.promote", "8"}},
                              .out = folder_.string()},
                             {});

  ASSERT_TRUE(done) << done.error().message;
  const auto summary = parse_json(read("tiresias@events/summary.json"));
  ASSERT_TRUE(summary);
  const Json& constants = (*summary)["config"]["constants"];
  EXPECT_EQ(constants["tiresias.limit"], "3250") << "the default";
  EXPECT_EQ(constants["tiresias.promote"], "8");
  EXPECT_EQ(constants["tiresias.service"], "gpu-seconds");
}

TEST_F(SimulateTest, RefusesASweepThatMeansNothing) {
  const auto refusal = [&](const std::string& sweep, bool oracle) {
    const std::string file = folder_.string() + ".jsonl";
    EXPECT_TRUE(write_file(file, to_text(small_workload())));
    return run_simulate_command(
               {.workload = file, .sweep = sweep, .out = folder_.string(), .oracle = oracle},
               [] { return Beliefs{}; })
        .err;
  };

  EXPECT_THAT(refusal("error=0,0.1", false), HasSubstr("needs --oracle"));
  EXPECT_THAT(refusal("density", true), HasSubstr("a sweep takes KEY=V1,V2"));
  EXPECT_THAT(refusal("density=a", true), HasSubstr("--sweep takes"));
  EXPECT_THAT(refusal("nothing=1", true), HasSubstr("nothing"));
}

TEST_F(SimulateTest, SaysWhenSeedsChangedNothing) {
  const auto warned = [&](const std::map<std::string, std::string>& settings) {
    const SimulateOptions options{
        .policies = {"srsf"}, .seeds = {1, 2}, .settings = settings, .out = folder_.string()};
    EXPECT_TRUE(simulate(small_workload(), options, {}));
    return read("report.html").find("the seeds changed nothing") != std::string::npos;
  };

  const bool without_errors = warned({});
  const bool with_errors = warned({{"error.steps", "0.5"}});

  EXPECT_TRUE(without_errors);
  EXPECT_FALSE(with_errors);
}

}  // namespace
}  // namespace ymir
