// LocalEngine: gets the one place of this machine by starting an agent as a child.
//
// The agent outlives ymird for some time and is taken over by the next one; one that died, or that
// was declared lost, is replaced, with a growing pause when agents die young. Single-threaded: the
// thread of the AgentServer calls it.
#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "ymir/base/child_process.h"
#include "ymir/base/result.h"
#include "ymir/base/time.h"
#include "ymir/cluster/agent_server.h"

namespace ymir {

struct LocalEngineOptions {
  std::string agent{};                         // program
  std::string worker{};                        // program, handed to the agent
  std::string cache{};                         // folder, handed on
  std::string folder{};                        // for the join file and agent.log
  int num_slots = 0;                           // 0: the agent's rule
  std::vector<std::string> agent_arguments{};  // further ones
  Seconds first_pause{0.2}, longest_pause{5};
  Seconds young{10};        // an agent that lives longer was no failure
  Seconds join_within{30};  // until an agent must have been admitted
  Result<> validate() const;
};

class LocalEngine {
 public:
  // `server` outlives the engine. Agents that an earlier ymird left are taken over.
  LocalEngine(LocalEngineOptions options, AgentServer& server);
  ~LocalEngine();  // leaves the agent alone: it waits for the next ymird, or was dismissed

  void service(AgentServer::Clock::time_point now);
  void add_to(std::vector<pollfd>& fds) const;
  // No agent is started any more; the present one is left to end by itself.
  void stop_replacing() { replacing_ = false; }
  bool has_agent() const { return agent_.has_value(); }

 private:
  struct Present {
    PlaceId place{};
    ProcessName name{};
    std::optional<ChildProcess> child{};  // none: of an earlier ymird
    AgentServer::Clock::time_point since{};
    bool joined = false;
  };

  void take_over(AgentServer::Clock::time_point now);
  Result<> start(AgentServer::Clock::time_point now);
  void end(const std::string& why, AgentServer::Clock::time_point now);

  LocalEngineOptions options_;
  AgentServer& server_;
  std::optional<Present> agent_{};
  Seconds pause_{0};
  AgentServer::Clock::time_point start_at_{};
  bool replacing_ = true;
};

}  // namespace ymir
