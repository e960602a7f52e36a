// Synthetic rounds for benchmarks and tests: jobs with the spread of a shared fine-tuning cluster
// (lognormal work, sub-linear speed-up, gains between tasks of one backbone), and the candidates a
// scheduler would build from them. Same options, same instance.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/base/rng.h"
#include "ymir/optimize/problem.h"

namespace ymir {

struct GenerateOptions {
  int jobs = 200;
  int gpus = 240;
  double pairs = 0.05;  // wanted share of all pairs of jobs on offer
  std::uint64_t seed = 1;
  double gamma = 1;  // weight of transfer beyond the time it saves
  Result<> validate() const;
};

// "jobs=500,gpus=240,pairs=0.1,seed=7"; names left out keep their defaults.
Result<GenerateOptions> parse_generate_options(std::string_view text);

class Generator {
 public:
  explicit Generator(const GenerateOptions& options);  // draws the jobs
  // Fills the problem with the candidates of the round. Keys are 1, 2, ... in the order of jobs.
  void build(RoundProblem& problem) const;

 private:
  static constexpr int kLevels = 6;  // sizes 1, 2, .. 32
  static constexpr int kTasks = 9, kBackbones = 3;
  struct Job {
    int backbone = 0, task = 0;
    int first_level = 0, last_level = 0;  // sizes it can use
    bool shares = false, fresh = false;
    float weight = 0, fair = 0, switching = 0;  // priority; seconds at the fair share; seconds
    int held = -1;                              // level it runs on now
    std::array<float, kLevels> seconds{};       // to its end, by level
  };
  struct PairOption {
    int level = 0;
    std::uint8_t mode = 0;
    float transfer_weight = 0, utility = 0;
  };

  Job draw(Rng& rng, int backbones, double fair_share) const;
  void alone(const Job& job, std::vector<Option>& out) const;
  // Calls visit(PairOption) for every size and mode with at least this transfer weight.
  template <class Visit>
  void together(const Job& a, const Job& b, float jitter, float least, const Visit& visit) const;
  void offer_pair(RoundProblem& problem, int i, int j, std::vector<Option>& options) const;
  // No size, mode or jitter gives two such jobs a larger transfer weight.
  float most_transfer(int backbone, int task_a, int task_b) const;
  float gain(const Job& from, const Job& to) const {
    return gain_[from.backbone][from.task][to.task];
  }
  float utility(const Job& job, float seconds) const;

  GenerateOptions options_;
  float least_transfer_ = 1;
  std::array<std::array<std::array<float, kTasks>, kTasks>, kBackbones> gain_{};
  std::vector<Job> jobs_;
};

}  // namespace ymir
