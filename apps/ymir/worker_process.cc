#include "apps/ymir/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>

#include "apps/ymir/service.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"

namespace ymir::cli {
namespace {

constexpr int kLook = 200;  // ms: an interrupt is noticed at the latest then

}  // namespace

Result<WorkerProcess> WorkerProcess::start(const Globals& globals,
                                           std::vector<std::string> arguments) {
  std::array<int, 2> output{-1, -1}, diagnostics{-1, -1};
  const auto close_all = [&] {
    for (const int fd : {output[0], output[1], diagnostics[0], diagnostics[1]})
      if (fd >= 0) ::close(fd);
  };
  if (::pipe2(output.data(), O_CLOEXEC) != 0 || ::pipe2(diagnostics.data(), O_CLOEXEC) != 0) {
    close_all();
    return Error{ErrorCode::kUnavailable, "no pipe to the worker"};
  }
  ChildProcess::Spec spec;
  spec.program = program_folder() + "/ymir-worker";
  spec.arguments = std::move(arguments);
  spec.output = output[1];
  spec.error = diagnostics[1];
  auto child = ChildProcess::start(spec);
  if (!child) {
    close_all();
    return child.error();
  }
  ::close(output[1]);
  ::close(diagnostics[1]);
  return WorkerProcess(globals, *std::move(child), output[0], diagnostics[0]);
}

// False once the other end is closed.
bool WorkerProcess::read(LineChannel& channel,
                         const std::function<void(const std::string&)>& take) {
  if (channel.fd() < 0) return false;
  const Result<> received = channel.receive();
  while (const auto line = channel.next()) take(*line);
  return static_cast<bool>(received);
}

// {"at":..,"program":..,"level":"error","text":".."}; anything else is a library's.
void WorkerProcess::diagnose(const std::string& line) {
  const auto json = parse_json(line);
  const bool own = json && json->is_object() && json->contains("text") && json->contains("level");
  const std::string text = own ? json->value("text", "") : line;
  if (own && json->value("level", "") == "error") {
    last_error_ = text;  // told at the end, as the reason
  } else if (!globals_.json && !globals_.quiet) {
    std::fprintf(stderr, "ymir: %s\n", text.c_str());
  }
}

int WorkerProcess::follow(const std::function<void(const std::string&)>& line,
                          const std::string& hint, const std::string& about_faults,
                          const std::function<std::string(const std::string&)>& placed) {
  bool asked = false;
  while (output_.fd() >= 0 || diagnostics_.fd() >= 0) {
    std::array<pollfd, 2> fds{pollfd{output_.fd(), POLLIN, 0},
                              pollfd{diagnostics_.fd(), POLLIN, 0}};
    ::poll(fds.data(), fds.size(), kLook);
    if (!read(output_, line)) output_.close();
    if (!read(diagnostics_, [this](const std::string& text) { diagnose(text); }))
      diagnostics_.close();
    if (interrupted() && !asked) {
      asked = true;
      child_.signal(SIGTERM);
    }
  }
  const std::string how = child_.wait();
  const auto code = how.starts_with("exit ") ? parse_int(how.substr(5)) : std::nullopt;
  // It may have been done, or have failed, when it was asked to stop.
  if (asked && (!code || *code == kInterrupted))
    return tell(globals_, kInterrupted, "interrupted", hint);
  if (!code) return tell(globals_, kFailed, "the worker ended by " + how, hint);
  if (*code != kDone && !last_error_.empty())
    return tell(globals_, static_cast<ExitCode>(*code),
                *code == kUsage && placed ? placed(last_error_) : last_error_,
                *code == kUsage    ? about_faults
                : *code == kFailed ? hint
                                   : "");
  return static_cast<int>(*code);
}

}  // namespace ymir::cli
