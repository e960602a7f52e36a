// JobModel: the truth of a simulated cluster: what jobs really do, whatever anybody believes. It
// shares no code with estimate/.
//
// A job's progress is 0 at its start and 1 where it meets its target; alone it grows by 1 / steps
// with each optimizer step. Metric and loss are functions of progress alone. A temporal source
// with speed-up 1 + gain is a head start of gain / (1 + gain) (negative: a setback); in a spatial
// pair progress grows 1 + gain times as fast, and a joint step takes `joint` times as long as one
// of the slower member. Pure, any thread; only + - * / so that every machine agrees.
//
// Gains belong to pairs of jobs, or, where there are many jobs of few kinds, to pairs of families.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ymir/base/time.h"
#include "ymir/core/job.h"

namespace ymir {

// Measured seconds of a step by GPUs and the nodes that they lie on.
struct StepTimes {
  struct Row {
    int gpus = 1, nodes = 1;
    double seconds = 0;
    bool operator==(const Row&) const = default;
  };
  std::vector<Row> rows{};  // ascending by GPUs, then nodes; empty: the job's step_time and scaling
  std::string source{};     // where they come from: "throughput_per_job.csv"
};

struct JobTruth {
  std::int64_t steps = 100;           // alone, to the target
  std::int64_t steps_per_epoch = 10;  // evaluated after each
  std::int64_t max_steps = 400;       // ends here, target or not
  Seconds step_time{1};               // on one GPU
  double scaling = 0.95;              // speed on 2 g GPUs / speed on g GPUs / 2
  StepTimes table{};                  // goes before these two
  Seconds start_time{-1};             // of its runs; below 0: as the world says
  double start_metric = 0.5;          // before the first step
  double target_metric = 0.9;         // at progress 1
  double noise = 0;                   // half width of the uniform error of an evaluation
  std::string family{};               // jobs of one family have alike task vectors
  bool bad_data = false;              // its check refuses the data
  bool no_profile = false;            // its profile fails
  std::int64_t diverges_at = 0;       // its loss is no number from this step on; 0: never
};

struct SpatialTruth {
  double gain_first = 0, gain_second = 0;  // of the smaller and of the larger id
  double joint = 2;
};

class JobModel {
 public:
  void add(JobId job, JobTruth truth);  // ids from 1, few gaps
  void set_temporal(JobId source, JobId target, double gain) { temporal_[{source, target}] = gain; }
  void set_spatial(JobId first, JobId second, SpatialTruth truth);
  // Of every two jobs of the families of which nothing is set by job. Of one family: both gains
  // must be equal. Families without jobs are ignored.
  void set_family_temporal(const std::string& source, const std::string& target, double gain);
  void set_family_spatial(const std::string& first, const std::string& second, SpatialTruth truth);

  const JobTruth& job(JobId job) const { return entry(job).truth; }
  // An index that jobs of one family share.
  int family(JobId job) const { return entry(job).family; }
  int num_families() const { return static_cast<int>(families_.size()); }
  bool gains_by_family() const { return temporal_.empty() && spatial_.empty(); }
  double temporal_gain(JobId source, JobId target) const;  // 0 when nothing was set
  double head_start(JobId source, JobId target) const;     // in progress
  // What a probe of the target with the source's adapter measures.
  double probe_value(JobId source, JobId target) const {
    return 0.2 * temporal_gain(source, target);
  }
  SpatialTruth spatial(JobId first, JobId second) const;  // first < second

  // On the fewest nodes, or on `nodes`. Measured times go before; between two measured GPU counts
  // the speed is linear, between node counts the time; beyond the last it stays.
  Seconds step_time(JobId job, int gpus, int nodes = 0) const;
  Seconds joint_step_time(JobId first, JobId second, int gpus, int nodes = 0) const;
  double metric(JobId job, double progress) const;
  double loss(JobId job, double progress) const;
  // The progress at which the metric has that value: the inverse of metric().
  double progress_at(JobId job, double metric) const;

 private:
  struct Entry {
    JobTruth truth{};
    int family = -1;  // no such job
  };
  const Entry& entry(JobId job) const;
  int family_index(const std::string& name);

  std::vector<Entry> jobs_;  // by id
  std::map<std::string, int> families_;
  std::map<std::pair<JobId, JobId>, double> temporal_;
  std::map<std::pair<JobId, JobId>, SpatialTruth> spatial_;
  std::vector<std::vector<double>> family_temporal_;         // [source][target]; short: 0
  std::vector<std::vector<SpatialTruth>> family_spatial_{};  // [first][second]
};

}  // namespace ymir
