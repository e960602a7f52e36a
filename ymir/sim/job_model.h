// JobModel: the truth of a simulated cluster: what jobs really do, whatever anybody believes. It
// shares no code with estimate/.
//
// A job's progress is 0 at its start and 1 where it meets its target; alone it grows by 1 / steps
// with each optimizer step. Metric and loss are functions of progress alone. A temporal source
// with speed-up 1 + gain is a head start of gain / (1 + gain) (negative: a setback); in a spatial
// pair progress grows 1 + gain times as fast, and a joint step takes `joint` times as long as one
// of the slower member. Pure, any thread; only + - * / so that every machine agrees.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "ymir/base/time.h"
#include "ymir/core/job.h"

namespace ymir {

struct JobTruth {
  std::int64_t steps = 100;           // alone, to the target
  std::int64_t steps_per_epoch = 10;  // evaluated after each
  std::int64_t max_steps = 400;       // ends here, target or not
  Seconds step_time{1};               // on one GPU
  double scaling = 0.95;              // speed on 2 g GPUs / speed on g GPUs / 2
  double start_metric = 0.5;          // before the first step
  double target_metric = 0.9;         // at progress 1
  double noise = 0;                   // half width of the uniform error of an evaluation
  std::string family{};               // jobs of one family have alike task vectors
};

struct SpatialTruth {
  double gain_first = 0, gain_second = 0;  // of the smaller and of the larger id
  double joint = 2;
};

class JobModel {
 public:
  void add(JobId job, JobTruth truth) { jobs_[job] = std::move(truth); }
  void set_temporal(JobId source, JobId target, double gain) { temporal_[{source, target}] = gain; }
  void set_spatial(JobId first, JobId second, SpatialTruth truth);

  const JobTruth& job(JobId job) const { return jobs_.at(job); }
  double temporal_gain(JobId source, JobId target) const;  // 0 when nothing was set
  double head_start(JobId source, JobId target) const;     // in progress
  SpatialTruth spatial(JobId first, JobId second) const;   // first < second

  Seconds step_time(JobId job, int gpus) const;
  Seconds joint_step_time(JobId first, JobId second, int gpus) const;
  double metric(JobId job, double progress) const;
  double loss(JobId job, double progress) const;
  // The progress at which the metric has that value: the inverse of metric().
  double progress_at(JobId job, double metric) const;

 private:
  std::map<JobId, JobTruth> jobs_;
  std::map<std::pair<JobId, JobId>, double> temporal_;
  std::map<std::pair<JobId, JobId>, SpatialTruth> spatial_;
};

}  // namespace ymir
