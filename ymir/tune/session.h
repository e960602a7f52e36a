// Session: what one worker process does, run after run. Keeps backbones mapped and data sets
// tokenised between runs, so that the next run of the same backbone is a swap of adapter, optimizer
// state and data position. The only door to the part of tune/ that needs torch; this header does
// not. ymir-worker owns one, `ymir train` and `ymir eval` reach it through that program.
//
// One thread uses a session. Exceptions of torch become Errors.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/core/event.h"

namespace ymir {

// What a run tells, in order, on the thread that runs it. Events come durable: the files they name
// are written and synced.
struct RunReports {
  std::function<void(const EventBody&)> event{};
  std::function<void(const StepReport&)> step{};
};

// Asked at every optimizer-step boundary and between the batches of an evaluation.
enum class StopWish {
  kGoOn,
  kStop,     // at the next boundary: a checkpoint of each task, then RunStopped
  kStopNow,  // leave without saving: what was done since the last checkpoint is lost
};
using StopFlag = std::function<StopWish()>;

struct SessionOptions {
  int num_threads = 1;
  std::string cache{};            // folder for backbone images and token caches
  std::size_t max_backbones = 2;  // kept mapped; the longest unused one goes first
  std::string device = "cpu";     // or cuda, the first one
  // Bytes of the cache for what frozen layers give, kept between epochs, jobs and runs; 0: nothing.
  std::size_t frozen_outputs = std::size_t{8} << 30;
  Result<> validate() const;
};

struct EvaluateRequest {
  std::string model{};    // folder
  std::string adapter{};  // PEFT folder; empty: the model's own head, as merged models have one
  DataSpec data{};        // `validation` names the files
  TaskKind kind = TaskKind::kClassify;
  std::vector<std::string> labels{};   // empty: the adapter's
  std::string predictions{};           // file to write: a JSON line a row; empty: none
  std::vector<std::string> metrics{};  // wanted beside those that cost nothing more: needs_answers
  int answer_length = 128;             // tokens of an answer
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Carries the run out until its jobs have ended or it was told to stop. Reported in this order:
  // RunStarted, EpochEvaluated and CheckpointCommitted as they come, for a job that ends
  // CheckpointCommitted and JobFinished (weights frozen first), for a profile ProfileFinished, and
  // last RunStopped {why: finished, partner_finished, profile_done or stopped; jobs that have not
  // ended}. Nothing is reported after an error or kStopNow: the caller reports RunLost.
  // An error with kInvalidArgument or kCorruption is the fault of the job's files.
  //
  // Normal: one task, or several of one backbone whose rows pass it as one batch, each with its own
  // adapter, results as if it ran alone; those that have not ended go on without those that have.
  // Spatial: two tasks train on one shared adapter. When one ends, the other's own checkpoint is
  // written and the run ends as partner_finished.
  Result<> run(const StartRun& order, const RunReports& reports, const StopFlag& stop);

  // Metrics of an adapter on a data set; every row counts once.
  Result<std::map<std::string, double>> evaluate(const EvaluateRequest& request);

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ymir
