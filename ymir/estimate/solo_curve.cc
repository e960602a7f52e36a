#include "ymir/estimate/solo_curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ymir/base/result.h"
#include "ymir/estimate/convergence.h"
#include "ymir/estimate/step_time.h"

namespace ymir {
namespace {

constexpr int kStepGrid = 40;
// ln of 0.35, 0.4, 0.25: powers 1, 2, 3.
constexpr std::array<double, 3> kLogPowerPrior{-1.0498, -0.9163, -1.3863};
// Where the target lies between the floor (0) and the start (1): most targets are near the best
// that the job can do.
constexpr std::array<double, 7> kHeights{0.02, 0.05, 0.1, 0.18, 0.28, 0.42, 0.6};
// What a real curve does that no curve of the family does, in error; and evaluations of one run
// share it, so that many say less than their number.
constexpr double kModelError = 0.03;
double temper(std::size_t points) { return 1 / (1 + 0.15 * (static_cast<double>(points) - 1)); }
// Spread of ln steps within a class before many jobs have been seen.
constexpr double kClassSpread = 0.7;
constexpr double kClassPseudoRows = 1.5;

// The curves through the target at step 1; others are the same with time stretched.
std::vector<LearningCurve> shapes(double start, double goal) {
  std::vector<LearningCurve> result;
  for (const double height : kHeights) {
    // floor = (goal - height * start) / (1 - height), but an error is not negative.
    const double floor = std::max(0.0, (goal - height * start) / (1 - height));
    const double reached = (goal - floor) / (start - floor);
    for (int power = 1; power <= 3; ++power) {
      result.push_back({start, floor, std::pow(1 / reached - 1, -1.0 / power), power, 1});
    }
  }
  return result;
}

// The sum of 2.5 ln(1 + miss^2 / (4 variance)): Student-like tails, so that one odd evaluation does
// not decide alone. As few logarithms as a double's range allows: this is asked of every curve of
// every job in every round.
double log_likelihood(const LearningCurve& curve, const std::vector<ErrorPoint>& points) {
  double product = 1, sum = 0;
  for (const ErrorPoint& point : points) {
    const double miss = point.error - curve.error(point.step);
    product *= 1 + miss * miss / (4 * point.variance);
    if (product > 1e100) sum += std::log(std::exchange(product, 1));
  }
  return -2.5 * (sum + std::log(product)) * temper(points.size());
}

}  // namespace

double LearningCurve::error(double step) const {
  const double x = std::max(step, 0.0) / half;
  double grown = x;
  for (int i = 1; i < power; ++i) grown *= x;
  return floor + (start - floor) / (1 + grown);
}

SoloBelief::SoloBelief(const SoloEvidence& e) : points_(e.points.size()) {
  YMIR_CHECK(e.goal > 0 && e.start > e.goal, "solo curve: the target is no way down");
  const double mean = std::log(e.prior_steps.p50);
  const double spread =
      std::max(0.05, std::log(e.prior_steps.p90 / e.prior_steps.p10) / (2 * kZ90));
  const double unmet = std::log(std::max(e.not_reached_before, 0.5) + 0.5);
  const double low = std::max(mean - 3 * spread, unmet);
  const double high = std::max(mean + 3 * spread, low + 1.5);
  const std::vector<LearningCurve> unit = shapes(e.start, e.goal);
  curves_.reserve((kStepGrid + 1) * unit.size());
  double best = -INFINITY;
  for (int i = 0; i <= kStepGrid; ++i) {
    const double log_steps = low + (high - low) * i / kStepGrid;
    const double steps = std::exp(log_steps), z = (log_steps - mean) / spread;
    for (const LearningCurve& shape : unit) {
      Weighted w{shape};
      w.curve.half *= steps;
      w.curve.steps_to_target = steps;
      w.weight = kLogPowerPrior[static_cast<std::size_t>(shape.power - 1)] - 0.5 * z * z +
                 log_likelihood(w.curve, e.points);
      best = std::max(best, w.weight);
      curves_.push_back(w);
    }
  }
  double total = 0;
  for (Weighted& w : curves_) {
    w.weight = std::exp(w.weight - best);
    total += w.weight;
    w.cumulative = total;
  }
  for (Weighted& w : curves_) {
    w.weight /= total;
    w.cumulative /= total;
  }
}

const LearningCurve& SoloBelief::at(double u) const {
  const auto found = std::ranges::lower_bound(curves_, u, {}, &Weighted::cumulative);
  return (found == curves_.end() ? curves_.back() : *found).curve;
}

Interval SoloBelief::steps() const {
  return {at(0.1).steps_to_target, at(0.5).steps_to_target, at(0.9).steps_to_target};
}

double SoloBelief::expected_error(double step) const {
  double sum = 0;
  for (const Weighted& w : curves_) sum += w.weight * w.curve.error(step);
  return sum;
}

double SoloBelief::deviation(double step) const {
  const double mean = expected_error(step);
  double sum = 0;
  for (const Weighted& w : curves_) {
    const double d = w.curve.error(step) - mean;
    sum += w.weight * d * d;
  }
  return std::sqrt(sum);
}

// --- class priors ---

void ClassPriors::add(const std::string& key, double steps, bool reached, double total_steps) {
  const double seen = std::max(1.0, reached ? steps : 1.3 * std::max(steps, 1.0));
  logs_[key].push_back(std::log(seen) - 0.5 * std::log(std::max(total_steps, 1.0)));
}

// Steps of similar jobs agree neither as steps nor as shares of the job's own limit; between the
// two (the root) is the compromise. Before any job: 0.35 of the limit, very wide.
Interval ClassPriors::steps(const std::string& key, double total_steps) const {
  const double total = std::max(total_steps, 1.0), half_log = 0.5 * std::log(total);
  const double prior = std::log(0.35 * total) - half_log;
  const auto found = logs_.find(key);
  if (found == logs_.end()) return log_normal(prior + half_log, 1.0);
  const std::vector<double>& logs = found->second;
  const auto n = static_cast<double>(logs.size());
  double sum = kClassPseudoRows * prior;
  for (const double x : logs) sum += x;
  const double mean = sum / (n + kClassPseudoRows);
  double squares = 4 * kClassSpread * kClassSpread;  // four pseudo-rows of the spread
  for (const double x : logs) squares += (x - mean) * (x - mean);
  const double spread = std::sqrt(squares / (n + 4) * (1 + 1 / (n + kClassPseudoRows)));
  return log_normal(mean + half_log, spread);
}

std::int64_t ClassPriors::rows(const std::string& key) const {
  const auto found = logs_.find(key);
  return found == logs_.end() ? 0 : static_cast<std::int64_t>(found->second.size());
}

// --- from the snapshot ---

bool has_target(const JobSpec& spec) { return !spec.target.metric.empty(); }

std::string class_key(const JobView& job) {
  return job.facts.backbone + " " + method_name(job.spec.method);
}

double error_of(const std::string& metric, double value) {
  return larger_is_better(metric) ? 1 - value : value;
}
double value_of(const std::string& metric, double error) {
  return larger_is_better(metric) ? 1 - error : error;
}

std::optional<double> metric_of(const Evaluation& evaluation, const std::string& metric) {
  const auto found = evaluation.metrics.find(metric);
  if (found == evaluation.metrics.end() || !std::isfinite(found->second)) return std::nullopt;
  return found->second;
}

double evaluation_variance(const JobView& job, double error) {
  const auto rows = static_cast<double>(std::max<std::int64_t>(job.facts.validation_rows, 20));
  const double share = std::clamp(error, 0.02, 0.98);
  return share * (1 - share) / rows + kModelError * kModelError;
}

std::vector<const Evaluation*> own_evaluations(const JobView& job) {
  std::vector<const Evaluation*> result;
  if (!job.merged) {
    for (const Evaluation& e : job.evaluations) result.push_back(&e);
    std::ranges::reverse(result);
  }
  if (job.profile) {
    const auto& profiled = job.profile->evaluations;
    for (auto e = profiled.rbegin(); e != profiled.rend(); ++e) result.push_back(&*e);
  }
  // Of one step the newest counts, which stands first here.
  std::ranges::stable_sort(result, {}, &Evaluation::step);
  const auto same = std::ranges::unique(result, {}, &Evaluation::step);
  result.erase(same.begin(), same.end());
  return result;
}

std::vector<ErrorPoint> own_points(const JobView& job) {
  const std::string metric = judged_metric(job.spec);
  std::vector<ErrorPoint> points;
  for (const Evaluation* e : own_evaluations(job)) {
    const std::optional<double> value = metric_of(*e, metric);
    if (!value || e->step == 0) continue;
    const double error = error_of(metric, *value);
    points.push_back({static_cast<double>(e->step), error, evaluation_variance(job, error)});
  }
  return points;
}

double steps_between_evaluations(const JobView& job) {
  if (job.spec.evaluate_steps > 0) return static_cast<double>(job.spec.evaluate_steps);
  return std::max(
      1.0, std::round(job.spec.evaluate_epochs * static_cast<double>(job.facts.steps_per_epoch)));
}

double noticed_at(double step, double between_evaluations, double last_step) {
  return std::min(between_evaluations * std::ceil(step / between_evaluations), last_step);
}

std::optional<CurveHint> curve_hint(std::span<const ErrorPoint> evidence, double goal,
                                    std::uint64_t seed) {
  if (evidence.size() < kHintPoints) return std::nullopt;
  std::vector<CurvePoint> points;
  for (const ErrorPoint& p : evidence) points.push_back({p.step, p.error});
  const auto fit = fit_curve(points, {.replicas = 20, .seed = seed});
  if (!fit) return std::nullopt;
  const Steps steps = steps_to(*fit, goal);
  if (steps.censored || !(steps.value.p50 > 0)) return std::nullopt;
  const double spread = std::log(steps.value.p90 / steps.value.p10) / (2 * kZ90);
  // The same evaluations weigh the curves once more: what the fit says counts less for it.
  return CurveHint{std::log(std::max(steps.value.p50, points.back().step)), 1.5 * spread};
}

std::optional<CurveHint> CurveHints::of(std::span<const ErrorPoint> points, double goal,
                                        std::uint64_t seed) {
  if (points.size() < kHintPoints) return std::nullopt;
  constexpr std::size_t kMost = 200'000;  // about 60 MB
  std::vector<double> key{static_cast<double>(seed), goal};
  for (const ErrorPoint& p : points) key.insert(key.end(), {p.step, p.error});
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  const std::optional<CurveHint> hint = curve_hint(points, goal, seed);
  const std::scoped_lock lock(mutex_);
  if (known_.size() >= kMost) known_.clear();
  known_.emplace(std::move(key), hint);
  return hint;
}

SoloEvidence solo_evidence(const JobView& job, const ClassPriors& priors, CurveHints& hints) {
  const std::string metric = judged_metric(job.spec);
  SoloEvidence evidence;
  evidence.goal = std::max(error_of(metric, job.spec.target.value), 1e-3);
  evidence.points = own_points(job);
  std::optional<double> first;
  for (const Evaluation* e : own_evaluations(job)) {
    const std::optional<double> value = metric_of(*e, metric);
    if (!value) continue;
    if (!first) first = error_of(metric, *value);
    if (!reaches(job.spec.target, *value)) {
      evidence.not_reached_before = static_cast<double>(e->step);
    }
  }
  // Before the first step a fresh head knows nothing. Chance of a classifier; else what was seen
  // first, or twice the target's error.
  const double chance = job.spec.kind == TaskKind::kClassify && job.facts.num_labels >= 2
                            ? 1 - 1.0 / job.facts.num_labels
                            : std::max(2 * evidence.goal, first.value_or(0));
  evidence.start = std::max({chance, first.value_or(0), 1.1 * evidence.goal + 0.02});
  evidence.prior_steps = priors.steps(class_key(job), static_cast<double>(job.facts.total_steps));
  // The fit's target is the declared one, not that of the family of curves, which is above 0.
  if (const auto hint =
          hints.of(evidence.points, error_of(metric, job.spec.target.value), job.id.value)) {
    const Interval& prior = evidence.prior_steps;
    const double spread = std::log(prior.p90 / prior.p10) / (2 * kZ90);
    const double w0 = 1 / (spread * spread), w1 = 1 / (hint->deviation * hint->deviation);
    evidence.prior_steps = log_normal((w0 * std::log(prior.p50) + w1 * hint->log_steps) / (w0 + w1),
                                      std::sqrt(1 / (w0 + w1)));
  }
  return evidence;
}

}  // namespace ymir
