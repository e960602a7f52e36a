#include "ymir/base/symmetric.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ymir/base/result.h"

namespace ymir {
namespace {

std::size_t at(int row, int column, int n) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(n) +
         static_cast<std::size_t>(column);
}

struct Tridiagonal {
  std::vector<double> diagonal{}, below{};  // below[i] couples i and i + 1
};

// Applies I - beta v v^T to the tail of x that starts at `first`.
void reflect(std::span<const double> v, double beta, int first, std::vector<double>& x) {
  double dot = 0;
  for (std::size_t i = 0; i < v.size(); ++i) dot += v[i] * x[static_cast<std::size_t>(first) + i];
  dot *= beta;
  for (std::size_t i = 0; i < v.size(); ++i) x[static_cast<std::size_t>(first) + i] -= dot * v[i];
}

// Householder: column k below the diagonal is reflected onto its first entry, for k = 0, 1, ...;
// the same reflections turn the vectors. `a` must be full (both triangles).
Tridiagonal tridiagonalise(std::vector<double>& a, int n,
                           std::vector<std::vector<double>>& vectors) {
  Tridiagonal t{std::vector<double>(static_cast<std::size_t>(n)),
                std::vector<double>(static_cast<std::size_t>(std::max(0, n - 1)))};
  std::vector<double> v, p;
  for (int k = 0; k + 1 < n; ++k) {
    const int first = k + 1, m = n - first;
    v.assign(static_cast<std::size_t>(m), 0);
    double norm2 = 0;
    for (int i = 0; i < m; ++i) {
      v[static_cast<std::size_t>(i)] = a[at(first + i, k, n)];
      norm2 += v[static_cast<std::size_t>(i)] * v[static_cast<std::size_t>(i)];
    }
    const double norm = std::sqrt(norm2), tail2 = norm2 - v[0] * v[0];
    t.diagonal[static_cast<std::size_t>(k)] = a[at(k, k, n)];
    if (m == 1 || tail2 <= 0) {
      t.below[static_cast<std::size_t>(k)] = v[0];
      continue;
    }
    const double image = v[0] > 0 ? -norm : norm;  // away from v[0]: no cancellation
    t.below[static_cast<std::size_t>(k)] = image;
    v[0] -= image;
    const double beta = 2 / (tail2 + v[0] * v[0]);
    // A' = A - v w^T - w v^T with p = beta A v, w = p - (beta/2)(p.v) v.
    p.assign(static_cast<std::size_t>(m), 0);
    double pv = 0;
    for (int i = 0; i < m; ++i) {
      const double* row = &a[at(first + i, first, n)];
      double sum = 0;
      for (int j = 0; j < m; ++j) sum += row[j] * v[static_cast<std::size_t>(j)];
      p[static_cast<std::size_t>(i)] = beta * sum;
      pv += p[static_cast<std::size_t>(i)] * v[static_cast<std::size_t>(i)];
    }
    for (int i = 0; i < m; ++i) {
      p[static_cast<std::size_t>(i)] -= 0.5 * beta * pv * v[static_cast<std::size_t>(i)];
    }
    for (int i = 0; i < m; ++i) {
      double* row = &a[at(first + i, first, n)];
      const double vi = v[static_cast<std::size_t>(i)], wi = p[static_cast<std::size_t>(i)];
      for (int j = 0; j < m; ++j) {
        row[j] -= vi * p[static_cast<std::size_t>(j)] + wi * v[static_cast<std::size_t>(j)];
      }
    }
    for (std::vector<double>& x : vectors) reflect(v, beta, first, x);
  }
  if (n > 0) t.diagonal[static_cast<std::size_t>(n - 1)] = a[at(n - 1, n - 1, n)];
  return t;
}

// One implicit QR sweep with Wilkinson's shift on the block [low, high]; the rotations turn the
// vectors too.
void sweep(Tridiagonal& t, int low, int high, std::vector<std::vector<double>>& vectors) {
  auto d = [&](int i) -> double& { return t.diagonal[static_cast<std::size_t>(i)]; };
  auto e = [&](int i) -> double& { return t.below[static_cast<std::size_t>(i)]; };
  const double half = (d(high - 1) - d(high)) / 2, b = e(high - 1);
  const double shift = d(high) - b * b / (half + std::copysign(std::hypot(half, b), half));
  double x = d(low) - shift, z = e(low);
  for (int k = low; k < high; ++k) {
    const double r = std::hypot(x, z);
    const double c = r > 0 ? x / r : 1, s = r > 0 ? z / r : 0;
    if (k > low) e(k - 1) = r;
    const double p = d(k), q = d(k + 1), o = e(k);
    d(k) = c * c * p + 2 * c * s * o + s * s * q;
    d(k + 1) = s * s * p - 2 * c * s * o + c * c * q;
    e(k) = c * s * (q - p) + (c * c - s * s) * o;
    x = e(k);
    if (k + 1 < high) {
      z = s * e(k + 1);
      e(k + 1) *= c;
    }
    for (std::vector<double>& vector : vectors) {
      double& u = vector[static_cast<std::size_t>(k)];
      double& w = vector[static_cast<std::size_t>(k + 1)];
      const double turned = c * u + s * w;
      w = c * w - s * u;
      u = turned;
    }
  }
}

}  // namespace

bool cholesky_in_place(std::span<double> a, int n) {
  YMIR_CHECK(a.size() == static_cast<std::size_t>(n) * static_cast<std::size_t>(n),
             "cholesky: not a square matrix");
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      double sum = a[at(i, j, n)];
      for (int k = 0; k < j; ++k) sum -= a[at(i, k, n)] * a[at(j, k, n)];
      if (i != j) {
        a[at(i, j, n)] = sum / a[at(j, j, n)];
      } else if (sum > std::numeric_limits<double>::epsilon() * std::abs(a[at(i, i, n)]) &&
                 std::isfinite(sum)) {
        a[at(i, i, n)] = std::sqrt(sum);
      } else {
        return false;
      }
    }
  }
  return true;
}

std::optional<std::vector<double>> cholesky(std::span<const double> a, int n) {
  std::vector<double> l(a.begin(), a.end());
  if (!cholesky_in_place(l, n)) return std::nullopt;
  for (int i = 0; i < n; ++i)
    for (int j = i + 1; j < n; ++j) l[at(i, j, n)] = 0;
  return l;
}

void cholesky_solve(std::span<const double> factor, int n, std::span<double> b) {
  for (int i = 0; i < n; ++i) {
    double sum = b[static_cast<std::size_t>(i)];
    for (int k = 0; k < i; ++k) sum -= factor[at(i, k, n)] * b[static_cast<std::size_t>(k)];
    b[static_cast<std::size_t>(i)] = sum / factor[at(i, i, n)];
  }
  for (int i = n - 1; i >= 0; --i) {
    double sum = b[static_cast<std::size_t>(i)];
    for (int k = i + 1; k < n; ++k) sum -= factor[at(k, i, n)] * b[static_cast<std::size_t>(k)];
    b[static_cast<std::size_t>(i)] = sum / factor[at(i, i, n)];
  }
}

std::optional<Spectrum> spectrum(std::vector<double> a, int n,
                                 std::vector<std::vector<double>> vectors) {
  YMIR_CHECK(a.size() == static_cast<std::size_t>(n) * static_cast<std::size_t>(n),
             "spectrum: not a square matrix");
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) a[at(j, i, n)] = a[at(i, j, n)];
  }
  Tridiagonal t = tridiagonalise(a, n, vectors);
  const double epsilon = std::numeric_limits<double>::epsilon();
  int budget = 60 * n;  // sweeps; about two an eigenvalue are the rule
  for (int high = n - 1; high > 0;) {
    int low = high;
    for (; low > 0; --low) {
      const auto i = static_cast<std::size_t>(low);
      if (!(std::abs(t.below[i - 1]) >
            epsilon * (std::abs(t.diagonal[i - 1]) + std::abs(t.diagonal[i])))) {
        t.below[i - 1] = 0;
        break;
      }
    }
    if (low == high) {
      --high;
    } else if (budget-- > 0) {
      sweep(t, low, high, vectors);
    } else {
      return std::nullopt;
    }
  }
  std::vector<std::size_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return t.diagonal[i] < t.diagonal[j]; });
  Spectrum result{{}, std::vector<std::vector<double>>(vectors.size())};
  for (const std::size_t i : order) {
    if (!std::isfinite(t.diagonal[i])) return std::nullopt;
    result.values.push_back(t.diagonal[i]);
    for (std::size_t v = 0; v < vectors.size(); ++v) {
      result.components[v].push_back(vectors[v][i]);
    }
  }
  return result;
}

}  // namespace ymir
