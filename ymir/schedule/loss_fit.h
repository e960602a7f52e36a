// The authors' estimate behind Optimus: the loss after epoch k is
// 1 / (a k + b) + c with a, b, c >= 0, and a job ends where it hardly falls any more. What a job
// wants of itself (its target) is not asked. Pure, any thread.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "ymir/schedule/alone.h"

namespace ymir {

struct LossCurve {
  double a = 0, b = 0, c = 0;
  double at(double epoch) const { return 1 / (a * epoch + b) + c; }
};

// Of the losses after epochs 1, 2, ..: weighted least squares, the last third of them weighing 256
// times as much as the first. Nothing for fewer than 3, or where nothing falls.
std::optional<LossCurve> fit_loss(std::span<const double> losses);

// The epoch at which a job that has seen `epochs` of them is believed to end: the first of which
// the ten before brought at most 0.05; never beyond 100 epochs, or 20 more than it has seen.
double end_epoch(const LossCurve& curve, double epochs);

// How much longer the jobs of one round are by the fit than by the forecast.
class LossFits {
 public:
  // Nothing is read when it is not `wanted`.
  LossFits(const Snapshot& cluster, bool wanted);
  // Steps that are left by the fit / by the forecast. Where jobs of the backbone have finished, the
  // mean of their epochs is taken; 1 where nothing can be said yet.
  double longer(const AloneJob& job) const;

 private:
  struct Known {
    double epochs = 0;
    int jobs = 0;
  };
  std::map<std::string, Known> finished_{};  // by backbone
};

}  // namespace ymir
