#include "ymir/estimate/transfer_curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace ymir {
namespace {

constexpr int kSpeedupGrid = 40;
// Share of the way to the target that the source spares at once, and ln of what is believed of
// each.
struct HeadStart {
  double share = 0, log_prior = 0;
};
constexpr std::array<HeadStart, 5> kHeadStarts{
    HeadStart{0, -0.51}, {0.1, -1.90}, {0.25, -2.12}, {0.5, -2.53}, {0.75, -3.00}};
// Less is never believed before a run: the prior must leave room for what is seen.
constexpr double kLeastSpread = 0.35;

template <class Worlds, class Value>
double weighted_quantile(Worlds worlds, double probability, Value value) {
  std::ranges::sort(worlds, {}, value);
  double sum = 0;
  for (const auto& world : worlds) {
    sum += world.weight;
    if (sum >= probability) return value(world);
  }
  return value(worlds.back());
}

// The merged run at step k is where the job alone is at head * S + (1 - head) * speedup * k: at the
// target (S steps alone) after S / speedup steps, whatever the head start.
double log_likelihood(const LearningCurve& curve, double head, double speedup,
                      const std::vector<ErrorPoint>& points) {
  const double first = head * curve.steps_to_target, rate = (1 - head) * speedup;
  double sum = 0;
  for (const ErrorPoint& point : points) {
    const double miss = point.error - curve.error(first + rate * point.step);
    sum -= 2.5 * std::log1p(miss * miss / (4 * point.variance));
  }
  return sum / (1 + 0.15 * (static_cast<double>(points.size()) - 1));
}

}  // namespace

// Every curve of the job's own keeps its share, whatever the merged run shows.
void MergedBelief::weigh_equally(std::span<Weighted> worlds, double best) {
  double total = 0;
  for (Weighted& world : worlds) {
    world.weight = std::exp(world.weight - best);
    total += world.weight;
  }
  for (Weighted& world : worlds) world.weight /= total * kNumDraws;
}

MergedBelief::MergedBelief(const SoloBelief& solo, const Interval& prior,
                           const std::vector<ErrorPoint>& points, double between_evaluations,
                           double last_step) {
  const double mean = std::log(prior.p50);
  const double spread = std::max(kLeastSpread, std::log(prior.p90 / prior.p10) / (2 * kZ90));
  for (const double u : uniform(Dimension::kCurve)) {
    const LearningCurve& curve = solo.at(u);
    const double alone = noticed_at(curve.steps_to_target, between_evaluations, last_step);
    const std::size_t first = worlds_.size();
    double best = -INFINITY;
    for (int i = 0; i <= kSpeedupGrid; ++i) {
      const double z = -3 + 6.0 * i / kSpeedupGrid;
      const double speedup = std::exp(mean + z * spread);
      const double with =
          noticed_at(curve.steps_to_target / speedup, between_evaluations, last_step);
      for (const HeadStart& head : kHeadStarts) {
        const double weight =
            -0.5 * z * z + head.log_prior + log_likelihood(curve, head.share, speedup, points);
        worlds_.push_back({speedup, weight, alone, with});
        best = std::max(best, weight);
      }
    }
    weigh_equally(std::span(worlds_).subspan(first), best);
  }
}

Interval MergedBelief::speedup() const {
  auto value = [](const Weighted& world) { return world.speedup; };
  return {weighted_quantile(worlds_, 0.1, value), weighted_quantile(worlds_, 0.5, value),
          weighted_quantile(worlds_, 0.9, value)};
}

double MergedBelief::helps(double step, double own_step) const {
  double sum = 0;
  for (const Weighted& world : worlds_) {
    if (world.with - step < world.alone - own_step) sum += world.weight;
  }
  return std::clamp(sum, 0.0, 1.0);
}

double MergedBelief::exceeds(double least) const {
  double sum = 0;
  for (const Weighted& world : worlds_) {
    if (world.speedup > least) sum += world.weight;
  }
  return std::clamp(sum, 0.0, 1.0);
}

Draws MergedBelief::steps() const {
  std::vector<Weighted> sorted = worlds_;
  std::ranges::sort(sorted, {}, &Weighted::with);
  Draws result{};
  // The draws of the curve dimension, each at its own share of the belief.
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double u = uniform(Dimension::kCurve)[i];
    double sum = 0;
    result[i] = sorted.back().with;
    for (const Weighted& world : sorted) {
      sum += world.weight;
      if (sum >= u) {
        result[i] = world.with;
        break;
      }
    }
  }
  return result;
}

double MergedBelief::lost_by_going_on(double step, double own_step) const {
  double sum = 0;
  for (const Weighted& world : worlds_) {
    const double on = std::max(0.0, world.with - step);
    const double back = std::max(0.0, world.alone - own_step);
    sum += world.weight * (on - back);
  }
  return sum;
}

}  // namespace ymir
