// PairTruth: what pairings are truly worth in a simulated workload, to judge afterwards what a
// policy did and did not do. TranWt is the sum of completion times of the two jobs one after the
// other, the shorter first, over their sum as a pair; above 1 the pair was right. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ymir/sim/job_model.h"
#include "ymir/sim/metrics/record.h"
#include "ymir/sim/workload.h"

namespace ymir {

class PairTruth {
 public:
  // Both outlive the object. JobId i of the model is job i - 1 of the workload. Gains are those of
  // the workload's tasks.
  PairTruth(const Workload& workload, const JobModel& model);

  // `source_left`: seconds that the source still has to run when the pair is decided.
  double temporal_weight(int source, int target, int gpus, double source_left) const;
  double spatial_weight(int first, int second, int gpus) const;
  // Of a merge as it was made, at its number of GPUs.
  double weight_of(const RunRecord& record, const Merge& merge) const;
  // Fewest seconds from start to target, over all sizes and partners; `noise`: of evaluations.
  double least_seconds(int job, double noise) const;

  // Merges that were possible when a job began alone, worth at least `theta`, and not made.
  struct Missed {
    std::int64_t count = 0;
    double gain_s = 0;  // of the sum of completion times, the best partner of each job
  };
  Missed missed(const RunRecord& record, double theta) const;

 private:
  double solo(int job, int gpus) const;
  double left_of(const RunRecord& record, int job, double at, int gpus) const;

  const Workload& workload_;
  const JobModel& model_;
  struct PairGains {
    double temporal = 0;  // of the second after the first
    SpatialTruth spatial{};
  };
  const PairGains& gains(int first, int second) const;  // in this order

  std::vector<std::size_t> task_{};  // of each job
  std::vector<PairGains> gains_{};   // by tasks, row by row
  std::size_t num_tasks_ = 0;
  std::vector<double> best_speed_{};  // by task: with its best partner
};

}  // namespace ymir
