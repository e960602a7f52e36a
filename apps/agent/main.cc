// ymir-agent: serves the slots of one node. Started by ymird's local engine, or by a pilot.
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <string>

#include "ymir/base/log.h"
#include "ymir/cluster/agent.h"

namespace {

// SIGTERM and SIGINT as a descriptor; SIGUSR1 is what schedulers send to every process of a step.
int catch_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGUSR1, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

std::string beside_myself(const char* program) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / program).string();
}

}  // namespace

int main(int argc, char** argv) {
  ymir::AgentOptions options;
  options.workers.program = beside_myself("ymir-worker");
  double hung = options.workers.hung.count(), stop_within = options.workers.stop_within.count();
  double linger = options.linger.count();
  CLI::App app("Ymir's agent: runs workers on the slots of this node for ymird.", "ymir-agent");
  app.set_version_flag("--version", YMIR_VERSION);
  app.add_option("--join", options.join_file, "join file written by ymird; read and removed")
      ->required();
  app.add_option("--slots", options.num_slots, "slots to offer; 0: from the number of cores");
  app.add_option("--worker", options.workers.program, "program of the workers");
  app.add_option("--cache", options.workers.cache, "folder for the workers' caches");
  app.add_option("--hung", hung, "seconds of silence after which a worker is killed, at least");
  app.add_option("--stop-within", stop_within, "seconds until a stop is forced, at least");
  app.add_option("--linger", linger, "seconds without ymird until the agent ends");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  options.workers.hung = ymir::Seconds(hung);
  options.workers.stop_within = ymir::Seconds(stop_within);
  options.linger = ymir::Seconds(linger);
  const auto folder = std::filesystem::path(options.join_file).parent_path();
  options.workers.records = (folder / "workers").string();
  if (options.workers.cache.empty()) options.workers.cache = (folder / "cache").string();

  ::close_range(3, ~0U, 0);  // nothing of whoever started us
  ymir::log::start("ymir-agent", ymir::log::Level::kInfo);
  const int signals = catch_signals();
  auto agent = ymir::Agent::create(options, signals);
  const ymir::Result<> ended = agent ? (*agent)->run() : ymir::Result<>(agent.error());
  if (ended) return 0;
  ymir::log::error("{}", ended.error().message);
  return ymir::exit_code(ended.error().code);
}
