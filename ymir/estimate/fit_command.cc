#include "ymir/estimate/fit_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/estimate/convergence.h"

namespace ymir {
namespace {

constexpr std::size_t kMaxRows = 2'000'000;

struct Table {
  std::vector<CurvePoint> points{};
  std::int64_t dropped = 0;
};

Error fault(const std::string& name, std::size_t line, const std::string& text) {
  return {ErrorCode::kInvalidArgument, fmt::format("{}:{}: {}", name, line, text)};
}

std::string_view unquoted(std::string_view cell) {
  cell = trim(cell);
  if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') {
    cell = cell.substr(1, cell.size() - 2);
  }
  return cell;
}

bool is_not_finite(std::string_view cell) {
  const std::string text = to_lower(cell);
  for (const char* name :
       {"", "nan", "-nan", "inf", "-inf", "+inf", "infinity", "-infinity", "null", "none"}) {
    if (text == name) return true;
  }
  return false;
}

Result<Table> read_table(std::string_view csv, const std::string& name) {
  if (csv.starts_with("\xEF\xBB\xBF")) csv.remove_prefix(3);
  Table table;
  std::size_t line = 0, step_column = 0, loss_column = 0;
  bool header = false;
  while (!csv.empty()) {
    const std::size_t end = csv.find('\n');
    const std::string_view row = trim(csv.substr(0, end));
    csv.remove_prefix(end == std::string_view::npos ? csv.size() : end + 1);
    ++line;
    if (row.empty()) continue;
    const std::vector<std::string_view> cells = split(row, ',');
    if (!header) {
      auto find = [&](std::string_view column) {
        return static_cast<std::size_t>(
            std::ranges::find(cells, column, [](auto cell) { return unquoted(cell); }) -
            cells.begin());
      };
      step_column = find("step"), loss_column = find("loss");
      if (step_column == cells.size()) return fault(name, line, "no column named step");
      if (loss_column == cells.size()) return fault(name, line, "no column named loss");
      header = true;
      continue;
    }
    if (cells.size() <= std::max(step_column, loss_column)) {
      return fault(name, line, fmt::format("row has {} columns", cells.size()));
    }
    const std::string_view step_cell = unquoted(cells[step_column]);
    const std::string_view loss_cell = unquoted(cells[loss_column]);
    const auto step = parse_double(step_cell);
    if (!step || *step < 0) {
      return fault(name, line, fmt::format("step is not a number >= 0: {}", step_cell));
    }
    if (is_not_finite(loss_cell)) {
      ++table.dropped;
      continue;
    }
    const auto loss = parse_double(loss_cell);
    if (!loss) return fault(name, line, fmt::format("loss is not a number: {}", loss_cell));
    if (table.points.size() >= kMaxRows) return fault(name, line, "too many rows");
    table.points.push_back({*step, *loss});
  }
  if (!header) return fault(name, 1, "empty: a header with step and loss is needed");
  return table;
}

double usual_distance(std::vector<CurvePoint> points) {
  std::ranges::sort(points, {}, &CurvePoint::step);
  std::vector<double> gaps;
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i].step > points[i - 1].step) gaps.push_back(points[i].step - points[i - 1].step);
  }
  if (gaps.empty()) return 1;
  std::ranges::sort(gaps);
  return gaps[gaps.size() / 2];
}

Json to_json(const Steps& steps) {
  if (steps.censored) return {{"censored", true}, {"at_least", steps.at_least}};
  return {{"p10", steps.value.p10}, {"p50", steps.value.p50}, {"p90", steps.value.p90}};
}

std::string describe(const Steps& steps) {
  if (steps.censored) return fmt::format("censored (more than {:.0f}, if ever)", steps.at_least);
  return fmt::format("{:.0f} ({:.0f} .. {:.0f})", steps.value.p50, steps.value.p10,
                     steps.value.p90);
}

}  // namespace

Result<> FitRequest::validate() const {
  const auto refuse = [](const char* field, const char* rule, double value) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} must be {}: {}", field, rule, value)};
  };
  if (target && !std::isfinite(*target)) return refuse("target", "a finite number", *target);
  if (!(epsilon > 0 && std::isfinite(epsilon))) return refuse("epsilon", "above 0", epsilon);
  if (!(unit_steps >= 0 && std::isfinite(unit_steps)))
    return refuse("unit", "0 or more steps", unit_steps);
  return Ok{};
}

Result<FitAnswer> answer_fit(std::string_view csv, const std::string& name,
                             const FitRequest& request) {
  YMIR_TRY(request.validate());
  YMIR_TRY_ASSIGN(const Table table, read_table(csv, name));
  auto fitted = fit_curve(table.points, {});
  if (!fitted) return annotate(fitted.error(), name);
  const CurveFit& fit = *fitted;
  const WeightedCurve& best = fit.curves.front();
  const double unit = request.unit_steps > 0 ? request.unit_steps : usual_distance(table.points);

  Json json{{"points", fit.points},
            {"dropped", table.dropped},
            {"family", best.family},
            {"weight", best.weight},
            {"a", best.curve.a},
            {"b", best.curve.b},
            {"c", best.curve.c},
            {"d", best.curve.d},
            {"one_step_error", best.one_step_error},
            {"converging", fit.converging},
            {"epsilon", request.epsilon},
            {"unit_steps", unit}};
  std::string text = fmt::format(
      "loss(k) = 1 / ({:.6g} k^2 + {:.6g} k + {:.6g}) + {:.6g}\n"
      "family {} (weight {:.2f}), {} points, {} left out, one-step error {:.2f} %{}\n",
      best.curve.a, best.curve.b, best.curve.c, best.curve.d, best.family, best.weight, fit.points,
      table.dropped, 100 * best.one_step_error, fit.converging ? "" : ", not converging");
  if (request.target) {
    const Steps steps = steps_to(fit, *request.target);
    json["target"] = *request.target;
    json["steps_to_target"] = to_json(steps);
    text += fmt::format("steps to loss {:g}: {}\n", *request.target, describe(steps));
  }
  const Result<Steps> rest = steps_to_convergence(fit, {request.epsilon, unit});
  if (!rest && rest.error().code != ErrorCode::kConflict) return annotate(rest.error(), name);
  if (rest) {
    json["steps_to_convergence"] = to_json(*rest);
    text += fmt::format("steps to improvement <= {:g} in {:g} steps: {}\n", request.epsilon, unit,
                        describe(*rest));
  } else {
    json["steps_to_convergence"] = {{"refused", rest.error().message}};
    text += fmt::format("steps to convergence: {}\n", rest.error().message);
  }
  return FitAnswer{text, canonical(json)};
}

}  // namespace ymir
