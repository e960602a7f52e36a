#include "ymir/tune/trainer/logme.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "ymir/base/symmetric.h"

namespace ymir {
namespace {

using Column = std::vector<double>;

// What the evidence needs of one output: squared components x_i^2 of y along the left singular
// vectors of F, with s_i the squared singular values.
struct Output {
  Column squares{};
  double rest = 0;  // |y|^2 - sum of squares: what no head can explain
};
struct Decomposition {
  Column s{};
  std::vector<Output> outputs{};
};

// F^T F (columns <= rows) or F F^T, lower triangle.
Column gram(const Features& f) {
  const auto rows = static_cast<std::size_t>(f.rows);
  const auto columns = static_cast<std::size_t>(f.columns);
  if (columns <= rows) {
    Column g(columns * columns);
    for (std::size_t r = 0; r < rows; ++r) {
      const float* x = &f.values[r * columns];
      for (std::size_t i = 0; i < columns; ++i) {
        const double xi = x[i];
        double* out = &g[i * columns];
        for (std::size_t j = 0; j <= i; ++j) out[j] += xi * static_cast<double>(x[j]);
      }
    }
    return g;
  }
  Column g(rows * rows);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const float* x = &f.values[i * columns];
      const float* y = &f.values[j * columns];
      double sum = 0;
      for (std::size_t c = 0; c < columns; ++c) {
        sum += static_cast<double>(x[c]) * static_cast<double>(y[c]);
      }
      g[i * rows + j] = sum;
    }
  }
  return g;
}

// F^T y.
Column project(const Features& f, const Column& y) {
  const auto columns = static_cast<std::size_t>(f.columns);
  Column out(columns);
  for (std::size_t r = 0; r < y.size(); ++r) {
    if (y[r] == 0) continue;
    for (std::size_t c = 0; c < columns; ++c) {
      out[c] += y[r] * static_cast<double>(f.values[r * columns + c]);
    }
  }
  return out;
}

double squared_norm(const Column& y) {
  double sum = 0;
  for (const double value : y) sum += value * value;
  return sum;
}

Result<Decomposition> decompose(const Features& f, const std::vector<Column>& ys) {
  const bool by_columns = f.columns <= f.rows;
  std::vector<Column> vectors;
  for (const Column& y : ys) vectors.push_back(by_columns ? project(f, y) : y);
  const auto found =
      spectrum(gram(f), static_cast<int>(std::min(f.rows, f.columns)), std::move(vectors));
  if (!found) return Error{ErrorCode::kInternal, "eigenvalues of the features did not converge"};

  // Below this an eigenvalue is rounding of the f32 features, not a direction of the data.
  const double largest = std::max(found->values.back(), 0.0);
  const double floor = largest * static_cast<double>(std::max(f.rows, f.columns)) *
                       std::numeric_limits<double>::epsilon() * 8;
  Decomposition result;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < found->values.size(); ++i) {
    if (found->values[i] <= floor) continue;
    kept.push_back(i);
    result.s.push_back(found->values[i]);
  }
  for (std::size_t k = 0; k < ys.size(); ++k) {
    Output output;
    double explained = 0;
    for (const std::size_t i : kept) {
      const double c = found->components[k][i];
      output.squares.push_back(by_columns ? c * c / found->values[i] : c * c);
      explained += output.squares.back();
    }
    output.rest = std::max(0.0, squared_norm(ys[k]) - explained);
    result.outputs.push_back(std::move(output));
  }
  return result;
}

// max over alpha, beta of ln p(y | F, alpha, beta) / N. With t = alpha / beta,
//   ln p = N/2 ln(beta / 2 pi) - 1/2 sum ln(1 + s_i / t) - beta/2 e(t),
//   e(t) = rest + sum x_i^2 t / (t + s_i),
// directions without data (rank < D) cancel, and the best beta for t is N / e(t). One unknown is
// left, which a scan over decades and a golden section find; the fixed-point iteration of the
// original method needs hundreds of rounds for the same maximum.
class Evidence {
 public:
  Evidence(const Column& s, const Output& y, double rows) : s_(s), y_(y), rows_(rows) {}

  double maximised() const {
    if (s_.empty()) return at(1);
    const double low = std::log(s_.front()) - 14, high = std::log(s_.back()) + 14;
    constexpr int kScan = 120;
    const double width = (high - low) / kScan;
    int best = 0;
    for (int i = 1; i <= kScan; ++i) {
      if (at_log(low + i * width) > at_log(low + best * width)) best = i;
    }
    return golden(low + (best - 1) * width, low + (best + 1) * width);
  }

 private:
  double at_log(double log_t) const { return at(std::exp(log_t)); }
  double at(double t) const {
    double error = y_.rest, logs = 0;
    for (std::size_t i = 0; i < s_.size(); ++i) {
      error += y_.squares[i] * t / (t + s_[i]);
      logs += std::log1p(s_[i] / t);
    }
    // Features that explain every label exactly would make the evidence infinite.
    const double variance = std::max(error / rows_, 1e-10);
    return -0.5 *
           (std::log(2 * std::numbers::pi * variance) + error / (rows_ * variance) + logs / rows_);
  }
  double golden(double low, double high) const {
    constexpr double kRatio = std::numbers::phi - 1;
    for (int i = 0; i < 40; ++i) {
      const double step = kRatio * (high - low), left = high - step, right = low + step;
      if (at_log(left) > at_log(right)) {
        high = right;
      } else {
        low = left;
      }
    }
    return at_log((low + high) / 2);
  }

  const Column& s_;
  const Output& y_;
  double rows_;
};

Result<double> mean_evidence(const Features& f, const std::vector<Column>& ys) {
  YMIR_TRY_ASSIGN(const Decomposition d, decompose(f, ys));
  double sum = 0;
  for (const Output& y : d.outputs) {
    sum += Evidence(d.s, y, static_cast<double>(f.rows)).maximised();
  }
  return sum / static_cast<double>(ys.size());
}

}  // namespace

Result<double> logme(const Features& features, std::span<const std::int32_t> labels,
                     int num_classes) {
  YMIR_TRY(check(features, labels.size()));
  YMIR_TRY(check_labels(labels, num_classes));
  std::vector<Column> ys(static_cast<std::size_t>(num_classes));
  for (std::size_t r = 0; r < labels.size(); ++r) {
    Column& y = ys[static_cast<std::size_t>(labels[r])];
    y.resize(labels.size());
    y[r] = 1;
  }
  std::erase_if(ys, [](const Column& y) { return y.empty(); });  // classes that do not occur
  return mean_evidence(features, ys);
}

Result<double> logme(const Features& features, std::span<const float> targets) {
  YMIR_TRY(check(features, targets.size()));
  Column y(targets.begin(), targets.end());
  double mean = 0;
  for (const double value : y) mean += value;
  mean /= static_cast<double>(y.size());
  for (double& value : y) value -= mean;
  const double scale = std::sqrt(squared_norm(y) / static_cast<double>(y.size()));
  if (!std::isfinite(scale) || scale <= 1e-12 * std::abs(mean)) {
    return Error{ErrorCode::kInvalidArgument, "targets are all equal or not finite"};
  }
  for (double& value : y) value /= scale;
  return mean_evidence(features, {std::move(y)});
}

}  // namespace ymir
