#include "ymir/schedule/loss_fit.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ymir {

namespace {

constexpr double kFall = 0.05, kOver = 10, kMostEpochs = 100, kBeyond = 20;

// Weight of point i of n: 1 / sigma^2 with sigma = 4^-floor(i / ceil(n / 3)).
double weight_of(std::size_t i, std::size_t n) {
  const std::size_t third = (n + 2) / 3;
  double weight = 1;
  for (std::size_t k = 0; k < i / third; ++k) weight *= 16;
  return weight;
}

// For a given c, 1 / (loss - c) is a line in the epoch; its error counts as that of the loss.
LossCurve line_for(std::span<const double> losses, double c) {
  double s = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double above = losses[i] - c, x = static_cast<double>(i + 1), y = 1 / above;
    const double w = weight_of(i, losses.size()) * above * above * above * above;
    s += w;
    sx += w * x;
    sy += w * y;
    sxx += w * x * x;
    sxy += w * x * y;
  }
  const double spread = s * sxx - sx * sx;
  LossCurve curve{.a = spread > 0 ? (s * sxy - sx * sy) / spread : 0, .c = c};
  curve.a = std::max(curve.a, 0.0);
  curve.b = (sy - curve.a * sx) / s;
  if (curve.b < 0) curve = {.a = sxy / sxx, .b = 0, .c = c};
  return curve;
}

double error_of(const LossCurve& curve, std::span<const double> losses) {
  double sum = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double miss = curve.at(static_cast<double>(i + 1)) - losses[i];
    sum += weight_of(i, losses.size()) * miss * miss;
  }
  return sum;
}

std::vector<double> losses_of(const JobView& job) {
  std::vector<double> losses;
  for (const Evaluation& evaluation : job.evaluations) {
    const auto loss = evaluation.metrics.find("loss");
    losses.push_back(loss != evaluation.metrics.end() ? loss->second : evaluation.train_loss);
  }
  return losses;
}

double epochs_of(std::int64_t steps, const JobView& job) {
  return static_cast<double>(steps) /
         static_cast<double>(std::max<std::int64_t>(job.facts.steps_per_epoch, 1));
}

}  // namespace

std::optional<LossCurve> fit_loss(std::span<const double> losses) {
  if (losses.size() < 3) return std::nullopt;
  for (const double loss : losses)
    if (!(loss > 0) || !std::isfinite(loss)) return std::nullopt;
  // The one number that no line gives is searched on ever finer grids.
  constexpr int kPoints = 32, kRounds = 4;
  double low = 0, high = *std::ranges::min_element(losses) * (1 - 1e-9);
  LossCurve best;
  double least = HUGE_VAL;
  for (int round = 0; round < kRounds; ++round) {
    const double step = (high - low) / kPoints;
    for (int i = 0; i <= kPoints; ++i) {
      const LossCurve curve = line_for(losses, low + step * i);
      const double error = error_of(curve, losses);
      if (!(error < least)) continue;
      least = error;
      best = curve;
    }
    low = std::max(low, best.c - step);
    high = std::min(high, best.c + step);
  }
  if (!(best.a > 0)) return std::nullopt;
  return best;
}

double end_epoch(const LossCurve& curve, double epochs) {
  for (double end = std::max(epochs, kOver + 1); end <= kMostEpochs; end += 1)
    if (curve.at(end - kOver) - curve.at(end) <= kFall) return end;
  return epochs + kBeyond;
}

LossFits::LossFits(const Snapshot& cluster, bool wanted) {
  if (!wanted) return;
  for (const auto& [id, job] : cluster.jobs) {
    if (job.state != JobState::kSucceeded || !job.result || job.result->step <= 0) continue;
    Known& known = finished_[job.facts.backbone];
    known.epochs += epochs_of(job.result->step, job);
    ++known.jobs;
  }
}

double LossFits::longer(const AloneJob& alone) const {
  const JobView& job = *alone.job;
  const double forecast = alone.smallest()->members.front().steps.p50;
  const std::int64_t newest = job.evaluations.empty() ? 0 : job.evaluations.back().step;
  const double done = epochs_of(std::max(job.steps_done, newest), job);
  double end = 0;
  if (const auto known = finished_.find(job.facts.backbone); known != finished_.end())
    end = known->second.epochs / known->second.jobs;
  else if (const auto curve = fit_loss(losses_of(job)))
    end = end_epoch(*curve, static_cast<double>(job.evaluations.size()));
  else
    return 1;
  const double steps = std::max(end - done, 1.0) / epochs_of(1, job);
  return forecast > 0 ? steps / forecast : 1;
}

}  // namespace ymir
