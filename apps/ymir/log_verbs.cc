// replay: a log folded again and verified. version: this program.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>

#include "apps/ymir/terminal.h"
#include "apps/ymir/verb.h"
#include "ymir/base/json.h"
#include "ymir/sim/recorded_run.h"
#include "ymir/store/check_log.h"
#include "ymir/store/event_log.h"

namespace ymir::cli {
namespace {

int check(const Globals& globals, const std::string& path) {
  const auto report = check_log(path);
  if (!report) return tell(globals, report.error());
  std::vector<std::string> broken;  // of a log that can't be folded nothing can be said
  if (report->sound()) {
    const auto log = read_log(path);
    if (!log) return tell(globals, log.error());
    broken = check_recorded(*log);
  }
  if (globals.json) {
    Json faults = Json::array();
    for (const LogFault& fault : report->faults)
      faults.push_back({{"seq", fault.seq}, {"text", fault.text}});
    print(canonical({{"sound", report->sound() && broken.empty()},
                     {"events", report->events},
                     {"jobs", report->jobs},
                     {"ended", report->ended},
                     {"runs", report->runs},
                     {"rounds", report->rounds},
                     {"flows", report->flows},
                     {"checkpoints_verified", report->checkpoints_verified},
                     {"checkpoints_gone", report->checkpoints_gone},
                     {"head", report->head},
                     {"invariants_broken", broken},
                     {"faults", faults}}) +
          "\n");
  } else {
    for (const LogFault& fault : report->faults)
      print(fmt::format("{}: {}\n", fault.seq, fault.text));
    for (const std::string& fault : broken) print(fault + "\n");
    const std::size_t faults = report->faults.size() + broken.size();
    print(fmt::format(
        "{} events, {} jobs ({} ended), {} runs, {} rounds, {} flows, {} checkpoints verified: "
        "{}\n",
        report->events, report->jobs, report->ended, report->runs, report->rounds, report->flows,
        report->checkpoints_verified, faults == 0 ? "no fault" : fmt::format("{} faults", faults)));
  }
  return report->sound() && broken.empty() ? kDone : kFailed;
}

int fold(const Globals& globals, const std::string& path) {
  const auto log = open_log_for_reading(path);
  if (!log) return tell(globals, log.error());
  const auto state = replay(**log);
  if (!state) return tell(globals, state.error());
  std::map<std::string, int> by_state;
  for (const auto& [id, job] : state->jobs) ++by_state[to_string(job.state)];
  if (globals.json) {
    print(canonical({{"seq", state->seq}, {"era", state->era}, {"jobs", by_state}}) + "\n");
    return kDone;
  }
  print(fmt::format("{} events, {} jobs\n", state->seq, state->jobs.size()));
  for (const auto& [name, count] : by_state) print(fmt::format("  {:<12} {}\n", name, count));
  return kDone;
}

}  // namespace

Run replay_verb(CLI::App& app) {
  auto path = std::make_shared<std::string>();
  auto verify = std::make_shared<bool>(false);
  app.add_option("log", *path, "log.db")->required();
  app.add_flag("--check", *verify, "verify every invariant");
  return [path, verify](const Globals& globals) {
    return *verify ? check(globals, *path) : fold(globals, *path);
  };
}

Run version_verb(CLI::App&) {
  return [](const Globals& globals) {
    print(globals.json ? canonical({{"version", YMIR_VERSION}}) + "\n" : "ymir " YMIR_VERSION "\n");
    return static_cast<int>(kDone);
  };
}

}  // namespace ymir::cli
