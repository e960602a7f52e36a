// What the program ymir-worker does with a Session: orders over a channel, or jobs by itself.
// Torch-free. One thread, the main one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ymir/core/codec.h"
#include "ymir/tune/session.h"

namespace ymir {

// Serves orders that come as lines of core/codec.h over `fd` (owned from here on) until the peer
// closes it: StartRun is carried out, StopRun ends the run under way, both are idempotent by RunId.
// Every run ends in RunStopped or RunLost. Between reports the peer hears the newest step again at
// least every few seconds, so that long measurements do not look hung. `leave`: asked at step
// boundaries; true saves and ends (SIGTERM).
Result<> serve_orders(int fd, Session& session, const std::function<bool()>& leave);

struct LocalJob {
  JobSpec spec{};
  std::string out{};  // adapter/, metrics.jsonl, checkpoint/, job.json
};
struct LocalTraining {
  std::vector<LocalJob> jobs{};  // one, or several in one batch; reported as j1, j2, ...
  bool resume = false;  // the specs are those of out/job.json, from their newest checkpoints
  int num_threads = 1;
};
// The jobs that ended, in the order in which they did. Fewer than there are: told to stop by
// `leave`, and the others have written a checkpoint. kInvalidArgument: the jobs can't share a
// batch.
Result<std::vector<JobFinished>> train_locally(Session& session, const LocalTraining& training,
                                               const std::function<void(const Report&)>& tell,
                                               const std::function<bool()>& leave);

}  // namespace ymir
