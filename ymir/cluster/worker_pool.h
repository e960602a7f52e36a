// WorkerPool: the workers of one node, what runs on them, and the watch over both.
//
// One run at a time on a slot; a run over several slots has one worker with the cores of all.
// Workers stay alive between runs, so that the next run on the same slots with the same backbone
// starts warm. Whatever happens to a worker ends in a report: death, garbage, silence and a stop
// that is not answered give RunLost with the cause, after everything the worker had said before.
// Never blocks. One thread, the program's main one: workers die with the thread that forked them.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ymir/base/child_process.h"
#include "ymir/base/line_channel.h"
#include "ymir/base/result.h"
#include "ymir/base/time.h"
#include "ymir/cluster/slots.h"
#include "ymir/core/codec.h"

namespace ymir {

struct WorkerPoolOptions {
  std::string program{};    // of the worker
  std::string cache{};      // folder handed to it
  std::string records{};    // folder: one file a living worker, for the next agent to end it
  Seconds hung{60};         // a run that says nothing for that long and
  int hung_gaps = 10;       // that many times its longest silence so far is killed
  Seconds start{300};       // until the first word of a run
  Seconds stop_within{30};  // at least, and 3 of its longest silences, until a stop is forced
  std::size_t group = 2;    // workers kept for the same slots (one a backbone)
  Result<> validate() const;
};

class WorkerPool {
 public:
  using Clock = std::chrono::steady_clock;

  WorkerPool(WorkerPoolOptions options, std::vector<Slot> slots);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Ends the workers that an earlier pool with the same records left behind; waits for their end.
  Result<> end_leftovers();
  // Starts an idle worker for each slot that has none.
  void warm_up();

  // kNotFound: no such slot; kConflict: a slot is busy; kUnavailable: no worker can be started.
  Result<> start(StartRun order);
  // False when no such run is under way. Again: nothing is done.
  bool stop(const StopRun& order);
  void stop_all();                         // each run gets a checkpoint and ends
  void kill_runs(const std::string& why);  // at once; idle workers stay

  // Reads and writes what is ready, watches; afterwards take_reports() has what came of it.
  void service(Clock::time_point now);
  std::vector<Report> take_reports();
  void add_to(std::vector<pollfd>& fds) const;
  // While the reports go nowhere, workers are not read: they slow down.
  void pause_reading(bool paused) { paused_ = paused; }

  std::vector<RunId> runs() const;  // under way
  int num_slots() const { return static_cast<int>(slots_.size()); }

 private:
  struct Run {
    RunId id{};
    std::vector<JobId> jobs{};
    bool spoke = false;
    Clock::time_point heard{};  // its last line, or its start
    Clock::duration longest{};  // silence between two lines
    std::optional<Clock::time_point> stop_by{};
    std::string killed{};  // why it was killed by us
    bool fault = false;
  };
  struct Worker {
    ChildProcess process;
    LineChannel channel;
    std::set<int> slots{};
    std::string model{};  // of its last run; empty: fresh
    std::optional<Run> run{};
    Clock::time_point used{};
    bool leaving = false;  // told to go
    bool buried = false;   // its end was seen and told
  };

  Result<Worker*> worker_for(const std::set<int>& slots, const std::string& model);
  Result<Worker*> spawn(const std::set<int>& slots);
  void retire_one(const std::set<int>& slots);
  Worker* worker_of(RunId run);
  void read(Worker& worker, Clock::time_point now);
  void hear(Worker& worker, const std::string& line, Clock::time_point now);
  void watch(Worker& worker, Clock::time_point now);
  void bury(Worker& worker);
  void kill(Worker& worker, const std::string& why, bool fault);
  std::string record_of(const Worker& worker) const;

  WorkerPoolOptions options_;
  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<Worker>> workers_{};
  std::vector<Report> reports_{};
  bool paused_ = false;
};

}  // namespace ymir
