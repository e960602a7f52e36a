// Pollux itself: chooses GPUs and batch sizes together, by a goodput model that it fits to each job
// while it runs and a genetic search over allocations. The published artifact is
// unseeded; this one takes a seed, and is compared with the published results as a band.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/sim/artifact/pollux/genetic.h"
#include "ymir/sim/artifact/pollux/goodput.h"
#include "ymir/sim/artifact/pollux/world.h"

namespace ymir::artifact::pollux {

struct PolluxOptions {
  double p = -1;  // of the mean over jobs; 0: geometric
  int population = 100, generations = 100;
  std::uint64_t seed = 0;
  double restart_s = 30;
  bool fair_nodes_true_shape = false;  // else a fair share is priced as one node, as published
};

// One object a run: what it has measured and its last population lie in it.
class Pollux {
 public:
  explicit Pollux(const PolluxOptions& options) : options_(options) {}

  Result<std::vector<NodeList>> decide(const Round& round);
  PolluxSplit split(std::size_t job, const Job& state);
  void measured(std::size_t job, const Measured& measured);

 private:
  struct Belief {
    std::map<std::tuple<int, int, int>, StepSample> samples{};  // by nodes, GPUs, local batch
    std::optional<StepModel> step{};
    PolluxGradStats grad{};
    int most_replicas = 0;  // seen
  };
  struct Rows;  // what one round knows of the active jobs
  Belief& belief(std::size_t job);
  int cap(const Job& job, const Belief& belief) const;
  std::vector<Allocation> start(const Round& round, const std::vector<std::size_t>& order) const;

  PolluxOptions options_;
  std::vector<Belief> beliefs_;
  std::vector<std::size_t> last_order_;  // jobs of the rows of last_population_
  std::vector<Allocation> last_population_;
  std::uint32_t round_ = 0;
};

}  // namespace ymir::artifact::pollux
