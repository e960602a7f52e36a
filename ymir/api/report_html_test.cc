#include "ymir/api/report_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/api/api_fake.h"
#include "ymir/api/report_data.h"
#include "ymir/base/json.h"

namespace ymir {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const PlaceId kPlace{1};
const JobId kMovies{1}, kAmazon{2}, kVerbs{3};

JobSubmitted submission(JobId job, const std::string& name) {
  JobSubmitted submitted;
  submitted.job = job;
  submitted.spec->name = name;
  submitted.spec->owner = "user-a";
  submitted.spec->model = "/m";
  submitted.spec->target = {"accuracy", 0.8};
  submitted.spec->metrics = {"accuracy"};
  return submitted;
}

// Speaks the log's language for one service of two slots.
struct Story {
  std::unique_ptr<FakeService> owned = std::make_unique<FakeService>();
  FakeService& service = *owned;  // stays good when the story moves

  Story() {
    service.add(DaemonStarted{"1", 1, Seconds{3}, "ymir"}, 100);
    service.add(PlaceReady{kPlace, "node", 2, "cpu"}, 101);
  }
  void submit(JobId job, const std::string& name, double at) {
    service.add(submission(job, name), at);
    DataChecked checked;
    checked.job = job;
    checked.facts.total_steps = 80;
    checked.facts.steps_per_epoch = 20;
    service.add(checked, at + 0.5);
  }
  RunId start(const Assignment& what, int slot, double at) {
    RunRequested asked;
    asked.run = service.snapshot()->new_run();
    asked.what = what;
    asked.jobs = {what.job};
    if (what.mode == Mode::kSpatial) asked.jobs.push_back(*what.partner);
    asked.place = kPlace;
    asked.slots = {slot};
    asked.from_steps.assign(asked.jobs.size(), 0);
    service.add(asked, at);
    service.add(RunStarted{asked.run, StartKind::kWarm, 20}, at + 0.1);
    return asked.run;
  }
  void evaluate(RunId run, JobId job, std::int64_t step, double accuracy, double at) {
    EpochEvaluated evaluated;
    evaluated.job = job;
    evaluated.run = run;
    evaluated.evaluation.step = step;
    evaluated.evaluation.metrics["accuracy"] = accuracy;
    evaluated.losses = {{step, 1 - accuracy}};
    service.add(evaluated, at);
  }
  void finish(RunId run, JobId job, std::int64_t step, double accuracy, double at) {
    CheckpointCommitted saved;
    saved.job = job;
    saved.run = run;
    saved.step = step;
    service.add(saved, at);
    JobFinished finished;
    finished.job = job;
    finished.run = run;
    finished.reason = "target";
    finished.target_reached = true;
    finished.step = step;
    finished.metrics["accuracy"] = accuracy;
    finished.adapter = "/a/" + to_string(job);
    service.add(finished, at);
    service.add(RunStopped{run, "finished", {}, {}, Seconds{at - 110}}, at);
  }
  ReportInput input() const {
    ReportInput made;
    made.title = "A morning";
    made.events = service.events();
    made.state = *service.snapshot();
    return made;
  }
};

// movies alone; amazon after movies, kept.
Story transfer_story() {
  Story story;
  story.submit(kMovies, "movies", 102);
  story.submit(kAmazon, "amazon", 104);
  const RunId first = story.start({.job = kMovies, .gpus = 1}, 0, 110);
  story.evaluate(first, kMovies, 20, 0.7, 115);
  story.finish(first, kMovies, 40, 0.81, 120);
  const RunId second = story.start(
      {.mode = Mode::kTemporal, .job = kAmazon, .partner = kMovies, .gpus = 1, .strength = 0.5}, 1,
      121);
  story.evaluate(second, kAmazon, 20, 0.75, 125);
  story.service.add(RunKept{second, kAmazon, 0.9, "P(helps) 0.90"}, 126);
  story.finish(second, kAmazon, 30, 0.82, 130);
  return story;
}

Json data_of(const Story& story) { return *parse_json(report_data(story.input()), {}); }

TEST(Report, ShowsEachRunOnItsSlotWithModeAndPartner) {
  const Json data = data_of(transfer_story());

  ASSERT_EQ(data["runs"].size(), 2u);
  EXPECT_EQ(data["slots"].size(), 2u);
  EXPECT_EQ(data["runs"][0]["mode"], "normal");
  EXPECT_EQ(data["runs"][0]["slots"], Json({0}));
  EXPECT_EQ(data["runs"][1]["mode"], "temporal");
  EXPECT_EQ(data["runs"][1]["partner"], "j1");
  EXPECT_NEAR(data["runs"][1]["start"].get<double>(), 21.1, 1e-6);
  EXPECT_NEAR(data["runs"][1]["end"].get<double>(), 30, 1e-6);
  EXPECT_EQ(data["keeps"][0]["job"], "j2");
}

TEST(Report, CountsWhatTheLogHolds) {
  const Json summary = data_of(transfer_story())["summary"];

  EXPECT_EQ(summary["succeeded"], 2);
  EXPECT_EQ(summary["targets_reached"], 2);
  EXPECT_EQ(summary["merges"], 1);
  EXPECT_NEAR(summary["makespan_s"].get<double>(), 28, 1e-6);
  EXPECT_NEAR(summary["worst_completion_s"].get<double>(), 26, 1e-6);
}

TEST(Report, ASplitIsMarkedWithItsReason) {
  Story story;
  story.submit(kMovies, "movies", 102);
  story.submit(kVerbs, "verbs", 104);
  const RunId first = story.start({.job = kMovies, .gpus = 1}, 0, 110);
  story.finish(first, kMovies, 40, 0.81, 120);
  const RunId second =
      story.start({.mode = Mode::kTemporal, .job = kVerbs, .partner = kMovies, .gpus = 1}, 0, 121);
  story.evaluate(second, kVerbs, 20, 0.2, 125);
  story.service.add(RunSplit{second, kVerbs, kMovies, 0.1, true, "P(helps) 0.10 < 0.50"}, 126);

  const Json data = data_of(story);

  ASSERT_EQ(data["splits"].size(), 1u);
  EXPECT_EQ(data["splits"][0]["why"], "P(helps) 0.10 < 0.50");
  EXPECT_EQ(data["splits"][0]["restart"], true);
  EXPECT_EQ(data["summary"]["split"], 1);
}

TEST(Report, ACurveThatGoesBackBeginsANewPiece) {
  Story story;
  story.submit(kMovies, "movies", 102);
  const RunId first = story.start({.job = kMovies, .gpus = 1}, 0, 110);
  story.evaluate(first, kMovies, 20, 0.6, 112);
  story.evaluate(first, kMovies, 40, 0.7, 114);
  story.service.add(RunLost{first, "worker_died", false}, 115);
  const RunId second = story.start({.job = kMovies, .gpus = 1}, 0, 116);
  story.evaluate(second, kMovies, 20, 0.6, 118);

  const Json data = data_of(story);

  EXPECT_EQ(data["jobs"][0]["evals"].size(), 2u);
  EXPECT_EQ(data["runs"][0]["why"], "lost: worker_died");
  EXPECT_EQ(data["runs"][1]["open"], true);
}

TEST(Report, TextsOfJobsNeverBecomeMarkup) {
  Story story;
  story.submit(kMovies, "</script><img src=x onerror=alert(1)>", 102);
  ReportInput input = story.input();
  input.title = "<b>&\"";

  const std::string page = write_report(input);

  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("<title>&lt;b&gt;&amp;&quot;</title>"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(page, Not(HasSubstr("src=\"http")));
}

TEST(Report, TheComparisonStandsThereWhenThereIsOne) {
  ReportInput input = transfer_story().input();
  EXPECT_TRUE((*parse_json(report_data(input), {}))["comparison"].is_null());
  input.comparison.emplace();
  input.comparison->jobs.push_back({"movies", 18, 40});

  const Json comparison = (*parse_json(report_data(input), {}))["comparison"];

  EXPECT_EQ(comparison["jobs"][0]["sequential_s"], 40);
}

}  // namespace
}  // namespace ymir
