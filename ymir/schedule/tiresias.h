// Tiresias: two-dimensional least attained service, discretised. Priority is the
// GPU-seconds that a job has held so far: queues by limits, the least served first, and inside a
// queue by first start, so that nobody is preempted for an equal. A gang takes all its GPUs or
// none. It needs no forecast of time, only of sizes.
#pragma once

#include <vector>

#include "ymir/schedule/alone.h"

namespace ymir {

struct TiresiasOptions {
  // A job is in the queue of index k when its service has reached k limits. Published presets:
  // tiresias 3250,7200; celeste 3600 (promote 8); pollux 57600; titan 14400; lucid 18000.
  std::vector<double> limits{14'400};
  // Back to the first queue when it has waited that many times as long as it has run since it last
  // stood there; 0: never.
  double promote = 0;
  bool beyond = false;        // demotes above the limit, not at it (lucid)
  bool by_seconds = false;    // 1D: seconds run, not GPU-seconds
  bool largest_size = false;  // GPUs a job asks for: the smallest or largest of its sizes
  // Settings preset, limits, promote, request=smallest|largest, service=gpu_seconds|seconds.
  static Result<TiresiasOptions> from(const std::map<std::string, std::string>& settings);
  Result<> validate() const;
};

class Tiresias final : public Policy {
 public:
  Tiresias(std::string name, TiresiasOptions options)
      : name_(std::move(name)), options_(std::move(options)) {}
  std::string_view name() const override { return name_; }
  Result<Decision> decide(const Round& round) const override;
  std::map<std::string, std::string> constants() const override;

 private:
  std::string name_;
  TiresiasOptions options_;
};

}  // namespace ymir
