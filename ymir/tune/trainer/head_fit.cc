#include "ymir/tune/trainer/head_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "ymir/base/symmetric.h"

namespace ymir {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& x, const Vector& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

double largest(const Vector& x) {
  double found = 0;
  for (const double value : x) found = std::max(found, std::abs(value));
  return found;
}

// Centred features divided by one scale, with a column of ones for the bias. Centring changes
// nothing but the bias, and makes the bias independent of the weights.
struct Design {
  std::size_t rows = 0, columns = 0;  // the ones included
  Vector x{}, mean{};
  double scale = 1;
};

Design standardise(const Features& f) {
  const auto rows = static_cast<std::size_t>(f.rows);
  const auto columns = static_cast<std::size_t>(f.columns);
  Design d{rows, columns + 1, Vector(rows * (columns + 1), 1.0), Vector(columns), 1};
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      d.mean[c] += static_cast<double>(f.values[r * columns + c]) / static_cast<double>(rows);
    }
  }
  double squares = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      const double value = static_cast<double>(f.values[r * columns + c]) - d.mean[c];
      d.x[r * d.columns + c] = value;
      squares += value * value;
    }
  }
  const double mean_square = squares / static_cast<double>(rows * columns);
  if (mean_square > 0) d.scale = std::sqrt(mean_square);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) d.x[r * d.columns + c] /= d.scale;
  }
  return d;
}

// factor * X^T X / N, plus the penalty on all but the bias.
Vector curvature(const Design& d, double factor, double penalty) {
  Vector g(d.columns * d.columns);
  for (std::size_t r = 0; r < d.rows; ++r) {
    const double* x = &d.x[r * d.columns];
    for (std::size_t i = 0; i < d.columns; ++i) {
      double* out = &g[i * d.columns];
      for (std::size_t j = 0; j <= i; ++j) out[j] += x[i] * x[j];
    }
  }
  for (double& value : g) value *= factor / static_cast<double>(d.rows);
  for (std::size_t i = 0; i + 1 < d.columns; ++i) g[i * d.columns + i] += penalty;
  return g;
}

// Softmax cross-entropy with a penalty on all but the biases; w is [classes, columns].
class Logistic {
 public:
  Logistic(const Design& design, std::span<const std::int32_t> labels, int classes, double penalty)
      : design_(design),
        labels_(labels),
        classes_(static_cast<std::size_t>(classes)),
        penalty_(penalty) {}

  double value(const Vector& w, Vector& gradient) {
    gradient.assign(w.size(), 0);
    cross_entropy_ = 0;
    Vector p(classes_);
    for (std::size_t r = 0; r < design_.rows; ++r) {
      const double* x = &design_.x[r * design_.columns];
      const auto label = static_cast<std::size_t>(labels_[r]);
      cross_entropy_ += probabilities(w, x, label, p);
      for (std::size_t k = 0; k < classes_; ++k) {
        const double pull = (p[k] - (k == label ? 1.0 : 0.0)) / static_cast<double>(design_.rows);
        double* g = &gradient[k * design_.columns];
        for (std::size_t c = 0; c < design_.columns; ++c) g[c] += pull * x[c];
      }
    }
    cross_entropy_ /= static_cast<double>(design_.rows);
    double squares = 0;
    for (std::size_t k = 0; k < classes_; ++k) {
      for (std::size_t c = 0; c + 1 < design_.columns; ++c) {
        const std::size_t i = k * design_.columns + c;
        squares += w[i] * w[i];
        gradient[i] += penalty_ * w[i];
      }
    }
    return cross_entropy_ + penalty_ / 2 * squares;
  }
  double cross_entropy() const { return cross_entropy_; }  // of the last value()

 private:
  // Fills p and returns -ln p[label].
  double probabilities(const Vector& w, const double* x, std::size_t label, Vector& p) const {
    for (std::size_t k = 0; k < classes_; ++k) {
      p[k] = 0;
      for (std::size_t c = 0; c < design_.columns; ++c) p[k] += w[k * design_.columns + c] * x[c];
    }
    const double top = *std::max_element(p.begin(), p.end()), own = p[label];
    double sum = 0;
    for (double& value : p) {
      value = std::exp(value - top);
      sum += value;
    }
    for (double& value : p) value /= sum;
    return std::log(sum) + top - own;
  }

  const Design& design_;
  std::span<const std::int32_t> labels_;
  std::size_t classes_;
  double penalty_;
  double cross_entropy_ = 0;
};

struct Descent {
  Vector w{};
  int iterations = 0;
  double largest_gradient = 0;
};

// L-BFGS. The initial inverse Hessian is that of the upper bound X^T X / 2 of the softmax Hessian
// (Boehning, "Multinomial logistic regression algorithm", 1992), the same for each class, so that
// badly scaled features need no more iterations than good ones.
class Lbfgs {
 public:
  Lbfgs(Vector factor, std::size_t columns) : factor_(std::move(factor)), columns_(columns) {}

  Descent minimise(Logistic& f, Vector w, const HeadFitOptions& options) {
    Vector gradient, next_gradient;
    double value = f.value(w, gradient);
    Descent result;
    for (; result.iterations < options.max_iterations; ++result.iterations) {
      if (largest(gradient) <= options.tolerance) break;
      Vector direction = descent(gradient);
      const double slope = dot(gradient, direction);
      double step = 1;
      Vector next(w.size());
      // Near the optimum the values differ by rounding only, so that much more is allowed.
      const double rounding = 1e-14 * std::abs(value);
      double next_value = value;
      bool lower = false;
      for (int halvings = 0; halvings < 30 && !lower; ++halvings, step /= 2) {
        for (std::size_t i = 0; i < w.size(); ++i) next[i] = w[i] + step * direction[i];
        next_value = f.value(next, next_gradient);
        lower = next_value <= value + 1e-4 * step * slope + rounding;
      }
      if (!lower) break;
      remember(w, next, gradient, next_gradient);
      w = std::move(next);
      std::swap(gradient, next_gradient);
      value = next_value;
    }
    f.value(w, gradient);
    result.largest_gradient = largest(gradient);
    result.w = std::move(w);
    return result;
  }

 private:
  struct Pair {
    Vector s{}, y{};
    double rho = 0;
  };

  Vector descent(const Vector& gradient) const {  // the two-loop recursion
    Vector q = gradient;
    Vector alpha(pairs_.size());
    for (std::size_t k = pairs_.size(); k-- > 0;) {
      alpha[k] = pairs_[k].rho * dot(pairs_[k].s, q);
      for (std::size_t i = 0; i < q.size(); ++i) q[i] -= alpha[k] * pairs_[k].y[i];
    }
    precondition(q);
    for (double& value : q) value *= gain_;
    for (std::size_t k = 0; k < pairs_.size(); ++k) {
      const double beta = pairs_[k].rho * dot(pairs_[k].y, q);
      for (std::size_t i = 0; i < q.size(); ++i) q[i] += (alpha[k] - beta) * pairs_[k].s[i];
    }
    for (double& value : q) value = -value;
    return q;
  }

  void precondition(Vector& q) const {
    for (std::size_t first = 0; first < q.size(); first += columns_) {
      cholesky_solve(factor_, static_cast<int>(columns_),
                     std::span<double>(q).subspan(first, columns_));
    }
  }

  void remember(const Vector& w, const Vector& next, const Vector& g, const Vector& next_g) {
    constexpr std::size_t kMemory = 20;
    Pair pair{Vector(w.size()), Vector(w.size()), 0};
    for (std::size_t i = 0; i < w.size(); ++i) {
      pair.s[i] = next[i] - w[i];
      pair.y[i] = next_g[i] - g[i];
    }
    const double curvature = dot(pair.s, pair.y);
    if (!(curvature > 1e-14 * dot(pair.y, pair.y))) return;
    pair.rho = 1 / curvature;
    Vector image = pair.y;
    precondition(image);
    gain_ = std::max(1.0, curvature / dot(pair.y, image));  // the bound is never below the Hessian
    if (pairs_.size() == kMemory) pairs_.pop_front();
    pairs_.push_back(std::move(pair));
  }

  Vector factor_;
  std::size_t columns_;
  std::deque<Pair> pairs_{};
  double gain_ = 1;  // how far the bound lies above the Hessian where the iteration is
};

// Back to the caller's features: W = W' / scale, b = b' - W mean.
HeadFit unscale(const Design& d, const Vector& w, int outputs) {
  HeadFit fit;
  fit.outputs = outputs;
  for (std::size_t k = 0; k < static_cast<std::size_t>(outputs); ++k) {
    double bias = w[k * d.columns + d.columns - 1];
    for (std::size_t c = 0; c + 1 < d.columns; ++c) {
      const double weight = w[k * d.columns + c] / d.scale;
      bias -= weight * d.mean[c];
      fit.weight.push_back(static_cast<float>(weight));
    }
    fit.bias.push_back(static_cast<float>(bias));
  }
  return fit;
}

}  // namespace

Result<> HeadFitOptions::validate() const {
  if (!(l2 > 0)) return Error{ErrorCode::kInvalidArgument, fmt::format("l2 must be > 0: {}", l2)};
  if (max_iterations < 1) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("max_iterations must be >= 1: {}", max_iterations)};
  }
  if (!(tolerance > 0)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("tolerance must be > 0: {}", tolerance)};
  }
  return Ok{};
}

Result<HeadFit> fit_classifier_head(const Features& features, std::span<const std::int32_t> labels,
                                    int num_classes, const HeadFitOptions& options) {
  YMIR_TRY(options.validate());
  YMIR_TRY(check(features, labels.size()));
  YMIR_TRY(check_labels(labels, num_classes));
  const Design design = standardise(features);
  const double penalty = options.l2 / (design.scale * design.scale);
  auto factor = cholesky(curvature(design, 0.5, penalty), static_cast<int>(design.columns));
  if (!factor) return Error{ErrorCode::kInternal, "curvature of the head is not positive definite"};

  Logistic loss(design, labels, num_classes, penalty);
  Lbfgs lbfgs(*std::move(factor), design.columns);
  const Descent found =
      lbfgs.minimise(loss, Vector(static_cast<std::size_t>(num_classes) * design.columns), options);
  if (!(found.largest_gradient <= options.tolerance)) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("head has not converged after {} iterations: largest gradient {:.3g}",
                             found.iterations, found.largest_gradient)};
  }
  HeadFit fit = unscale(design, found.w, num_classes);
  double mean_bias = 0;
  for (const float b : fit.bias) mean_bias += static_cast<double>(b) / num_classes;
  for (float& b : fit.bias) b = static_cast<float>(static_cast<double>(b) - mean_bias);
  fit.loss = loss.cross_entropy();
  fit.iterations = found.iterations;
  fit.largest_gradient = found.largest_gradient;
  return fit;
}

Result<HeadFit> fit_regression_head(const Features& features, std::span<const float> targets,
                                    const HeadFitOptions& options) {
  YMIR_TRY(options.validate());
  YMIR_TRY(check(features, targets.size()));
  for (std::size_t r = 0; r < targets.size(); ++r) {
    if (!std::isfinite(targets[r])) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("target is not finite: row {}", r)};
    }
  }
  const Design design = standardise(features);
  const double penalty = options.l2 / (design.scale * design.scale);
  const auto factor = cholesky(curvature(design, 1, penalty), static_cast<int>(design.columns));
  if (!factor) return Error{ErrorCode::kInternal, "curvature of the head is not positive definite"};
  Vector w(design.columns);
  for (std::size_t r = 0; r < design.rows; ++r) {
    for (std::size_t c = 0; c < design.columns; ++c) {
      w[c] += design.x[r * design.columns + c] * static_cast<double>(targets[r]) /
              static_cast<double>(design.rows);
    }
  }
  cholesky_solve(*factor, static_cast<int>(design.columns), w);

  HeadFit fit = unscale(design, w, 1);
  const std::vector<float> predicted = head_outputs(fit, features);
  for (std::size_t r = 0; r < design.rows; ++r) {
    const double error = static_cast<double>(predicted[r]) - static_cast<double>(targets[r]);
    fit.loss += error * error / 2 / static_cast<double>(design.rows);
  }
  return fit;
}

std::vector<float> head_outputs(const HeadFit& fit, const Features& features) {
  const auto columns = static_cast<std::size_t>(features.columns);
  const auto outputs = static_cast<std::size_t>(fit.outputs);
  YMIR_CHECK(fit.weight.size() == outputs * columns, "head was fitted on other features");
  std::vector<float> result;
  result.reserve(static_cast<std::size_t>(features.rows) * outputs);
  for (std::size_t r = 0; r < static_cast<std::size_t>(features.rows); ++r) {
    for (std::size_t k = 0; k < outputs; ++k) {
      double sum = static_cast<double>(fit.bias[k]);
      for (std::size_t c = 0; c < columns; ++c) {
        sum += static_cast<double>(fit.weight[k * columns + c]) *
               static_cast<double>(features.values[r * columns + c]);
      }
      result.push_back(static_cast<float>(sum));
    }
  }
  return result;
}

}  // namespace ymir
