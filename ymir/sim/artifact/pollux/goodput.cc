#include "ymir/sim/artifact/pollux/goodput.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ymir/sim/artifact/pollux/bounded_minimum.h"

namespace ymir::artifact::pollux {
namespace {

constexpr double kTiny = 1e-8;  // of the study: least time, and its tolerance of ceilings
constexpr int kBatches = 50;

double more_than_two(int replicas) { return std::max(replicas - 2.0, kTiny); }

enum Parameter { kAlphaC, kBetaC, kAlphaN, kBetaN, kAlphaR, kBetaR, kGamma, kParameters };
using Parameters = std::array<double, kParameters>;

// Where the exchange of a sample has its parameters; -1: there is none.
int exchange(const StepSample& sample) {
  if (sample.nodes > 1) return kAlphaN;
  return sample.replicas > 1 ? kAlphaR : -1;
}

// Root of the mean square of `errors`, and its gradient from that of each error.
class RootMeanSquare {
 public:
  void add(double error, const Parameters& slope) {
    squares_ += error * error;
    for (std::size_t k = 0; k < kParameters; ++k) slope_[k] += error * slope[k];
    ++count_;
  }
  double value(std::vector<double>& gradient) const {
    const double mean = squares_ / count_, root = std::sqrt(mean);
    for (std::size_t k = 0; k < kParameters && root > 0; ++k)
      gradient[k] += slope_[k] / count_ / root;
    return root;
  }

 private:
  double squares_ = 0;
  Parameters slope_{};
  int count_ = 0;
};

// The study's loss: both times in logarithms, a small gamma, exchanges that hardly grow.
double loss(std::span<const StepSample> samples, const std::vector<double>& x,
            std::vector<double>& gradient) {
  gradient.assign(kParameters, 0);
  RootMeanSquare grad_error, step_error;
  const double gamma = x[kGamma];
  for (const StepSample& sample : samples) {
    const double grad = x[kAlphaC] + x[kBetaC] * sample.atomic;
    const double away = more_than_two(sample.replicas);
    const int at = exchange(sample);
    const auto alpha = static_cast<std::size_t>(std::max(at, 0));
    const double sync = at < 0 ? kTiny + kTiny * kTiny : x[alpha] + x[alpha + 1] * away;
    Parameters slope{};
    slope[kAlphaC] = 1 / grad;
    slope[kBetaC] = sample.atomic / grad;
    grad_error.add(std::log(grad) - std::log(sample.grad_s), slope);
    // log(grad^gamma + sync^gamma), without over- or underflow.
    const double u = gamma * std::log(grad), v = gamma * std::log(sync);
    const double sum = std::max(u, v) + std::log1p(std::exp(-std::abs(u - v)));
    const double share = std::exp(u - sum);
    slope[kAlphaC] *= share;
    slope[kBetaC] *= share;
    if (at >= 0) {
      slope[alpha] = (1 - share) / sync;
      slope[alpha + 1] = (1 - share) / sync * away;
    }
    slope[kGamma] = (share * u + (1 - share) * v - sum) / (gamma * gamma);
    step_error.add(sum / gamma - std::log(sample.step_s), slope);
  }
  double total = grad_error.value(gradient) + step_error.value(gradient);
  total += 1e-3 * (gamma - 1) * (gamma - 1);
  gradient[kGamma] += 2e-3 * (gamma - 1);
  for (const std::size_t alpha : {kAlphaN, kAlphaR}) {
    const double growth = x[alpha + 1] / x[alpha];
    total += 1e-2 * growth * growth;
    gradient[alpha + 1] += 2e-2 * growth / x[alpha];
    gradient[alpha] -= 2e-2 * growth * growth / x[alpha];
  }
  return total;
}

}  // namespace

double StepModel::sync_s(int nodes, int replicas) const {
  if (nodes > 1) return alpha_n + beta_n * more_than_two(replicas);
  if (replicas > 1) return alpha_r + beta_r * more_than_two(replicas);
  return kTiny + kTiny * kTiny;
}

double StepModel::step_s(int nodes, int replicas, double atomic, int accumulation) const {
  const double grad = grad_s(atomic), sync = sync_s(nodes, replicas);
  return accumulation * grad + std::pow(std::pow(grad, gamma) + std::pow(sync, gamma), 1 / gamma);
}

double GoodputModel::throughput(int nodes, int replicas, double atomic, int accumulation) const {
  return replicas * atomic * (accumulation + 1) /
         step.step_s(nodes, replicas, atomic, accumulation);
}

double GoodputModel::efficiency(int replicas, double atomic, int accumulation) const {
  const double scale = replicas * atomic * (accumulation + 1) / init_batch;
  return PolluxApplication::gain(grad, scale) / scale;
}

double GoodputModel::goodput(int nodes, int replicas, double atomic, int accumulation) const {
  return throughput(nodes, replicas, atomic, accumulation) *
         efficiency(replicas, atomic, accumulation);
}

BestBatch GoodputModel::best(int nodes, int replicas, const BatchLimits& limits,
                             bool accumulate) const {
  const double low = std::max(limits.init_batch, limits.min_atomic * replicas);
  const double high = limits.max_batch;
  BestBatch best;
  if (low > high) return best;
  const double step_log = std::log10(high / low) / (kBatches - 1);
  for (int i = 0; i < kBatches; ++i) {
    const double batch = i == 0              ? low
                         : i == kBatches - 1 ? high
                                             : low * std::pow(10.0, i * step_log);
    const double local = batch / replicas;
    int accumulation = 0;
    double atomic = replicas == 1 ? limits.init_batch : std::ceil(local - kTiny);
    if (accumulate) {
      accumulation = static_cast<int>(std::ceil(local / limits.max_atomic - kTiny)) - 1;
      if (replicas == 1 && local > limits.init_batch + kTiny)
        accumulation = std::max(1, accumulation);
      atomic = std::ceil(local / (accumulation + 1) - kTiny);
    }
    if (atomic < limits.min_atomic || atomic > limits.max_atomic) continue;
    const double value = goodput(nodes, replicas, atomic, accumulation);
    if (value > best.goodput) best = {value, {static_cast<int>(atomic), accumulation}};
  }
  return best;
}

StepModel fit_step_model(std::span<const StepSample> samples) {
  std::vector<double> x = {0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001};
  std::vector<double> lower(kParameters, kTiny);
  std::vector<double> upper(kParameters, std::numeric_limits<double>::infinity());
  lower[kGamma] = 1;
  upper[kGamma] = 10;
  const auto fix = [&](std::size_t k, double value) { x[k] = lower[k] = upper[k] = value; };
  const auto none = [&](auto holds) { return std::none_of(samples.begin(), samples.end(), holds); };
  double mean_grad_s = 0;
  for (const StepSample& s : samples) mean_grad_s += s.grad_s / static_cast<double>(samples.size());
  if (none([&](const StepSample& s) { return s.atomic != samples.front().atomic; }))
    fix(kAlphaC, mean_grad_s / 2);
  const bool one_node = none([](const StepSample& s) { return s.nodes > 1; });
  if (one_node) {
    fix(kAlphaN, kTiny);
    fix(kBetaN, kTiny);
  }
  if (none([](const StepSample& s) { return s.nodes == 1 && s.replicas > 1; })) {
    fix(kAlphaR, kTiny);
    fix(kBetaR, kTiny);
  }
  if (none([](const StepSample& s) { return s.replicas > 2; })) {
    fix(kBetaN, kTiny);
    fix(kBetaR, kTiny);
  }
  x = bounded_minimum([&](const std::vector<double>& at,
                          std::vector<double>& gradient) { return loss(samples, at, gradient); },
                      std::move(x), lower, upper)
          .x;
  if (one_node) {  // several nodes are no faster than one
    x[kAlphaN] = std::max(x[kAlphaN], 1.1 * x[kAlphaR]);
    x[kBetaN] = std::max(x[kBetaN], 1.1 * x[kBetaR]);
  }
  return {x[kAlphaC], x[kBetaC], x[kAlphaN], x[kBetaN], x[kAlphaR], x[kBetaR], x[kGamma]};
}

}  // namespace ymir::artifact::pollux
