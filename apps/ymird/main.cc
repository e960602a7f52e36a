// ymird: the daemon. One state folder, one log, one controller; agents on this machine. It may be
// killed at any instant: the next one replays the log and goes on.
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/ymird/settings.h"
#include "ymir/api/api.h"
#include "ymir/api/http_server.h"
#include "ymir/base/file.h"
#include "ymir/base/leftovers.h"
#include "ymir/base/log.h"
#include "ymir/cluster/live_world.h"
#include "ymir/store/artifacts.h"

namespace {

using namespace ymir;

struct Flags {
  std::string state = "ymir-state";
  std::string listen{};
  std::string policy = "ymir";
  std::string agent{}, worker{}, data_check{};
  std::vector<std::string> settings{};
  int slots = 0;
  double round = 120;
  double drain = 10;
};

std::string beside_myself(const char* program) {
  std::error_code error;
  return (std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / program).string();
}

// Held back for the day the disk is full: freed then, so that the next start can write its log.
class DiskReserve {
 public:
  explicit DiskReserve(const StateFolder& state)
      : path_(state.run() + "/reserve"), folder_(state.root()) {
    remove_leftovers(state.run(), "reserve");  // of a ymird that was killed while it wrote it
    if (std::error_code unknown; std::filesystem::exists(path_, unknown) || low()) return;
    if (auto made = write_file(path_, std::string(64u << 20, '\0')); !made)
      log::warning("no reserve for a full disk: {}", made.error().message);
  }
  void free() const {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  bool low() const {
    const auto space = disk_space(folder_);
    return space && space->low();
  }

 private:
  std::string path_, folder_;
};

// The first SIGTERM or SIGINT ends in order, the second one at once.
void wait_for_signals(int signals, LiveWorld& world, std::stop_source& stop, double drain) {
  signalfd_siginfo info{};
  while (::read(signals, &info, sizeof info) < 0 && errno == EINTR) {
  }
  log::info("asked to end: runs are saved, {} s at most", drain);
  std::thread impatient([signals] {
    signalfd_siginfo again{};
    if (::read(signals, &again, sizeof again) > 0) ::_exit(130);
  });
  impatient.detach();
  if (!world.drain(Seconds(drain))) log::warning("not everything was saved in time");
  stop.request_stop();
  world.wake();
}

LiveWorldOptions world_options(const Flags& flags, const StateFolder& state) {
  LiveWorldOptions options;
  options.agents.folder = state.run();
  options.engine.emplace();
  options.engine->agent = flags.agent;
  options.engine->worker = flags.worker;
  options.engine->cache = state.root() + "/cache";
  options.engine->folder = state.run();
  options.engine->num_slots = flags.slots;
  options.data_check.command = {flags.data_check, "check-data"};
  return options;
}

Result<> serve(const Flags& flags, int signals) {
  Settings settings;
  YMIR_TRY(apply_settings(flags.settings, settings));
  settings.controller.round = Seconds(flags.round);
  settings.controller.round_guard = Seconds(std::max(1.0, flags.round / 2));
  YMIR_TRY_ASSIGN(const StateFolder state, StateFolder::open(flags.state));
  settings.controller.artifacts = state.artifacts();
  const auto made = make_live_policy(flags.policy, settings.policy);
  if (!made) return Error{ErrorCode::kInvalidArgument, made.error().message};
  const Policy& policy = **made;
  YMIR_TRY_ASSIGN(Estimator estimator, Estimator::create(settings.estimator));
  YMIR_TRY_ASSIGN(const auto event_log, open_log(state.log()));  // and with it the lock
  const DiskReserve reserve(state);

  LiveWorldOptions live = world_options(flags, state);
  if (event_log->last_seq() > 0) {
    YMIR_TRY_ASSIGN(const auto newest, event_log->read(event_log->last_seq(), 1));
    live.not_before = newest.front().at;
  }
  YMIR_TRY_ASSIGN(const auto world, LiveWorld::create(std::move(live)));
  YMIR_TRY_ASSIGN(const auto controller, Controller::create(settings.controller, *world, *event_log,
                                                            policy, ymir::bind(estimator)));

  YMIR_TRY_ASSIGN(ApiBackend backend, ymir::bind(*controller, state.log(), state.artifacts()));
  std::stop_source stop;
  backend.stopping = [&stop] { return stop.stop_requested(); };
  backend.submit = [submit = backend.submit, &reserve](std::vector<JobSpec> specs,
                                                       bool held) -> Result<std::vector<JobId>> {
    if (reserve.low()) {
      const std::string why =
          "read_only: the disk of the state folder is full: less than 5 % or 1 GiB is free";
      log::warning("a submission was refused: {}", why);
      return Error{ErrorCode::kUnavailable, why};
    }
    return submit(std::move(specs), held);
  };
  Api api(std::move(backend));
  HttpServerOptions http;
  http.socket = state.socket();
  http.listen = flags.listen;
  http.token_file = flags.listen.empty() ? "" : state.root() + "/tokens";
  YMIR_TRY_ASSIGN(const auto server, HttpServer::start(http, api));
  log::info("serving {} by policy {}, a round every {} s", state.root(), policy.name(),
            flags.round);

  std::thread watcher([&] { wait_for_signals(signals, *world, stop, flags.drain); });
  watcher.detach();  // reads the signals until the program ends
  auto ended = controller->run(stop.get_token());
  const bool full = !ended && reserve.low();
  if (full) reserve.free();
  if (!ended)
    log::error(
        "{}{}", ended.error().message,
        full ? "; free some space and start ymird again: it goes on from what is in the log" : "");
  // Nothing is left to be saved, and threads still use what stands here: leave without unwinding.
  ::_exit(ended ? 0 : exit_code(ended.error().code));
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Ymir's daemon: schedules and runs fine-tuning jobs.", "ymird");
  app.set_version_flag("--version", YMIR_VERSION);
  app.add_option("--state", flags.state, "folder of the log, the artifacts and the sockets");
  app.add_option("--slots", flags.slots, "slots of this machine; 0: from the number of cores");
  app.add_option("--round", flags.round, "seconds between rounds")->check(CLI::PositiveNumber);
  app.add_option("--policy", flags.policy, "who decides what runs");
  app.add_option("--set", flags.settings, "KEY=VALUE, a knob of policy, controller or estimator");
  app.add_option("--listen", flags.listen, "ADDRESS:PORT for HTTP beside the socket");
  app.add_option("--drain", flags.drain, "seconds for runs to be saved at the end");
  app.add_option("--agent", flags.agent, "program of the agent");
  app.add_option("--worker", flags.worker, "program of the workers");
  app.add_option("--data-check", flags.data_check,
                 "program that checks data: PROGRAM check-data < SPEC");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (flags.agent.empty()) flags.agent = beside_myself("ymir-agent");
  if (flags.worker.empty()) flags.worker = beside_myself("ymir-worker");
  if (flags.data_check.empty()) flags.data_check = beside_myself("ymir");

  log::start("ymird", log::Level::kInfo);
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, nullptr);  // before any thread: all inherit it
  const int signals = signalfd(-1, &set, SFD_CLOEXEC);
  const Result<> served = serve(flags, signals);
  if (served) return 0;
  log::error("{}", served.error().message);
  // Another ymird holds the state folder: to the user that is as good as not reachable.
  return served.error().code == ErrorCode::kConflict ? 3 : exit_code(served.error().code);
}
