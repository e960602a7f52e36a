// Time and Seconds: one clock type for both worlds, wall time since the epoch in a live cluster,
// simulated time since zero in a simulation. Microsecond grain, so that equal instants are equal.
#pragma once

#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace ymir {

using Seconds = std::chrono::duration<double>;

struct WorldClock {
  using duration = std::chrono::microseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<WorldClock>;
  static constexpr bool is_steady = false;
};
using Time = WorldClock::time_point;

inline Time operator+(Time t, Seconds s) { return t + std::chrono::round<WorldClock::duration>(s); }
inline Seconds operator-(Time a, Time b) {
  return Seconds(a.time_since_epoch()) - Seconds(b.time_since_epoch());
}
inline double to_seconds(Time t) { return Seconds(t.time_since_epoch()).count(); }
inline Time from_seconds(double s) { return Time{} + Seconds(s); }
inline constexpr Time kNever = Time::max();

Time wall_clock();  // now, of the live world
// RFC 3339 with offset, "2027-01-15T18:00:00Z"; years 1970 to 2199.
std::optional<Time> parse_time(std::string_view text);
std::string format_time(Time time);  // UTC, whole seconds

}  // namespace ymir
