#include "ymir/base/rng.h"

#include <cmath>
#include <numbers>

#include "ymir/base/result.h"

namespace ymir {

std::uint64_t Rng::below(std::uint64_t n) {
  YMIR_CHECK(n > 0, "empty range");
  const std::uint64_t limit = ~std::uint64_t{0} - (~std::uint64_t{0} % n + 1) % n;
  for (;;) {
    if (const std::uint64_t x = next64(); x <= limit) return x % n;
  }
}

std::int64_t Rng::between(std::int64_t low, std::int64_t high) {
  YMIR_CHECK(low <= high, "empty range");
  const auto span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
  if (span == 0) return static_cast<std::int64_t>(next64());
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + below(span));
}

double Rng::normal() {
  const double u = 1.0 - uniform();  // (0, 1]
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace ymir
