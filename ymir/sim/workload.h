// Workload: jobs of a simulated day with what is true of them, as a file of JSON lines (format
// `ymir`): a header object, then one object a job, in the order of submission.
//
//   {"format":"ymir","version":1,"nodes":60,"gpus_per_node":4,"seed":1,
//    "temporal":{"vit/cifar>vit/food":0.4},"spatial":{"vit/cifar+vit/food":[0.2,0.1,1.2]}}
//   {"name":"w1","at":12.5,"backbone":"vit","task":"cifar","steps":900,"steps_per_epoch":90,
//    "max_steps":3600,"step_time":0.35,"scaling":0.93,"gpus":2,"min_gpus":1,"max_gpus":8,
//    "share":true}
//
// Measured jobs have beside these "table":[[gpus,nodes,seconds a step],...], "table_source" (where
// it comes from) and "start_s" (of each run).
//
// Gains belong to pairs of tasks of one backbone. Reading is bounded and names file:line.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/sim/job_model.h"

namespace ymir {

struct WorkloadJob {
  std::string name{};
  double at = 0;  // seconds
  std::string backbone{}, task{};
  std::int64_t steps = 100, steps_per_epoch = 10, max_steps = 400;
  double step_time = 1, scaling = 0.95;
  int gpus = 1;      // asked for: what a scheduler without elasticity gives
  int min_gpus = 1;  // with fewer it does not run: a rigid job has min = gpus = max
  int max_gpus = 1;  // what it can use
  bool share = true;
  StepTimes table{};    // measured; goes before step_time and scaling, names the sizes on offer
  double start_s = -1;  // of each of its runs; below 0: as the simulation says
};

struct Workload {
  int nodes = 1, gpus_per_node = 4;
  std::uint64_t seed = 0;
  std::map<std::string, double> temporal{};                // "backbone/source>backbone/target"
  std::map<std::string, std::array<double, 3>> spatial{};  // "first+second": gains and joint
  std::vector<WorkloadJob> jobs{};
};

// At most 10^6 jobs and 1 GiB.
Result<Workload> parse_workload(const std::string& name, const std::string& text);
std::string to_text(const Workload& workload);  // what parse_workload reads, byte for byte again

// The setting of the paper, by chance: 3 backbones x 9 tasks, run times log-normal with a long
// tail, most jobs small, Poisson arrivals over the time in which the cluster is offered `load`
// times what it can do. Every draw depends on (seed, job, field) only.
struct WorkloadOptions {
  int num_jobs = 3000;
  int num_gpus = 240;
  int gpus_per_node = 4;
  double load = 1.5;
  std::uint64_t seed = 1;
  double median_seconds = 1200, sigma = 1.4;  // of a job alone on what it asks for
  double useful_pairs = 0.1;                  // of the ordered pairs of tasks of a backbone
  double share = 0.9;                         // of the jobs
  Result<> validate() const;
};
Result<Workload> generate_workload(const WorkloadOptions& options);

// What is true of a job alone, without the error of evaluations.
JobTruth truth_of(const WorkloadJob& job);
// Seconds from its first step to its target, alone on so many GPUs, without any switch.
double solo_seconds(const WorkloadJob& job, int gpus);

// Sum of run time x GPUs asked for / (GPUs x time from the first to the last submission).
double offered_load(const Workload& workload);

}  // namespace ymir
