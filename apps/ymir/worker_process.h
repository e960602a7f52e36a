// The worker that a verb starts for its jobs: its reports line by line, and what it says of itself
// as text for people instead of the JSON lines it writes where nobody looks. One thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/ymir/verb.h"
#include "ymir/base/child_process.h"
#include "ymir/base/line_channel.h"
#include "ymir/base/result.h"

namespace ymir::cli {

class WorkerProcess {
 public:
  // ymir-worker, from beside this program.
  static Result<WorkerProcess> start(const Globals& globals, std::vector<std::string> arguments);

  // Gives each line of its standard output to `line` until it has ended or `interrupted`, which
  // asks it to save and end. Returns its exit code; what went wrong is told. `hint`: what to do
  // when it died; `about_faults`: what else to know when its input is wrong; `placed`: what it
  // says is wrong with it, with the place where that stands.
  int follow(const std::function<void(const std::string&)>& line, const std::string& hint,
             const std::string& about_faults = "",
             const std::function<std::string(const std::string&)>& placed = {});

 private:
  WorkerProcess(const Globals& globals, ChildProcess child, int output, int diagnostics)
      : globals_(globals), child_(std::move(child)), output_(output), diagnostics_(diagnostics) {}
  bool read(LineChannel& channel, const std::function<void(const std::string&)>& take);
  void diagnose(const std::string& line);

  const Globals& globals_;
  ChildProcess child_;
  LineChannel output_, diagnostics_;
  std::string last_error_{};
};

}  // namespace ymir::cli
