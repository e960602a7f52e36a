#include "ymir/base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "ymir/base/file.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

constexpr int kChannel = 3;

// Runs between fork and exec: only async-signal-safe calls, nothing allocated.
[[noreturn]] void become(const ChildProcess::Spec& spec, char* const* arguments, pid_t parent,
                         int failure) {
  const auto give_up = [failure]() {
    const int error = errno;
    static_cast<void>(!::write(failure, &error, sizeof error));
    ::_exit(127);
  };
  if (spec.own_group) ::setsid();
  if (spec.dies_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // it died before the line above
  }
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  ::signal(SIGUSR1, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  if (!spec.cores.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : spec.cores) CPU_SET(static_cast<unsigned>(core), &set);
    if (::sched_setaffinity(0, sizeof set, &set) != 0) give_up();
  }
  const auto limit = [](auto what, double value) {
    const rlimit both{static_cast<rlim_t>(value), static_cast<rlim_t>(value)};
    ::setrlimit(what, &both);
  };
  if (spec.cpu_seconds > 0) limit(RLIMIT_CPU, spec.cpu_seconds);
  if (spec.memory_bytes > 0) limit(RLIMIT_AS, spec.memory_bytes);
  limit(RLIMIT_CORE, 0);

  // Above every descriptor that is about to be replaced, so that none is overwritten too early.
  const auto safe = [](int fd) { return fd < 0 ? fd : ::fcntl(fd, F_DUPFD_CLOEXEC, 10); };
  const int input = spec.input < 0 ? ::open("/dev/null", O_RDONLY | O_CLOEXEC) : safe(spec.input);
  const int output = safe(spec.output < 0 ? 2 : spec.output);
  const int error = safe(spec.error);
  const int channel = safe(spec.channel);
  if (::dup2(input, 0) < 0 || ::dup2(output, 1) < 0) give_up();
  if (error >= 0 && ::dup2(error, 2) < 0) give_up();
  if (channel >= 0 && ::dup2(channel, kChannel) < 0) give_up();
  ::close_range(channel >= 0 ? kChannel + 1 : kChannel, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execv(spec.program.c_str(), arguments);
  give_up();
  ::_exit(127);
}

std::optional<std::string> find_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  for (const std::string_view folder : split(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    const std::string file = std::string(folder.empty() ? "." : folder) + "/" + program;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ProcessName> process_name(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/stat", pid), 4096);
  if (!text) return std::nullopt;
  const auto end = text->rfind(')');  // the name in parentheses may hold anything
  if (end == std::string::npos || end + 2 > text->size()) return std::nullopt;
  const auto fields = split(std::string_view(*text).substr(end + 2), ' ');
  if (fields.size() < 20 || fields[0] == "Z" || fields[0] == "X") return std::nullopt;
  return ProcessName{pid, std::string(fields[19])};
}

bool is_alive(const ProcessName& name) {
  const auto now = process_name(name.pid);
  return now && *now == name;
}

void kill_process(const ProcessName& name) {
  if (name.pid > 1 && is_alive(name)) {
    ::kill(-name.pid, SIGKILL);
    ::kill(name.pid, SIGKILL);
  }
}

Result<ChildProcess> ChildProcess::start(const Spec& asked) {
  Spec spec = asked;
  if (spec.program.find('/') == std::string::npos) {
    const auto found = find_in_path(spec.program);
    if (!found) return Error{ErrorCode::kUnavailable, spec.program + ": is not installed"};
    spec.program = *found;
  }
  std::vector<std::string> words{spec.program};
  words.insert(words.end(), spec.arguments.begin(), spec.arguments.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int failure[2] = {-1, -1};
  if (::pipe2(failure, O_CLOEXEC) != 0)
    return Error{ErrorCode::kUnavailable, std::string("no pipe: ") + std::strerror(errno)};

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    // Out of the way of descriptor 3, which becomes the channel.
    const int high = ::fcntl(failure[1], F_DUPFD_CLOEXEC, 10);
    become(spec, arguments.data(), parent, high);
  }
  const int fork_error = errno;
  ::close(failure[1]);
  int error = 0;
  ssize_t n = 0;
  if (pid > 0) do
      n = ::read(failure[0], &error, sizeof error);
    while (n < 0 && errno == EINTR);
  ::close(failure[0]);
  if (pid < 0 || n > 0) {
    if (pid > 0) ::waitpid(pid, nullptr, 0);
    return Error{ErrorCode::kUnavailable,
                 spec.program + ": " + std::strerror(pid < 0 ? fork_error : error)};
  }
  ChildProcess child;
  child.own_group_ = spec.own_group;
  child.name_ = process_name(pid).value_or(ProcessName{pid, ""});
  child.pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (child.pidfd_ < 0)
    return Error{ErrorCode::kUnavailable, std::string("pidfd_open: ") + std::strerror(errno)};
  return child;
}

ChildProcess::~ChildProcess() { stop(); }

ChildProcess::ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  stop();
  name_ = std::exchange(other.name_, {});
  own_group_ = other.own_group_;
  pidfd_ = std::exchange(other.pidfd_, -1);
  ended_ = std::exchange(other.ended_, {});
  crashed_ = other.crashed_;
  return *this;
}

void ChildProcess::kill_all() const {
  if (own_group_) ::kill(-name_.pid, SIGKILL);
  ::kill(name_.pid, SIGKILL);
}

void ChildProcess::stop() {
  if (name_.pid > 0 && !ended_) {
    kill_all();
    ::waitpid(name_.pid, nullptr, 0);
  }
  if (pidfd_ >= 0) ::close(std::exchange(pidfd_, -1));
  name_ = {};
}

void ChildProcess::release() {
  if (pidfd_ >= 0) ::close(std::exchange(pidfd_, -1));
  name_ = {};
}

const std::optional<std::string>& ChildProcess::ended() {
  if (ended_ || name_.pid == 0) return ended_;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(name_.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0)
    return ended_;
  // Before it is reaped its pid, and so the name of its group, can't be used again.
  if (own_group_) ::kill(-name_.pid, SIGKILL);
  ::waitpid(name_.pid, nullptr, 0);
  const bool exited = info.si_code == CLD_EXITED;
  crashed_ = exited ? info.si_status != 0 : info.si_status != SIGKILL && info.si_status != SIGTERM;
  ended_ = exited ? fmt::format("exit {}", info.si_status)
                  : fmt::format("signal {} ({})", info.si_status, ::strsignal(info.si_status));
  return ended_;
}

void ChildProcess::kill() {
  if (name_.pid > 0 && !ended_) kill_all();
}

const std::string& ChildProcess::wait() {
  while (!ended()) {
    pollfd end{pidfd_, POLLIN, 0};
    ::poll(&end, 1, -1);
  }
  return *ended_;
}

void ChildProcess::signal(int number) {
  if (name_.pid > 0 && !ended_) ::kill(name_.pid, number);
}

}  // namespace ymir
