#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/control/controller_fixture.h"

namespace ymir {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

using RoundTest = ControllerTest;

TEST_F(RoundTest, DropsFromAPlanWhatChangedWhileItWasMade) {
  policy_.plan = [&](const Snapshot& now) {
    if (now.jobs.at(kA).run) {
      world_.happen(JobFinished{.job = kA,
                                .outcome = Outcome::kSucceeded,
                                .reason = "target",
                                .run = now.jobs.at(kA).run});
      return std::vector{normal(kA), normal(kB)};
    }
    return std::vector{normal(kA)};
  };
  start(2);
  submit({kA, kB});

  round();

  ASSERT_TRUE(state().wish);
  EXPECT_THAT(state().wish->dropped, ElementsAre(normal(kA)));
  ASSERT_THAT(state().wish->plan.assignments, SizeIs(1));
  EXPECT_EQ(state().wish->plan.assignments[0].what, normal(kB));
}

// The pair of kA and kB is to end: kA goes on alone, kC is to begin from kB. kC ends meanwhile; kB
// may not bring its running pair back, as kA has its GPU already.
TEST_F(RoundTest, WhatIsLeftOfADroppedLineNamesNoJobTwice) {
  policy_.plan = [&](const Snapshot& now) {
    if (!now.jobs.contains(kC)) return std::vector{spatial(kA, kB)};
    world_.happen(JobFinished{.job = kC, .outcome = Outcome::kCancelled, .reason = "cancelled"});
    return std::vector{normal(kA), temporal(kC, kB)};
  };
  start(2);
  submit({kA, kB});
  ASSERT_TRUE(job(kB).run);

  submit({kC});

  EXPECT_THAT(state().wish->dropped, ElementsAre(temporal(kC, kB)));
  ASSERT_THAT(state().wish->plan.assignments, SizeIs(1));
  EXPECT_EQ(state().wish->plan.assignments[0].what, normal(kA));
}

// kB runs already from the finished kA; it changes while the round is computed, which also starts
// kC from kA. That kA stands in kC's line too takes nothing from kB's.
TEST_F(RoundTest, ALineWhoseFinishedSourceStandsInAnotherLineIsKept) {
  const std::vector both{temporal(kB, kA), temporal(kC, kA)};
  RunId run{};
  policy_.plan = [&](const Snapshot& now) {
    if (!now.jobs.contains(kB)) return std::vector{normal(kA)};
    if (!now.jobs.contains(kC)) return std::vector{temporal(kB, kA)};
    if (now.jobs.at(kB).run == run) world_.happen(RunStarted{.run = run});
    return both;
  };
  start(2);
  submit({kA});
  finish(kA);
  world_.on_start = [](const StartRun&) {};
  submit({kB});
  run = job(kB).run;
  ASSERT_TRUE(run);

  submit({kC});

  EXPECT_THAT(state().wish->dropped, ElementsAre(temporal(kB, kA)));
  ASSERT_THAT(state().wish->plan.assignments, SizeIs(2));
  EXPECT_EQ(state().wish->plan.assignments[0].what, both[0]);
  EXPECT_EQ(state().wish->plan.assignments[1].what, both[1]);
  EXPECT_EQ(job(kB).run, run);
  EXPECT_TRUE(job(kC).run);
}

TEST_F(RoundTest, KeepsTheOldPlanWhenARoundFails) {
  class Broken final : public Policy {
   public:
    std::string_view name() const override { return "broken"; }
    Result<Decision> decide(const Round&) const override {
      return Error{ErrorCode::kExhausted, "no plan within the effort"};
    }
  } broken;
  auto made = Controller::create(options_, world_, *log_, broken, beliefs_.bind());
  ASSERT_TRUE(made);
  controller_ = *std::move(made);
  happen({PlaceReady{.place = PlaceId{1}, .num_slots = 1}});

  submit({kA});

  EXPECT_FALSE(state().wish);
  const auto events = log_->read(1, 100);
  const auto skipped = std::ranges::find_if(
      *events, [](const Event& event) { return std::holds_alternative<RoundSkipped>(event.body); });
  ASSERT_NE(skipped, events->end());
  EXPECT_EQ(std::get<RoundSkipped>(skipped->body).why, "no plan within the effort");
}

}  // namespace
}  // namespace ymir
