// Runs every scenario of tests/scenarios/. A new one is a file there, nothing more. With
// YMIR_SHOW_TRAILS in the environment the lives of all jobs are printed, with YMIR_SHOW_LOG all
// events.
#include "ymir/sim/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>

#include "ymir/base/file.h"
#include "ymir/base/text.h"
#include "ymir/core/codec.h"
#include "ymir/estimate/estimator.h"

namespace ymir {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::filesystem::path> scenario_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(YMIR_SOURCE_DIR) / "tests" / "scenarios"))
    if (entry.path().extension() == ".scn") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::string all_trails(const Scenario& scenario, const ScenarioRun& run) {
  std::string text;
  for (std::size_t i = 0; i < scenario.jobs.size(); ++i)
    text += scenario.jobs[i].name + ": " + join(trail_of(scenario, run, JobId{i + 1}), " ") + "\n";
  return text;
}

class Scenarios : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Scenarios, ComesOutAsWritten) {
  const auto text = read_file(GetParam().string());
  ASSERT_TRUE(text);
  const auto scenario = parse_scenario(GetParam().filename().string(), *text);
  ASSERT_TRUE(scenario) << scenario.error().message;

  std::vector<std::unique_ptr<Estimator>> estimators;
  const MakeBeliefs estimator = [&] {
    estimators.push_back(std::make_unique<Estimator>(*Estimator::create({})));
    return bind(*estimators.back());
  };
  const auto run = run_scenario(*scenario, estimator);
  ASSERT_TRUE(run) << run.error().message;
  const auto again = run_scenario(*scenario, estimator);
  ASSERT_TRUE(again) << again.error().message;

  if (std::getenv("YMIR_SHOW_LOG"))
    for (const Event& event : run->log) std::cout << encode_line(event) << "\n";
  if (std::getenv("YMIR_SHOW_TRAILS")) std::cout << all_trails(*scenario, *run);
  EXPECT_THAT(check_invariants(*scenario, *run), IsEmpty()) << all_trails(*scenario, *run);
  EXPECT_THAT(check_expectations(*scenario, *run, *again), IsEmpty())
      << all_trails(*scenario, *run);
}

// What a log takes of the rules of a job's life: each change of state with the event that made it,
// and by what runs start, stop and are lost, what is held, judged and ends how.
class Rules {
 public:
  void read(const std::vector<Event>& log) {
    Snapshot state;
    for (const Event& event : log) {
      std::map<JobId, JobState> before;
      for (const auto& [id, job] : state.jobs) before[id] = job.state;
      std::visit([&](const auto& body) { note(body, state); }, event.body);
      state.apply(event);
      for (const auto& [id, job] : state.jobs)
        if (const auto was = before.find(id); was != before.end() && was->second != job.state)
          taken_.insert(to_string(was->second) + " -> " + to_string(job.state));
    }
  }
  const std::set<std::string>& taken() const { return taken_; }

 private:
  template <class T>
  void note(const T&, const Snapshot&) {}
  void note(const JobHeld& e, const Snapshot& state) {
    taken_.insert("hold " + to_string(state.jobs.at(e.job).state));
  }
  void note(const JobReleased& e, const Snapshot& state) {
    taken_.insert("release " + to_string(state.jobs.at(e.job).state));
  }
  void note(const RunRequested& e, const Snapshot& state) {
    const JobView& job = state.jobs.at(e.what.job);
    const std::string mode = e.profile ? "profile" : to_string(e.what.mode);
    taken_.insert("start " + mode + (job.starts > 0 && !e.profile ? " again" : ""));
    if (e.what.mode == Mode::kTemporal && state.jobs.at(*e.what.partner).ended())
      taken_.insert("start temporal from a finished source");
  }
  void note(const RunStopped& e, const Snapshot& state) {
    const RunView& run = state.runs.at(e.run);
    taken_.insert("stop " + (run.stop_why.empty() ? e.why : run.stop_why));
  }
  void note(const RunLost& e, const Snapshot& state) {
    const RunView& run = state.runs.at(e.run);
    taken_.insert("lost " + e.why);
    if (run.jobs.size() == 2) taken_.insert("lost with two jobs");
  }
  void note(const RunKept&, const Snapshot&) { taken_.insert("kept"); }
  void note(const RunSplit& e, const Snapshot&) {
    taken_.insert(e.restart ? "split, goes back" : "split");
  }
  void note(const ProfileFailed&, const Snapshot&) { taken_.insert("profile failed"); }
  void note(const RoundSkipped&, const Snapshot&) { taken_.insert("round skipped"); }
  void note(const PlanAdopted& e, const Snapshot&) {
    if (!e.dropped.empty()) taken_.insert("plan with something dropped");
  }
  void note(const JobFinished& e, const Snapshot&) {
    taken_.insert("ends " + (e.code.empty() ? e.reason : e.code));
  }

  std::set<std::string> taken_{};
};

// Every rule that a scenario can take. Ends that only a real worker knows (hung, does_not_fit, ...)
// are in the tests of the agent.
constexpr const char* kRules[] = {
    "submitted -> validating",
    "submitted -> cancelled",
    "validating -> queued",
    "validating -> failed",
    "validating -> cancelled",
    "queued -> profiling",
    "queued -> running",
    "queued -> cancelled",
    "profiling -> queued",
    "profiling -> cancelled",
    "running -> splitting",
    "running -> preempted",
    "running -> succeeded",
    "running -> failed",
    "running -> cancelled",
    "splitting -> preempted",
    "splitting -> succeeded",
    "splitting -> cancelled",
    "preempted -> running",
    "preempted -> failed",
    "preempted -> cancelled",
    "hold queued",
    "hold profiling",
    "hold running",
    "hold preempted",
    "release queued",
    "release profiling",
    "release preempted",
    "start profile",
    "start normal",
    "start normal again",
    "start temporal",
    "start temporal again",
    "start temporal from a finished source",
    "start spatial",
    "start spatial again",
    "stop round",
    "stop split",
    "stop partner_finished",
    "stop paused",
    "stop finished",
    "stop profile_done",
    "lost worker_died",
    "lost stopped",  // of a cancelled job: nothing of it is kept
    "lost place_lost",
    "lost daemon_restarted",
    "lost with two jobs",
    "kept",
    "split",
    "split, goes back",
    "profile failed",
    "plan with something dropped",
    "ends target",
    "ends budget",
    "ends cancelled",
    "ends invalid_data",
    "ends worker_crashed",
    "ends diverged",
    "ends target_not_reached",
};

TEST(ScenarioCluster, EachNodeMayHaveItsOwnNumberOfGpus) {
  const auto scenario = parse_scenario("widths",
                                       "cluster nodes=12 gpus=1,2,3,4,5,6,7,8,9,10,11,12\n"
                                       "job a at=0s backbone=vit steps=10\n");

  ASSERT_TRUE(scenario) << scenario.error().message;
  EXPECT_THAT(scenario->cluster.nodes,
              ::testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
}

TEST(ScenarioCoverage, EveryRuleOfTheLifeOfAJobIsTakenBySomeScenario) {
  Rules rules;

  for (const auto& file : scenario_files()) {
    const auto scenario = parse_scenario(file.filename().string(), *read_file(file.string()));
    ASSERT_TRUE(scenario) << scenario.error().message;
    std::vector<std::unique_ptr<Estimator>> estimators;
    const auto run = run_scenario(*scenario, [&] {
      estimators.push_back(std::make_unique<Estimator>(*Estimator::create({})));
      return bind(*estimators.back());
    });
    ASSERT_TRUE(run) << run.error().message;
    rules.read(run->log);
  }

  for (const char* rule : kRules)
    EXPECT_TRUE(rules.taken().contains(rule)) << "no scenario: " << rule;
  const std::set<std::string> known(std::begin(kRules), std::end(kRules));
  for (const std::string& rule : rules.taken())
    EXPECT_TRUE(known.contains(rule) || rule.starts_with("lost ")) << "not in the list: " << rule;
}

INSTANTIATE_TEST_SUITE_P(Files, Scenarios, testing::ValuesIn(scenario_files()),
                         [](const auto& file) { return file.param.stem().string(); });

TEST(RunScenario, ShowsTheLogThatItDoesNotKeep) {
  auto scenario = parse_scenario("two jobs",
                                 "cluster nodes=1 gpus=1 policy=srtf round=60s\n"
                                 "job a at=0s backbone=vit steps=200 epoch=10 step=1s\n"
                                 "job b at=30s backbone=vit steps=20 epoch=10 step=1s\n");
  ASSERT_TRUE(scenario) << scenario.error().message;
  const auto kept = run_scenario(*scenario);
  ASSERT_TRUE(kept);
  std::string expected, shown;
  for (const Event& event : kept->log) expected += encode_line(event) + "\n";

  scenario->keep_log = false;
  scenario->watch = [&shown](const Event& event) { shown += encode_line(event) + "\n"; };
  const auto run = run_scenario(*scenario);

  ASSERT_TRUE(run);
  EXPECT_THAT(run->log, IsEmpty());
  EXPECT_THAT(shown, HasSubstr("JobFinished"));
  EXPECT_EQ(shown, expected);
}

}  // namespace
}  // namespace ymir
