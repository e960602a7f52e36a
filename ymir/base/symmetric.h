// Small dense linear algebra on symmetric matrices, in doubles: what the estimator's regressions
// and the evidence of a feature matrix need, and no more. Matrices are row-major [n, n]; only the
// lower triangle is read. Pure, deterministic (fixed order of sums), any thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace ymir {

// The factor L of A = L L^T, row-major, zeros above the diagonal. Empty when A is not positive
// definite to working precision, or not finite.
std::optional<std::vector<double>> cholesky(std::span<const double> a, int n);

// The same without memory of its own: the lower triangle of A becomes that of L, the rest stays as
// it is. False, and A spoilt, where cholesky() is empty.
bool cholesky_in_place(std::span<double> a, int n);

// Solves A x = b in place, given L of either.
void cholesky_solve(std::span<const double> factor, int n, std::span<double> b);

// Eigenvalues of A, and for each given vector its components in the (orthonormal) eigenbasis. The
// basis itself is never formed: for k vectors the cost is 4/3 n^3 + O(k n^2).
struct Spectrum {
  std::vector<double> values{};                   // ascending
  std::vector<std::vector<double>> components{};  // [vector][eigenvalue]; signs are arbitrary
};
// `a` is used up. Empty when the iteration fails, which only values that are not finite cause.
std::optional<Spectrum> spectrum(std::vector<double> a, int n,
                                 std::vector<std::vector<double>> vectors);

}  // namespace ymir
