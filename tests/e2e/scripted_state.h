// What the scripted worker computes instead of training: a state that depends on every step, so
// that two runs end with the same state only when each step counted exactly once, in order.
#pragma once

#include <cstdint>

namespace ymir {

inline std::uint64_t scripted_step(std::uint64_t state, std::int64_t step) {
  state += 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(step + 1);
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ULL;
  return state ^ (state >> 27);
}

// As told in the metric "state", which is a double: the upper 52 bits.
inline double scripted_metric(std::uint64_t state) { return static_cast<double>(state >> 12); }

inline double scripted_result(std::uint64_t seed, std::int64_t steps) {
  std::uint64_t state = seed;
  for (std::int64_t step = 1; step <= steps; ++step) state = scripted_step(state, step);
  return scripted_metric(state);
}

}  // namespace ymir
