// Agents and workers as real processes under a LiveWorld, with the test in the controller's place.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/e2e/scripted_state.h"
#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/temp_folder.h"
#include "ymir/base/text.h"
#include "ymir/cluster/live_world.h"

namespace ymir {
namespace {

namespace fs = std::filesystem;

std::string program(const char* name) {
  return (fs::read_symlink("/proc/self/exe").parent_path() / name).string();
}

// Processes whose parent is `pid`.
std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  const auto text = read_file(fmt::format("/proc/{}/task/{}/children", pid, pid), 1 << 16);
  if (text)
    for (const auto word : split(*text, ' '))
      if (const auto child = parse_int(word)) children.push_back(static_cast<pid_t>(*child));
  return children;
}

class ClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.agents.folder = folder_ + "/run";
    options_.engine.emplace();
    options_.engine->agent = program("../ymir-agent");
    options_.engine->worker = program("scripted_worker");
    options_.engine->cache = folder_ + "/cache";
    options_.engine->folder = folder_ + "/run";
    options_.engine->num_slots = 2;
    options_.data_check.command = {program("scripted_worker"), "check-data"};
  }
  void TearDown() override {
    const pid_t agent = options_.engine ? agent_pid() : 0;
    world_.reset();
    if (const auto name = process_name(agent)) kill_process(*name);
    if (HasFailure()) temporary_.keep();  // what is there tells why
  }

  void start() {
    auto world = LiveWorld::create(options_);
    ASSERT_TRUE(world) << world.error().message;
    world_ = *std::move(world);
  }

  // Hears events until `done` is true of one; nothing when 30 s have passed.
  std::optional<Event> hear(const std::function<bool(const EventBody&)>& done) {
    const Time deadline = world_->now() + Seconds(30);
    while (world_->now() < deadline) {
      while (!unseen_.empty()) {
        Event event = unseen_.front();
        unseen_.erase(unseen_.begin());
        if (done(event.body)) return event;
      }
      unseen_ = world_->wait(deadline);
      heard_.insert(heard_.end(), unseen_.begin(), unseen_.end());
      world_->acknowledge();
    }
    return std::nullopt;
  }
  template <class T>
  std::optional<T> hear(RunId run = {}) {
    const auto event = hear([run](const EventBody& body) {
      if (!std::holds_alternative<T>(body)) return false;
      return !run || run_of(body) == run;
    });
    if (!event) return std::nullopt;
    return std::get<T>(event->body);
  }
  template <class T>
  std::vector<T> all(RunId run) const {
    std::vector<T> found;
    for (const Event& event : heard_)
      if (const auto* body = std::get_if<T>(&event.body); body != nullptr && run_of(*body) == run)
        found.push_back(*body);
    return found;
  }

  PlaceId ready_place() {
    const auto ready = hear<PlaceReady>();
    EXPECT_TRUE(ready) << "no place came";
    return ready ? ready->place : PlaceId{};
  }
  pid_t agent_pid() const {
    const auto text = read_file(folder_ + "/run/places.json");
    const auto json = parse_json(text ? *text : R"({"places":[]})");
    const auto& places = json->at("places");
    return places.empty() ? 0 : places[0].at("pid").get<pid_t>();
  }

  TaskOrder task(std::uint64_t job, std::int64_t steps,
                 std::map<std::string, std::string> tags = {}) const {
    TaskOrder task;
    task.job = JobId{job};
    task.spec.model = "/models/a";
    task.spec.stop.max_steps = steps;
    task.spec.seed = job;
    task.spec.tags = std::move(tags);
    task.folder = folder_ + "/artifacts/" + to_string(task.job);
    return task;
  }
  StartRun order(PlaceId place, std::vector<int> slots, TaskOrder task) {
    StartRun order;
    order.run = RunId{std::uint64_t{1} << 48 | next_run_++};
    order.place = place;
    order.slots = std::move(slots);
    order.tasks.push_back(std::move(task));
    return order;
  }
  // From the newest checkpoint that was heard of.
  StartRun again(StartRun order, PlaceId place) {
    order.run = RunId{std::uint64_t{1} << 48 | next_run_++};
    order.place = place;
    TaskOrder& task = order.tasks.front();
    for (const Event& event : heard_)
      if (const auto* saved = std::get_if<CheckpointCommitted>(&event.body);
          saved != nullptr && saved->job == task.job) {
        task.checkpoint = saved->path;
        task.checkpoint_hash = saved->hash;
        task.from_step = saved->step;
      }
    return order;
  }
  TempFolder temporary_{"e2e"};
  const std::string folder_ = temporary_.path();
  LiveWorldOptions options_;
  std::unique_ptr<LiveWorld> world_;
  std::vector<Event> heard_, unseen_;
  std::uint64_t next_run_ = 1;
};

TEST_F(ClusterTest, ARunIsCarriedOutAndTold) {
  start();
  const PlaceId place = ready_place();
  const StartRun run = order(place, {0}, task(1, 20));

  ASSERT_TRUE(world_->request(run));
  const auto stopped = hear<RunStopped>(run.run);

  ASSERT_TRUE(stopped);
  EXPECT_EQ(all<RunStarted>(run.run).size(), 1u);
  EXPECT_EQ(all<EpochEvaluated>(run.run).size(), 2u);
  EXPECT_EQ(all<CheckpointCommitted>(run.run).size(), 4u);
  ASSERT_EQ(all<JobFinished>(run.run).size(), 1u);
  EXPECT_EQ(all<JobFinished>(run.run)[0].step, 20);
}

TEST_F(ClusterTest, TheNextRunOnASlotUsesTheSameWorker) {
  start();
  const PlaceId place = ready_place();
  const StartRun first = order(place, {0}, task(1, 5)), second = order(place, {0}, task(2, 5));

  ASSERT_TRUE(world_->request(first));
  ASSERT_TRUE(hear<RunStopped>(first.run));
  ASSERT_TRUE(world_->request(second));
  ASSERT_TRUE(hear<RunStopped>(second.run));

  EXPECT_EQ(all<RunStarted>(first.run).at(0).how, StartKind::kCold);
  EXPECT_EQ(all<RunStarted>(second.run).at(0).how, StartKind::kSwap);
}

TEST_F(ClusterTest, AStoppedRunGoesOnFromItsCheckpointAsIfNothingHadHappened) {
  start();
  const PlaceId place = ready_place();
  const StartRun first = order(place, {0}, task(1, 60));

  ASSERT_TRUE(world_->request(first));
  ASSERT_TRUE(hear<EpochEvaluated>(first.run));
  ASSERT_TRUE(world_->request(StopRun{first.run, false}));
  const auto stopped = hear<RunStopped>(first.run);
  ASSERT_TRUE(stopped);
  const StartRun second = again(first, place);
  ASSERT_TRUE(world_->request(second));
  const auto finished = hear<JobFinished>(second.run);

  ASSERT_EQ(stopped->steps.size(), 1u);
  EXPECT_GE(stopped->steps[0], 10);
  EXPECT_EQ(second.tasks[0].from_step, stopped->steps[0]);
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->metrics.at("state"), scripted_result(1, 60));
}

TEST_F(ClusterTest, AKilledWorkerIsReportedWithinASecondAndItsSlotWorksOn) {
  start();
  const PlaceId place = ready_place();
  const StartRun first = order(place, {0}, task(1, 40, {{"step_ms", "20"}}));

  ASSERT_TRUE(world_->request(first));
  ASSERT_TRUE(hear<EpochEvaluated>(first.run));
  const Time killed = world_->now();
  for (const pid_t worker : children_of(agent_pid())) ::kill(worker, SIGKILL);
  const auto lost = hear<RunLost>(first.run);
  const Seconds took = world_->now() - killed;
  const StartRun second = again(first, place);
  ASSERT_TRUE(world_->request(second));
  const auto finished = hear<JobFinished>(second.run);

  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->why, "worker_died: signal 9 (Killed)");
  EXPECT_FALSE(lost->fault);
  EXPECT_LT(took.count(), 1.0);
  EXPECT_GE(second.tasks[0].from_step, 10);
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->metrics.at("state"), scripted_result(1, 40));
}

TEST_F(ClusterTest, ACrashIsTheJobsFault) {
  start();
  const PlaceId place = ready_place();
  const StartRun aborts = order(place, {0}, task(1, 20, {{"crash_at", "3"}}));
  const StartRun exits = order(place, {1}, task(2, 20, {{"exit_at", "3"}}));

  ASSERT_TRUE(world_->request(aborts));
  const auto aborted = hear<RunLost>(aborts.run);
  ASSERT_TRUE(world_->request(exits));
  const auto exited = hear<RunLost>(exits.run);

  ASSERT_TRUE(aborted && exited);
  EXPECT_EQ(aborted->why, "worker_died: signal 6 (Aborted)");
  EXPECT_TRUE(aborted->fault);
  EXPECT_EQ(exited->why, "worker_died: exit 7");
  EXPECT_TRUE(exited->fault);
}

TEST_F(ClusterTest, AWorkerThatCannotBeginIsNotTheJobsFault) {
  options_.engine->worker = "/bin/false";
  start();
  const StartRun run = order(ready_place(), {0}, task(1, 20));

  ASSERT_TRUE(world_->request(run));
  const auto lost = hear<RunLost>(run.run);

  ASSERT_TRUE(lost);
  EXPECT_FALSE(lost->fault) << lost->why;
}

TEST_F(ClusterTest, AStoppedProcessCountsAsHungAndIsKilled) {
  options_.engine->agent_arguments = {"--hung", "0.5"};
  start();
  const PlaceId place = ready_place();
  const StartRun run = order(place, {0}, task(1, 1'000));

  ASSERT_TRUE(world_->request(run));
  ASSERT_TRUE(hear<EpochEvaluated>(run.run));
  const auto workers = children_of(agent_pid());
  for (const pid_t worker : workers) ::kill(worker, SIGSTOP);
  const auto lost = hear<RunLost>(run.run);

  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->why, "hung");
  EXPECT_TRUE(lost->fault);
}

TEST_F(ClusterTest, AStopThatIsNotAnsweredIsForced) {
  options_.engine->agent_arguments = {"--stop-within", "0.3"};
  start();
  const PlaceId place = ready_place();
  const StartRun run = order(place, {0}, task(1, 100'000, {{"deaf", "yes"}}));

  ASSERT_TRUE(world_->request(run));
  ASSERT_TRUE(hear<CheckpointCommitted>(run.run));
  ASSERT_TRUE(world_->request(StopRun{run.run, false}));
  const auto lost = hear<RunLost>(run.run);

  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->why, "worker_died: it did not stop in time");
  EXPECT_FALSE(lost->fault);
}

TEST_F(ClusterTest, AWorkerThatWritesGarbageIsEnded) {
  start();
  const PlaceId place = ready_place();
  const StartRun run = order(place, {0}, task(1, 20, {{"garbage_at", "7"}}));

  ASSERT_TRUE(world_->request(run));
  const auto lost = hear<RunLost>(run.run);

  ASSERT_TRUE(lost);
  EXPECT_THAT(lost->why, testing::HasSubstr("no report"));
  EXPECT_EQ(all<CheckpointCommitted>(run.run).size(), 1u);
}

TEST_F(ClusterTest, TheSameOrderTwiceStartsOneRun) {
  start();
  const PlaceId place = ready_place();
  const StartRun run = order(place, {0}, task(1, 20));

  for (int i = 0; i < 3; ++i) ASSERT_TRUE(world_->request(run));
  ASSERT_TRUE(hear<RunStopped>(run.run));
  ASSERT_TRUE(world_->request(run));
  const StartRun after = order(place, {0}, task(2, 5));
  ASSERT_TRUE(world_->request(after));
  ASSERT_TRUE(hear<RunStopped>(after.run));

  EXPECT_EQ(all<RunStarted>(run.run).size(), 1u);
  EXPECT_EQ(all<JobFinished>(run.run).size(), 1u);
  EXPECT_EQ(all<RunLost>(run.run).size(), 0u);
  EXPECT_EQ(all<JobFinished>(run.run).at(0).metrics.at("state"), scripted_result(1, 20));
}

TEST_F(ClusterTest, ARunIdWithAnotherBodyIsRefused) {
  start();
  const PlaceId place = ready_place();
  const StartRun run = order(place, {0}, task(1, 100'000));
  StartRun other = run;
  other.slots = {1};

  ASSERT_TRUE(world_->request(run));
  ASSERT_TRUE(hear<RunStarted>(run.run));
  ASSERT_TRUE(world_->request(other));
  const auto lost = hear<RunLost>(run.run);

  ASSERT_TRUE(lost);
  EXPECT_THAT(lost->why, testing::HasSubstr("ordered otherwise"));
}

TEST_F(ClusterTest, ARunOnABusyOrUnknownSlotFailsToStart) {
  start();
  const PlaceId place = ready_place();
  const StartRun first = order(place, {0}, task(1, 100'000));
  const StartRun busy = order(place, {0, 1}, task(2, 10));
  const StartRun unknown = order(place, {7}, task(3, 10));
  const StartRun elsewhere = order(PlaceId{999}, {0}, task(4, 10));

  for (const StartRun& run : {first, busy, unknown, elsewhere}) ASSERT_TRUE(world_->request(run));
  const auto gone = hear<RunLost>(elsewhere.run);
  const auto refused = hear<RunLost>(busy.run);
  const auto missing = hear<RunLost>(unknown.run);

  ASSERT_TRUE(gone && refused && missing);
  EXPECT_THAT(refused->why, testing::HasSubstr("are busy with r1.1"));
  EXPECT_THAT(missing->why, testing::HasSubstr("no such slots: 7"));
  EXPECT_EQ(gone->why, "place_lost");
}

TEST_F(ClusterTest, ARunOverTwoSlotsHasOneWorker) {
  start();
  const PlaceId place = ready_place();
  const StartRun run = order(place, {0, 1}, task(1, 20));

  ASSERT_TRUE(world_->request(run));
  const auto finished = hear<JobFinished>(run.run);

  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->metrics.at("state"), scripted_result(1, 20));
}

TEST_F(ClusterTest, AKilledAgentTakesItsWorkersAlongAndIsReplaced) {
  start();
  const PlaceId place = ready_place();
  const StartRun first = order(place, {0}, task(1, 60));

  ASSERT_TRUE(world_->request(first));
  ASSERT_TRUE(hear<EpochEvaluated>(first.run));
  const pid_t agent = agent_pid();
  const auto workers = children_of(agent);
  ::kill(agent, SIGKILL);
  const auto lost = hear<RunLost>(first.run);
  const auto place_lost = hear<PlaceLost>();
  const PlaceId next = ready_place();
  const auto alive = std::count_if(workers.begin(), workers.end(),
                                   [](pid_t worker) { return process_name(worker).has_value(); });
  const StartRun second = again(first, next);
  ASSERT_TRUE(world_->request(second));
  const auto finished = hear<JobFinished>(second.run);

  ASSERT_TRUE(lost && place_lost);
  EXPECT_EQ(lost->why, "place_lost");
  EXPECT_EQ(place_lost->place, place);
  EXPECT_NE(next, place);
  EXPECT_EQ(workers.size(), 2u);
  EXPECT_EQ(alive, 0);
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->metrics.at("state"), scripted_result(1, 60));
}

TEST_F(ClusterTest, ASilentAgentIsLostAndReplaced) {
  options_.agents.beat = Seconds(0.1);
  options_.agents.lease = Seconds(0.8);
  options_.agents.lost = Seconds(1);
  start();
  const PlaceId place = ready_place();

  ::kill(agent_pid(), SIGSTOP);
  const auto lost = hear<PlaceLost>();
  const PlaceId next = ready_place();

  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->place, place);
  EXPECT_EQ(lost->why, "silent");
  EXPECT_NE(next, place);
}

TEST_F(ClusterTest, AnAgentOutlivesItsYmirdAndServesTheNextOneWithItsRunsEnded) {
  start();
  const PlaceId place = ready_place();
  const StartRun first = order(place, {0}, task(1, 100'000));
  ASSERT_TRUE(world_->request(first));
  ASSERT_TRUE(hear<RunStarted>(first.run));
  const pid_t agent = agent_pid();

  world_.reset();
  heard_.clear();
  unseen_.clear();
  start();
  const PlaceId again = ready_place();
  const StartRun second = order(again, {0}, task(1, 20));
  ASSERT_TRUE(world_->request(second));
  const auto finished = hear<JobFinished>(second.run);

  EXPECT_EQ(again, place);
  EXPECT_EQ(agent_pid(), agent);
  EXPECT_TRUE(finished);
  EXPECT_EQ(all<RunStarted>(first.run).size(), 0u);
  EXPECT_EQ(all<RunLost>(first.run).size(), 0u);
}

TEST_F(ClusterTest, AnOrderlyEndSavesWhatRuns) {
  start();
  const PlaceId place = ready_place();
  const StartRun run = order(place, {0}, task(1, 100'000));
  ASSERT_TRUE(world_->request(run));
  ASSERT_TRUE(hear<EpochEvaluated>(run.run));
  const pid_t agent = agent_pid();

  bool empty = false;
  std::jthread drain([&] { empty = world_->drain(Seconds(5)); });
  const auto stopped = hear<RunStopped>(run.run);
  hear<PlaceLost>();
  drain.join();

  ASSERT_TRUE(stopped);
  EXPECT_EQ(all<CheckpointCommitted>(run.run).back().step, stopped->steps.at(0));
  EXPECT_TRUE(empty);
  EXPECT_FALSE(process_name(agent));
}

TEST_F(ClusterTest, ProgressIsTheNewestStepOfWhatRuns) {
  start();
  const PlaceId place = ready_place();
  const StartRun run = order(place, {0}, task(1, 30));

  ASSERT_TRUE(world_->request(run));
  ASSERT_TRUE(hear<EpochEvaluated>(run.run));
  std::vector<StepReport> during = world_->progress();
  while (during.empty()) {
    world_->wait(world_->now() + Seconds(0.01));
    during = world_->progress();
  }
  hear<RunStopped>(run.run);

  ASSERT_EQ(during.size(), 1u);
  EXPECT_EQ(during[0].job, JobId{1});
  EXPECT_GE(during[0].step, 1);
}

TEST_F(ClusterTest, AnAgentWithAWrongSecretExitsWithCode3) {
  start();
  ASSERT_TRUE(world_->invite(folder_ + "/run/wrong.join"));
  JoinFile wrong = *read_join_file(folder_ + "/run/wrong.join");
  wrong.secret = new_secret();
  const std::string path = folder_ + "/run/wrong.join";
  ASSERT_TRUE(write_join_file(path, wrong));
  ChildProcess::Spec spec;
  spec.program = program("../ymir-agent");
  spec.arguments = {"--join", path, "--worker", program("scripted_worker")};

  auto agent = ChildProcess::start(spec);
  ASSERT_TRUE(agent);
  pollfd end{agent->pidfd(), POLLIN, 0};
  ::poll(&end, 1, 10'000);

  EXPECT_EQ(agent->ended(), "exit 3");
  EXPECT_FALSE(fs::exists(path));
}

// --- data checks ---

TEST_F(ClusterTest, DataIsCheckedInAChild) {
  options_.data_check.time = Seconds(1);
  options_.data_check.pause = Seconds(0.01);
  options_.engine.reset();
  start();
  const auto check = [&](std::uint64_t job, std::map<std::string, std::string> tags) {
    return CheckData{JobId{job}, task(job, 30, std::move(tags)).spec};
  };

  ASSERT_TRUE(world_->request(check(1, {})));
  ASSERT_TRUE(world_->request(check(2, {{"bad_data", "yes"}})));
  ASSERT_TRUE(world_->request(check(3, {{"check_crashes", "yes"}})));
  ASSERT_TRUE(world_->request(check(4, {{"check_hangs", "yes"}})));
  std::map<JobId, DataFacts> good;  // the answers come in any order
  std::map<JobId, std::vector<std::string>> refused;
  hear([&](const EventBody& body) {
    if (const auto* checked = std::get_if<DataChecked>(&body)) good[checked->job] = checked->facts;
    if (const auto* bad = std::get_if<DataRefused>(&body)) refused[bad->job] = bad->faults;
    return good.size() + refused.size() == 4;
  });

  ASSERT_EQ(good.size(), 1u);
  ASSERT_EQ(refused.size(), 3u);
  EXPECT_EQ(good[JobId{1}].total_steps, 30);
  EXPECT_EQ(refused[JobId{2}], std::vector<std::string>{"train.csv:3:1: a row of 2 columns"});
  EXPECT_THAT(refused[JobId{3}], testing::Contains(testing::HasSubstr("signal 6")));
  EXPECT_THAT(refused[JobId{4}], testing::Contains(testing::HasSubstr("longer than 1 s")));
}

TEST_F(ClusterTest, ACheckThatGaveNoAnswerIsAskedAgain) {
  options_.data_check.pause = Seconds(0.01);
  options_.engine.reset();
  start();
  const CheckData check{JobId{1}, task(1, 30, {{"check_dies_once", folder_ + "/died"}}).spec};

  ASSERT_TRUE(world_->request(check));
  const auto checked = hear<DataChecked>();

  EXPECT_TRUE(checked);
  EXPECT_TRUE(fs::exists(folder_ + "/died"));
}

TEST_F(ClusterTest, AHugeCheckKeepsNoOtherWaitingAndEndsWhenItsJobIsCancelled) {
  options_.data_check.at_once = 2;
  options_.engine.reset();
  start();
  const auto check = [&](std::uint64_t job, std::map<std::string, std::string> tags) {
    return CheckData{JobId{job}, task(job, 30, std::move(tags)).spec};
  };
  ASSERT_TRUE(world_->request(check(1, {{"check_hangs", "yes"}})));
  ASSERT_TRUE(world_->request(check(2, {{"check_hangs", "yes"}})));
  ASSERT_TRUE(world_->request(check(3, {})));  // waits: both places are taken

  ASSERT_TRUE(world_->request(StopCheck{JobId{1}}));
  const auto third = hear<DataChecked>();
  ASSERT_TRUE(world_->request(check(4, {})));
  const auto fourth = hear<DataChecked>();

  ASSERT_TRUE(third && fourth);
  EXPECT_EQ(third->job, JobId{3});
  EXPECT_EQ(fourth->job, JobId{4});
  EXPECT_TRUE(std::ranges::none_of(
      heard_, [](const Event& event) { return std::holds_alternative<DataRefused>(event.body); }));
}

}  // namespace
}  // namespace ymir
