// Oracle: beliefs that come from the truth of a JobModel instead of from an estimator, wrong where
// they are told to be. For `ymir:oracle`, for scenarios with `believe` lines, and for any study
// that wants to know what a better estimate would be worth. Pure; one thread.
#pragma once

#include <map>
#include <utility>

#include "ymir/control/beliefs.h"
#include "ymir/sim/job_model.h"

namespace ymir {

struct OracleOptions {
  bool pairs = true;
  double strength = 0.5;  // of each temporal candidate
  Seconds start_time{2};  // what a start or a change costs
  // What is believed instead of the truth, by (source, target) and by (first, second).
  std::map<std::pair<JobId, JobId>, double> temporal{};
  std::map<std::pair<JobId, JobId>, SpatialTruth> spatial{};
};

class Oracle {
 public:
  // `truth` outlives the oracle.
  Oracle(const JobModel& truth, OracleOptions options)
      : truth_(truth), options_(std::move(options)) {}

  Forecast forecast(const Snapshot& now) const;
  std::vector<TransferSettled> settle(const Snapshot& now) const;
  // The oracle outlives the result.
  Beliefs bind() const;

 private:
  struct Position {  // where a job is now, as far as reports tell
    std::int64_t step = 0;
    double progress = 0;
  };
  Position position(const Snapshot& now, const JobView& job) const;
  // Steps until the evaluation that meets the target, when progress grows by `rate` a step.
  double steps_left(JobId job, Position from, double rate) const;
  double alone_left(const Snapshot& now, const JobView& job) const;
  double gain(JobId source, JobId target) const;
  SpatialTruth joint(JobId first, JobId second) const;
  void add_alone(const Snapshot& now, const JobView& job, Forecast& forecast) const;
  void add_temporal(const Snapshot& now, const JobView& source, const JobView& target,
                    Forecast& forecast) const;
  void add_spatial(const Snapshot& now, const JobView& first, const JobView& second,
                   Forecast& forecast) const;
  void add_sources(const Snapshot& now, const JobView& target, Forecast& forecast) const;
  void add_mates(const Snapshot& now, const JobView& first, Forecast& forecast) const;
  void add_outlooks(const Snapshot& now, Forecast& forecast) const;

  const JobModel& truth_;
  OracleOptions options_;
};

}  // namespace ymir
