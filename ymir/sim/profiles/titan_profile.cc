#include "ymir/sim/profiles/titan_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ymir/base/csv.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

using Columns = std::vector<std::size_t>;

constexpr std::int64_t kMaxBatch = 1 << 24;
constexpr int kMaxGpus = 1 << 14;
constexpr double kMaxSeconds = 1e7, kMaxSamples = 1e15;
// Titan's guard against a quotient that is a hair above a whole number.
constexpr double kHair = 1e-8;

std::int64_t ceil_of(double value) { return static_cast<std::int64_t>(std::ceil(value - kHair)); }

// Linear between (x0, y0) and (x1, y1), in the order of operations of the published results.
double between(double x0, double y0, double x1, double y1, double x) {
  return (y1 - y0) / (x1 - x0) * (x - x0) + y0;
}

Error unknown(std::string what) { return {ErrorCode::kNotFound, std::move(what)}; }

PassTime between(double x0, const PassTime& y0, double x1, const PassTime& y1, double x) {
  return {between(x0, y0.seconds, x1, y1.seconds, x),
          between(x0, y0.sync_seconds, x1, y1.sync_seconds, x)};
}

StepRate rate_of(const BatchSplit& split, const PassTime& pass) {
  const double accumulated = pass.seconds - pass.sync_seconds;
  return {split.samples, pass.seconds + accumulated * split.accumulation,
          pass.seconds + accumulated * (split.accumulation + 1)};
}

PassTime read_time(CsvRows& row, std::size_t step, std::size_t sync) {
  return {row.number(step, 1e-9, kMaxSeconds), row.number(sync, 0, kMaxSeconds)};
}

// Keeps `points` ascending; false when the batch is there already.
bool insert(auto& points, const auto& point) {
  const auto at =
      std::ranges::lower_bound(points, point.local, {}, [](const auto& p) { return p.local; });
  if (at != points.end() && at->local == point.local) return false;
  points.insert(at, point);
  return true;
}

}  // namespace

BatchSplit split_batch(const JobKind& kind, int gpus) {
  const double local = static_cast<double>(ceil_of(static_cast<double>(kind.batch) / gpus));
  auto accumulation = static_cast<int>(ceil_of(local / static_cast<double>(kind.max_local))) - 1;
  if (gpus == 1 && kind.batch > kind.max_local) accumulation = std::max(1, accumulation);
  const std::int64_t passes = accumulation + 1;
  const std::int64_t atomic =
      std::max(std::min(ceil_of(local / static_cast<double>(passes)), kind.batch / (gpus * passes)),
               kind.min_local);
  return {atomic, accumulation, gpus * atomic * passes};
}

Result<TitanProfile> TitanProfile::read(const TitanProfileOptions& options) {
  TitanProfile profile;
  profile.gpu_type_ = options.gpu_type;
  if (options.gpu_type.empty() || options.gpu_type.find('/') != std::string::npos)
    return Error{ErrorCode::kInvalidArgument, "no type of GPU: " + options.gpu_type};
  YMIR_TRY(profile.read_kinds(options.folder));
  YMIR_TRY(profile.read_per_job(options.folder));
  std::set<std::string> models(options.models.begin(), options.models.end());
  std::vector<std::string> known;
  for (const JobKind& kind : profile.kinds_) known.push_back(kind.model);
  for (const std::string& model : models)
    if (std::ranges::find(known, model) == known.end())
      return unknown(options.folder + "/jobs_effective.csv: no job of model " + model);
  if (models.empty()) models.insert(known.begin(), known.end());
  for (const std::string& model : models)
    YMIR_TRY(profile.read_model(options.folder + "/lut/" + options.gpu_type, model));
  return profile;
}

Result<> TitanProfile::read_kinds(const std::string& folder) {
  const std::vector<std::string> columns = {
      "application",       "target_lr",   "target_gradient_steps", "target_batch_size",
      "target_metric_csv", "epochs_used", "epochs_of_best",        "progress_per_epoch",
      "max_progress",      "max_gpus",    "min_local_bsz",         "max_local_bsz",
      "ctx_switch_s"};
  return read_csv(folder + "/jobs_effective.csv", columns, [&](CsvRows& row, const Columns& at) {
    JobKind kind;
    kind.application = row.name(at[0]);
    const std::size_t middle = kind.application.find('@');
    kind.model = kind.application.substr(0, middle);
    kind.task = middle == std::string::npos ? "" : kind.application.substr(middle + 1);
    kind.learning_rate = row.name(at[1]);
    kind.gradient_steps = static_cast<int>(row.whole(at[2], 1, 1 << 20));
    kind.batch = row.whole(at[3], 1, kMaxBatch);
    kind.target = row.number(at[4], -1e9, 1e9);
    kind.epochs = row.number(at[5], 0, 1e6);
    kind.epochs_of_best = row.number(at[6], 0, 1e6);
    kind.samples_per_epoch = row.number(at[7], 1, kMaxSamples);
    kind.samples = row.number(at[8], 1, kMaxSamples);
    kind.max_gpus = static_cast<int>(row.whole(at[9], 1, kMaxGpus));
    kind.min_local = row.whole(at[10], 1, kMaxBatch);
    kind.max_local = row.whole(at[11], 1, kMaxBatch);
    kind.switch_s = row.number(at[12], 0, kMaxSeconds);
    if (!row.good()) return;
    // The model becomes part of a file's name.
    if (kind.model.empty() || kind.task.empty() || kind.application.find('/') != std::string::npos)
      return row.fault(at[0], "is no model@task");
    if (kind.min_local > kind.max_local) return row.fault(at[10], "is above max_local_bsz");
    if (find(kind.application, kind.learning_rate, kind.gradient_steps, kind.batch))
      return row.fault(at[0], "stands there twice with these settings");
    kinds_.push_back(std::move(kind));
  });
}

Result<> TitanProfile::read_per_job(const std::string& folder) {
  const std::vector<std::string> columns = {"application", "target_batch_size", "gpus",
                                            "placement",   "atomic_bsz",        "step_time",
                                            "sync_time"};
  return read_csv(
      folder + "/throughput_per_job.csv", columns, [&](CsvRows& row, const Columns& at) {
        const std::string application = row.name(at[0]);
        const std::int64_t batch = row.whole(at[1], 1, kMaxBatch);
        const auto gpus = static_cast<int>(row.whole(at[2], 1, kMaxGpus));
        const auto nodes = static_cast<int>(std::ranges::count(row.name(at[3]), '-')) + 1;
        const PerJob measured{row.whole(at[4], 1, kMaxBatch), nodes, read_time(row, at[5], at[6])};
        if (row.good() && !per_job_.try_emplace({application, batch, gpus}, measured).second)
          row.fault(at[0], "stands there twice with this batch and number of GPUs");
      });
}

Result<> TitanProfile::read_placements(const std::string& file, const std::string& model) {
  return read_csv(file, {"placement", "local_bsz", "step_time", "sync_time"},
                  [&](CsvRows& row, const Columns& at) {
                    const std::string key = row.name(at[0]);
                    if (key.find_first_not_of("123456789") != std::string::npos)
                      row.fault(at[0], "is not of digits 1 to 9");
                    const Point point{row.whole(at[1], 1, kMaxBatch), read_time(row, at[2], at[3])};
                    if (row.good() && !insert(placements_[{model, key}], point))
                      row.fault(at[0], "stands there twice with this batch");
                  });
}

Result<> TitanProfile::read_scalability(const std::string& file, const std::string& model) {
  return read_csv(file, {"num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"},
                  [&](CsvRows& row, const Columns& at) {
                    const auto nodes = static_cast<int>(row.whole(at[0], 1, kMaxGpus));
                    const auto gpus = static_cast<int>(row.whole(at[1], 1, kMaxGpus));
                    const Point point{row.whole(at[2], 1, kMaxBatch), read_time(row, at[3], at[4])};
                    if (row.good() && !insert(many_[model][nodes][gpus], point))
                      row.fault(at[0], "stands there twice with these GPUs and batch");
                  });
}

Result<> TitanProfile::read_model(const std::string& folder, const std::string& model) {
  const std::string stem = folder + "/" + model;
  YMIR_TRY(read_placements(stem + "_placements.csv", model));
  YMIR_TRY(read_scalability(stem + "_scalability.csv", model));
  auto& memory = memory_[model];
  YMIR_TRY(read_csv(stem + "_memory.csv", {"local_bsz", "gpu_memory"},
                    [&](CsvRows& row, const Columns& at) {
                      const std::int64_t local = row.whole(at[0], 1, kMaxBatch);
                      const double gib = row.number(at[1], 0, 1e6);
                      if (row.good() && !memory.empty() && local <= memory.back().first)
                        row.fault(at[0], "is not above the row before");
                      if (row.good()) memory.emplace_back(local, gib);
                    }));
  return read_csv(stem + "_context_switch.csv", {"time_cost"},
                  [&](CsvRows& row, const Columns& at) {
                    switch_.try_emplace(model, row.number(at[0], 0, kMaxSeconds));
                  });
}

Result<const JobKind*> TitanProfile::find(const std::string& application,
                                          const std::string& learning_rate, int gradient_steps,
                                          std::int64_t batch) const {
  // As numbers: "4e-4" of one file is "0.0004" of another.
  const auto same_rate = [&](const std::string& rate) {
    const auto mine = parse_double(learning_rate), other = parse_double(rate);
    return rate == learning_rate || (mine && other && *mine == *other);
  };
  for (const JobKind& kind : kinds_)
    if (kind.application == application && same_rate(kind.learning_rate) &&
        kind.gradient_steps == gradient_steps && kind.batch == batch)
      return &kind;
  return unknown(
      fmt::format("jobs_effective.csv knows no {} with rate {}, {} gradient steps, "
                  "batch {}",
                  application, learning_rate, gradient_steps, batch));
}

Result<PassTime> TitanProfile::at_local(const Points& points, std::int64_t local,
                                        const std::string& look_up) {
  const auto above = std::ranges::lower_bound(points, local, {}, &Point::local);
  if (above == points.end() || (above == points.begin() && above->local != local))
    return unknown(fmt::format("{}: measured from batch {} to {}", look_up, points.front().local,
                               points.back().local));
  // Also on a measured batch by the segment below it: the published results are made so.
  const auto high = above == points.begin() && points.size() > 1 ? above + 1 : above;
  if (high == points.begin()) return high->time;
  const auto low = high - 1;
  return between(static_cast<double>(low->local), low->time, static_cast<double>(high->local),
                 high->time, static_cast<double>(local));
}

Result<PassTime> TitanProfile::pass_time(const std::string& model, std::span<const int> placement,
                                         std::int64_t local) const {
  const std::string look_up = fmt::format("{}: no step time of {} at placement {}, batch {}",
                                          gpu_type_, model, fmt::join(placement, "-"), local);
  const auto found = placements_.find({model, placement_key(placement)});
  if (found == placements_.end()) return unknown(look_up);
  return at_local(found->second, local, look_up);
}

Result<StepRate> TitanProfile::rate(const JobKind& kind, std::span<const int> placement) const {
  int gpus = 0;
  for (const int count : placement) gpus += count;
  YMIR_CHECK(gpus > 0, kind.application);
  const BatchSplit split = split_batch(kind, gpus);
  auto pass = pass_time(kind.model, placement, split.local);
  if (pass) return rate_of(split, *pass);
  if (placements_.contains({kind.model, placement_key(placement)})) return pass.error();
  const auto row = per_job_.find({kind.application, kind.batch, gpus});
  // The file was measured on V100 at as few nodes as can be: it says nothing of others.
  if (gpu_type_ != "V100" || row == per_job_.end() || row->second.local != split.local ||
      row->second.nodes != static_cast<int>(placement.size()))
    return unknown(fmt::format("{}; nor of {} with batch {} on {} GPUs", pass.error().message,
                               kind.application, kind.batch, gpus));
  return rate_of(split, row->second.time);
}

Result<PassTime> TitanProfile::many_nodes(const std::string& model, int nodes, int gpus,
                                          std::int64_t local) const {
  const std::string look_up = fmt::format("{}: no step time of {} on {} GPUs of {} nodes, batch {}",
                                          gpu_type_, model, gpus, nodes, local);
  const auto tables = many_.find(model);
  if (tables == many_.end()) return unknown(look_up);
  const std::map<int, Points>* best = nullptr;
  for (const auto& [measured, by_gpus] : tables->second) {
    const bool covers = by_gpus.begin()->first <= gpus && by_gpus.rbegin()->first >= gpus;
    if (covers && (!best || measured >= nodes)) best = &by_gpus;
    if (best && measured >= nodes) break;
  }
  if (!best) return unknown(look_up);
  const auto high = best->lower_bound(gpus);
  YMIR_TRY_ASSIGN(const PassTime above, at_local(high->second, local, look_up));
  if (high->first == gpus) return above;
  const auto low = std::prev(high);
  YMIR_TRY_ASSIGN(const PassTime below, at_local(low->second, local, look_up));
  return between(low->first, below, high->first, above, gpus);
}

Result<StepRate> TitanProfile::rate_anywhere(const JobKind& kind,
                                             std::span<const int> placement) const {
  auto exact = rate(kind, placement);
  if (exact) return exact;
  int gpus = 0;
  for (const int count : placement) gpus += count;
  const BatchSplit split = split_batch(kind, gpus);
  YMIR_TRY_ASSIGN(const PassTime pass,
                  many_nodes(kind.model, static_cast<int>(placement.size()), gpus, split.local));
  return rate_of(split, pass);
}

Result<double> TitanProfile::memory_gib(const std::string& model, std::int64_t local) const {
  const auto found = memory_.find(model);
  if (found == memory_.end() || found->second.empty() || local > found->second.back().first ||
      local < 1)
    return unknown(fmt::format("{}: no memory of {} at batch {}", gpu_type_, model, local));
  const auto& points = found->second;
  const auto above =
      std::ranges::lower_bound(points, local, {}, &std::pair<std::int64_t, double>::first);
  if (above == points.begin()) return above->second;  // smaller batches were not measured
  const auto below = above - 1;
  return between(static_cast<double>(below->first), below->second,
                 static_cast<double>(above->first), above->second, static_cast<double>(local));
}

Result<double> TitanProfile::switch_seconds(const std::string& model) const {
  const auto found = switch_.find(model);
  if (found == switch_.end()) return unknown(gpu_type_ + ": no cost of a start of " + model);
  return found->second;
}

}  // namespace ymir
