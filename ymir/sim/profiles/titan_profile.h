// TitanProfile: what was measured of four backbones (RoBERTa and ViT, base and large) in
// parameter-efficient fine-tuning on V100 and A100: time of a step by placement and batch, memory,
// cost of a start, and the 36 kinds of jobs of the FM traces with their lengths. For simulators: it
// is the truth of their worlds.
//
// Files of the folder: jobs_effective.csv, throughput_per_job.csv,
// lut/GPU/MODEL_{placements,scalability,memory,context_switch}.csv. Reading is bounded and names
// file:line. A look-up in no table is an error that names the look-up (kNotFound), never a guess.
//
// Placements: placement.h. Immutable after reading; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/sim/profiles/placement.h"

namespace ymir {

// A row of jobs_effective.csv.
struct JobKind {
  std::string application{}, model{}, task{};  // application = model@task
  std::string learning_rate{};                 // as written: "4e-5"
  int gradient_steps = 1;
  std::int64_t batch = 0;  // samples of one optimizer step
  double target = 0;       // of the metric; wikitext: negated loss
  // Epochs to the target. `epochs` is what the published results used: a parser that was one ulp
  // off made 10 of three of them, and 10 is also what a target never met counts as.
  double epochs = 0, epochs_of_best = 0;
  // Language tasks stand with a quarter of their samples there; times 4 is the length of the data.
  double samples_per_epoch = 0;
  double samples = 0;  // to the target, as the published results used
  int max_gpus = 1;
  std::int64_t min_local = 1, max_local = 1;  // samples of one pass on one GPU
  double switch_s = 0;                        // of a start, beside the checkpoint
};

// How one optimizer step is shared out on `gpus`.
struct BatchSplit {
  std::int64_t local = 0;    // samples of one pass on one GPU
  int accumulation = 0;      // passes before the one that exchanges gradients
  std::int64_t samples = 0;  // of the whole step: gpus x local x (accumulation + 1)
};
BatchSplit split_batch(const JobKind& kind, int gpus);

struct PassTime {
  double seconds = 0;       // forward, backward, exchange of gradients
  double sync_seconds = 0;  // of it, the exchange
};

// One optimizer step.
struct StepRate {
  std::int64_t samples = 0;
  double seconds = 0;
  double predicted_seconds = 0;  // what Titan believes: one accumulation pass too many
};

struct TitanProfileOptions {
  std::string folder{};
  std::string gpu_type = "V100";      // or A100, whose restart cost of vit looks like an outlier
  std::vector<std::string> models{};  // whose tables are read; empty: all of jobs_effective.csv
};

class TitanProfile {
 public:
  static Result<TitanProfile> read(const TitanProfileOptions& options);

  const std::vector<JobKind>& kinds() const { return kinds_; }
  // kNotFound names the four keys.
  Result<const JobKind*> find(const std::string& application, const std::string& learning_rate,
                              int gradient_steps, std::int64_t batch) const;

  // At most 4 nodes: the table of placements at the smallest rotation, linear in the local batch.
  // More: throughput_per_job.csv by (application, batch, GPUs), measured at as few nodes as can be.
  Result<StepRate> rate(const JobKind& kind, std::span<const int> placement) const;

  // As rate(), and where that knows nothing: the fewest measured nodes (6, 8, 12 or 16, not fewer
  // than the placement's unless there are none), linear in GPUs, then in the local batch. The
  // exchange depends in these tables on the GPUs, hardly on the nodes they are spread over.
  Result<StepRate> rate_anywhere(const JobKind& kind, std::span<const int> placement) const;

  // One pass of `local` samples on each GPU, from the table of placements only.
  Result<PassTime> pass_time(const std::string& model, std::span<const int> placement,
                             std::int64_t local) const;
  // GiB of one GPU, linear in the local batch. V100 vit-large falls between 96 and 128.
  Result<double> memory_gib(const std::string& model, std::int64_t local) const;
  // Seconds of a start in all; its parts were not measured.
  Result<double> switch_seconds(const std::string& model) const;

 private:
  struct Point {  // value at a local batch
    std::int64_t local = 0;
    PassTime time{};
  };
  struct PerJob {
    std::int64_t local = 0;
    int nodes = 0;
    PassTime time{};
  };
  using Points = std::vector<Point>;  // ascending in local

  Result<> read_kinds(const std::string& folder);
  Result<> read_per_job(const std::string& folder);
  Result<> read_model(const std::string& folder, const std::string& model);
  Result<> read_placements(const std::string& file, const std::string& model);
  Result<> read_scalability(const std::string& file, const std::string& model);
  static Result<PassTime> at_local(const Points& points, std::int64_t local,
                                   const std::string& look_up);
  Result<PassTime> many_nodes(const std::string& model, int nodes, int gpus,
                              std::int64_t local) const;

  std::string gpu_type_{};
  std::vector<JobKind> kinds_{};
  std::map<std::tuple<std::string, std::int64_t, int>, PerJob> per_job_{};  // application, batch
  std::map<std::pair<std::string, std::string>, Points> placements_{};      // model, digits
  std::map<std::string, std::map<int, std::map<int, Points>>> many_{};      // model, nodes, GPUs
  std::map<std::string, std::vector<std::pair<std::int64_t, double>>> memory_{};
  std::map<std::string, double> switch_{};
};

}  // namespace ymir
