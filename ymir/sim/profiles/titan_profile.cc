#include "ymir/sim/profiles/titan_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ymir/base/csv_table.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

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

Result<std::vector<PassTime>> read_times(const CsvTable& table) {
  YMIR_TRY_ASSIGN(const auto seconds, table.numbers("step_time", 1e-9, kMaxSeconds));
  YMIR_TRY_ASSIGN(const auto sync, table.numbers("sync_time", 0, kMaxSeconds));
  std::vector<PassTime> times;
  times.reserve(table.rows());
  for (std::size_t i = 0; i < table.rows(); ++i) times.push_back({seconds[i], sync[i]});
  return times;
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
  YMIR_TRY_ASSIGN(const CsvTable table, CsvTable::read(folder + "/jobs_effective.csv"));
  YMIR_TRY_ASSIGN(const auto applications, table.texts("application"));
  YMIR_TRY_ASSIGN(const auto rates, table.texts("target_lr"));
  YMIR_TRY_ASSIGN(const auto steps, table.integers("target_gradient_steps", 1, 1 << 20));
  YMIR_TRY_ASSIGN(const auto batches, table.integers("target_batch_size", 1, kMaxBatch));
  YMIR_TRY_ASSIGN(const auto targets, table.numbers("target_metric_csv", -1e9, 1e9));
  YMIR_TRY_ASSIGN(const auto epochs, table.numbers("epochs_used", 0, 1e6));
  YMIR_TRY_ASSIGN(const auto best, table.numbers("epochs_of_best", 0, 1e6));
  YMIR_TRY_ASSIGN(const auto per_epoch, table.numbers("progress_per_epoch", 1, kMaxSamples));
  YMIR_TRY_ASSIGN(const auto samples, table.numbers("max_progress", 1, kMaxSamples));
  YMIR_TRY_ASSIGN(const auto gpus, table.integers("max_gpus", 1, kMaxGpus));
  YMIR_TRY_ASSIGN(const auto least, table.integers("min_local_bsz", 1, kMaxBatch));
  YMIR_TRY_ASSIGN(const auto most, table.integers("max_local_bsz", 1, kMaxBatch));
  YMIR_TRY_ASSIGN(const auto switches, table.numbers("ctx_switch_s", 0, kMaxSeconds));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const std::string& name = applications[i];
    const std::size_t middle = name.find('@');
    // The model becomes part of a file's name.
    if (middle == std::string::npos || middle == 0 || name.find('/') != std::string::npos)
      return table.fault(i, "application is no model@task: " + fit(name, 60));
    if (least[i] > most[i]) return table.fault(i, "min_local_bsz is above max_local_bsz");
    if (find(name, rates[i], static_cast<int>(steps[i]), batches[i]))
      return table.fault(i, "a second row for one job: " + name);
    kinds_.push_back({.application = name,
                      .model = name.substr(0, middle),
                      .task = name.substr(middle + 1),
                      .learning_rate = rates[i],
                      .gradient_steps = static_cast<int>(steps[i]),
                      .batch = batches[i],
                      .target = targets[i],
                      .epochs = epochs[i],
                      .epochs_of_best = best[i],
                      .samples_per_epoch = per_epoch[i],
                      .samples = samples[i],
                      .max_gpus = static_cast<int>(gpus[i]),
                      .min_local = least[i],
                      .max_local = most[i],
                      .switch_s = switches[i]});
  }
  return Ok{};
}

Result<> TitanProfile::read_per_job(const std::string& folder) {
  YMIR_TRY_ASSIGN(const CsvTable table, CsvTable::read(folder + "/throughput_per_job.csv"));
  YMIR_TRY_ASSIGN(const auto applications, table.texts("application"));
  YMIR_TRY_ASSIGN(const auto batches, table.integers("target_batch_size", 1, kMaxBatch));
  YMIR_TRY_ASSIGN(const auto gpus, table.integers("gpus", 1, kMaxGpus));
  YMIR_TRY_ASSIGN(const auto placements, table.texts("placement"));
  YMIR_TRY_ASSIGN(const auto locals, table.integers("atomic_bsz", 1, kMaxBatch));
  YMIR_TRY_ASSIGN(const auto times, read_times(table));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto nodes = static_cast<int>(std::ranges::count(placements[i], '-')) + 1;
    const auto key = std::make_tuple(applications[i], batches[i], static_cast<int>(gpus[i]));
    if (!per_job_.try_emplace(key, PerJob{locals[i], nodes, times[i]}).second)
      return table.fault(i, "a second row for one job and number of GPUs");
  }
  return Ok{};
}

Result<> TitanProfile::read_placements(const std::string& file, const std::string& model) {
  YMIR_TRY_ASSIGN(const CsvTable table, CsvTable::read(file));
  YMIR_TRY_ASSIGN(const auto keys, table.texts("placement"));
  YMIR_TRY_ASSIGN(const auto locals, table.integers("local_bsz", 1, kMaxBatch));
  YMIR_TRY_ASSIGN(const auto times, read_times(table));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    if (keys[i].empty() || keys[i].find_first_not_of("123456789") != std::string::npos)
      return table.fault(i, "placement is not of digits 1 to 9: " + fit(keys[i], 40));
    if (!insert(placements_[{model, keys[i]}], Point{locals[i], times[i]}))
      return table.fault(i, "a second row for one placement and batch");
  }
  return Ok{};
}

Result<> TitanProfile::read_scalability(const std::string& file, const std::string& model) {
  YMIR_TRY_ASSIGN(const CsvTable table, CsvTable::read(file));
  YMIR_TRY_ASSIGN(const auto nodes, table.integers("num_nodes", 1, kMaxGpus));
  YMIR_TRY_ASSIGN(const auto gpus, table.integers("num_replicas", 1, kMaxGpus));
  YMIR_TRY_ASSIGN(const auto locals, table.integers("local_bsz", 1, kMaxBatch));
  YMIR_TRY_ASSIGN(const auto times, read_times(table));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Points& points = many_[model][static_cast<int>(nodes[i])][static_cast<int>(gpus[i])];
    if (!insert(points, Point{locals[i], times[i]}))
      return table.fault(i, "a second row for one number of nodes, GPUs and batch");
  }
  return Ok{};
}

Result<> TitanProfile::read_model(const std::string& folder, const std::string& model) {
  const std::string stem = folder + "/" + model;
  YMIR_TRY(read_placements(stem + "_placements.csv", model));
  YMIR_TRY(read_scalability(stem + "_scalability.csv", model));

  YMIR_TRY_ASSIGN(const CsvTable memory, CsvTable::read(stem + "_memory.csv"));
  YMIR_TRY_ASSIGN(const auto locals, memory.integers("local_bsz", 1, kMaxBatch));
  YMIR_TRY_ASSIGN(const auto gib, memory.numbers("gpu_memory", 0, 1e6));
  for (std::size_t i = 0; i < memory.rows(); ++i) {
    if (i > 0 && locals[i] <= locals[i - 1])
      return memory.fault(i, "local_bsz is not above the row before");
    memory_[model].emplace_back(locals[i], gib[i]);
  }

  YMIR_TRY_ASSIGN(const CsvTable costs, CsvTable::read(stem + "_context_switch.csv"));
  YMIR_TRY_ASSIGN(const auto seconds, costs.numbers("time_cost", 0, kMaxSeconds));
  if (!seconds.empty()) switch_[model] = seconds.front();
  return Ok{};
}

Result<const JobKind*> TitanProfile::find(const std::string& application,
                                          const std::string& learning_rate, int gradient_steps,
                                          std::int64_t batch) const {
  for (const JobKind& kind : kinds_)
    if (kind.application == application && kind.learning_rate == learning_rate &&
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
