// SoloBelief: what is believed of a job's learning curve when it trains alone, and so of the
// optimizer steps until its own target. The baseline of every claim about transfer.
//
// A weighted set of curves: error(k) = floor + (start - floor) / (1 + (k / half)^power). Power 1 is
// the rational curve of Optimus [EuroSys'18]; higher powers start flat, as fine-tuning of a fresh
// head does. The prior over the steps to target comes from finished jobs of the same backbone and
// method (ClassPriors); the job's own evaluations weigh the curves by their likelihood. So with one
// noisy evaluation the answer is mostly the prior's, with many it is the curve's, and the interval
// says which. Errors: 1 - metric where larger is better, else the metric. Pure, any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ymir/base/interval.h"
#include "ymir/base/result.h"
#include "ymir/core/snapshot.h"
#include "ymir/estimate/draws.h"

namespace ymir {

// An error seen at a step of the job, with its variance (sampling of the validation rows and what
// the curve family can't follow).
struct ErrorPoint {
  double step = 0;
  double error = 0;
  double variance = 0;
  bool operator==(const ErrorPoint&) const = default;
};

struct LearningCurve {
  double start = 1, floor = 0, half = 1;
  int power = 1;
  double steps_to_target = 1;  // may lie beyond the job's last step: it ends without the target
  double error(double step) const;
};

struct SoloEvidence {
  double start = 1;  // error before the first step
  double goal = 0;   // error at the target; below start
  std::vector<ErrorPoint> points{};
  double not_reached_before = 0;  // the last step at which the target was seen unmet
  Interval prior_steps{1, 1, 1};  // to the target
  bool operator==(const SoloEvidence&) const = default;
};

class SoloBelief {
 public:
  explicit SoloBelief(const SoloEvidence& evidence);

  // The curve at this share of the belief, ordered by steps to target: a draw, for a uniform u.
  const LearningCurve& at(double u) const;
  Interval steps() const;  // to the target
  // Error expected at a step, and its standard deviation over the curves.
  double expected_error(double step) const;
  double deviation(double step) const;
  std::size_t points() const { return points_; }

 private:
  struct Weighted {
    LearningCurve curve{};
    double weight = 0, cumulative = 0;
  };
  std::vector<Weighted> curves_{};  // by steps to target
  std::size_t points_ = 0;
};

// Steps to target of finished jobs, by backbone and method.
class ClassPriors {
 public:
  // A job ended that had learnt from nobody. Not reached counts as somewhat beyond its last step.
  void add(const std::string& key, double steps, bool reached, double total_steps);
  Interval steps(const std::string& key, double total_steps) const;
  std::int64_t rows(const std::string& key) const;

 private:
  std::map<std::string, std::vector<double>> logs_{};  // ln(steps / sqrt(total))
};

// --- from the snapshot ---
bool has_target(const JobSpec& spec);
std::string class_key(const JobView& job);
double error_of(const std::string& metric, double value);
double value_of(const std::string& metric, double error);
std::optional<double> metric_of(const Evaluation& evaluation, const std::string& metric);
double evaluation_variance(const JobView& job, double error);
// Evaluations of the job's own path only, by step: its profile, and what it did alone, which counts
// where both have one. Point into `job`.
std::vector<const Evaluation*> own_evaluations(const JobView& job);
std::vector<ErrorPoint> own_points(const JobView& job);  // after step 0
double steps_between_evaluations(const JobView& job);
// The step at which a target met at `step` is noticed: the next evaluation, or the job's last step.
double noticed_at(double step, double between_evaluations, double last_step);

// What fitted curves (convergence.h) say of ln(steps to target). From five evaluations on it makes
// the belief better (measured on public curves: mean relative error of the epochs to 90 % of the
// improvement .16 -> .14 from five points, .16 -> .12 from six); below, worse.
struct CurveHint {
  double log_steps = 0, deviation = 1;
};
inline constexpr std::size_t kHintPoints = 5;
// None below kHintPoints, or when the fit is censored. The seed is of its bootstrap.
std::optional<CurveHint> curve_hint(std::span<const ErrorPoint> points, double goal,
                                    std::uint64_t seed);

// The hints that were asked for, because a fit takes most of a millisecond and the same job asks in
// every round, and in every run of a simulation. A pure function with a memory; any thread.
class CurveHints {
 public:
  std::optional<CurveHint> of(std::span<const ErrorPoint> points, double goal, std::uint64_t seed);

 private:
  std::mutex mutex_{};
  std::map<std::vector<double>, std::optional<CurveHint>> known_{};  // by all that it depends on
};

// All that the belief of how the job does alone depends on. Only for jobs with a target.
SoloEvidence solo_evidence(const JobView& job, const ClassPriors& priors, CurveHints& hints);

}  // namespace ymir
