// Workload: jobs of a simulated day with what is true of them, as a file of JSON lines (format
// `ymir`): a header object, then one object a job, in the order of submission.
//
//   {"format":"ymir","version":1,"nodes":60,"gpus_per_node":4,"seed":1,
//    "temporal":{"vit/cifar>vit/food":0.4},"spatial":{"vit/cifar+vit/food":[0.2,0.1,1.2]}}
//   {"name":"w1","at":12.5,"backbone":"vit","task":"cifar","steps":900,"steps_per_epoch":90,
//    "max_steps":3600,"step_time":0.35,"scaling":0.93,"gpus":2,"min_gpus":1,"max_gpus":8,
//    "share":true}
//
// A job that shares only with jobs of its own trust domain names it: "domain":"team-a".
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
  std::string domain = "all";  // of trust: shares with jobs of the same one only
  int line = 0;                // of the file that it was read from; 0: of none
  StepTimes table{};    // measured; goes before step_time and scaling, names the sizes on offer
  double start_s = -1;  // of each of its runs; below 0: as the simulation says
};

struct Workload {
  int nodes = 1, gpus_per_node = 4;
  std::uint64_t seed = 0;
  std::map<std::string, double> temporal{};                // "backbone/source>backbone/target"
  std::map<std::string, std::array<double, 3>> spatial{};  // "first+second": gains and joint
  std::vector<WorkloadJob> jobs{};
  std::string generator{};  // JSON object: how it was made; empty: not by a generator
};

// At most 10^6 jobs and 1 GiB.
Result<Workload> parse_workload(const std::string& name, const std::string& text);
std::string to_text(const Workload& workload);  // what parse_workload reads, byte for byte again

// The setting of the paper, by chance: run times log-normal with a long tail, few
// GPUs asked for most, tasks of three backbones in classes of size. Every draw of a job depends on
// (seed, job, field) only, so jobs can be added without changing the others; what was asked for and
// what came of it stand in the header.
struct WorkloadOptions {
  int num_jobs = 3000;
  int num_gpus = 240;
  int gpus_per_node = 4;
  double load = 1.5;    // offered; sets the window, unless window_s is given
  double window_s = 0;  // of the arrivals; then the load is what it comes to
  std::uint64_t seed = 1;
  // paper27: 3 backbones x 9 tasks with made-up step times. paper27-measured: vit-large,
  // roberta-base and roberta-large with tables, lengths and gains of `profiles`.
  std::string tasks = "paper27";
  std::string profiles{};
  // poisson; philly:FILE (the gaps of that trace from a seeded row on, bursts and all);
  // hourly:W1,W2,... (relative rates of equal parts of the window).
  std::string arrivals = "poisson";
  double median_seconds = 1200, sigma = 1.4;  // of a job alone on what it asks for
  std::vector<double> shares{};               // of the three backbones; empty: equal
  double zipf = 0;                            // popularity of the tasks of a class: rank^-zipf
  double share = 0.9;                         // of the jobs: may be shared
  int domains = 1;                            // of trust, equally likely
  // measured (of `profiles`) or synthetic: each ordered pair of tasks useful with probability
  // useful_pairs, its gain log-normal, else the same mirrored.
  std::string gains{};  // empty: synthetic for paper27, measured for paper27-measured
  double useful_pairs = 0.1, gain_sigma = 0.6;
  // Of measured tasks: what their gains are against, and their targets. trace: those of `profiles`;
  // tuned, p75, median: of the settings that were run alone, by best metric.
  std::string solo = "trace";
  Result<> validate() const;
};
// The sigma of a log-normal with that mean and median.
double sigma_of(double median, double mean);
// Of the jobs: MEDIAN,MEAN in seconds, or seren or kalos, run times of the GPU jobs of two
// published clusters. Empty: as they are.
Result<> read_sizes(const std::string& text, WorkloadOptions& options);
Result<Workload> generate_workload(const WorkloadOptions& options);
// Synthetic gains in place of those that the workload has: by seed, useful_pairs and gain_sigma.
void draw_gains(const WorkloadOptions& options, Workload& workload);

// What is true of a job alone, without the error of evaluations.
JobTruth truth_of(const WorkloadJob& job);
// Seconds from its first step to its target, alone on so many GPUs, without any switch.
double solo_seconds(const WorkloadJob& job, int gpus);

// Sum of run time x GPUs asked for / (GPUs x time from the first to the last submission).
double offered_load(const Workload& workload);

}  // namespace ymir
