#include "ymir/optimize/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "ymir/base/json.h"
#include "ymir/base/temp_folder.h"

namespace ymir {
namespace {

using ::testing::HasSubstr;

class OptimizeCommandTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  const TempFolder folder_{"optimize"};
};

constexpr const char* kTwoJobs = R"({"capacity": [2],
  "jobs": [{"id": "j1", "options": [{"utility": 120, "gpus": 1}, {"utility": 200, "gpus": 2}]},
           {"id": "j2", "options": [{"utility": 100, "gpus": 1, "type": 0}]}],
  "pairs": [{"a": "j1", "b": "j2",
             "options": [{"utility": 330, "gpus": 2, "type": 0, "mode": "temporal_ab"}]}]})";

TEST_F(OptimizeCommandTest, AnswersInTheFormOfTheContract) {
  const std::string instance = write("i.json", kTwoJobs);

  const CommandOutput output = run_optimize_command({.instance = instance, .json = true});

  ASSERT_EQ(output.exit_code, 0) << output.err;
  const Json answer = *parse_json(output.out);
  EXPECT_EQ(answer["value"], 330);
  EXPECT_EQ(answer["bound"], 330);
  EXPECT_EQ(answer["proof"], "optimal");
  EXPECT_EQ(answer["chosen"], (Json::array({{{"jobs", {"j1", "j2"}},
                                             {"mode", "temporal_ab"},
                                             {"gpus", 2},
                                             {"type", 0},
                                             {"utility", 330}}})));
  EXPECT_EQ(answer["gpu_price"].size(), 1u);
  EXPECT_EQ(answer["job_price"].size(), 2u);
  EXPECT_GE(answer["solve_ms"].get<double>(), 0);
}

TEST_F(OptimizeCommandTest, GeneratesSolvesAndChecksInACircle) {
  for (const char* what : {"jobs=60,gpus=40,pairs=0.1,seed=7", "jobs=0", "jobs=30,gpus=0,seed=2",
                           "jobs=120,gpus=64,pairs=0.3,seed=3,gamma=0"}) {
    const CommandOutput generated = run_optimize_command({.generate = what});
    ASSERT_EQ(generated.exit_code, 0) << generated.err;
    const std::string instance = write("i.json", generated.out);
    const CommandOutput solved = run_optimize_command(
        {.instance = instance, .certificate = folder_ / "c.json", .json = true});
    ASSERT_EQ(solved.exit_code, 0) << solved.err;

    const CommandOutput checked =
        run_optimize_command({.instance = instance, .check_plan = write("p.json", solved.out)});

    EXPECT_EQ(checked.exit_code, 0) << checked.err;
    EXPECT_THAT(checked.out, HasSubstr("ok: "));
    EXPECT_TRUE(std::filesystem::exists(folder_ / "c.json"));
  }
}

TEST_F(OptimizeCommandTest, TheCheckFindsAWrongPlan) {
  const std::string instance = write("i.json", kTwoJobs);
  const std::string answer = run_optimize_command({.instance = instance, .json = true}).out;
  const auto changed = [&](const auto& change) {
    Json json = *parse_json(answer);
    change(json);
    return run_optimize_command({.instance = instance, .check_plan = write("p.json", json.dump())});
  };

  const CommandOutput value = changed([](Json& plan) { plan["value"] = 331; });
  const CommandOutput bound = changed([](Json& plan) { plan["bound"] = 1000; });
  const CommandOutput twice =
      changed([](Json& plan) { plan["chosen"].push_back(plan["chosen"][0]); });
  const CommandOutput bare = changed([](Json& plan) { plan.erase("certificate"); });
  const CommandOutput worse = changed([](Json& plan) {
    plan["chosen"] = {{{"jobs", {"j1"}}, {"gpus", 2}, {"type", 0}, {"utility", 200}}};
    plan["value"] = plan["bound"] = 200;
    plan.erase("certificate");
  });

  EXPECT_EQ(value.exit_code, 1);
  EXPECT_EQ(bound.exit_code, 1);
  EXPECT_EQ(twice.exit_code, 1);
  EXPECT_EQ(bare.exit_code, 0) << bare.err;
  EXPECT_EQ(worse.exit_code, 1);
  EXPECT_THAT(worse.err, HasSubstr("a plan worth 330 exists"));
}

TEST_F(OptimizeCommandTest, ReadsTypesAndRows) {
  const std::string instance = write("i.json", R"({"capacity": [4, 4],
    "rows": [{"name": "tenantA", "capacity": 2, "use": {"j1": 1.0, "j2": 0.5}}],
    "jobs": [{"id": "j1", "options": [{"utility": 50, "gpus": 4, "type": 1},
                                      {"utility": 20, "gpus": 2, "type": 0}]},
             {"id": "j2", "options": [{"utility": 30, "gpus": 4, "type": 1}]}]})");

  const CommandOutput output = run_optimize_command({.instance = instance, .json = true});

  ASSERT_EQ(output.exit_code, 0) << output.err;
  const Json answer = *parse_json(output.out);
  EXPECT_EQ(answer["value"], 30);  // j1 on 4 GPUs is over the row; j1 on 2 and j2 on 4 together too
  EXPECT_EQ(answer["gpu_price"].size(), 2u);
  EXPECT_TRUE(answer["row_price"].contains("tenantA"));
}

TEST_F(OptimizeCommandTest, SaysWhatIsWrongWithTheInput) {
  const auto error = [&](const std::string& text) {
    const CommandOutput output = run_optimize_command({.instance = write("i.json", text)});
    EXPECT_EQ(output.exit_code, 2) << text;
    EXPECT_EQ(output.out, "");
    return output.err;
  };
  const auto job = [](const std::string& option) {
    return R"({"capacity": [8], "jobs": [{"id": "j1", "options": [)" + option + "]}]}";
  };

  EXPECT_THAT(error("{"), HasSubstr("i.json"));
  EXPECT_THAT(error("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(error(R"({"jobs": []})"), HasSubstr("capacity is missing"));
  EXPECT_THAT(error(job(R"({"utility": -1, "gpus": 1})")), HasSubstr("utility must be a whole"));
  EXPECT_THAT(error(job(R"({"utility": 1099511627776, "gpus": 1})")),
              HasSubstr("utility must be a whole number in 0..2147483647"));
  EXPECT_THAT(error(job(R"({"utility": 5, "gpus": 0})")), HasSubstr("at least one GPU"));
  EXPECT_THAT(error(job(R"({"utility": 5, "gpus": 1, "type": 3})")), HasSubstr("type"));
  EXPECT_THAT(error(job(R"({"utility": 5, "gpus": 1, "mode": "x"})")), HasSubstr("mode must be"));
  EXPECT_THAT(error(R"({"capacity": [8], "jobs": [], "pairs": [{"a": "x", "b": "y"}]})"),
              HasSubstr("no such job: x"));
  EXPECT_THAT(
      error(R"({"capacity": [8], "jobs": [], "rows": [{"capacity": 1, "use": {"x": 0.3}}]})"),
      HasSubstr("multiple of 1/16"));
  EXPECT_EQ(run_optimize_command({.instance = folder_ / "absent"}).exit_code, 2);
  EXPECT_EQ(run_optimize_command({.generate = "jobs=-4"}).exit_code, 2);
  EXPECT_EQ(run_optimize_command({.generate = "sheep=4"}).exit_code, 2);
  EXPECT_EQ(run_optimize_command({.instance = "x", .relative_gap = 2}).exit_code, 2);
}

}  // namespace
}  // namespace ymir
