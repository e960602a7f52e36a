// Rng: the seeded generator that is passed in wherever chance is allowed. Same seed, same numbers,
// on every machine (the standard library's distributions are not portable; these are). A Philox
// counter inside. One thread at a time.
#pragma once

#include <cstdint>

#include "ymir/base/philox.h"

namespace ymir {

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : seed_(seed) {}

  std::uint32_t next32() {
    if (used_ == 4) {
      block_ = philox(seed_, {static_cast<std::uint32_t>(counter_),
                              static_cast<std::uint32_t>(counter_ >> 32), 0, 0});
      ++counter_;
      used_ = 0;
    }
    return block_[used_++];
  }
  std::uint64_t next64() {
    const std::uint64_t high = next32();
    return high << 32 | next32();
  }
  // Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next64() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // Uniform in [0, n), n >= 1, without bias.
  std::uint64_t below(std::uint64_t n);
  // Uniform in [low, high], both included.
  std::int64_t between(std::int64_t low, std::int64_t high);
  bool chance(double p) { return uniform() < p; }
  // Standard normal (Box-Muller; libm's log and cos may differ in the last bit between machines,
  // so no decision may hang on it).
  double normal();

 private:
  std::uint64_t seed_ = 0, counter_ = 0;
  PhiloxBlock block_{};
  unsigned used_ = 4;
};

}  // namespace ymir
