// The two fixed-batch policies that the Pollux study compares with, as published.
// A policy object belongs to one run: what it remembers between rounds lies in it.
#pragma once

#include <cstddef>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/sim/artifact/pollux/world.h"

namespace ymir::artifact::pollux {

// Least attained service in two queues: a job that has held `limit` GPU-seconds goes to the second.
class Tiresias {
 public:
  explicit Tiresias(double limit_gpu_s) : limit_gpu_s_(limit_gpu_s) {}
  Result<std::vector<NodeList>> decide(const Round& round);

 private:
  struct State {
    bool known = false, running = false;
    double executed_s = 0, last_check_s = 0;  // wall time while running, restarts included
  };
  void account(const Round& round);

  double limit_gpu_s_;
  std::vector<std::size_t> queues_[2];
  std::vector<State> state_;
};

// Each next GPU goes to the job whose remaining time it shortens most.
class Optimus {
 public:
  Result<std::vector<NodeList>> decide(const Round& round);

 private:
  // Seconds of a step on `replicas` packed GPUs; cached by application, batch and replicas.
  Result<double> step_seconds(const Job& job, int replicas, int gpus_per_node);

  std::map<std::tuple<const PolluxApplication*, int, int>, double> step_s_;
};

}  // namespace ymir::artifact::pollux
