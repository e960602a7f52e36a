#include "ymir/sim/artifact/pollux/bounded_minimum.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace ymir::artifact::pollux {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

class Search {
 public:
  Search(const Differentiable& f, Vector x, std::span<const double> lower,
         std::span<const double> upper)
      : f_(f), lower_(lower), upper_(upper), size_(x.size()), x_(std::move(x)) {
    value_ = f_(x_, gradient_);
    forget();
  }

  BoundedMinimum run(int max_iterations) {
    BoundedMinimum out;
    for (; out.iterations < max_iterations && !out.converged; ++out.iterations) {
      if (largest_free() <= 1e-6) {
        out.converged = true;
        break;
      }
      const double before = value_;
      if (!step()) {
        if (fresh_) break;  // not even steepest descent lowers it
        forget();
        continue;
      }
      out.converged = before - value_ <= 1e-10 * std::max(1.0, std::abs(before));
    }
    out.x = x_;
    out.value = value_;
    return out;
  }

 private:
  // May x move along its negative gradient?
  bool is_free(std::size_t k) const {
    if (lower_[k] == upper_[k]) return false;
    return gradient_[k] > 0 ? x_[k] > lower_[k] : x_[k] < upper_[k];
  }
  double largest_free() const {
    double largest = 0;
    for (std::size_t k = 0; k < size_; ++k)
      if (is_free(k)) largest = std::max(largest, std::abs(gradient_[k]));
    return largest;
  }
  void forget() {
    inverse_.assign(size_ * size_, 0);
    for (std::size_t k = 0; k < size_; ++k) inverse_[k * size_ + k] = 1;
    fresh_ = true;
  }

  bool step() {
    Vector direction(size_, 0);
    for (std::size_t r = 0; r < size_; ++r)
      for (std::size_t c = 0; c < size_ && is_free(r); ++c)
        if (is_free(c)) direction[r] -= inverse_[r * size_ + c] * gradient_[c];
    // Without curvature yet, a first step of a tenth of the variables' own size.
    double length = 1;
    if (fresh_) {
      const double norm = std::sqrt(dot(direction, direction));
      length = std::min(1.0, 0.1 * std::max(1e-3, std::sqrt(dot(x_, x_))) / norm);
    }
    Vector x(size_), gradient;
    for (int halvings = 0; halvings < 50; ++halvings, length /= 2) {
      double expected = 0;
      for (std::size_t k = 0; k < size_; ++k) {
        x[k] = std::clamp(x_[k] + length * direction[k], lower_[k], upper_[k]);
        expected += gradient_[k] * (x[k] - x_[k]);
      }
      if (!(expected < 0)) return false;
      const double value = f_(x, gradient);
      if (!(value <= value_ + 1e-4 * expected)) continue;
      learn(x, gradient);
      x_ = x;
      gradient_ = gradient;
      value_ = value;
      return true;
    }
    return false;
  }

  // BFGS: H <- (I - r s y') H (I - r y s') + r s s'.
  void learn(const Vector& x, const Vector& gradient) {
    Vector s(size_), y(size_), hy(size_, 0);
    for (std::size_t k = 0; k < size_; ++k) {
      s[k] = x[k] - x_[k];
      y[k] = gradient[k] - gradient_[k];
    }
    const double curvature = dot(s, y);
    if (curvature <= 1e-12 * std::sqrt(dot(s, s) * dot(y, y))) return;
    if (fresh_) {
      const double scale = curvature / dot(y, y);
      for (std::size_t k = 0; k < size_; ++k) inverse_[k * size_ + k] = scale;
    }
    fresh_ = false;
    for (std::size_t r = 0; r < size_; ++r)
      for (std::size_t c = 0; c < size_; ++c) hy[r] += inverse_[r * size_ + c] * y[c];
    const double rho = 1 / curvature, yhy = dot(y, hy);
    for (std::size_t r = 0; r < size_; ++r)
      for (std::size_t c = 0; c < size_; ++c)
        inverse_[r * size_ + c] +=
            rho * ((1 + rho * yhy) * s[r] * s[c] - hy[r] * s[c] - s[r] * hy[c]);
  }

  const Differentiable& f_;
  std::span<const double> lower_, upper_;
  std::size_t size_;
  Vector x_, gradient_, inverse_;
  double value_ = 0;
  bool fresh_ = true;
};

}  // namespace

BoundedMinimum bounded_minimum(const Differentiable& f, std::vector<double> x,
                               std::span<const double> lower, std::span<const double> upper,
                               int max_iterations) {
  return Search(f, std::move(x), lower, upper).run(max_iterations);
}

}  // namespace ymir::artifact::pollux
