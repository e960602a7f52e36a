// Runs every scenario of tests/scenarios/. A new one is a file there, nothing more. With
// YMIR_SHOW_TRAILS in the environment the lives of all jobs are printed, with YMIR_SHOW_LOG all
// events.
#include "ymir/sim/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

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

INSTANTIATE_TEST_SUITE_P(Files, Scenarios, testing::ValuesIn(scenario_files()),
                         [](const auto& file) { return file.param.stem().string(); });

}  // namespace
}  // namespace ymir
