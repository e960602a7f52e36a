// The goodput model of Pollux (OSDI'21): how many samples a second a job would make on a placement
// and with a batch, times how much a sample is worth in that batch.
//
// Pure, any thread; needs pow, so bytes are those of one libm. Seconds, samples.
#pragma once

#include <array>
#include <span>

#include "ymir/sim/profiles/pollux_profile.h"

namespace ymir::artifact::pollux {

// T_grad = alpha_c + beta_c b; T_sync = alpha + beta (K - 2), of the network (n) or the node (r);
// a step takes (T_grad^gamma + T_sync^gamma)^(1 / gamma): gamma 1 adds them, a large one overlaps.
struct StepModel {
  double alpha_c = 0, beta_c = 0, alpha_n = 0, beta_n = 0, alpha_r = 0, beta_r = 0, gamma = 1;

  double grad_s(double atomic) const { return alpha_c + beta_c * atomic; }
  double sync_s(int nodes, int replicas) const;
  // With `accumulation` passes before the one that exchanges gradients.
  double step_s(int nodes, int replicas, double atomic, int accumulation) const;
};

struct BatchLimits {
  int init_batch = 0, max_batch = 0;  // in all
  int min_atomic = 0, max_atomic = 0;
};

struct BestBatch {
  double goodput = 0;  // 0: no batch is possible
  PolluxSplit split{};
};

struct GoodputModel {
  StepModel step{};
  PolluxGradStats grad{};
  int init_batch = 0;

  double throughput(int nodes, int replicas, double atomic, int accumulation) const;
  double efficiency(int replicas, double atomic, int accumulation) const;
  double goodput(int nodes, int replicas, double atomic, int accumulation) const;
  // The best of 50 total batches in geometric steps. Without `accumulate` a single GPU stays at the
  // initial batch.
  BestBatch best(int nodes, int replicas, const BatchLimits& limits, bool accumulate = true) const;
};

struct StepSample {
  int nodes = 0, replicas = 0, atomic = 0;
  double grad_s = 0, step_s = 0;  // one pass; one step without accumulation
};

// The model that fits these (not empty) best, with the study's priors for what was not seen yet.
StepModel fit_step_model(std::span<const StepSample> samples);

}  // namespace ymir::artifact::pollux
