#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ymir/base/text.h"
#include "ymir/sim/profiles/curves.h"
#include "ymir/sim/profiles/titan_profile.h"
#include "ymir/sim/trace/measured.h"

namespace ymir {

namespace {

constexpr double kCheckpointSeconds = 30;  // of every start in the published simulator
constexpr double kLeastGain = -0.8;

std::string task_of(const JobKind& kind) {
  return fmt::format("{} lr={} steps={} batch={}", kind.task, kind.learning_rate,
                     kind.gradient_steps, kind.batch);
}

// As few nodes as can be, and as evenly on `nodes`.
std::vector<int> even_placement(int gpus, int nodes) {
  std::vector<int> placement;
  for (int node = 0; node < nodes; ++node)
    placement.push_back(gpus / nodes + (node < gpus % nodes ? 1 : 0));
  return placement;
}

Result<StepTimes> table_of(const TitanProfile& profile, const JobKind& kind, int num_gpus,
                           int num_nodes, int gpus_per_node) {
  StepTimes table{.rows = {}, .source = "titan lut placements, scalability, throughput_per_job"};
  const auto seconds = [&](std::span<const int> placement) -> Result<double> {
    YMIR_TRY_ASSIGN(const StepRate rate, profile.rate_anywhere(kind, placement));
    return rate.seconds / static_cast<double>(rate.samples) * static_cast<double>(kind.batch);
  };
  for (int gpus = 1; gpus <= num_gpus; ++gpus) {
    const int least = (gpus - 1) / gpus_per_node + 1;
    YMIR_TRY_ASSIGN(const double packed, seconds(packed_placement(gpus, gpus_per_node)));
    table.rows.push_back({gpus, least, packed});
    if (least + 1 > std::min(gpus, num_nodes)) continue;
    if (const auto wider = seconds(even_placement(gpus, least + 1)))
      table.rows.push_back({gpus, least + 1, *wider});
  }
  return table;
}

struct Kind {
  const JobKind* kind = nullptr;
  std::string task{};
  double samples = 0, per_epoch = 0;  // to the target, of an epoch
  double target = 0;                  // of the metric
  bool whole_epochs = false;          // counted in these, as the solo baseline's are
  double step_on_one = 0;

  std::optional<double> epochs(const Curve& curve) const {
    if (whole_epochs) return whole_epochs_to(curve, target);
    const auto reached = epochs_to(curve, target);
    return reached ? std::optional(std::max(*reached, 0.5)) : std::nullopt;
  }
};

// truth.KEY=VALUE of these traces.
struct TitanSettings {
  double size_factor = 1;  // language tasks stand with a quarter of their samples in the tables
  std::optional<SoloRank> solo{};  // nothing: the target and the length that the trace names
};

Result<TitanSettings> settings_of(const std::map<std::string, std::string>& given) {
  TitanSettings settings;
  for (const auto& [key, value] : given) {
    const auto number = parse_double(value);
    if (key == "size_factor" && number && *number >= 0.01 && *number <= 100) {
      settings.size_factor = *number;
    } else if (key == "solo" && (value == "trace" || solo_rank_of(value))) {
      settings.solo = solo_rank_of(value);
    } else {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("truth.{}={}: knows size_factor in 0.01..100 and solo of trace, "
                               "tuned, p75, median",
                               key, value)};
    }
  }
  return settings;
}

// How much faster the target is after the source: solo samples / samples in the transfer run.
double temporal_gain(const Curve& after_source, const Kind& target) {
  if (const auto epochs = target.epochs(after_source))
    return target.samples / (*epochs * target.per_epoch) - 1;
  return std::max(kLeastGain,
                  target.samples / (2 * after_source.back().epoch * target.per_epoch) - 1);
}

// A joint epoch is one of each task, one step after the other: as many joint steps as the longer
// epoch has.
std::array<double, 3> spatial_truth(const JointCurves& curves, const Kind& a, const Kind& b) {
  const auto epochs = [](const Curve& curve, const Kind& kind) {
    return kind.epochs(curve).value_or(2 * curve.back().epoch);
  };
  const double steps_a = a.per_epoch / static_cast<double>(a.kind->batch);
  const double steps_b = b.per_epoch / static_cast<double>(b.kind->batch);
  const double joint_steps = std::max(steps_a, steps_b);
  const double joint_time = (steps_a * a.step_on_one + steps_b * b.step_on_one) / joint_steps;
  const auto gain = [&](const Curve& curve, const Kind& kind) {
    const double solo = kind.samples / static_cast<double>(kind.kind->batch);
    return std::max(kLeastGain, solo / (epochs(curve, kind) * joint_steps) - 1);
  };
  return {gain(curves.first, a), gain(curves.second, b),
          joint_time / std::max(a.step_on_one, b.step_on_one)};
}

void add_gains(const LearningCurves& curves, const std::map<std::string, Kind>& kinds,
               Workload& workload) {
  for (const auto& [name_a, a] : kinds)
    for (const auto& [name_b, b] : kinds) {
      const std::string& model = a.kind->model;
      if (model != b.kind->model) continue;
      if (const Curve* curve = curves.temporal(model, a.kind->task, b.kind->task))
        workload.temporal[name_a + ">" + name_b] = temporal_gain(*curve, b);
      if (name_a > name_b) continue;
      const auto joint = curves.spatial(model, a.kind->task, b.kind->task);
      if (joint && joint->trusted)
        workload.spatial[name_a + "+" + name_b] = spatial_truth(*joint, a, b);
    }
}

// What a kind of jobs has to reach, and how many samples it takes alone.
Result<Kind> goal_of(const JobKind& kind, const LearningCurves& curves,
                     const TitanSettings& settings) {
  Kind goal{.kind = &kind,
            .task = task_of(kind),
            .samples = kind.samples * settings.size_factor,
            .per_epoch = kind.samples_per_epoch * settings.size_factor,
            .target = kind.target};
  if (!settings.solo) return goal;
  const auto solo = curves.solo(kind.model, kind.task, *settings.solo);
  if (!solo)
    return Error{ErrorCode::kInvalidArgument,
                 "no curves of " + goal.task + " alone: truth.solo must be trace"};
  goal.whole_epochs = true;
  goal.target = solo->target;
  goal.samples = solo->epochs * goal.per_epoch;
  return goal;
}

}  // namespace

Result<Workload> titan_workload(const Trace& trace, const std::string& profiles,
                                const TruthOptions& options) {
  if (profiles.empty()) return Error{ErrorCode::kInvalidArgument, "a titan trace needs --profiles"};
  YMIR_TRY_ASSIGN(const TitanSettings settings, settings_of(options.settings));
  YMIR_TRY_ASSIGN(const LearningCurves curves, LearningCurves::read(profiles));
  YMIR_TRY_ASSIGN(const TitanProfile profile,
                  TitanProfile::read({.folder = profiles, .gpu_type = options.gpu_type}));
  const int nodes = std::max(options.nodes, 1), width = std::max(options.gpus_per_node, 1);
  Workload workload;
  std::map<std::string, Kind> kinds;
  std::map<const JobKind*, StepTimes> tables;
  for (const TraceJob& given : trace.jobs) {
    const auto found = profile.find(given.application, given.learning_rate, given.gradient_steps,
                                    given.batch_size);
    if (!found) return annotate(found.error(), fmt::format("{}:{}", trace.file, given.line));
    const JobKind& kind = **found;
    const int most = std::min(kind.max_gpus, nodes * width);
    if (!tables.contains(&kind)) {
      auto table = table_of(profile, kind, most, nodes, width);
      if (!table) return annotate(table.error(), fmt::format("{}:{}", trace.file, given.line));
      tables[&kind] = *std::move(table);
    }
    auto goal_found = goal_of(kind, curves, settings);
    if (!goal_found)
      return annotate(goal_found.error(), fmt::format("{}:{}", trace.file, given.line));
    Kind& goal = *goal_found;
    WorkloadJob job{.name = given.name, .at = given.submission_s};
    job.backbone = kind.model;
    job.task = goal.task;
    job.steps_per_epoch =
        std::max<std::int64_t>(1, std::llround(goal.per_epoch / static_cast<double>(kind.batch)));
    job.steps = std::max<std::int64_t>(
        1, std::llround(goal.samples / goal.per_epoch * static_cast<double>(job.steps_per_epoch)));
    job.max_steps = 4 * job.steps;
    job.table = tables.at(&kind);
    job.step_time = job.table.rows.front().seconds;
    job.start_s = kCheckpointSeconds + kind.switch_s;
    job.gpus = std::clamp(given.gpus, 1, most);
    job.max_gpus = most;
    goal.step_on_one = job.step_time;
    kinds[job.backbone + "/" + job.task] = std::move(goal);
    workload.jobs.push_back(std::move(job));
  }
  add_gains(curves, kinds, workload);
  return workload;
}

}  // namespace ymir
