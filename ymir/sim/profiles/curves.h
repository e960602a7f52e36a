// LearningCurves: real runs of the tasks of Titan: the metric at epoch ends of a task alone (28
// settings of learning rate and accumulation), after a source task (temporal), and of two tasks
// trained together (spatial). What a transfer really does in a simulated world.
//
// Files: {normal,temporal,spatial}_curves.csv. Some curves hold a second run: where the epoch does
// not grow it begins, and only the first is kept. The settings of the transfer runs were not
// recorded. Reading is bounded and names file:line. Immutable; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

struct EpochPoint {
  double epoch = 0, value = 0;
};
using Curve = std::vector<EpochPoint>;  // epochs ascending, never empty

// The first recorded epoch whose value is at least `target`; nothing: never met (censored).
std::optional<double> epochs_to(const Curve& curve, double target);
double best_value(const Curve& curve);

// Both metrics by joint epoch: one epoch of each task.
struct JointCurves {
  Curve first{}, second{};
  // False for `vit`: most of its pairs are those of vit-large under another name.
  bool trusted = true;
};

// A job as the work of a pair needs it.
struct CurveTask {
  double target = 0;
  double samples_per_epoch = 0;
};

// Samples that the pair has trained, both together, when each meets its target.
struct PairSamples {
  double first = 0, second = 0;
  double total() const { return first > second ? first : second; }
};
// Who meets its target leaves; the other goes on along its joint curve, alone. Nothing when one
// never does.
std::optional<PairSamples> spatial_samples(const JointCurves& curves, const CurveTask& first,
                                           const CurveTask& second);
// The source alone, then the target along its curve after the source.
std::optional<PairSamples> temporal_samples(double source_samples, const Curve& after_source,
                                            const CurveTask& target);

// A task alone under one of its settings, ranked by their best metric: what a transfer is compared
// with. The published gains of these curves change sign with it, so every use names it.
enum class SoloRank { kBest, kUpperQuartile, kMedian };
std::optional<SoloRank> solo_rank_of(std::string_view name);  // tuned p75 median
struct SoloRun {
  const Curve* curve = nullptr;
  double best = 0;
  double target = 0;  // 2% of the best below it
  double epochs = 0;  // whole, to the target
};
// Epochs to the target counted in whole ones, as the runs evaluated; at least one.
std::optional<double> whole_epochs_to(const Curve& curve, double target);

class LearningCurves {
 public:
  // `models` empty: all.
  static Result<LearningCurves> read(const std::string& folder,
                                     const std::vector<std::string>& models = {});

  struct Setting {
    std::string learning_rate{};
    int gradient_steps = 1;
    bool operator<(const Setting& other) const {
      return std::tie(learning_rate, gradient_steps) <
             std::tie(other.learning_rate, other.gradient_steps);
    }
  };

  // Null when nobody ran it. Valid as long as the object.
  const Curve* normal(const std::string& model, const std::string& task,
                      const Setting& setting) const;
  // All settings of a task; empty when there are none.
  const std::map<Setting, Curve>& settings(const std::string& model, const std::string& task) const;
  // Settings with equal metrics stand in the order of learning rate, then gradient steps. Nothing
  // when there are no settings.
  std::optional<SoloRun> solo(const std::string& model, const std::string& task,
                              SoloRank rank) const;
  const Curve* temporal(const std::string& model, const std::string& source,
                        const std::string& target) const;
  // In either order.
  std::optional<JointCurves> spatial(const std::string& model, const std::string& first,
                                     const std::string& second) const;

  using TaskKey = std::pair<std::string, std::string>;                // model, task
  using PairKey = std::tuple<std::string, std::string, std::string>;  // model and two tasks
  // Every pair that was run: temporal (source, target), spatial as the file orders them.
  const std::map<PairKey, Curve>& temporal_pairs() const { return temporal_; }
  const std::map<PairKey, JointCurves>& spatial_pairs() const { return spatial_; }

 private:
  std::map<TaskKey, std::map<Setting, Curve>> normal_{};
  std::map<PairKey, Curve> temporal_{};
  std::map<PairKey, JointCurves> spatial_{};
};

}  // namespace ymir
