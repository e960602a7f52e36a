#include "ymir/sim/recorded_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/sim/scenario.h"

namespace ymir {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// A day with everything in it: pairs, a split, a hold, a cancel, a lost node, a restart.
std::vector<Event> a_log() {
  const auto scenario = parse_scenario("recorded",
                                       "cluster nodes=2 gpus=2 policy=ymir round=60s start=4s\n"
                                       "job a at=0s backbone=vit steps=300 epoch=30 share=yes\n"
                                       "job b at=10s backbone=vit steps=200 epoch=20 share=yes\n"
                                       "job c at=20s steps=400 epoch=40 gpus=1..2\n"
                                       "job d at=30s steps=80 epoch=10\n"
                                       "believe a+b gain=+0.5,+0.5 joint=1.1\n"
                                       "truth a+b gain=-0.5,-0.5 joint=1.1\n"
                                       "at 100s hold c\n"
                                       "at 150s release c\n"
                                       "at 180s cancel d\n"
                                       "at 200s lose node0 until 300s\n"
                                       "at 320s restart\n");
  EXPECT_TRUE(scenario) << scenario.error().message;
  const auto run = run_scenario(*scenario);
  EXPECT_TRUE(run) << run.error().message;
  return run->log;
}

template <class Body>
std::size_t first_of(const std::vector<Event>& log) {
  for (std::size_t i = 0; i < log.size(); ++i)
    if (std::holds_alternative<Body>(log[i].body)) return i;
  ADD_FAILURE() << "no such event";
  return 0;
}

TEST(RecordedRun, FindsNothingInASoundLog) { EXPECT_THAT(check_recorded(a_log()), IsEmpty()); }

TEST(RecordedRun, FindsNothingInALogThatIsCutOffAnywhere) {
  const std::vector<Event> whole = a_log();
  ASSERT_GT(whole.size(), 50u);

  for (std::size_t events = 1; events < whole.size(); events += 7) {
    const std::vector<Event> part(whole.begin(),
                                  whole.begin() + static_cast<std::ptrdiff_t>(events));
    EXPECT_THAT(check_recorded(part), IsEmpty()) << events;
  }
}

TEST(RecordedRun, CountsTimeFromTheFirstEvent) {
  std::vector<Event> log = a_log();
  const auto before = record_of_recorded(log);
  for (Event& event : log) event.at += std::chrono::hours(490'000);

  const auto after = record_of_recorded(log);

  ASSERT_TRUE(before && after);
  EXPECT_EQ(after->jobs.front().completion_s, before->jobs.front().completion_s);
  EXPECT_EQ(after->end(), before->end());
}

TEST(RecordedRun, FindsARunThatEndsBeforeItBegan) {
  std::vector<Event> log = a_log();
  for (std::size_t i = first_of<RunStopped>(log); i < log.size(); ++i)
    if (std::holds_alternative<RunStopped>(log[i].body)) log[i].at -= std::chrono::hours(1);

  EXPECT_THAT(check_recorded(log), Contains(HasSubstr("R5")));
}

TEST(RecordedRun, FindsAPlanThatGivesMoreThanThereIs) {
  std::vector<Event> log = a_log();
  auto& plan = std::get<PlanAdopted>(log[first_of<PlanAdopted>(log)].body).plan;
  ASSERT_FALSE(plan.assignments.empty());
  plan.value = plan.bound + 1;

  EXPECT_THAT(check_recorded(log), Contains(HasSubstr("R9: round 1: bad plan: value")));
}

TEST(RecordedRun, NamesTheEventThatMayNotStandThere) {
  std::vector<Event> log = a_log();
  const std::size_t started = first_of<RunStarted>(log);
  log[started].body = RunStarted{.run = RunId{12345}};

  EXPECT_THAT(check_recorded(log),
              Contains(HasSubstr("event " + std::to_string(started + 1) + ": ")));
}

TEST(RecordedRun, TellsJobsOfOneNameApart) {
  const auto names = unique_names({{JobId{1}, "a"}, {JobId{2}, "b"}, {JobId{3}, "a"}});

  EXPECT_EQ(names.at(JobId{1}), "a");
  EXPECT_EQ(names.at(JobId{3}), "a (j3)");
}

}  // namespace
}  // namespace ymir
