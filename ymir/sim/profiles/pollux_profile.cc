#include "ymir/sim/profiles/pollux_profile.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>
#include <utility>

#include "ymir/base/csv.h"
#include "ymir/base/file.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

constexpr double kRounding = 1e-8;  // of the artifact, in every ceiling

int ceiling(double value) { return static_cast<int>(std::ceil(value - kRounding)); }

constexpr std::int64_t kMaxBatch = 10'000'000, kMaxGpus = 10'000;  // what a table can mean
constexpr double kMaxSeconds = 1e6, kMaxCount = 1e12, kMaxGradient = 1e30;
constexpr std::size_t kMaxFileBytes = 64u << 20;

// The two times of a row: 0 <= sync <= step, step > 0.
struct Times {
  double step_s = 0, sync_s = 0;
};
Times read_times(CsvRows& rows, std::size_t step, std::size_t sync) {
  const Times times{rows.number(step, 0, kMaxSeconds), rows.number(sync, 0, kMaxSeconds)};
  if (rows.good() && (times.step_s <= 0 || times.sync_s > times.step_s))
    rows.fault(sync, "needs 0 <= sync_time <= step_time, step_time > 0");
  return times;
}

}  // namespace

std::uint64_t pollux_placement_id(std::span<const int> placement) {
  if (placement.empty() || placement.size() > 19) return 0;
  std::uint64_t least = 0;
  for (std::size_t start = 0; start < placement.size(); ++start) {
    std::uint64_t id = 0;
    for (std::size_t i = 0; i < placement.size(); ++i) {
      const int gpus = placement[(start + i) % placement.size()];
      if (gpus < 1 || gpus > 9) return 0;
      id = id * 10 + static_cast<std::uint64_t>(gpus);
    }
    if (start == 0 || id < least) least = id;
  }
  return least;
}

const PolluxApplication* PolluxProfile::find(std::string_view name) const {
  const auto at = std::lower_bound(
      applications.begin(), applications.end(), name,
      [](const PolluxApplication& a, std::string_view wanted) { return a.name < wanted; });
  return at != applications.end() && at->name == name ? &*at : nullptr;
}

template <class Value>
double PolluxApplication::between(double batch, int epoch, Value value) const {
  const auto row = static_cast<std::size_t>(epoch);
  std::size_t upper = 0;
  while (upper + 1 < curves.size() && curves[upper].batch < batch) ++upper;
  const double high_batch = curves[upper].batch;
  if (upper == 0 || high_batch == batch) return value(curves[upper])[row];
  const double low_batch = curves[upper - 1].batch;
  const double low = value(curves[upper - 1])[row], high = value(curves[upper])[row];
  return ((batch - low_batch) * high + (high_batch - batch) * low) / (high_batch - low_batch);
}

double PolluxApplication::iterations(double batch, int epoch) const {
  return between(batch, epoch,
                 [](const PolluxCurve& c) -> const std::vector<double>& { return c.iteration; });
}

PolluxGradStats PolluxApplication::grad_stats(double batch, int epoch) const {
  return {between(batch, epoch,
                  [](const PolluxCurve& c) -> const std::vector<double>& { return c.grad_sqr; }),
          between(batch, epoch,
                  [](const PolluxCurve& c) -> const std::vector<double>& { return c.grad_var; })};
}

double PolluxApplication::gain(const PolluxGradStats& stats, double scale) {
  return (stats.var + stats.sqr) / (stats.var / scale + stats.sqr);
}

PolluxSplit PolluxApplication::split(int batch, int replicas, PolluxAlone alone) const {
  const int local = ceiling(static_cast<double>(batch) / replicas);
  int accumulation = ceiling(static_cast<double>(local) / max_local) - 1;
  const bool accumulate = alone == PolluxAlone::kAlways ||
                          (alone == PolluxAlone::kAboveInitialBatch && batch > init_batch);
  if (replicas == 1 && accumulate) accumulation = std::max(1, accumulation);
  const int passes = accumulation + 1;
  return {std::min(ceiling(static_cast<double>(local) / passes), max_batch / (replicas * passes)),
          accumulation};
}

Result<PolluxStepTime> PolluxApplication::step_time(std::span<const int> placement,
                                                    int local_batch) const {
  using Source = PolluxStepTime::Source;
  const std::uint64_t id = pollux_placement_id(placement);
  if (const auto found = look_ups_.find({id, local_batch}); found != look_ups_.end())
    return PolluxStepTime{found->second.step_s, found->second.sync_s, Source::kLookUp};
  Size size{static_cast<int>(placement.size()), 0, local_batch};
  for (const int gpus : placement) size.gpus += gpus;
  if (const auto found = placements_.find(id); found != placements_.end()) {
    const std::vector<Sample>& row = found->second;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i].local_batch < local_batch) continue;
      if (row[i].local_batch == local_batch)
        return PolluxStepTime{row[i].step_s, row[i].sync_s, Source::kMeasured};
      if (i == 0) break;
      const Sample &low = row[i - 1], &high = row[i];
      const double width = high.local_batch - low.local_batch,
                   along = local_batch - low.local_batch;
      return PolluxStepTime{(high.step_s - low.step_s) / width * along + low.step_s,
                            (high.sync_s - low.sync_s) / width * along + low.sync_s,
                            Source::kMeasured};
    }
  } else if (id != 0) {
    if (const auto same = same_size_.find(size); same != same_size_.end())
      return PolluxStepTime{same->second.step_s, same->second.sync_s, Source::kSameSize};
    if (const auto answer =
            grid_.at({static_cast<double>(size.nodes), static_cast<double>(size.gpus),
                      static_cast<double>(local_batch)}))
      return PolluxStepTime{answer->value[0], answer->value[1], Source::kScattered, answer->unique};
  }
  std::string digits;
  for (const int gpus : placement) digits += (digits.empty() ? "" : "-") + std::to_string(gpus);
  return Error{ErrorCode::kNotFound, "no table holds the look-up: " + name + " on " + digits +
                                         ", local batch " + std::to_string(local_batch)};
}

// Fills one application from its folder.
class PolluxReader {
 public:
  explicit PolluxReader(PolluxApplication& app) : app_(app) {}

  Result<> read(const std::filesystem::path& folder) {
    app_.name = folder.filename().string();
    YMIR_TRY(read_placements((folder / "placements.csv").string()));
    YMIR_TRY(read_scalability((folder / "scalability.csv").string()));
    return read_curves(folder);
  }

  void add_look_up(std::uint64_t placement, int local_batch, const Times& times) {
    const PolluxApplication::Sample sample{local_batch, times.step_s, times.sync_s};
    app_.look_ups_[{placement, local_batch}] = sample;
    // A placement that was not measured itself is asked by its size alone.
    if (app_.placements_.contains(placement)) return;
    PolluxApplication::Size size{0, 0, local_batch};
    for (std::uint64_t rest = placement; rest > 0; rest /= 10) {
      ++size.nodes;
      size.gpus += static_cast<int>(rest % 10);
    }
    app_.same_size_[size] = sample;
  }

 private:
  Result<> read_placements(const std::string& file) {
    YMIR_TRY_ASSIGN(const std::string text, read_file(file, kMaxFileBytes));
    CsvRows rows(file, text);
    const auto at = rows.columns({"placement", "local_bsz", "step_time", "sync_time"});
    while (rows.next()) {
      const std::string placement = rows.name(at[0]);
      std::vector<int> gpus;
      for (const char digit : placement) gpus.push_back(digit - '0');
      const std::uint64_t id = pollux_placement_id(gpus);
      if (rows.good() && (id == 0 || std::to_string(id) != placement))
        rows.fault(at[0], "must be the digits of a smallest rotation");
      const int batch = static_cast<int>(rows.whole(at[1], 1, kMaxBatch));
      const Times times = read_times(rows, at[2], at[3]);
      if (rows.good()) add_placement(gpus, id, batch, times);
    }
    YMIR_TRY(rows.ok());
    if (app_.placements_.empty()) return Error{ErrorCode::kInvalidArgument, file + ": no row"};
    for (auto& [id, row] : app_.placements_)
      std::stable_sort(row.begin(), row.end(),
                       [](const auto& a, const auto& b) { return a.local_batch < b.local_batch; });
    // Its step times go up to 16, the study uses 8 (more does not fit its GPUs when it trains).
    if (app_.name == "yolov3") app_.max_local = std::min(app_.max_local, 8);
    for (const auto& [size, mean] : means_)
      app_.grid_.add(point(size), {mean.step_s / mean.count, mean.sync_s / mean.count});
    return Ok{};
  }

  void add_placement(const std::vector<int>& gpus, std::uint64_t id, int batch,
                     const Times& times) {
    app_.placements_[id].push_back({batch, times.step_s, times.sync_s});
    app_.min_local = app_.min_local == 0 ? batch : std::min(app_.min_local, batch);
    app_.max_local = std::max(app_.max_local, batch);
    const int total = std::accumulate(gpus.begin(), gpus.end(), 0);
    Mean& mean = means_[{static_cast<int>(gpus.size()), total, batch}];
    mean.step_s += times.step_s;
    mean.sync_s += times.sync_s;
    ++mean.count;
  }

  Result<> read_scalability(const std::string& file) {
    YMIR_TRY_ASSIGN(const std::string text, read_file(file, kMaxFileBytes));
    CsvRows rows(file, text);
    const auto at =
        rows.columns({"num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"});
    while (rows.next()) {
      const PolluxApplication::Size size{static_cast<int>(rows.whole(at[0], 1, kMaxGpus)),
                                         static_cast<int>(rows.whole(at[1], 1, kMaxGpus)),
                                         static_cast<int>(rows.whole(at[2], 1, kMaxBatch))};
      const Times times = read_times(rows, at[3], at[4]);
      if (rows.good()) app_.grid_.add(point(size), {times.step_s, times.sync_s});
    }
    return rows.ok();
  }

  Result<> read_curves(const std::filesystem::path& folder) {
    std::error_code failed;
    std::vector<std::pair<std::int64_t, std::string>> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
      const std::string stem = entry.path().stem().string();
      if (!stem.starts_with("validation-") || entry.path().extension() != ".csv") continue;
      const auto batch = parse_int(std::string_view(stem).substr(11));
      if (!batch || *batch < 1 || *batch > kMaxBatch || files.size() == 64)
        return Error{ErrorCode::kInvalidArgument,
                     entry.path().string() + ": not validation-BATCH.csv, or too many of them"};
      files.emplace_back(*batch, entry.path().string());
    }
    if (files.empty())
      return Error{ErrorCode::kInvalidArgument, folder.string() + ": no validation-BATCH.csv"};
    std::sort(files.begin(), files.end());
    for (const auto& [batch, file] : files) YMIR_TRY(read_curve(static_cast<int>(batch), file));
    finish_curves();
    return Ok{};
  }

  Result<> read_curve(int batch, const std::string& file) {
    YMIR_TRY_ASSIGN(const std::string text, read_file(file, kMaxFileBytes));
    CsvRows rows(file, text, ',', 100'000);
    const auto at = rows.columns({"progress", "iteration", "metric", "grad_sqr", "grad_var"});
    PolluxCurve curve{.batch = batch};
    while (rows.next()) {
      const double before = curve.progress.empty() ? 0 : curve.progress.back();
      const double progress = rows.number(at[0], 0, kMaxCount);
      if (rows.good() && progress <= before) rows.fault(at[0], "must grow from row to row");
      const double sqr = rows.number(at[3], 0, kMaxGradient);
      const double var = rows.number(at[4], 0, kMaxGradient);
      if (rows.good() && sqr + var <= 0) rows.fault(at[3], "signal and noise are both 0");
      curve.progress.push_back(progress);
      curve.iteration.push_back(rows.number(at[1], 0, kMaxCount));
      curve.metric.push_back(rows.number(at[2], -kMaxCount, kMaxCount));
      curve.grad_sqr.push_back(sqr);
      curve.grad_var.push_back(var);
    }
    YMIR_TRY(rows.ok());
    if (curve.progress.empty()) return Error{ErrorCode::kInvalidArgument, file + ": no row"};
    app_.curves.push_back(std::move(curve));
    return Ok{};
  }

  void finish_curves() {
    app_.init_batch = app_.curves.front().batch;
    app_.max_batch = app_.curves.back().batch;
    std::size_t rows = app_.curves.front().progress.size();
    for (const PolluxCurve& curve : app_.curves) rows = std::min(rows, curve.progress.size());
    app_.max_epochs = static_cast<int>(rows);
    app_.progress_after_.assign(1, 0.0);
    for (std::size_t row = 0; row < rows; ++row) {
      double least = app_.curves.front().progress[row];
      for (const PolluxCurve& curve : app_.curves) least = std::min(least, curve.progress[row]);
      app_.progress_after_.push_back(least);
    }
  }

  static ScatteredTable::Point point(const PolluxApplication::Size& size) {
    return {static_cast<double>(size.nodes), static_cast<double>(size.gpus),
            static_cast<double>(size.local_batch)};
  }

  struct Mean {
    double step_s = 0, sync_s = 0;
    int count = 0;
  };
  PolluxApplication& app_;
  std::map<PolluxApplication::Size, Mean> means_;
};

namespace {

Result<> read_look_ups(const std::string& file, PolluxProfile& profile) {
  YMIR_TRY_ASSIGN(const std::string text, read_file(file, kMaxFileBytes));
  CsvRows rows(file, text);
  const auto at = rows.columns({"app", "placement_id", "local_bsz", "step_time", "sync_time"});
  while (rows.next()) {
    const std::string name = rows.name(at[0]);
    const auto app = std::ranges::find(profile.applications, name, &PolluxApplication::name);
    if (rows.good() && app == profile.applications.end())
      rows.fault(at[0], "no such application in the profile");
    const std::int64_t placement = rows.whole(at[1], 1, INT64_MAX);
    const int batch = static_cast<int>(rows.whole(at[2], 1, kMaxBatch));
    const Times times = read_times(rows, at[3], at[4]);
    if (rows.good())
      PolluxReader(*app).add_look_up(static_cast<std::uint64_t>(placement), batch, times);
  }
  YMIR_TRY(rows.ok());
  profile.look_ups = file;
  return Ok{};
}

}  // namespace

Result<PolluxProfile> read_pollux_profile(const std::string& folder, const std::string& look_ups) {
  namespace fs = std::filesystem;
  std::error_code failed;
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    if (names.size() == 64) return Error{ErrorCode::kExhausted, folder + ": over 64 applications"};
    if (fs::exists(entry.path() / "placements.csv", failed)) names.insert(entry.path().string());
  }
  if (names.empty())
    return Error{ErrorCode::kNotFound, folder + ": holds no application/placements.csv"};
  PolluxProfile profile;
  for (const std::string& name : names) {
    profile.applications.emplace_back();
    YMIR_TRY(PolluxReader(profile.applications.back()).read(name));
  }
  if (!look_ups.empty()) {
    YMIR_TRY(read_look_ups(look_ups, profile));
    return profile;
  }
  const fs::path beside = fs::path(folder) / "throughput_queries.csv";
  const fs::path golden = fs::path(folder) / "../../golden/pollux/throughput_queries.csv";
  for (const fs::path& file : {beside, golden}) {
    if (!fs::exists(file, failed)) continue;
    YMIR_TRY(read_look_ups(file.string(), profile));
    break;
  }
  return profile;
}

}  // namespace ymir
