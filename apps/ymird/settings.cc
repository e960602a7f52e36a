#include "apps/ymird/settings.h"

#include <cmath>
#include <functional>
#include <type_traits>
#include <utility>

#include "ymir/base/text.h"

namespace ymir {
namespace {

using Setter = std::function<Result<>(const std::string& value)>;

Error wrong(const std::string& value, const char* want) {
  return {ErrorCode::kInvalidArgument, "\"" + value + "\" is not " + want};
}

// A setter by the field's type: a number, a whole number, seconds, on or off, a text.
template <class T>
Setter into(T& field) {
  return [&field](const std::string& value) -> Result<> {
    if constexpr (std::is_same_v<T, bool>) {
      if (value != "on" && value != "off") return wrong(value, "on or off");
      field = value == "on";
    } else if constexpr (std::is_same_v<T, std::string>) {
      field = value;
    } else if constexpr (std::is_integral_v<T>) {
      const auto number = parse_int(value);
      if (!number || !std::in_range<T>(*number)) return wrong(value, "a whole number");
      field = static_cast<T>(*number);
    } else {
      const auto number = parse_double(value);
      if (!number) return wrong(value, "a number");
      field = T(*number);
    }
    return Ok{};
  };
}

std::map<std::string, Setter> known(Settings& s) {
  ControllerOptions& control = s.controller;
  return {
      {"control.round_on_events", into(control.round_on_events)},
      {"control.effort", into(control.effort)},
      {"control.start_timeout", into(control.start_timeout)},
      {"control.resend", into(control.resend)},
      {"control.max_faults", into(control.max_faults)},
      {"profile.enabled", into(control.profiling.enabled)},
      {"profile.share", into(control.profiling.share)},
      {"profile.window", into(control.profiling.window)},
      {"profile.share_of_job", into(control.profiling.share_of_job)},
      {"profile.min_steps", into(control.profiling.min_steps)},
      {"profile.max_steps", into(control.profiling.max_steps)},
      {"profile.max_time", into(control.profiling.max_time)},
      {"profile.vectors", into(control.profiling.vectors)},
      {"profile.probes", into(control.profiling.probes)},
      {"stop_loss.epochs", into(control.stop_loss.epochs)},
      {"stop_loss.keep_above", into(control.stop_loss.keep_above)},
      {"stop_loss.late_above", into(control.stop_loss.late_above)},
      {"stop_loss.early_below", into(control.stop_loss.early_below)},
      {"stop_loss.going_back_below", into(control.stop_loss.going_back_below)},
      {"stop_loss.restart_below", into(control.stop_loss.restart_below)},
      {"estimate.transfer", into(s.estimator.transfer)},
      {"estimate.offer_every", into(s.estimator.offer_every)},
      {"estimate.similarity", into(s.estimator.similarity)},
      {"estimate.exploration_share", into(s.estimator.exploration_share)},
      {"estimate.default_strength", into(s.estimator.default_strength)},
      {"estimate.max_probe_sources", into(s.estimator.max_probe_sources)},
      {"estimate.admit_above", into(s.estimator.admit_above)},
      {"estimate.explore_above", into(s.estimator.explore_above)},
      {"estimate.explore_delay", into(s.estimator.explore_delay)},
  };
}

}  // namespace

Result<> apply_settings(const std::vector<std::string>& lines, Settings& settings) {
  const auto setters = known(settings);
  for (const std::string& line : lines) {
    const auto equals = line.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{ErrorCode::kInvalidArgument, "--set " + line + ": not KEY=VALUE"};
    const std::string key = line.substr(0, equals), value = line.substr(equals + 1);
    if (const auto setter = setters.find(key); setter != setters.end()) {
      if (auto set = setter->second(value); !set) return annotate(set.error(), "--set " + key);
    } else {
      settings.policy[key] = value;
    }
  }
  return Ok{};
}

}  // namespace ymir
