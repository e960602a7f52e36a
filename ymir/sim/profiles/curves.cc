#include "ymir/sim/profiles/curves.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "ymir/base/csv.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

constexpr double kMaxEpoch = 1e6, kMaxValue = 1e9;

// A curve as it is read: rows after the epoch fell back belong to a second run.
struct OpenCurve {
  Curve points{};
  bool second_run = false;

  void add(EpochPoint point) {
    second_run = second_run || (!points.empty() && point.epoch <= points.back().epoch);
    if (!second_run) points.push_back(point);
  }
};

// Tells `add` the texts of `columns`, and the point, of each row of these models; it returns
// whether they fit each other.
Result<> read_curves(const std::string& file, std::vector<std::string> columns,
                     const std::vector<std::string>& models,
                     const std::function<bool(const std::vector<std::string>&, EpochPoint)>& add) {
  std::vector<std::string> texts(columns.size());
  columns.insert(columns.end(), {"epoch", "value"});
  return read_csv(file, columns, [&](CsvRows& row, const std::vector<std::size_t>& at) {
    for (std::size_t i = 0; i < texts.size(); ++i) texts[i] = row.name(at[i]);
    const double epoch = row.number(at[texts.size()], 0, kMaxEpoch);
    const double value = row.number(at[texts.size() + 1], -kMaxValue, kMaxValue);
    const bool wanted = models.empty() || std::ranges::find(models, texts[0]) != models.end();
    if (row.good() && wanted && !add(texts, {epoch, value}))
      row.fault(at[texts.size() - 1], "does not fit its row");
  });
}

}  // namespace

std::optional<double> epochs_to(const Curve& curve, double target) {
  for (const EpochPoint& point : curve)
    if (point.value >= target) return point.epoch;
  return std::nullopt;
}

std::optional<SoloRank> solo_rank_of(std::string_view name) {
  if (name == "tuned") return SoloRank::kBest;
  if (name == "p75") return SoloRank::kUpperQuartile;
  if (name == "median") return SoloRank::kMedian;
  return std::nullopt;
}

double best_value(const Curve& curve) {
  return std::ranges::max_element(curve, {}, &EpochPoint::value)->value;
}

std::optional<double> whole_epochs_to(const Curve& curve, double target) {
  const auto epochs = epochs_to(curve, target);
  if (!epochs) return std::nullopt;
  return std::max(1.0, std::floor(*epochs + 0.5));
}

std::optional<PairSamples> spatial_samples(const JointCurves& curves, const CurveTask& first,
                                           const CurveTask& second) {
  const auto a = epochs_to(curves.first, first.target);
  const auto b = epochs_to(curves.second, second.target);
  if (!a || !b) return std::nullopt;
  const double until_first = std::min(*a, *b);
  const double all = first.samples_per_epoch * *a + second.samples_per_epoch * *b;
  const double both = (first.samples_per_epoch + second.samples_per_epoch) * until_first;
  return *a <= *b ? PairSamples{both, all} : PairSamples{all, both};
}

std::optional<PairSamples> temporal_samples(double source_samples, const Curve& after_source,
                                            const CurveTask& target) {
  const auto epochs = epochs_to(after_source, target.target);
  if (!epochs) return std::nullopt;
  return PairSamples{source_samples, source_samples + target.samples_per_epoch * *epochs};
}

Result<LearningCurves> LearningCurves::read(const std::string& folder,
                                            const std::vector<std::string>& models) {
  using Key = std::vector<std::string>;
  std::map<TaskKey, std::map<Setting, OpenCurve>> normal;
  YMIR_TRY(read_curves(folder + "/normal_curves.csv", {"model", "task", "lr", "grad_accum_steps"},
                       models, [&](const Key& key, EpochPoint point) {
                         const auto steps = parse_int(key[3]);
                         if (!steps || *steps < 1 || *steps > 1 << 20) return false;
                         const Setting setting{key[2], static_cast<int>(*steps)};
                         normal[{key[0], key[1]}][setting].add(point);
                         return true;
                       }));
  std::map<PairKey, OpenCurve> temporal;
  YMIR_TRY(read_curves(folder + "/temporal_curves.csv", {"model", "source_task", "target_task"},
                       models, [&](const Key& key, EpochPoint point) {
                         temporal[{key[0], key[1], key[2]}].add(point);
                         return true;
                       }));
  std::map<PairKey, std::pair<OpenCurve, OpenCurve>> spatial;
  YMIR_TRY(read_curves(folder + "/spatial_curves.csv", {"model", "task_a", "task_b", "metric_of"},
                       models, [&](const Key& key, EpochPoint point) {
                         if (key[3] != key[1] && key[3] != key[2]) return false;
                         auto& pair = spatial[{key[0], key[1], key[2]}];
                         (key[3] == key[1] ? pair.first : pair.second).add(point);
                         return true;
                       }));

  LearningCurves curves;
  for (auto& [task, settings] : normal)
    for (auto& [setting, curve] : settings) curves.normal_[task][setting] = std::move(curve.points);
  for (auto& [pair, curve] : temporal) curves.temporal_[pair] = std::move(curve.points);
  for (auto& [pair, both] : spatial) {
    if (both.first.points.empty() || both.second.points.empty())
      return Error{ErrorCode::kInvalidArgument,
                   folder + "/spatial_curves.csv: the metric of one task is missing for " +
                       std::get<0>(pair) + " " + std::get<1>(pair) + " " + std::get<2>(pair)};
    curves.spatial_[pair] = {std::move(both.first.points), std::move(both.second.points),
                             std::get<0>(pair) != "vit"};
  }
  return curves;
}

const std::map<LearningCurves::Setting, Curve>& LearningCurves::settings(
    const std::string& model, const std::string& task) const {
  static const std::map<Setting, Curve> kNone;
  const auto found = normal_.find({model, task});
  return found == normal_.end() ? kNone : found->second;
}

const Curve* LearningCurves::normal(const std::string& model, const std::string& task,
                                    const Setting& setting) const {
  const auto& all = settings(model, task);
  const auto found = all.find(setting);
  return found == all.end() ? nullptr : &found->second;
}

std::optional<SoloRun> LearningCurves::solo(const std::string& model, const std::string& task,
                                            SoloRank rank) const {
  constexpr double kBelowBest = 0.02;
  struct Ranked {
    double best = 0, learning_rate = 0;
    int gradient_steps = 0;
    const Curve* curve = nullptr;
  };
  std::vector<Ranked> ranked;  // the best last
  for (const auto& [setting, curve] : settings(model, task))
    ranked.push_back({best_value(curve), parse_double(setting.learning_rate).value_or(0),
                      setting.gradient_steps, &curve});
  if (ranked.empty()) return std::nullopt;
  std::ranges::sort(ranked, {}, [](const Ranked& each) {
    return std::tuple(each.best, each.learning_rate, each.gradient_steps);
  });
  const double quantile = rank == SoloRank::kBest ? 1 : rank == SoloRank::kMedian ? 0.5 : 0.75;
  const double place = std::floor(static_cast<double>(ranked.size() - 1) * quantile + 0.5);
  const Ranked& chosen = ranked[static_cast<std::size_t>(place)];
  SoloRun run{.curve = chosen.curve, .best = chosen.best};
  run.target = run.best - kBelowBest * std::abs(run.best);  // the metric may be a negated loss
  run.epochs = *whole_epochs_to(*run.curve, run.target);
  return run;
}

const Curve* LearningCurves::temporal(const std::string& model, const std::string& source,
                                      const std::string& target) const {
  const auto found = temporal_.find({model, source, target});
  return found == temporal_.end() ? nullptr : &found->second;
}

std::optional<JointCurves> LearningCurves::spatial(const std::string& model,
                                                   const std::string& first,
                                                   const std::string& second) const {
  if (const auto found = spatial_.find({model, first, second}); found != spatial_.end())
    return found->second;
  const auto turned = spatial_.find({model, second, first});
  if (turned == spatial_.end()) return std::nullopt;
  return JointCurves{turned->second.second, turned->second.first, turned->second.trusted};
}

}  // namespace ymir
