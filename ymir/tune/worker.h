// What the program ymir-worker does with a Session: orders over a channel, or one job by itself.
// Torch-free. One thread, the main one.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ymir/core/codec.h"
#include "ymir/tune/session.h"

namespace ymir {

// Serves orders that come as lines of core/codec.h over `fd` (owned from here on) until the peer
// closes it: StartRun is carried out, StopRun ends the run under way, both are idempotent by RunId.
// Every run ends in RunStopped or RunLost. Between reports the peer hears the newest step again at
// least every few seconds, so that long measurements do not look hung. `leave`: asked at step
// boundaries; true saves and ends (SIGTERM).
Result<> serve_orders(int fd, Session& session, const std::function<bool()>& leave);

struct LocalTraining {
  JobSpec spec{};
  std::string out{};    // adapter/, metrics.jsonl, checkpoint/, job.json
  bool resume = false;  // the spec is that of out/job.json, from its newest checkpoint
  int num_threads = 1;
};
// Empty optional: told to stop by `leave`; a checkpoint was written.
Result<std::optional<JobFinished>> train_locally(Session& session, LocalTraining training,
                                                 const std::function<void(const Report&)>& tell,
                                                 const std::function<bool()>& leave);

}  // namespace ymir
