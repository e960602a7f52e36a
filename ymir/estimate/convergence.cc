#include "ymir/estimate/convergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include "ymir/base/rng.h"
#include "ymir/base/symmetric.h"
#include "ymir/estimate/draws.h"

namespace ymir {
namespace {

constexpr int kMaxBlocks = 60;
constexpr double kHuber = 0.05;

// Relative spread of steps to a target found in measured curves with so few points.
double least_spread(std::int64_t points) {
  constexpr std::array<double, 8> kSpread{1, 1, 1, 0.35, 0.28, 0.20, 0.12, 0.10};
  return points < 8 ? kSpread[static_cast<std::size_t>(points)] : 0.08;
}

// --- cleaning ---

std::vector<CurvePoint> distinct(std::span<const CurvePoint> points) {
  std::map<double, std::pair<double, int>> by_step;
  for (const CurvePoint& p : points) {
    if (!std::isfinite(p.step) || !std::isfinite(p.loss) || p.step < 0 || p.loss <= 0) continue;
    auto& [sum, count] = by_step[p.step];
    sum += p.loss;
    ++count;
  }
  std::vector<CurvePoint> result;
  for (const auto& [step, seen] : by_step) result.push_back({step, seen.first / seen.second});
  return result;
}

double median(std::vector<double> values) {
  const std::size_t half = values.size() / 2;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(half));
  return values[half];
}

// A point far from the median of its seven neighbours is set to it. Only full windows: the ends of
// a steep curve are no outliers.
void drop_outliers(std::vector<CurvePoint>& points) {
  const std::vector<CurvePoint> seen = points;
  for (std::size_t i = 3; i + 3 < seen.size(); ++i) {
    std::vector<double> window, deviations;
    for (std::size_t j = i - 3; j <= i + 3; ++j) window.push_back(seen[j].loss);
    const double middle = median(window);
    for (const double x : window) deviations.push_back(std::abs(x - middle));
    const double limit = 3 * 1.4826 * median(deviations);
    if (std::abs(seen[i].loss - middle) > limit) points[i].loss = middle;
  }
}

std::vector<CurvePoint> blocks(const std::vector<CurvePoint>& points) {
  if (points.size() <= kMaxBlocks) return points;
  const double low = std::log1p(points.front().step), high = std::log1p(points.back().step);
  std::map<int, std::pair<CurvePoint, int>> sums;
  for (const CurvePoint& p : points) {
    const int block = std::min(
        kMaxBlocks - 1, static_cast<int>((std::log1p(p.step) - low) / (high - low) * kMaxBlocks));
    auto& [sum, count] = sums[block];
    sum.step += p.step;
    sum.loss += p.loss;
    ++count;
  }
  std::vector<CurvePoint> result;
  for (const auto& [block, sum] : sums) {
    result.push_back({sum.first.step / sum.second, sum.first.loss / sum.second});
  }
  return result;
}

// --- one fit, in normalised units ---

struct Data {
  std::vector<double> k{}, l{}, weight{};
};

Data weighted(const std::vector<CurvePoint>& points) {
  Data data;
  const std::size_t n = points.size();
  for (std::size_t i = 0; i < n; ++i) {
    data.k.push_back(points[i].step);
    data.l.push_back(points[i].loss);
    data.weight.push_back(std::pow(4.0, static_cast<double>(3 * i / n)));  // newest third: 16
  }
  return data;
}

// At least `limit` when it is not below: nobody asks how far above.
double weighted_error(const RationalCurve& curve, const Data& data, double limit = INFINITY) {
  double sum = 0;
  for (std::size_t i = 0; i < data.k.size() && !(sum >= limit); ++i) {
    const double miss = curve.at(data.k[i]) - data.l[i];
    const double size = std::abs(miss);
    sum += data.weight[i] * (size <= kHuber ? 0.5 * miss * miss : kHuber * (size - 0.5 * kHuber));
  }
  return sum;
}

// At most four unknowns: by far the most frequent systems, so without memory of their own.
using Square = std::array<double, 16>;  // [n, n], row-major; only the lower triangle is read
using Column = std::array<double, 4>;

// Solves a x = b in place; `a` is used up. False: not positive definite.
bool solve(Square& a, std::size_t n, Column& b) {
  const std::span<double> matrix(a.data(), n * n);
  if (!cholesky_in_place(matrix, static_cast<int>(n))) return false;
  cholesky_solve(matrix, static_cast<int>(n), std::span(b.data(), n));
  return true;
}

struct Fitted {
  std::optional<RationalCurve> curve{};
  double error = INFINITY;
  void take(const RationalCurve& other, double its_error) {
    if (its_error < error) *this = {other, its_error};
  }
};
// The best of each family. Every curve of the first (a = 0) is one of the second (a >= 0), so that
// both are found in one search.
using BestOfFamilies = std::array<Fitted, 2>;

// Non-negative least squares of z = 1/(l - d) on powers of k by trying every active set, of the
// second family too when `quadratic`. What is better than `best` takes its place.
void solve_for_floor(const Data& data, double d, bool quadratic, BestOfFamilies& best) {
  std::array<double, 9> gram{};
  std::array<double, 3> right{};
  for (std::size_t i = 0; i < data.k.size(); ++i) {
    const double gap = data.l[i] - d, w = data.weight[i] * gap * gap * gap * gap;
    const std::array<double, 3> x{1, data.k[i], data.k[i] * data.k[i]};
    for (std::size_t r = 0; r < 3; ++r) {
      right[r] += w * x[r] / gap;
      for (std::size_t s = 0; s <= r; ++s) gram[r * 3 + s] += w * x[r] * x[s];
    }
  }
  // Every set has the power 0: without it the curve is infinite before the first step.
  for (unsigned set = 1; set < (quadratic ? 8u : 4u); set += 2) {
    std::array<std::size_t, 3> active{};
    std::size_t n = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      if (set >> i & 1) active[n++] = i;
    }
    Square a{};
    Column b{};
    for (std::size_t r = 0; r < n; ++r) {
      b[r] = right[active[r]];
      for (std::size_t s = 0; s <= r; ++s) a[r * n + s] = gram[active[r] * 3 + active[s]];
    }
    if (!solve(a, n, b)) continue;
    if (std::ranges::any_of(b, [](double x) { return !(x >= 0); }) || !(b[0] > 0)) continue;
    std::array<double, 3> found{};
    for (std::size_t r = 0; r < n; ++r) found[active[r]] = b[r];
    const RationalCurve curve{found[2], found[1], found[0], d};
    const bool straight = set < 4;
    const double limit = std::max(straight ? best[0].error : 0, quadratic ? best[1].error : 0);
    const double error = weighted_error(curve, data, limit);
    if (straight) best[0].take(curve, error);
    if (quadratic) best[1].take(curve, error);
  }
}

BestOfFamilies best_starts(const Data& data, bool quadratic, int floors) {
  const double lowest = *std::ranges::min_element(data.l);
  BestOfFamilies best;
  for (int i = 0; i < floors; ++i) {
    const double left = 1 - static_cast<double>(i) / (floors - 1);  // dense near the lowest loss
    const double d = 0.999 * lowest * (1 - left * left);
    solve_for_floor(data, d, quadratic, best);
  }
  return best;
}

// The free parameters of a polish: logs of the positive ones of a, b, c, and d as a share of the
// lowest loss, by its logit.
class Parameters {
 public:
  Parameters(const RationalCurve& start, double lowest) : lowest_(lowest) {
    const std::array<double, 3> values{start.a, start.b, start.c};
    for (std::size_t i = 0; i < 3; ++i) {
      if (values[i] <= 0) continue;
      active_[size] = i;
      x[size++] = std::log(values[i]);
    }
    const double share = std::clamp(start.d / lowest, 1e-6, 1 - 1e-6);
    x[size++] = std::log(share / (1 - share));
  }
  RationalCurve curve(const Column& at) const {
    std::array<double, 3> values{};
    for (std::size_t i = 0; i + 1 < size; ++i) values[active_[i]] = std::exp(at[i]);
    const double share = 1 / (1 + std::exp(-at[size - 1]));
    return {values[0], values[1], values[2], share * lowest_};
  }
  Column x{};
  std::size_t size = 0;

 private:
  double lowest_;
  std::array<std::size_t, 3> active_{};
};

RationalCurve polish(const RationalCurve& start, const Data& data) {
  Parameters p(start, *std::ranges::min_element(data.l));
  const std::size_t n = p.size;
  double damping = 1e-3, error = weighted_error(p.curve(p.x), data);
  for (int round = 0; round < 60; ++round) {
    Square hessian{};
    Column gradient{};
    const RationalCurve at = p.curve(p.x);
    std::array<RationalCurve, 4> moved{};
    constexpr double kStep = 1e-5;
    for (std::size_t j = 0; j < n; ++j) {
      Column x = p.x;
      x[j] += kStep;
      moved[j] = p.curve(x);
    }
    for (std::size_t i = 0; i < data.k.size(); ++i) {
      const double here = at.at(data.k[i]), miss = here - data.l[i];
      const double w = data.weight[i] * (std::abs(miss) <= kHuber ? 1 : kHuber / std::abs(miss));
      Column slope{};
      for (std::size_t j = 0; j < n; ++j) {
        slope[j] = (moved[j].at(data.k[i]) - here) / kStep;
        gradient[j] += w * slope[j] * miss;
        for (std::size_t m = 0; m <= j; ++m) hessian[j * n + m] += w * slope[j] * slope[m];
      }
    }
    for (std::size_t j = 0; j < n; ++j) hessian[j * n + j] += damping * hessian[j * n + j] + 1e-12;
    if (!solve(hessian, n, gradient)) break;
    Column next = p.x;
    for (std::size_t j = 0; j < n; ++j) next[j] -= std::clamp(gradient[j], -3.0, 3.0);
    const double next_error = weighted_error(p.curve(next), data, error);
    if (next_error < error) {
      const bool done = error - next_error <= 1e-14 * error;
      p.x = next;
      error = next_error;
      damping = std::max(damping / 5, 1e-12);
      if (done) break;
    } else {
      damping *= 8;
      if (damping > 1e8) break;
    }
  }
  const RationalCurve polished = p.curve(p.x);
  return weighted_error(polished, data) < weighted_error(start, data) ? polished : start;
}

// --- families ---

constexpr std::array<const char*, 2> kFamilies{"R0", "R1"};

// The best curve of each family; of the second only when `quadratic`.
std::array<std::optional<RationalCurve>, 2> fit_both(const std::vector<CurvePoint>& points,
                                                     bool quadratic, bool thorough) {
  const Data data = weighted(points);
  const BestOfFamilies start = best_starts(data, quadratic, thorough ? 64 : 24);
  std::array<std::optional<RationalCurve>, 2> curves{start[0].curve, start[1].curve};
  for (auto& curve : curves)
    if (curve && thorough) curve = polish(*curve, data);
  return curves;
}

// How far off the next point was, predicted by each family from those before it; over the last
// five. The second family takes a point more to begin.
std::array<double, 2> one_step_errors(const std::vector<CurvePoint>& points) {
  const std::size_t n = points.size();
  std::array<double, 2> sum{};
  std::array<int, 2> count{};
  for (std::size_t i = std::max<std::size_t>(3, n > 5 ? n - 5 : 0); i < n; ++i) {
    const std::vector<CurvePoint> before(points.begin(),
                                         points.begin() + static_cast<std::ptrdiff_t>(i));
    const auto curves = fit_both(before, i >= 4, true);
    for (std::size_t family = 0; family < 2; ++family) {
      if (!curves[family]) continue;
      const double miss = curves[family]->at(points[i].step) / points[i].loss - 1;
      sum[family] += miss * miss;
      ++count[family];
    }
  }
  for (std::size_t family = 0; family < 2; ++family)
    sum[family] = count[family] > 0 ? std::sqrt(sum[family] / count[family]) : 0;
  return sum;
}

std::vector<WeightedCurve> fit_families(const std::vector<CurvePoint>& points, bool thorough) {
  std::vector<WeightedCurve> result;
  const auto curves = fit_both(points, points.size() >= 5, thorough);
  for (std::size_t family = 0; family < 2; ++family)
    if (curves[family]) result.push_back({kFamilies[family], *curves[family], 1, 0});
  return result;
}

void weigh_families(std::vector<WeightedCurve>& curves, const std::vector<CurvePoint>& points) {
  double total = 0;
  if (curves.size() > 1) {  // both families, in their order
    const std::array<double, 2> errors = one_step_errors(points);
    for (std::size_t family = 0; family < 2; ++family)
      curves[family].one_step_error = errors[family];
  }
  for (WeightedCurve& w : curves) {
    w.weight = 1 / (w.one_step_error * w.one_step_error + 1e-8);
    total += w.weight;
  }
  for (WeightedCurve& w : curves) w.weight /= total;
  std::ranges::stable_sort(curves, std::greater<>(), &WeightedCurve::weight);
}

double mean_at(const std::vector<WeightedCurve>& curves, double step) {
  double sum = 0;
  for (const WeightedCurve& w : curves) sum += w.weight * w.curve.at(step);
  return sum;
}

// Back to the caller's units.
void unscale(std::vector<WeightedCurve>& curves, double step_unit, double loss_unit) {
  for (WeightedCurve& w : curves) {
    w.curve.a /= step_unit * step_unit * loss_unit;
    w.curve.b /= step_unit * loss_unit;
    w.curve.c /= loss_unit;
    w.curve.d *= loss_unit;
  }
}

// Residuals in blocks of three, drawn with replacement, added to the fitted curve.
std::vector<CurvePoint> resample(const std::vector<CurvePoint>& points,
                                 const std::vector<WeightedCurve>& curves, Rng& rng) {
  const std::size_t n = points.size();
  std::vector<CurvePoint> result;
  while (result.size() < n) {
    const std::size_t first = rng.below(n);
    for (std::size_t i = 0; i < 3 && result.size() < n; ++i) {
      const CurvePoint& from = points[(first + i) % n];
      const double residual = from.loss / mean_at(curves, from.step);
      const double step = points[result.size()].step;
      result.push_back({step, mean_at(curves, step) * residual});
    }
  }
  return result;
}

std::vector<CurvePoint> monotone(std::vector<CurvePoint> points) {
  std::vector<double> values;
  for (const CurvePoint& p : points) values.push_back(p.loss);
  isotonic_decreasing(values, std::vector<double>(values.size(), 1.0));
  for (std::size_t i = 0; i < points.size(); ++i) points[i].loss = values[i];
  return points;
}

bool rises_at_the_end(const std::vector<CurvePoint>& points) {
  const std::size_t third = points.size() / 3;
  if (third < 3) return false;
  double k = 0, l = 0, kk = 0, kl = 0, ll = 0;
  const auto n = static_cast<double>(third);
  for (std::size_t i = points.size() - third; i < points.size(); ++i) {
    k += points[i].step, l += points[i].loss;
  }
  k /= n, l /= n;
  for (std::size_t i = points.size() - third; i < points.size(); ++i) {
    kk += (points[i].step - k) * (points[i].step - k);
    kl += (points[i].step - k) * (points[i].loss - l);
    ll += (points[i].loss - l) * (points[i].loss - l);
  }
  // Rising by more than its scatter explains.
  return kl > 0 && kl * kl > 0.5 * kk * ll && kl / kk * (2 * kk / n) > 0;
}

}  // namespace

Result<> FitOptions::validate() const {
  if (replicas < 0 || replicas > 1000) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("replicas must be in 0..1000: {}", replicas)};
  }
  return Ok{};
}

double CurveFit::at(double step) const { return mean_at(curves, step); }

void isotonic_decreasing(std::vector<double>& values, std::vector<double> weights) {
  YMIR_CHECK(values.size() == weights.size(), "isotonic: sizes differ");
  struct Pool {
    double mean, weight;
    std::size_t size;
  };
  std::vector<Pool> pools;
  for (std::size_t i = 0; i < values.size(); ++i) {
    pools.push_back({values[i], weights[i], 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean < pools.back().mean) {
      const Pool last = pools.back();
      pools.pop_back();
      Pool& merged = pools.back();
      const double weight = merged.weight + last.weight;
      merged.mean = (merged.mean * merged.weight + last.mean * last.weight) / weight;
      merged.weight = weight;
      merged.size += last.size;
    }
  }
  std::size_t at = 0;
  for (const Pool& pool : pools) {
    for (std::size_t i = 0; i < pool.size; ++i) values[at++] = pool.mean;
  }
}

Result<CurveFit> fit_curve(std::span<const CurvePoint> raw, const FitOptions& options) {
  YMIR_TRY(options.validate());
  std::vector<CurvePoint> points = distinct(raw);
  if (points.size() < 3 || points.back().step <= 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("too few points for a curve: {} distinct", points.size())};
  }
  CurveFit fit;
  fit.points = static_cast<std::int64_t>(points.size());
  drop_outliers(points);
  points = blocks(points);
  fit.last_step = points.back().step;
  fit.last_loss = points.back().loss;
  fit.converging = !rises_at_the_end(points);
  std::vector<double> first;
  for (std::size_t i = 0; i < std::min<std::size_t>(points.size(), 5); ++i) {
    first.push_back(points[i].loss);
  }
  fit.loss_scale = median(first);
  const double step_unit = fit.last_step, loss_unit = fit.loss_scale;
  for (CurvePoint& p : points) p = {p.step / step_unit, p.loss / loss_unit};
  const std::vector<CurvePoint> falling = monotone(points);

  fit.curves = fit_families(falling, true);
  if (fit.curves.empty()) {
    return Error{ErrorCode::kInternal, "no curve of the family fits"};
  }
  weigh_families(fit.curves, falling);
  double squares = 0, mean = 0, around_mean = 0;
  for (const CurvePoint& p : points) mean += p.loss / static_cast<double>(points.size());
  for (const CurvePoint& p : points) {
    const double miss = p.loss - mean_at(fit.curves, p.step);
    squares += miss * miss;
    around_mean += (p.loss - mean) * (p.loss - mean);
  }
  fit.error = std::sqrt(squares / static_cast<double>(points.size()));
  if (!(squares < around_mean)) fit.converging = false;

  Rng rng(options.seed * 1000003 + static_cast<std::uint64_t>(fit.points));
  for (int i = 0; i < options.replicas; ++i) {
    std::vector<WeightedCurve> replica =
        fit_families(monotone(resample(points, fit.curves, rng)), false);
    for (WeightedCurve& w : replica) {
      const auto of_family = std::ranges::find(fit.curves, w.family, &WeightedCurve::family);
      w.weight = of_family == fit.curves.end() ? 0 : of_family->weight;
    }
    unscale(replica, step_unit, loss_unit);
    if (!replica.empty()) fit.replicas.push_back(std::move(replica));
  }
  unscale(fit.curves, step_unit, loss_unit);
  return fit;
}

namespace {

// Weighted mean of ln k over the curves that get there; none when less than half of the weight
// does.
template <class Answer>
std::optional<double> mean_answer(const std::vector<WeightedCurve>& curves, Answer answer) {
  double weight = 0, total = 0, sum = 0;
  for (const WeightedCurve& w : curves) {
    total += w.weight;
    const std::optional<double> step = answer(w.curve);
    if (!step) continue;
    weight += w.weight;
    sum += w.weight * std::log(std::max(*step, 1e-9));
  }
  if (weight <= 0 || weight < 0.5 * total) return std::nullopt;
  return std::exp(sum / weight);
}

template <class Answer>
Steps answer_with_interval(const CurveFit& fit, Answer answer) {
  const std::optional<double> centre = mean_answer(fit.curves, answer);
  if (!centre || !fit.converging) return {true, fit.last_step, {}};
  std::vector<double> logs;
  std::size_t unreached = 0;
  for (const auto& replica : fit.replicas) {
    const std::optional<double> step = mean_answer(replica, answer);
    step ? logs.push_back(std::log(std::max(*step, 1e-9))) : static_cast<void>(++unreached);
  }
  const double middle = std::log(std::max(*centre, 1e-9));
  double low = 0, high = 0;  // distance of p10 and p90 from the centre, in ln k
  if (!logs.empty()) {
    std::ranges::sort(logs);
    const std::size_t n = logs.size() + unreached;  // unreached ones are beyond all others
    const auto at = [&](double p) {
      const auto i = static_cast<std::size_t>(p * static_cast<double>(n - 1) + 0.5);
      return i < logs.size() ? logs[i] : logs.back() + 0.7;
    };
    low = std::max(0.0, middle - at(0.1));
    high = std::max(0.0, at(0.9) - middle);
  }
  const double least = kZ90 * least_spread(fit.points);
  return {false,
          0,
          {std::exp(middle - std::hypot(low, least)), std::exp(middle),
           std::exp(middle + std::hypot(high, least))}};
}

// First step past the steepest point where one unit improves by at most `least`, in loss.
std::optional<double> standstill(const RationalCurve& curve, double unit, double least) {
  auto improves = [&](double step) { return curve.at(step) - curve.at(step + unit); };
  double low = std::max(0.0, curve.steepest() - unit / 2);
  if (improves(low) <= least) return std::nullopt;
  double high = std::max(1.0, 2 * low + unit);
  for (int i = 0; i < 200 && improves(high) > least; ++i) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-9 * high; ++i) {
    const double middle = (low + high) / 2;
    (improves(middle) > least ? low : high) = middle;
  }
  return high;
}

}  // namespace

Steps steps_to(const CurveFit& fit, double target_loss) {
  return answer_with_interval(
      fit, [&](const RationalCurve& curve) { return curve.step_at(target_loss); });
}

Result<Steps> steps_to_convergence(const CurveFit& fit, const ConvergenceRule& rule) {
  if (!(rule.epsilon > 0) || !(rule.unit_steps > 0)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("epsilon and unit must be > 0: {} {}", rule.epsilon, rule.unit_steps)};
  }
  auto answer = [&](const RationalCurve& curve) {
    return standstill(curve, rule.unit_steps, rule.epsilon * fit.loss_scale);
  };
  if (fit.converging && !mean_answer(fit.curves, answer)) {
    return Error{ErrorCode::kConflict,
                 fmt::format("unit is too fine: no {:g} steps improve by {:g}", rule.unit_steps,
                             rule.epsilon)};
  }
  return answer_with_interval(fit, answer);
}

Result<double> loss_for_metric(std::span<const MetricPoint> seen, double target,
                               bool larger_is_better) {
  std::vector<MetricPoint> points;
  for (const MetricPoint& p : seen) {
    if (std::isfinite(p.loss) && std::isfinite(p.metric)) points.push_back(p);
  }
  const double sign = larger_is_better ? 1 : -1;
  std::ranges::sort(points, {}, &MetricPoint::loss);
  std::vector<double> values;  // better is more, so it falls with the loss
  for (const MetricPoint& p : points) values.push_back(sign * p.metric);
  isotonic_decreasing(values, std::vector<double>(values.size(), 1.0));
  const bool flat = points.size() < 3 || values.front() == values.back() ||
                    points.front().loss == points.back().loss;
  if (flat) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("metric does not follow the loss in {} points", points.size())};
  }
  const double wanted = sign * target;
  std::size_t i = 1;
  while (i + 1 < values.size() && values[i] > wanted) ++i;
  // Beyond what was seen: along the whole slope, which no single noisy pair decides.
  const bool inside = values[i - 1] > values[i] && wanted <= values.front();
  const std::size_t from = inside ? i - 1 : 0, to = inside ? i : values.size() - 1;
  const double slope = (points[to].loss - points[from].loss) / (values[to] - values[from]);
  return points[from].loss + slope * (wanted - values[from]);
}

}  // namespace ymir
