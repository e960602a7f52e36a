// LiveWorld: the World over real machines. A thread of its own serves the agents and the local
// engine; the controller's thread takes events out of a bounded queue and puts orders into another.
//
// Time is wall time that never goes back: read once at the start, counted by the monotonic clock
// from then on. When the controller is slow the queue fills, agents are not read and keep their
// events themselves. request(), wait() and acknowledge() belong to the controller's thread; now(),
// wake(), progress() and drain() may be called from any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/cluster/agent_server.h"
#include "ymir/cluster/data_check.h"
#include "ymir/cluster/local_engine.h"
#include "ymir/control/world.h"

namespace ymir {

struct LiveWorldOptions {
  AgentServerOptions agents{};
  std::optional<LocalEngineOptions> engine{};  // none: agents are started by somebody else
  DataCheckOptions data_check{};
  Time not_before{};                  // of the log's newest event: now() starts no earlier
  std::size_t most_events = 100'000;  // waiting for the controller
  Result<> validate() const;
};

class LiveWorld final : public World {
 public:
  static Result<std::unique_ptr<LiveWorld>> create(LiveWorldOptions options);
  ~LiveWorld() override;

  Time now() const override;
  std::vector<Event> wait(Time deadline) override;
  void acknowledge() override;
  Result<> request(const Action& action) override;
  void wake() override;
  std::vector<StepReport> progress() const override;
  bool finished() const override { return false; }

  // Orderly end: agents are dismissed, their runs get a checkpoint and `within` to leave, new runs
  // are not started. Meanwhile the controller goes on and hears how they ended. True when nothing
  // runs any more.
  bool drain(Seconds within);

  // A join file for an agent that somebody else starts; written with mode 0600.
  Result<> invite(const std::string& path);

 private:
  explicit LiveWorld(LiveWorldOptions options);
  void serve(const std::stop_token& stop);
  void take_orders();
  void publish();
  void poke() const;

  struct Invitation {
    std::string path{};
    std::optional<Result<>> done{};
  };

  LiveWorldOptions options_;
  Time started_{};
  std::chrono::steady_clock::time_point started_steady_{};
  int poke_ = -1;  // eventfd: wakes the serving thread

  // The serving thread's own.
  std::unique_ptr<AgentServer> server_{};
  std::optional<LocalEngine> engine_{};

  mutable std::mutex mutex_{};
  std::condition_variable changed_{};
  std::deque<AgentServer::Incoming> inbox_{};
  std::deque<Action> orders_{};
  std::map<PlaceId, std::uint64_t> handed_{};  // newest number given out by wait()
  std::map<PlaceId, std::uint64_t> acknowledged_{};
  std::map<JobId, StepReport> progress_{};
  std::vector<Invitation*> invitations_{};
  bool woken_ = false;
  std::optional<Seconds> draining_{};
  bool told_to_drain_ = false;
  bool idle_ = false;  // while draining: nothing runs, no agent

  std::unique_ptr<DataCheck> data_check_{};
  std::jthread thread_{};  // last: it uses what stands above
};

}  // namespace ymir
