// Policy: decides, once a round, which jobs run, in which mode, with whom and on how many GPUs.
//
// A policy is a function of its Round: it reads no clock, does no I/O and keeps nothing between
// rounds. Whatever it must remember (attained service, past plans) is in the Snapshot, so a round
// replayed from the log decides the same, and the controller and the simulator share the object.
//
// To add one: derive from Policy, add a line to the table in policy.cc, add a scenario under
// tests/scenarios/.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/core/forecast.h"
#include "ymir/core/plan.h"
#include "ymir/core/snapshot.h"

namespace ymir {

// All that a decision may depend on.
struct Round {
  const Snapshot& cluster;        // what exists and runs at cluster.now
  const Forecast& forecast;       // what each candidate would cost, as the estimator believes
  std::int64_t effort = 400'000;  // solver states, not seconds: a slow machine decides the same
  std::stop_token guard{};        // wall-clock guard of control: the old wish is kept then
};

struct Decision {
  Plan plan{};
  std::map<std::string, double> pass_ms{};  // measured time of each pass, for the log only
};

class Policy {
 public:
  virtual ~Policy() = default;

  // As written in the configuration and in the log: "ymir", "srtf", "fifo".
  virtual std::string_view name() const = 0;

  // Returns a plan that satisfies check_plan(round, plan). A job in no assignment waits, and
  // plan.waiting says why. When the effort is spent, the best plan so far: nothing is always one.
  virtual Result<Decision> decide(const Round& round) const = 0;

  // Every constant of it by the name of its setting, as it is used: for the results' records.
  virtual std::map<std::string, std::string> constants() const { return {}; }

  // Whether a wrong pairing is taken back before both have ended (`ymir:no-stop-loss` does not).
  virtual bool stops_losses() const { return true; }
};

// Returns the policy called `name` ("ymir", "ymir:no-transfer", "srtf", "fifo", ...), with
// `settings` (knobs of Utility, passes switched off: "pass.filter_gain" = "off"), or kNotFound /
// kInvalidArgument with the known names in the message. A key may name its policy
// ("srtf.hysteresis" is meant for srtf and its variants); keys of other policies are left to them.
Result<std::unique_ptr<Policy>> make_policy(
    std::string_view name, const std::map<std::string, std::string>& settings = {});

// The same for a daemon: a policy that differs from another only by what a simulation tells it or
// makes of the world ("ymir:oracle", "NAME@SOURCE") is kInvalidArgument with those that it can run.
Result<std::unique_ptr<Policy>> make_live_policy(
    std::string_view name, const std::map<std::string, std::string>& settings = {});

std::vector<std::string> policy_names();
std::vector<std::string> live_policy_names();
std::string about_policy(std::string_view policy);  // in a few words; empty: no such policy
// Whether the policy chooses how many GPUs a job gets; the others give what it asks for.
bool is_elastic(std::string_view policy);

// Checks what every plan must satisfy, whoever made it: each active job stands at most once (as
// partner too), GPUs fit, partners share backbone and trust domain and both allow the mode, none is
// barred from the other, a spatial pair starts without progress, a temporal target has none beyond
// its profile (pairs that run already are exempt from the progress rules), strength in (0, 1].
Result<> check_plan(const Round& round, const Plan& plan);

}  // namespace ymir
