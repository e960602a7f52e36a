// AgentServer: ymird's end of the agent protocol. Which places there are, what runs on them as far
// as this ymird has asked for it, and which reports count.
//
// A report counts when it comes from the place that has the run, over the connection that was
// admitted last, with the next number of that place; all else is dropped and counted. A place that
// is silent for `lost` after our own last answer is lost: its runs are closed by RunLost, then
// PlaceLost; a lost place never comes back, an agent that does not know it yet is refused. Keys are
// kept beside the log (as hashes), so that agents outlive a restart of ymird: runs of before are
// stopped first, then the place is offered again. Never blocks. One thread.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ymir/base/line_channel.h"
#include "ymir/base/result.h"
#include "ymir/base/time.h"
#include "ymir/cluster/agent_protocol.h"
#include "ymir/cluster/join_file.h"
#include "ymir/cluster/place_book.h"

namespace ymir {

struct AgentServerOptions {
  std::string folder{};  // for the socket and the place book; mode 0700
  Seconds beat{2}, lease{10}, lost{12};
  Seconds resend{5};   // an order without answer is sent again,
  int most_sends = 3;  // and after so many the connection is closed
  std::size_t most_connections = 64;
  Result<> validate() const;  // beat < lease / 3, lost >= 1.2 lease
};

class AgentServer {
 public:
  using Clock = std::chrono::steady_clock;

  static Result<std::unique_ptr<AgentServer>> create(AgentServerOptions options);
  ~AgentServer();

  // --- for the engine ---
  // A new place is expected: what its agent needs to be let in, once.
  Result<JoinFile> invite();
  PlaceBook& book() { return book_; }
  bool is_admitted(PlaceId place) const;
  void lose(PlaceId place, const std::string& why);
  std::vector<PlaceId> take_lost();

  // --- for the world ---
  void order(const StartRun& start);
  void order(const StopRun& stop);
  void acknowledge(PlaceId place, std::uint64_t up_to);
  void dismiss_all(Seconds within);
  struct Incoming {
    PlaceId place{};
    std::uint64_t number = 0;         // of the place; 0: made here
    std::optional<EventBody> body{};  // empty: dropped, but to be acknowledged
  };
  std::vector<Incoming> take_incoming();
  std::vector<StepReport> take_progress();
  void pause_reading(bool paused) { paused_ = paused; }

  void add_to(std::vector<pollfd>& fds) const;
  void service(Clock::time_point now);

  bool nothing_runs() const { return runs_.empty(); }
  std::uint64_t num_dropped() const { return num_dropped_; }

 private:
  struct Order {
    std::string line{};
    RunId run{};
    bool is_start = false;
    Clock::time_point sent{};
    int sends = 0;
  };
  struct Place {
    int connection = 0;  // 0: none now
    Clock::time_point answered{};
    std::uint64_t next_number = 0;  // expected; 0: not known yet
    bool offered = false;           // PlaceReady was given out
    PlaceReady ready{};
    std::set<RunId> leaving{};                // runs of an earlier ymird, told to stop
    std::map<std::uint64_t, Order> orders{};  // not answered
  };
  struct Connection {
    LineChannel channel{};
    PlaceId place{};  // 0: has not said hello yet
    Clock::time_point since{};
  };

  AgentServer(AgentServerOptions options, PlaceBook book, int listener, std::string path);
  void accept_some(Clock::time_point now);
  void read(int id, Clock::time_point now);
  // False: the connection must be closed.
  bool hear(int id, const AgentMessage& message, Clock::time_point now);
  bool welcome(int id, const Hello& hello, Clock::time_point now);
  std::optional<HelloRefused> why_not(const Hello& hello, std::string& key);
  void reconcile(PlaceId id, const Hello& hello, Clock::time_point now);
  bool take(PlaceId id, const Numbered& event);
  void take(PlaceId id, const Answer& answer);
  void offer_if_free(PlaceId id);
  void say(PlaceId id, const AgentMessage& message);
  void send_order(PlaceId id, RunId run, bool is_start, AgentMessage message, std::uint64_t number);
  void resend(PlaceId id, Clock::time_point now, bool all);
  void close(int id, const std::string& why);
  bool end(RunId run);                              // true: it was under way
  void give_up(RunId run, const std::string& why);  // RunLost, if it was under way
  void drop(const std::string& why);

  AgentServerOptions options_;
  PlaceBook book_;
  int listener_ = -1;
  std::string path_{};
  std::map<PlaceId, std::string> invited_{};  // hash of the secret
  std::map<PlaceId, Place> places_{};
  std::map<int, Connection> connections_{};
  int next_connection_ = 1;
  std::map<RunId, PlaceId> runs_{};  // asked for and not ended
  std::set<RunId> ended_{};          // newest ones: an order that comes late is ignored
  std::uint64_t next_order_ = 1;
  std::vector<Incoming> incoming_{};
  std::vector<StepReport> progress_{};
  std::vector<PlaceId> lost_{};
  Clock::time_point serviced_{};
  bool paused_ = false;
  std::uint64_t num_dropped_ = 0;
};

}  // namespace ymir
