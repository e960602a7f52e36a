// The generator of the scripts in tests/reference: splitmix64. For tests that make the same input.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ymir::testing {

class ReferenceRandom {
 public:
  explicit ReferenceRandom(std::uint64_t seed) : state_(seed) {}

  // In [0, n), n >= 1; slightly uneven, as in the scripts.
  std::size_t below(std::size_t n) {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) % n;
  }

 private:
  std::uint64_t state_;
};

}  // namespace ymir::testing
