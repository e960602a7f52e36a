// A local minimum of a smooth function of few variables between bounds: projected BFGS with a dense
// inverse Hessian and Armijo's rule along the projected path. For up to some tens of variables.
// Pure, any thread.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace ymir::artifact::pollux {

struct BoundedMinimum {
  std::vector<double> x{};
  double value = 0;
  int iterations = 0;
  bool converged = false;  // else the limit of iterations was met, or no step lowers the value
};

// Returns f(x) and writes its gradient.
using Differentiable =
    std::function<double(const std::vector<double>& x, std::vector<double>& gradient)>;

// `x` starts within the bounds; lower = upper fixes a variable. Ends when no entry of the projected
// gradient is above 1e-6 or the value falls by less than 1e-10 of itself.
BoundedMinimum bounded_minimum(const Differentiable& f, std::vector<double> x,
                               std::span<const double> lower, std::span<const double> upper,
                               int max_iterations = 300);

}  // namespace ymir::artifact::pollux
