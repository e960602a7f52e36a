// ChildProcess: one child, usually in a process group of its own, watched by a pidfd.
//
// The child dies with the thread that started it (PR_SET_PDEATHSIG), has no descriptors but the
// ones given, default signals (SIGUSR1 ignored: schedulers send it to everybody) and the cores
// asked for. Destroying the object kills the whole group. Movable; one thread at a time.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

// Names a process for good: a pid is used again, a pid with its start time is not.
struct ProcessName {
  pid_t pid = 0;
  std::string started{};  // field 22 of /proc/PID/stat
  bool operator==(const ProcessName&) const = default;
};
std::optional<ProcessName> process_name(pid_t pid);  // none: there is no such process
bool is_alive(const ProcessName& name);
// SIGKILL for its whole process group, if it still is that process.
void kill_process(const ProcessName& name);

class ChildProcess {
 public:
  struct Spec {
    std::string program{};  // path; without a slash: looked for in PATH
    std::vector<std::string> arguments{};
    std::vector<int> cores{};  // empty: as the parent
    int channel = -1;          // becomes descriptor 3; -1: none
    int input = -1;            // becomes stdin; -1: /dev/null
    int output = -1;           // becomes stdout; -1: the parent's stderr
    int error = -1;            // becomes stderr; -1: the parent's
    double cpu_seconds = 0;    // RLIMIT_CPU; 0 = none
    double memory_bytes = 0;   // RLIMIT_AS; 0 = none
    bool dies_with_parent = true;
    bool own_group = true;  // false: of the parent's group, so that Ctrl-C reaches it too
  };

  // kUnavailable names the program and why it could not be run.
  static Result<ChildProcess> start(const Spec& asked);
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;

  const ProcessName& name() const { return name_; }
  int pidfd() const { return pidfd_; }  // readable when the child has ended

  // Looks once whether it has ended; how: "exit 3", "signal 9 (Killed)". What is left of its group
  // is killed then. Stays as it is once known.
  const std::optional<std::string>& ended();
  // Waits for the end; how, as above.
  const std::string& wait();
  bool crashed() const { return crashed_; }  // ended by a fault of its own: not 0, not SIGKILL

  void kill();              // SIGKILL to the group, or to the process if it has none
  void signal(int number);  // to the process
  // Leaves the child alone from now on: it is somebody else's.
  void release();

 private:
  ChildProcess() = default;
  void stop();
  void kill_all() const;

  ProcessName name_{};
  bool own_group_ = true;
  int pidfd_ = -1;
  std::optional<std::string> ended_{};
  bool crashed_ = false;
};

}  // namespace ymir
