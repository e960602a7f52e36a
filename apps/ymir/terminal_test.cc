#include "apps/ymir/terminal.h"

#include <gtest/gtest.h>

#include "apps/ymir/service.h"
#include "apps/ymir/verb.h"

namespace ymir::cli {
namespace {

Table two_columns() {
  Table table({{"name", false, true}, {"step", true, false}});
  table.row({{"a rather long name"}, {"7"}});
  table.row({{"b"}, {"1234"}});
  return table;
}

TEST(Table, NothingIsCutWhereThereIsNoTerminal) {
  const Terminal pipe;

  const std::string lines = two_columns().lines(pipe);

  EXPECT_EQ(lines,
            "name                step\n"
            "a rather long name     7\n"
            "b                   1234\n");
}

TEST(Table, AFlexibleColumnGivesWayOnANarrowTerminal) {
  Terminal narrow;
  narrow.is_terminal = true;
  narrow.width = 16;

  const std::string lines = two_columns().lines(narrow);

  EXPECT_EQ(lines,
            "name        step\n"
            "a rather …     7\n"
            "b           1234\n");
}

TEST(Table, ColoursDoNotCountAsColumns) {
  Terminal colored;
  colored.is_terminal = colored.colors = true;
  Table table({{"a"}, {"b"}});
  table.row({{"x", Color::kRed}, {"y"}});

  const std::string lines = table.lines(colored);

  EXPECT_NE(lines.find("\x1b[31mx\x1b[0m  y\n"), std::string::npos);
}

TEST(ProgressBar, StaysInsideItsWidth) {
  EXPECT_EQ(progress_bar(0.5, 4), "[##--]");
  EXPECT_EQ(progress_bar(7, 4), "[####]");
  EXPECT_EQ(progress_bar(-1, 4), "[----]");
}

TEST(Describe, ATemporalRunNamesItsSourceAndStrength) {
  RunRequested asked;
  asked.run = RunId{(std::uint64_t{1} << 48) + 4};
  asked.what = {
      .mode = Mode::kTemporal, .job = {2}, .partner = JobId{1}, .gpus = 1, .strength = 0.5};
  asked.jobs = {JobId{2}};
  asked.slots = {0};

  const std::string line = describe(Event{.body = asked});

  EXPECT_EQ(line, "j2 to start: temporal from 0.5 x j1 on slot 0 (r1.4)");
}

TEST(JobTable, ShowsTheOldestJobFirstAndWhyItWaits) {
  const std::string jobs = R"({"data": [
      {"id": "j2", "name": "b", "state": "queued", "mode": "normal", "partner": null, "slots": [],
       "progress": {"step": 0, "total_steps": 80, "loss": null}, "transfers": [],
       "metric": {"name": "accuracy", "value": null, "best": null, "target": 0.8},
       "eta": null, "waiting_for": "no_capacity"},
      {"id": "j1", "name": "a", "state": "running", "mode": "normal", "partner": null,
       "slots": [1], "progress": {"step": 40, "total_steps": 80, "loss": 0.5}, "transfers": [],
       "metric": {"name": "accuracy", "value": 0.7, "best": 0.75, "target": 0.8},
       "eta": {"p10": 4, "p50": 5, "p90": 20}, "waiting_for": ""}]})";

  const std::string table = job_table(jobs, true);

  const auto first = table.find("j1"), second = table.find("j2");
  ASSERT_NE(first, std::string::npos);
  EXPECT_LT(first, second);
  EXPECT_NE(table.find("[####----] 40/80"), std::string::npos);
  EXPECT_NE(table.find("0.750 / 0.8 accuracy"), std::string::npos);
  EXPECT_NE(table.find("4.0s - 20s"), std::string::npos);
  EXPECT_NE(table.find("no_capacity"), std::string::npos);
}

}  // namespace
}  // namespace ymir::cli
