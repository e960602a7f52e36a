// LiveWorld on a real socket, with the test as controller and as agent: what an agent may say and
// what is believed of it. With real processes: tests/e2e/cluster_test.cc.
#include "ymir/cluster/live_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ymir/base/rng.h"
#include "ymir/base/temp_folder.h"

namespace ymir {
namespace {

class Stranger {
 public:
  explicit Stranger(const std::string& path) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), address.sun_path);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    channel_ = LineChannel(fd, agent_link_options());
  }
  void say(const std::string& line) { EXPECT_TRUE(channel_.send(line)); }
  void try_to_say(const std::string& line) { static_cast<void>(channel_.send(line)); }
  // The next line; empty when the connection ended.
  std::string answer() {
    auto line = channel_.wait_line(Seconds(10));
    return line && *line ? **line : "";
  }

 private:
  LineChannel channel_;
};

Hello hello_of(const JoinFile& join) {
  Hello hello;
  hello.place = join.place;
  hello.secret = join.secret;
  hello.node = "elsewhere";
  hello.num_slots = 1;
  return hello;
}

class LiveWorldTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.agents.folder = folder_ + "/run";
    options_.data_check.command = {"/bin/false"};
    start();
    ASSERT_TRUE(world_->invite(folder_ + "/run/other.join"));
    const auto join = read_join_file(folder_ + "/run/other.join");
    ASSERT_TRUE(join) << join.error().message;
    join_ = *join;
  }
  void TearDown() override { world_.reset(); }
  void start() {
    auto world = LiveWorld::create(options_);
    ASSERT_TRUE(world) << world.error().message;
    world_ = *std::move(world);
  }
  std::string socket() const { return *unix_path(join_.address); }

  // Hears events until one of kind T comes (about `run`); nothing when 30 s have passed.
  template <class T>
  std::optional<T> hear(RunId run = {}) {
    const Time deadline = world_->now() + Seconds(30);
    while (world_->now() < deadline) {
      while (!unseen_.empty()) {
        const Event event = unseen_.front();
        unseen_.erase(unseen_.begin());
        if (const auto* body = std::get_if<T>(&event.body);
            body != nullptr && (!run || run_of(event.body) == run))
          return *body;
      }
      unseen_ = world_->wait(deadline);
      heard_.insert(heard_.end(), unseen_.begin(), unseen_.end());
      world_->acknowledge();
    }
    return std::nullopt;
  }
  template <class T>
  std::size_t count(RunId run) const {
    return static_cast<std::size_t>(
        std::count_if(heard_.begin(), heard_.end(), [run](const Event& event) {
          return std::holds_alternative<T>(event.body) && run_of(event.body) == run;
        }));
  }
  PlaceId ready_place() {
    const auto ready = hear<PlaceReady>();
    EXPECT_TRUE(ready) << "no place came";
    return ready ? ready->place : PlaceId{};
  }
  static StartRun order(PlaceId place) {
    StartRun order;
    order.run = RunId{std::uint64_t{1} << 48 | 1};
    order.place = place;
    order.slots = {0};
    order.tasks.resize(1);
    order.tasks[0].job = JobId{1};
    return order;
  }

  const TempFolder temporary_{"world"};
  const std::string folder_ = temporary_.path();
  LiveWorldOptions options_;
  std::unique_ptr<LiveWorld> world_;
  JoinFile join_;
  std::vector<Event> heard_, unseen_;
};

TEST_F(LiveWorldTest, AnAgentMayComeBackOverAConnectionThatIsOlderThanTheOneItHas) {
  Stranger older(socket()), newer(socket());
  newer.say(encode_message(hello_of(join_)));
  const auto welcome = decode_message(newer.answer());
  ASSERT_TRUE(welcome) << welcome.error().message;
  Hello again = hello_of(join_);
  again.secret.clear();
  again.key = std::get<Welcome>(*welcome).key;

  older.say(encode_message(again));
  const std::string answer = older.answer();

  EXPECT_THAT(answer, testing::HasSubstr("\"welcome\""));
  EXPECT_EQ(newer.answer(), "");
}

TEST_F(LiveWorldTest, AWrongSecretIsRefusedAndTheRightOneWorksOnce) {
  Hello wrong = hello_of(join_);
  wrong.secret[0] = wrong.secret[0] == '0' ? '1' : '0';
  const std::string right = encode_message(hello_of(join_));
  Stranger first(socket()), second(socket()), third(socket());

  first.say(encode_message(wrong));
  const std::string refused = first.answer();
  second.say(right);
  const std::string welcome = second.answer();
  third.say(right);
  const std::string used = third.answer();

  EXPECT_THAT(refused, testing::HasSubstr("bad_secret"));
  EXPECT_THAT(welcome, testing::HasSubstr("\"welcome\""));
  EXPECT_THAT(used, testing::HasSubstr("bad_secret"));
  EXPECT_EQ(first.answer(), "");
}

TEST_F(LiveWorldTest, GarbageClosesTheConnection) {
  for (const std::string garbage :
       {"not json", "{}", "[1,2]", R"({"kind":"hello","place":"x","slots":1})",
        R"({"kind":"beat","n":-1})", R"({"kind":"beat","n":1,"runs":[0.5]})"}) {
    Stranger stranger(socket());
    stranger.say(garbage);
    EXPECT_EQ(stranger.answer(), "") << garbage;
  }
}

TEST_F(LiveWorldTest, NothingIsHeardBeforeHello) {
  Stranger stranger(socket());

  stranger.say(encode_message(Beat{1, {}, 0}));

  EXPECT_EQ(stranger.answer(), "");
}

TEST_F(LiveWorldTest, ReportsAboutOthersRunsAndGapsInTheNumbersAreNotBelieved) {
  Stranger agent(socket());
  agent.say(encode_message(hello_of(join_)));
  ASSERT_THAT(agent.answer(), testing::HasSubstr("welcome"));
  const PlaceId place = ready_place();
  const RunId foreign{std::uint64_t{1} << 48 | 55};

  agent.say(
      encode_message(Numbered{1, EventBody(RunStopped{foreign, "mine", {}, {}, Seconds(0)})}));
  agent.say(encode_message(Numbered{2, EventBody(PlaceLost{place, "a lie"})}));
  agent.say(encode_message(Beat{1, {}, 0}));
  const std::string after_lies = agent.answer();
  agent.say(encode_message(Numbered{9, EventBody(RunLost{foreign, "", false})}));
  const std::string after_gap = agent.answer();

  EXPECT_THAT(after_lies, testing::HasSubstr("beat_ok"));
  EXPECT_EQ(after_gap, "");
  EXPECT_EQ(count<RunStopped>(foreign), 0u);
  EXPECT_EQ(count<RunLost>(foreign), 0u);
  EXPECT_TRUE(std::none_of(heard_.begin(), heard_.end(), [](const Event& event) {
    return std::holds_alternative<PlaceLost>(event.body);
  }));
}

TEST_F(LiveWorldTest, EventsThatAreNotAcknowledgedComeAgainOnce) {
  auto agent = std::make_unique<Stranger>(socket());
  agent->say(encode_message(hello_of(join_)));
  const auto welcome = decode_message(agent->answer());
  ASSERT_TRUE(welcome);
  const PlaceId place = ready_place();
  const StartRun run = order(place);
  ASSERT_TRUE(world_->request(run));
  ASSERT_THAT(agent->answer(), testing::HasSubstr("\"start\""));
  const std::string started = encode_message(Numbered{1, EventBody(RunStarted{run.run})});
  const std::string stopped =
      encode_message(Numbered{2, EventBody(RunStopped{run.run, "x", {}, {}, Seconds(0)})});
  Hello back = hello_of(join_);
  back.secret.clear();
  back.key = std::get<Welcome>(*welcome).key;
  back.runs = {run.run};

  agent->say(started);
  ASSERT_TRUE(hear<RunStarted>(run.run));
  agent = std::make_unique<Stranger>(socket());
  agent->say(encode_message(back));
  ASSERT_THAT(agent->answer(), testing::HasSubstr("welcome"));
  agent->say(started);
  agent->say(stopped);
  const auto heard = hear<RunStopped>(run.run);

  EXPECT_TRUE(heard);
  EXPECT_EQ(count<RunStarted>(run.run), 1u);
  EXPECT_EQ(count<RunLost>(run.run), 0u);
}

TEST_F(LiveWorldTest, WhateverIsSaidInWhateverOrderTheNextAgentIsLetIn) {
  auto first = std::make_unique<Stranger>(socket());
  first->say(encode_message(hello_of(join_)));
  const auto welcome = decode_message(first->answer());
  ASSERT_TRUE(welcome);
  const PlaceId place = ready_place();
  Hello back = hello_of(join_);
  back.secret.clear();
  back.key = std::get<Welcome>(*welcome).key;
  std::vector<std::unique_ptr<Stranger>> strangers;
  strangers.push_back(std::move(first));
  Rng rng(7);
  const auto some_run = [&] { return RunId{std::uint64_t{1} << 48 | rng.below(4)}; };
  const auto anything = [&]() -> AgentMessage {
    switch (rng.below(10)) {
      case 0:
        return hello_of(join_);
      case 1:
        back.runs = {some_run()};
        back.first_number = rng.below(5);
        return back;
      case 2:
        return Beat{rng.below(9), {some_run()}, 0};
      case 3:
        return Numbered{rng.below(9), RunStarted{some_run()}};
      case 4:
        return Numbered{rng.below(9), RunStopped{.run = some_run(), .why = "x"}};
      case 5:
        return Numbered{rng.below(9), PlaceLost{place, "a lie"}};
      case 6:
        return Answer{rng.below(9), rng.chance(0.5) ? "ok" : "unknown_run", "", {}};
      case 7:
        return StopOrder{1, StopRun{some_run(), true}};
      default:
        return back;
    }
  };

  for (int i = 0; i < 600; ++i) {
    if (strangers.size() < 12) strangers.push_back(std::make_unique<Stranger>(socket()));
    strangers[rng.below(strangers.size())]->try_to_say(encode_message(anything()));
    if (rng.chance(0.1)) {
      ASSERT_TRUE(world_->request(order(place)));
    }
    if (rng.chance(0.1)) strangers.erase(strangers.begin());
  }
  strangers.clear();
  ASSERT_TRUE(world_->invite(folder_ + "/run/next.join"));
  Stranger next(socket());
  next.say(encode_message(hello_of(*read_join_file(folder_ + "/run/next.join"))));

  EXPECT_THAT(next.answer(), testing::HasSubstr("\"welcome\""));
}

TEST_F(LiveWorldTest, AJoinFileThatOthersMayReadIsRefused) {
  const std::string path = folder_ + "/run/open.join";
  ASSERT_TRUE(write_join_file(path, join_));
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);

  const auto read = read_join_file(path);

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kPermission);
}

TEST_F(LiveWorldTest, ASilentAgentIsLostWithItsRuns) {
  world_.reset();
  options_.agents.beat = Seconds(0.1);
  options_.agents.lease = Seconds(0.4);
  options_.agents.lost = Seconds(0.5);
  start();
  ASSERT_TRUE(world_->invite(folder_ + "/run/other.join"));
  Stranger agent(socket());
  agent.say(encode_message(hello_of(*read_join_file(folder_ + "/run/other.join"))));
  const PlaceId place = ready_place();
  const StartRun run = order(place);

  ASSERT_TRUE(world_->request(run));
  const auto run_lost = hear<RunLost>(run.run);
  const auto place_lost = hear<PlaceLost>();

  ASSERT_TRUE(run_lost && place_lost);
  EXPECT_EQ(run_lost->why, "place_lost");
  EXPECT_EQ(place_lost->place, place);
}

TEST_F(LiveWorldTest, ARunThatItsAgentDoesNotKnowIsLostWhenItIsStopped) {
  Stranger agent(socket());
  agent.say(encode_message(hello_of(join_)));
  agent.answer();  // welcome
  const StartRun run = order(ready_place());
  const auto next_order = [&agent] { return decode_message(agent.answer()); };

  ASSERT_TRUE(world_->request(run));
  const auto start = next_order();
  ASSERT_TRUE(start && std::holds_alternative<StartOrder>(*start));
  agent.say(encode_message(Answer{std::get<StartOrder>(*start).id, "ok", "", {}}));
  ASSERT_TRUE(world_->request(StopRun{run.run, true}));
  const auto stop = next_order();
  ASSERT_TRUE(stop && std::holds_alternative<StopOrder>(*stop));
  agent.say(encode_message(Answer{std::get<StopOrder>(*stop).id, "unknown_run", "", {}}));
  const auto lost = hear<RunLost>(run.run);

  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->why, "unknown_to_agent");
}

TEST_F(LiveWorldTest, WakeEndsAWaitFromAnotherThread) {
  std::jthread other([&] { world_->wake(); });

  const auto events = world_->wait(kNever);

  EXPECT_TRUE(events.empty());
}

TEST_F(LiveWorldTest, TimeNeverStartsBeforeTheLogEnded) {
  world_.reset();
  options_.not_before = wall_clock() + Seconds(3600);
  start();

  const Time first = world_->now(), second = world_->now();

  EXPECT_GE(first, options_.not_before);
  EXPECT_GE(second, first);
}

TEST_F(LiveWorldTest, OrdersForAPlaceOrRunThatIsUnknownComeBackAsLost) {
  const StartRun run = order(PlaceId{999});

  ASSERT_TRUE(world_->request(run));
  const auto no_place = hear<RunLost>(run.run);
  ASSERT_TRUE(world_->request(StopRun{RunId{77}, false}));
  const auto no_run = hear<RunLost>(RunId{77});

  ASSERT_TRUE(no_place && no_run);
  EXPECT_EQ(no_place->why, "place_lost");
  EXPECT_EQ(no_run->why, "unknown_run");
}

}  // namespace
}  // namespace ymir
