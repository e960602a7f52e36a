// ControllerTest: a controller over one scripted place, driven event by event; at the end the log
// is checked and folded again. For the tests of the controller's parts.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ymir/control/controller.h"
#include "ymir/control/scripted_policy.h"
#include "ymir/control/scripted_world.h"
#include "ymir/core/codec.h"
#include "ymir/store/check_log.h"

namespace ymir {

inline constexpr JobId kA{1}, kB{2}, kC{3};

class ControllerTest : public ::testing::Test {
 protected:
  ControllerTest() {
    options_.artifacts = "/state/artifacts";
    options_.profiling.enabled = false;
  }
  ~ControllerTest() override {
    if (!controller_) return;
    const auto report = check_log(*log_);
    EXPECT_TRUE(report && report->sound()) << report->faults[0].seq << report->faults[0].text;
    const auto again = replay(*log_);
    EXPECT_TRUE(again) << again.error().message;
    if (again) {
      EXPECT_EQ(encode(*again), encode(controller_->state()));
    }
  }

  void start(int slots) {
    restart();
    happen({PlaceReady{.place = PlaceId{1}, .node = "n", .num_slots = slots}});
  }
  void restart() {
    auto made = Controller::create(options_, world_, *log_, policy_, beliefs_.bind());
    ASSERT_TRUE(made) << made.error().message;
    controller_ = *std::move(made);
  }
  // All of it at one instant; returns when nothing is left to react to.
  void happen(std::vector<EventBody> bodies, Seconds later = Seconds(1)) {
    world_.advance(later);
    for (EventBody& body : bodies) world_.happen(std::move(body));
    const Result<> ran = controller_->run();
    ASSERT_TRUE(ran) << ran.error().message;
  }
  void submit(std::vector<JobId> jobs) {
    std::vector<EventBody> bodies;
    for (const JobId job : jobs) bodies.push_back(JobSubmitted{job, spec_});
    happen(std::move(bodies));
  }
  // The next round, by the clock.
  void round() { happen({}, options_.round); }
  void finish(JobId id) {
    happen({JobFinished{.job = id,
                        .reason = "target",
                        .run = job(id).run,
                        .target_reached = true,
                        .step = 60,
                        .adapter = "/state/artifacts/" + to_string(id) + "/adapter",
                        .adapter_hash = "final"}});
  }
  const JobView& job(JobId id) const { return controller_->state().jobs.at(id); }
  const Snapshot& state() const { return controller_->state(); }
  std::vector<std::string> kinds(JobId id) const {
    std::vector<std::string> names;
    const auto events = log_->read(1, 1000);
    for (const Event& event : *events) {
      const auto jobs = jobs_of(event.body);
      if (std::ranges::find(jobs, id) != jobs.end() &&
          !std::holds_alternative<PlanAdopted>(event.body))
        names.emplace_back(kind_of(event.body));
    }
    return names;
  }
  StartRun newest_start() const { return world_.asked_for<StartRun>().back(); }

  ControllerOptions options_{};
  JobSpec spec_{.name = "task", .sharing = {.trust_domain = "team"}};
  ScriptedWorld world_{};
  ScriptedPolicy policy_{};
  ScriptedBeliefs beliefs_{};
  std::unique_ptr<EventLog> log_ = make_memory_log();
  std::unique_ptr<Controller> controller_{};
};

inline Assignment normal(JobId job, int gpus = 1) { return {.job = job, .gpus = gpus}; }
inline Assignment temporal(JobId job, JobId source, int gpus = 1) {
  return {.mode = Mode::kTemporal, .job = job, .partner = source, .gpus = gpus, .strength = 0.5};
}
inline Assignment spatial(JobId job, JobId partner, int gpus = 1) {
  return {.mode = Mode::kSpatial, .job = job, .partner = partner, .gpus = gpus};
}

}  // namespace ymir
