// What is measured about a job beside its training: curve points, step times, task vector, probes.
// Values only, made by workers (or by the simulated world) and read by the estimator.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ymir/base/time.h"
#include "ymir/core/job.h"

namespace ymir {

// Mean training loss of the steps (first, last] of one run.
struct LossPoint {
  std::int64_t step = 0;  // last step of the interval; optimizer steps of the job itself
  double loss = 0;
};

struct Evaluation {
  std::int64_t step = 0;
  double epoch = 0;
  std::int64_t samples = 0;                 // of the job's own training data, so far
  std::map<std::string, double> metrics{};  // by name; undefined metrics are absent
  double train_loss = 0;                    // mean since the last evaluation
  Seconds train_time{};                     // of training so far, evaluation and saving excluded
};

// One step-time measurement: everything that changes a step's duration names it.
struct StepKey {
  std::string backbone{};
  std::string method{};    // "lora r8 query,value"
  std::string hardware{};  // CPU or GPU model
  std::string precision{};
  bool joint = false;  // spatial: one batch of each task a step
  int gpus = 1;
  int batch = 0;           // rows a step (of one task)
  int tokens_per_row = 0;  // mean, rounded up to a multiple of 8
  auto operator<=>(const StepKey&) const = default;
};
struct StepTiming {
  StepKey key{};
  std::int64_t num_steps = 0;
  Seconds median{};
  Seconds mad{};  // median absolute deviation
};

// How much a source's adapter helps a target's features: evidence(with) - evidence(without), per
// row (LogME). Larger = more help.
struct Probe {
  JobId source{};
  double strength = 1;
  double value = 0;
  std::int64_t rows = 0;
};

// Filter-averaged diagonal Fisher at the frozen backbone.
struct TaskVector {
  std::string key{};            // different keys are never compared
  std::vector<float> fisher{};  // [M], scaled to mean 1; empty: refused or not allowed
  double scale = 0;             // mean before scaling
  std::int64_t rows = 0;
  double split_half = 0;  // cosine of the two halves' vectors
};

struct Profile {
  std::vector<LossPoint> losses{};
  std::vector<Evaluation> evaluations{};
  std::vector<StepTiming> step_times{};
  TaskVector vector{};
  std::vector<Probe> probes{};
  std::int64_t peak_memory = 0;  // bytes
  Seconds seconds{};             // slot time that the profile took
};

}  // namespace ymir
