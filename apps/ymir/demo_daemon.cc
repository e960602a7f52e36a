#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "apps/ymir/demo.h"
#include "apps/ymir/service.h"
#include "ymir/base/file.h"

namespace ymir::cli {
namespace {

constexpr double kReadyWithin = 60;  // seconds
constexpr int kEndWithin = 20'000;   // milliseconds

// The end of its own log, to show why it did not start.
std::string last_lines(const std::string& path) {
  const auto text = read_file(path, 64u << 20);
  if (!text) return "";
  const auto from = text->size() > 1500 ? text->find('\n', text->size() - 1500) : 0;
  return from == std::string::npos ? *text : text->substr(from);
}

}  // namespace

Result<DemoDaemon> DemoDaemon::start(const Options& options) {
  YMIR_TRY(make_folders(options.state));
  const std::string diagnostics = options.state + "/ymird.log";
  const int file = ::open(diagnostics.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0644);
  if (file < 0) return Error{ErrorCode::kUnavailable, "can't write " + diagnostics};
  ChildProcess::Spec spec;
  spec.program = program_folder() + "/ymird";
  spec.arguments = {"--state",  options.state,  "--slots", std::to_string(options.slots),
                    "--policy", options.policy, "--round", fmt::format("{}", options.round)};
  for (const std::string& setting : options.settings) {
    spec.arguments.emplace_back("--set");
    spec.arguments.push_back(setting);
  }
  spec.output = file;
  spec.error = file;
  auto child = ChildProcess::start(spec);
  ::close(file);
  if (!child) return child.error();
  YMIR_TRY_ASSIGN(HttpClient client,
                  HttpClient::open("unix:" + options.state + "/run/ymir.sock", "", 20));
  DemoDaemon daemon(*std::move(child), std::move(client), options.state);

  const auto begin = std::chrono::steady_clock::now();
  while (!interrupted()) {
    if (!daemon.alive())
      return Error{ErrorCode::kUnavailable,
                   "ymird ended at once:\n" + last_lines(daemon.diagnostics())};
    if (const auto ready = daemon.client().get("/readyz"); ready && ready->status == 200)
      return daemon;
    const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - begin;
    if (gone.count() > kReadyWithin)
      return Error{ErrorCode::kTimeout,
                   "ymird is not ready after 60 s; see " + daemon.diagnostics()};
    ::usleep(100'000);
  }
  return Error{ErrorCode::kUnavailable, "interrupted"};
}

void DemoDaemon::stop() {
  if (child_.ended()) return;
  child_.signal(SIGTERM);
  pollfd wish{child_.pidfd(), POLLIN, 0};
  ::poll(&wish, 1, kEndWithin);
  if (!child_.ended()) child_.kill();
}

}  // namespace ymir::cli
