#include "ymir/estimate/transfer_curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace ymir {
namespace {

constexpr int kSpeedupGrid = 24;
// How the help is spread over the run: the share of the way to the target that the source spares at
// once; by how much the pace fades, from 1 + fade at the start to 1 / (1 + fade) at the end; and ln
// of what is believed of each.
struct Help {
  double head = 0, fade = 0, log_prior = 0;
};
constexpr std::array<Help, 10> kHelps{
    Help{0, 0, -1.20}, {0.1, 0, -2.59}, {0.25, 0, -2.81}, {0.5, 0, -3.22}, {0.75, 0, -3.69},
    {0, 4, -1.20},     {0.1, 4, -2.59}, {0.25, 4, -2.81}, {0.5, 4, -3.22}, {0.75, 4, -3.69}};
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

// The merged run at step k is where the job alone is at S (head + (1 - head) g(k speedup / S)), g
// from 0 at 0 to 1 at 1: at the target (S steps alone) after S / speedup steps, however the help is
// spread. Beyond the target the pace stays as it is there.
double log_likelihood(const LearningCurve& curve, const Help& help, double speedup,
                      const std::vector<ErrorPoint>& points) {
  const double alone = curve.steps_to_target, first = 1 + help.fade;
  double sum = 0;
  for (const ErrorPoint& point : points) {
    const double x = point.step * speedup / alone;
    const double way = x < 1 ? x * first / (1 + help.fade * x) : 1 + (x - 1) / first;
    const double miss = point.error - curve.error(alone * (help.head + (1 - help.head) * way));
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
  const double soonest =
      points.empty() ? 0 : std::min(points.back().step + between_evaluations, last_step);
  for (const double u : uniform(Dimension::kCurve)) {
    const LearningCurve& curve = solo.at(u);
    const double alone = noticed_at(curve.steps_to_target, between_evaluations, last_step);
    const std::size_t first = worlds_.size();
    double best = -INFINITY;
    for (int i = 0; i <= kSpeedupGrid; ++i) {
      const double z = -3 + 6.0 * i / kSpeedupGrid;
      const double speedup = std::exp(mean + z * spread);
      const double with = std::max(
          noticed_at(curve.steps_to_target / speedup, between_evaluations, last_step), soonest);
      for (const Help& help : kHelps) {
        const double weight =
            -0.5 * z * z + help.log_prior + log_likelihood(curve, help, speedup, points);
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

double MergedBelief::late(double own_step, double cost, double share, double floor) const {
  double sum = 0;
  for (const Weighted& world : worlds_) {
    const double allowed = std::max(share * world.alone, floor);
    if (world.with * cost > world.alone - own_step + allowed) sum += world.weight;
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
