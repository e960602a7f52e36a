// What `ymir train` shows of its worker's reports: progress, evaluations, and of several jobs one
// table at the end. One thread.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "apps/ymir/terminal.h"
#include "apps/ymir/verb.h"
#include "ymir/core/event.h"

namespace ymir::cli {

// One job of the batch. The worker reports them as j1, j2, ... in the order given.
struct TrainedJob {
  std::string name{};
  std::string file{};  // the job file, empty when resumed
  std::string out{};   // folder of its results
};

class TrainView {
 public:
  TrainView(const Globals& globals, const Terminal& terminal, const std::vector<TrainedJob>& jobs)
      : globals_(globals),
        terminal_(terminal),
        jobs_(jobs),
        progress_(terminal, globals.quiet || globals.json) {}

  // A line of the worker's standard output.
  void show(const std::string& line);
  void finish() { progress_.finish(); }
  // How each job ended and where its files lie.
  std::string summary() const;

 private:
  void show_step(const StepReport& step);
  std::string describe_end(const EventBody& body) const;
  // Of all jobs of the batch that have reported.
  struct Steps {
    std::int64_t begin = 0, now = 0, total = 0;
  };

  const Globals& globals_;
  const Terminal& terminal_;
  const std::vector<TrainedJob>& jobs_;
  ProgressLine progress_;
  std::map<JobId, Steps> steps_{};
  std::map<JobId, JobFinished> ends_{};
  std::chrono::steady_clock::time_point begin_{};
};

}  // namespace ymir::cli
