// ymird, its agent and scripted workers as real processes, killed at bad moments. Whatever is
// killed, every job must end with the state that an undisturbed run has, and the log must be sound.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/e2e/scripted_state.h"
#include "ymir/api/http_client.h"
#include "ymir/base/child_process.h"
#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/rng.h"
#include "ymir/base/temp_folder.h"
#include "ymir/base/text.h"
#include "ymir/sim/command.h"
#include "ymir/sim/recorded_run.h"
#include "ymir/sim/replay_log.h"
#include "ymir/store/check_log.h"
#include "ymir/store/event_log.h"

namespace ymir {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::string program(const char* name) {
  return (fs::read_symlink("/proc/self/exe").parent_path() / name).string();
}

class ServiceTest : public testing::Test {
 protected:
  void SetUp() override { state_ = folder_ + "/state"; }
  void TearDown() override {
    ymird_.reset();
    kill_agent();
    if (HasFailure()) temporary_.keep();  // what is there tells why
  }

  ChildProcess::Spec spec() const {
    ChildProcess::Spec spec;
    spec.program = program("../ymird");
    spec.arguments = {"--state", state_,         "--slots",   "2",        "--round",
                      "0.4",     "--data-check", data_check_, "--worker", worker_};
    return spec;
  }
  void start_ymird() {
    auto started = ChildProcess::start(spec());
    ASSERT_TRUE(started) << started.error().message;
    ymird_.emplace(*std::move(started));
  }
  void kill_ymird() {
    ymird_->kill();
    pollfd end{ymird_->pidfd(), POLLIN, 0};
    ASSERT_EQ(::poll(&end, 1, 10'000), 1);
    ymird_.reset();
  }
  // How it ended; nothing when it has not within 20 s.
  static std::optional<std::string> end_of(ChildProcess& process) {
    pollfd end{process.pidfd(), POLLIN, 0};
    ::poll(&end, 1, 20'000);
    return process.ended();
  }

  std::vector<ProcessName> agents() const {
    std::vector<ProcessName> found;
    const auto text = read_file(state_ + "/run/places.json");
    if (!text) return found;
    const auto json = parse_json(*text);
    if (!json) return found;
    for (const Json& place : json->at("places"))
      if (const auto name = process_name(place.at("pid").get<pid_t>())) found.push_back(*name);
    return found;
  }
  void kill_agent() const {
    for (const ProcessName& name : agents()) kill_process(name);
  }
  std::vector<pid_t> workers() const {
    std::vector<pid_t> workers;
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator(state_ + "/run/workers", gone))
      if (const auto pid = parse_int(entry.path().filename().string()))
        workers.push_back(static_cast<pid_t>(*pid));
    std::sort(workers.begin(), workers.end());
    return workers;
  }
  void kill_a_worker(Rng& rng) const {
    const std::vector<pid_t> workers = this->workers();
    if (!workers.empty()) ::kill(workers[rng.below(workers.size())], SIGKILL);
  }

  HttpClient client() const { return *HttpClient::open("unix:" + state_ + "/run/ymir.sock"); }

  // True when the service answers and a place is ready.
  bool ready() const {
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    while (Clock::now() < deadline) {
      const auto answer = client().get("/readyz");
      if (answer && answer->status == 200) return true;
      ::poll(nullptr, 0, 10);  // nothing tells when a socket begins to listen
    }
    return false;
  }

  // Job NUMBER of the test, with its number as seed.
  void submit(int number, int steps, std::map<std::string, std::string> tags = {}) {
    Json job = {{"ymir", 1},
                {"name", fmt::format("job-{}", number)},
                {"backbone", {{"model", "/models/a"}}},
                {"task", {{"kind", "classify"}}},
                {"data", {{"train", "/data/train.csv"}}},
                {"stop", {{"max_steps", steps}}},
                {"evaluate", {{"every", "10 steps"}, {"metrics", {"accuracy"}}}},
                {"seed", number},
                {"tags", tags}};
    const auto answer = body_of(client().post("/v1/jobs", canonical(job), "application/json"));
    ASSERT_TRUE(answer) << answer.error().message;
    steps_[number] = steps;
  }

  // Waits until the log holds `count` more events than `seen`, or 15 s; then their number.
  std::uint64_t events_after(std::uint64_t seen, std::uint64_t count) const {
    const auto deadline = Clock::now() + std::chrono::seconds(15);
    std::uint64_t last = seen;
    while (last < seen + count && Clock::now() < deadline) {
      const auto body =
          body_of(client().get(fmt::format("/v1/events?after={}&limit=1000&wait=1", last)));
      if (!body) break;
      const auto json = parse_json(*body, {.max_bytes = 64u << 20});
      if (!json) break;
      last = std::max(last, json->value("next", last));
    }
    return last;
  }

  Snapshot now() const {
    const auto log = open_log_for_reading(state_ + "/log.db");
    EXPECT_TRUE(log) << log.error().message;
    auto state = replay(**log);
    EXPECT_TRUE(state) << state.error().message;
    return state ? *std::move(state) : Snapshot{};
  }

  // True when all submitted jobs have ended, within `limit` seconds.
  bool all_end(int limit = 60) const {
    const auto deadline = Clock::now() + std::chrono::seconds(limit);
    while (Clock::now() < deadline) {
      const Snapshot state = now();
      const auto ended = std::count_if(state.jobs.begin(), state.jobs.end(),
                                       [](const auto& job) { return job.second.ended(); });
      if (ended == std::ssize(steps_) && state.jobs.size() == steps_.size()) return true;
      events_after(state.seq, 1);
    }
    return false;
  }

  // Every job succeeded with the state of an undisturbed run, and the log is sound.
  void expect_nothing_lost_or_doubled() const {
    const Snapshot state = now();
    for (const auto& [id, job] : state.jobs) {
      ASSERT_TRUE(job.result) << to_string(id) << " is " << to_string(job.state);
      EXPECT_EQ(job.state, JobState::kSucceeded) << job.result->code << ": " << job.result->text;
      const int steps = steps_.at(static_cast<int>(job.spec.seed));
      EXPECT_EQ(job.result->step, steps);
      ASSERT_TRUE(job.result->metrics.contains("state"));
      EXPECT_EQ(job.result->metrics.at("state"), scripted_result(job.spec.seed, steps))
          << to_string(id);
      EXPECT_EQ(std::ssize(job.evaluations), steps / 10) << to_string(id);
    }
    const auto report = check_log(state_ + "/log.db");
    ASSERT_TRUE(report) << report.error().message;
    for (const LogFault& fault : report->faults) ADD_FAILURE() << fault.seq << ": " << fault.text;
    const auto log = read_log(state_ + "/log.db");
    ASSERT_TRUE(log) << log.error().message;
    EXPECT_THAT(check_recorded(*log), testing::IsEmpty());
  }

  TempFolder temporary_{"e2e"};
  const std::string folder_ = temporary_.path();
  std::string state_;
  std::string worker_ = program("scripted_worker"), data_check_ = program("scripted_worker");
  std::optional<ChildProcess> ymird_;
  std::map<int, int> steps_;
};

TEST_F(ServiceTest, JobsRunToTheirEnd) {
  start_ymird();
  ASSERT_TRUE(ready());
  for (int job = 1; job <= 4; ++job) submit(job, 40);

  ASSERT_TRUE(all_end());

  expect_nothing_lost_or_doubled();
}

TEST_F(ServiceTest, ALogLivesThroughTheSameAgainInTheSimulator) {
  start_ymird();
  ASSERT_TRUE(ready());
  for (int job = 1; job <= 4; ++job) submit(job, 60 * job, {{"step_ms", "8"}});
  ASSERT_TRUE(all_end());
  const auto log = read_log(state_ + "/log.db");
  ASSERT_TRUE(log) << log.error().message;

  const auto scenario = scenario_of_log(*log);
  ASSERT_TRUE(scenario) << scenario.error().message;
  const auto run = run_scenario(*scenario);
  ASSERT_TRUE(run) << run.error().message;
  const SimCommandOutput output =
      run_replay_command({.policies = {"fifo"}, .out = folder_ + "/out"}, *log, {});

  const ReplayReport report = compare_replay(*log, *scenario, *run);
  ASSERT_EQ(report.jobs.size(), 4u);
  EXPECT_GT(report.simulated_avg_s, report.recorded_avg_s / 2);
  EXPECT_LT(report.simulated_avg_s, report.recorded_avg_s * 2);
  EXPECT_EQ(output.exit_code, 0) << output.err;
  for (const char* name : {"replay.csv", "report.html", "recorded/jobs.csv", "fifo/jobs.csv"}) {
    const auto text = read_file(folder_ + "/out/" + name);
    ASSERT_TRUE(text) << name;
    EXPECT_THAT(*text, testing::HasSubstr("job-4")) << name;
  }
}

TEST_F(ServiceTest, KillingYmirdAtRandomMomentsLosesAndDoublesNothing) {
  Rng rng(20);
  start_ymird();
  ASSERT_TRUE(ready());
  for (int job = 1; job <= 4; ++job) submit(job, 90, {{"step_ms", "8"}});

  for (int kill = 0; kill < 5; ++kill) {
    events_after(now().seq, 1 + rng.below(12));
    kill_ymird();
    start_ymird();
    ASSERT_TRUE(ready());
  }
  ASSERT_TRUE(all_end());

  expect_nothing_lost_or_doubled();
  EXPECT_GE(now().era, 1u);
}

TEST_F(ServiceTest, KillingYmirdBeforeItIsReadyIsHarmless) {
  Rng rng(5);
  start_ymird();
  ASSERT_TRUE(ready());
  for (int job = 1; job <= 2; ++job) submit(job, 40);

  for (int kill = 0; kill < 5; ++kill) {
    kill_ymird();
    start_ymird();
    ::poll(nullptr, 0, static_cast<int>(rng.below(60)));  // a random moment of its start
  }
  ASSERT_TRUE(ready());
  ASSERT_TRUE(all_end());

  expect_nothing_lost_or_doubled();
}

TEST_F(ServiceTest, KillingWorkersAndAgentsAtRandomMomentsLosesAndDoublesNothing) {
  Rng rng(7);
  start_ymird();
  ASSERT_TRUE(ready());
  for (int job = 1; job <= 3; ++job) submit(job, 60, {{"step_ms", "8"}});

  for (int kill = 0; kill < 6; ++kill) {
    events_after(now().seq, 3 + rng.below(10));
    if (kill % 3 == 2)
      kill_agent();
    else
      kill_a_worker(rng);
  }
  ASSERT_TRUE(all_end());

  expect_nothing_lost_or_doubled();
}

TEST_F(ServiceTest, ACrashOfTheJobsOwnIsSurvived) {
  start_ymird();
  ASSERT_TRUE(ready());
  submit(1, 30, {{"crash_at", "17"}});
  submit(2, 30, {{"garbage_at", "12"}});

  ASSERT_TRUE(all_end());

  expect_nothing_lost_or_doubled();
}

TEST_F(ServiceTest, AnOrderlyEndSavesEveryStep) {
  start_ymird();
  ASSERT_TRUE(ready());
  submit(1, 400, {{"step_ms", "10"}, {"checkpoint", "100000"}});
  while (now().jobs.at(JobId{1}).evaluations.size() < 3) events_after(now().seq, 1);

  ymird_->signal(SIGTERM);
  const auto how = end_of(*ymird_);
  const Snapshot state = now();

  EXPECT_EQ(how, "exit 0");
  EXPECT_GE(state.jobs.at(JobId{1}).steps_done, 30);
  EXPECT_TRUE(state.runs.empty());
  EXPECT_TRUE(agents().empty());
  const auto report = check_log(state_ + "/log.db");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->sound());
  EXPECT_EQ(report->checkpoints_verified, 1u);
}

TEST_F(ServiceTest, ASecondYmirdOnTheSameFolderIsRefused) {
  start_ymird();
  ASSERT_TRUE(ready());

  auto second = ChildProcess::start(spec());
  ASSERT_TRUE(second);
  const auto how = end_of(*second);

  EXPECT_EQ(how, "exit 3");
  EXPECT_TRUE(ready());
}

TEST_F(ServiceTest, BadDataFailsTheJobBeforeAnythingRuns) {
  start_ymird();
  ASSERT_TRUE(ready());
  submit(1, 30, {{"bad_data", "yes"}});

  ASSERT_TRUE(all_end());
  const Snapshot state = now();

  const JobView& job = state.jobs.at(JobId{1});
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.result->code, "invalid_data");
  EXPECT_THAT(job.result->text, testing::HasSubstr("train.csv:3:1"));
  EXPECT_EQ(job.starts, 0);
}

TEST_F(ServiceTest, WrongUsageIsTold) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--round", "0"},
                                               {"--policy", "nobody"},
                                               {"--policy", "ymir:oracle"},
                                               {"--policy", "tiresias@pollux"},
                                               {"--set", "x"},
                                               {"--set", "profile.share=many"},
                                               {"--slots", "-3"}}) {
    ChildProcess::Spec wrong = spec();
    wrong.arguments = {"--state", state_};
    wrong.arguments.insert(wrong.arguments.end(), more.begin(), more.end());

    auto ymird = ChildProcess::start(wrong);
    ASSERT_TRUE(ymird);

    EXPECT_EQ(end_of(*ymird), "exit 2") << more.back();
  }
}

// --- the same with real training ---

class RealTrainingTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    if (std::getenv("YMIR_QUICK") != nullptr) GTEST_SKIP() << "real training takes long";
    worker_ = program("../ymir-worker");
    data_check_ = program("../ymir");
    model_ = cache_folder() + "/minilm";
    if (!fs::exists(worker_) || !fs::exists(data_check_))
      GTEST_SKIP() << "no ymir and ymir-worker beside this test (a build with torch has them)";
    if (!fs::exists(model_ + "/model.safetensors"))
      GTEST_SKIP() << "no MiniLM in " << model_ << " (ymir fetch minilm puts it there)";
    write_rows("train", 160);
    write_rows("validation", 40);
  }
  // Sentences whose kind word decides the label.
  void write_rows(const std::string& name, int rows) const {
    const std::vector<std::string> good{"lovely", "bright", "helpful", "warm"},
        bad{"dreadful", "broken", "rude", "cold"}, things{"phone", "film", "book", "hotel", "meal"};
    std::string text = "text,label\n";
    for (int row = 0; row < rows; ++row) {
      const auto at = static_cast<std::size_t>(row);
      const bool is_good = row % 2 == 0;
      text +=
          fmt::format("number {} was a {} {},{}\n", name == "train" ? row : 1'000 + row,
                      (is_good ? good : bad)[at / 2 % 4], things[at % 5], is_good ? "good" : "bad");
    }
    ASSERT_TRUE(write_file(folder_ + "/" + name + ".csv", text));
  }
  void submit_training(int number, int steps) {
    const Json job = {
        {"ymir", 1},
        {"name", fmt::format("job-{}", number)},
        {"backbone", {{"model", model_}}},
        {"task", {{"kind", "classify"}, {"labels", {"bad", "good"}}}},
        {"data", {{"train", folder_ + "/train.csv"}, {"validation", folder_ + "/validation.csv"}}},
        {"method", {{"kind", "lora"}, {"targets", {"query", "value"}}}},
        {"train", {{"batch", 8}, {"lr", 2e-3}}},
        {"stop", {{"max_steps", steps}}},
        {"evaluate", {{"every", "10 steps"}, {"metrics", {"accuracy"}}}},
        {"sharing", {{"allow", false}}},
        {"seed", 11}};
    const auto answer = body_of(client().post("/v1/jobs", canonical(job), "application/json"));
    ASSERT_TRUE(answer) << answer.error().message;
    steps_[number] = steps;
  }
  std::string model_;
};

TEST_F(RealTrainingTest, KillingYmirdAtRandomMomentsChangesNoBitOfTheAdapters) {
  Rng rng(3);
  start_ymird();
  ASSERT_TRUE(ready());
  submit_training(1, 60);  // is left alone
  ASSERT_TRUE(all_end(120));
  submit_training(2, 60);

  for (int kill = 0; kill < 5; ++kill) {
    events_after(now().seq, 1 + rng.below(6));
    kill_ymird();
    start_ymird();
    ASSERT_TRUE(ready());
  }
  ASSERT_TRUE(all_end(120));

  const Snapshot state = now();
  const JobFinished& alone = *state.jobs.at(JobId{1}).result;
  const JobFinished& killed = *state.jobs.at(JobId{2}).result;
  EXPECT_EQ(alone.outcome, Outcome::kSucceeded) << alone.text;
  EXPECT_EQ(killed.outcome, Outcome::kSucceeded) << killed.text;
  EXPECT_FALSE(alone.adapter_hash.empty());
  EXPECT_EQ(killed.adapter_hash, alone.adapter_hash);
  EXPECT_EQ(killed.step, 60);
  const auto report = check_log(state_ + "/log.db");
  ASSERT_TRUE(report) << report.error().message;
  for (const LogFault& fault : report->faults) ADD_FAILURE() << fault.seq << ": " << fault.text;
}

// Bytes of a process's mappings of files below `folder`, by name of the count ("Rss", "Pss").
std::map<std::string, double> mapped(pid_t pid, const std::string& folder) {
  std::map<std::string, double> sums;
  const auto text = read_file(fmt::format("/proc/{}/smaps", pid), 64u << 20);
  bool counts = false;
  if (!text) return sums;
  for (const auto line : split(*text, '\n')) {
    const auto words = split(line, ' ');
    if (words.front().find('-') != std::string_view::npos)
      counts = line.find(folder) != std::string_view::npos;
    const auto colon = line.find(':');
    const auto kilobytes = line.find(" kB");
    if (!counts || colon == std::string_view::npos || kilobytes == std::string_view::npos) continue;
    const auto number = parse_double(trim(line.substr(colon + 1, kilobytes - colon - 1)));
    if (number) sums[std::string(line.substr(0, colon))] += *number * 1024;
  }
  return sums;
}

TEST_F(RealTrainingTest, TwoWorkersMapTheBackboneOnce) {
  start_ymird();
  ASSERT_TRUE(ready());
  submit_training(1, 100'000);
  submit_training(2, 100'000);
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  const auto both_train = [&] {
    const Snapshot state = now();
    return std::ranges::all_of(
               state.jobs,
               [](const auto& job) { return !job.second.evaluations.empty() && job.second.run; }) &&
           state.runs.size() == 2;
  };
  while (!both_train() && Clock::now() < deadline) events_after(now().seq, 1);
  ASSERT_TRUE(both_train());

  double resident = 0, proportional = 0;
  for (const pid_t worker : workers()) {
    auto sums = mapped(worker, state_ + "/cache");
    if (sums.empty()) sums = mapped(worker, model_);
    resident += sums["Rss"];
    proportional += sums["Pss"];
  }

  EXPECT_GT(resident, 2 * 30e6);  // each sees most of the backbone
  EXPECT_LT(proportional, 0.6 * resident);
}

}  // namespace
}  // namespace ymir
