#include "ymir/cluster/local_engine.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "ymir/base/log.h"

namespace ymir {
namespace {

AgentServer::Clock::duration ticks(Seconds seconds) {
  return std::chrono::duration_cast<AgentServer::Clock::duration>(seconds);
}

}  // namespace

Result<> LocalEngineOptions::validate() const {
  if (agent.empty() || worker.empty() || folder.empty())
    return Error{ErrorCode::kInvalidArgument, "agent, worker and folder must be given"};
  if (num_slots < 0) return Error{ErrorCode::kInvalidArgument, "slots: must be at least 0"};
  if (!(first_pause.count() > 0) || longest_pause < first_pause || !(join_within.count() > 0))
    return Error{ErrorCode::kInvalidArgument, "pauses and join_within must be above 0"};
  return Ok{};
}

LocalEngine::LocalEngine(LocalEngineOptions options, AgentServer& server)
    : options_(std::move(options)), server_(server) {
  take_over(AgentServer::Clock::now());
}

LocalEngine::~LocalEngine() {
  if (agent_ && agent_->child) agent_->child->release();
}

void LocalEngine::take_over(AgentServer::Clock::time_point now) {
  const auto entries = server_.book().entries();  // a copy: lose() changes it
  for (const auto& [place, entry] : entries) {
    const bool usable = !agent_ && !entry.key_hash.empty() && is_alive(entry.agent);
    if (usable) {
      agent_ = Present{place, entry.agent, std::nullopt, now, false};
    } else {
      kill_process(entry.agent);
      server_.lose(place, "its agent is gone");
    }
  }
}

void LocalEngine::service(AgentServer::Clock::time_point now) {
  for (const PlaceId place : server_.take_lost())
    if (agent_ && agent_->place == place) end("its place is lost", now);
  if (agent_) {
    const bool ended = agent_->child ? agent_->child->ended().has_value() : !is_alive(agent_->name);
    agent_->joined |= server_.is_admitted(agent_->place);
    if (ended)
      end(agent_->child ? "agent ended: " + *agent_->child->ended() : "agent ended", now);
    else if (!agent_->joined && now - agent_->since > ticks(options_.join_within))
      end("agent did not join in time", now);
  }
  if (!agent_ && replacing_ && now >= start_at_)
    if (auto started = start(now); !started) {
      log::error("no agent: {}", started.error().message);
      end("", now);
    }
}

Result<> LocalEngine::start(AgentServer::Clock::time_point now) {
  YMIR_TRY_ASSIGN(const JoinFile join, server_.invite());
  const std::string path = options_.folder + "/agent.join";
  YMIR_TRY(write_join_file(path, join));
  ChildProcess::Spec spec;
  spec.program = options_.agent;
  spec.arguments = {
      "--join",        path,      "--slots",     std::to_string(options_.num_slots), "--worker",
      options_.worker, "--cache", options_.cache};
  spec.arguments.insert(spec.arguments.end(), options_.agent_arguments.begin(),
                        options_.agent_arguments.end());
  spec.dies_with_parent = false;
  const std::string log_path = options_.folder + "/agent.log";
  const int log = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  spec.output = spec.error = log;  // -1: as the parent
  auto child = ChildProcess::start(spec);
  if (log >= 0) ::close(log);
  if (!child) return child.error();
  agent_ = Present{join.place, child->name(), *std::move(child), now, false};
  return server_.book().set(join.place, {"", agent_->name});
}

void LocalEngine::end(const std::string& why, AgentServer::Clock::time_point now) {
  if (agent_) {
    const Present gone = std::exchange(agent_, std::nullopt).value();
    kill_process(gone.name);
    server_.lose(gone.place, why);
    static_cast<void>(server_.take_lost());
    if (now - gone.since > ticks(options_.young)) pause_ = Seconds(0);
  }
  pause_ = std::clamp(pause_ * 2.0, options_.first_pause, options_.longest_pause);
  start_at_ = now + ticks(pause_);
}

void LocalEngine::add_to(std::vector<pollfd>& fds) const {
  if (agent_ && agent_->child) fds.push_back({agent_->child->pidfd(), POLLIN, 0});
}

}  // namespace ymir
