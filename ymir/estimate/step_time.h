// StepTable: how long an optimizer step takes, by configuration, from what was measured online.
// Each answer says its source and never looks more certain than that.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ymir/base/interval.h"
#include "ymir/core/job.h"
#include "ymir/core/profile.h"

namespace ymir {

// Where a number of the estimate comes from, best first.
enum class Source { kExact, kMeasured, kInterpolated, kModel, kFallback, kPrior };
std::string to_string(Source source);

struct Link {
  Interval value{1, 1, 1};
  Source source = Source::kPrior;
  std::int64_t rows = 0;  // measurements behind it
};

class StepTable {
 public:
  // Adds a measurement; `job` (may be 0) is remembered to train under that key.
  void add(JobId job, const StepTiming& timing);

  // Seconds a step. First that applies: the key itself (>= 20 steps: measured; fewer: measured,
  // wider); between two measured batch x token products of the same key; proportional to batch x
  // tokens and to a cautious speed-up of several GPUs from other keys of the backbone; a constant.
  Link predict(const StepKey& key) const;

  // The key under which the job was last measured, if any.
  const StepKey* key_of(JobId job) const;

 private:
  struct Cell {
    double weight = 0;    // steps seen, capped so that old ones fade
    double log_mean = 0;  // of the medians
    double spread = 0;    // of ln step time
    std::int64_t steps = 0;
  };
  Link interpolate(const StepKey& key) const;
  Link scale_from_others(const StepKey& key) const;

  std::map<StepKey, Cell> cells_{};
  std::map<JobId, StepKey> keys_{};
};

// The key of a job before anything was measured: as workers build it.
StepKey step_key(const JobSpec& spec, const DataFacts& facts, const std::string& hardware,
                 int gpus);

}  // namespace ymir
