#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "ymir/base/json.h"
#include "ymir/base/rng.h"
#include "ymir/base/text.h"
#include "ymir/sim/metrics/statistics.h"
#include "ymir/sim/profiles/curves.h"
#include "ymir/sim/profiles/titan_profile.h"
#include "ymir/sim/trace/workload_of.h"
#include "ymir/sim/workload.h"

namespace ymir {
namespace {

Error wrong(const std::string& what) { return {ErrorCode::kInvalidArgument, what}; }

enum Field : std::uint64_t {
  kArrival = 1,
  kBackbone,
  kTask,
  kSize,
  kRequest,
  kWidth,
  kShare,
  kGain,
  kSetting,
  kDomain
};

// The generator of one field of one job: adding a job or a field changes no other draw.
Rng draw(std::uint64_t seed, std::uint64_t job, Field field) {
  Rng mix(seed * 0x9e3779b97f4a7c15u + job * 64 + field);
  return Rng(mix.next64());
}

struct Backbone {
  std::string_view name;
  double step_time;
  double scaling;
};
constexpr Backbone kMadeUp[] = {
    {"vit-base", 0.3, 0.96}, {"roberta-base", 0.25, 0.95}, {"vicuna-7b", 1.2, 0.93}};
constexpr const char* kMeasured[] = {"vit-large", "roberta-base", "roberta-large"};
constexpr int kBackbones = 3, kTasks = 9;
constexpr int kMostGpus = 32;  // of a job

// GPUs asked for, with their shares in 660 published jobs of this kind.
constexpr std::pair<int, double> kRequests[] = {{1, .402}, {2, .095},  {4, .438},
                                                {8, .053}, {12, .003}, {16, .009}};
int request_of(double u) {
  for (const auto& [gpus, share] : kRequests)
    if ((u -= share) < 0) return gpus;
  return 4;
}

// Tasks come in classes of size: the smallest 30% of the jobs by run time x GPUs are of the small
// ones, the next 60% of the medium ones, the rest of the large ones. The place of a job among all
// is that in the distribution it was drawn from, so it does not hang on the other jobs.
int size_class(const WorkloadOptions& options, double seconds, int gpus) {
  double below = 0;
  for (const auto& [other, share] : kRequests) {
    const double z =
        std::log(seconds * gpus / other / options.median_seconds) / std::max(options.sigma, 1e-9);
    below += share * 0.5 * std::erfc(-z / std::numbers::sqrt2);
  }
  return below < 0.3 ? 0 : below < 0.9 ? 1 : 2;
}

// A task of three in a class, by popularity.
int task_in_class(double zipf, double u) {
  double weights[3], sum = 0;
  for (int rank = 0; rank < 3; ++rank) sum += weights[rank] = std::pow(rank + 1, -zipf);
  for (int rank = 0; rank < 2; ++rank)
    if ((u -= weights[rank] / sum) < 0) return rank;
  return 2;
}

int backbone_of(const std::vector<double>& shares, double u) {
  if (shares.empty()) return std::min(static_cast<int>(u * kBackbones), kBackbones - 1);
  double sum = 0;
  for (const double share : shares) sum += share;
  for (int i = 0; i < kBackbones - 1; ++i)
    if ((u -= shares[static_cast<std::size_t>(i)] / sum) < 0) return i;
  return kBackbones - 1;
}

// What is drawn of every job, before it is known what that means on measured profiles.
struct Draft {
  int backbone = 0, task = 0;
  double seconds = 0;
  int gpus = 1, widening = 0;
  bool share = true;
  int domain = 0;
  double setting = 0;
};

std::vector<Draft> drafts_of(const WorkloadOptions& options) {
  std::vector<Draft> drafts;
  for (int i = 1; i <= options.num_jobs; ++i) {
    const auto id = static_cast<std::uint64_t>(i);
    const auto of = [&](Field field) { return draw(options.seed, id, field); };
    Draft draft;
    draft.backbone = backbone_of(options.shares, of(kBackbone).uniform());
    draft.seconds = std::clamp(
        options.median_seconds * std::exp(options.sigma * of(kSize).normal()), 30.0, 400'000.0);
    draft.gpus = std::min(request_of(of(kRequest).uniform()), options.num_gpus);
    draft.widening = static_cast<int>(of(kWidth).below(3));
    draft.task = 3 * size_class(options, draft.seconds, draft.gpus) +
                 task_in_class(options.zipf, of(kTask).uniform());
    draft.share = of(kShare).chance(options.share);
    draft.setting = of(kSetting).uniform();
    draft.domain = static_cast<int>(of(kDomain).below(static_cast<std::uint64_t>(options.domains)));
    drafts.push_back(draft);
  }
  return drafts;
}

// --- what the jobs are ----------------------------------------------------------------------

std::string task_name(int task) { return fmt::format("task{}", task + 1); }

Workload made_up(const WorkloadOptions& options, const std::vector<Draft>& drafts) {
  Workload workload;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    const Draft& draft = drafts[i];
    const Backbone& backbone = kMadeUp[draft.backbone];
    WorkloadJob job{.name = fmt::format("w{}", i + 1),
                    .backbone = std::string(backbone.name),
                    .task = task_name(draft.task),
                    .step_time = backbone.step_time,
                    .scaling = backbone.scaling};
    job.gpus = draft.gpus;
    job.max_gpus =
        std::max(job.gpus, std::min({options.num_gpus, kMostGpus, job.gpus << draft.widening}));
    job.share = draft.share;
    job.steps = 1'000'000;
    const double of_a_step = solo_seconds(job, job.gpus) / static_cast<double>(job.steps);
    job.steps = std::max<std::int64_t>(20, std::llround(draft.seconds / of_a_step));
    job.steps_per_epoch = std::max<std::int64_t>(1, job.steps / 10);
    job.max_steps = 3 * job.steps;
    workload.jobs.push_back(std::move(job));
  }
  return workload;
}

// The measured kinds of jobs, by backbone and task, tasks ordered by samples to the target.
using Kinds = std::vector<std::vector<std::vector<const JobKind*>>>;

Result<Kinds> kinds_of(const TitanProfile& profile) {
  Kinds kinds;
  for (const char* model : kMeasured) {
    std::map<std::string, std::vector<const JobKind*>> by_task;
    for (const JobKind& kind : profile.kinds())
      if (kind.model == model) by_task[kind.task].push_back(&kind);
    if (by_task.size() != kTasks)
      return wrong(
          fmt::format("the profiles know {} tasks of {}, not {}", by_task.size(), model, kTasks));
    auto& tasks = kinds.emplace_back();
    for (auto& [task, list] : by_task) tasks.push_back(std::move(list));
    std::ranges::stable_sort(tasks, {}, [](const auto& list) { return list.front()->samples; });
  }
  return kinds;
}

Result<Workload> measured(const WorkloadOptions& options, const std::vector<Draft>& drafts) {
  if (options.profiles.empty()) return wrong("paper27-measured needs --profiles");
  YMIR_TRY_ASSIGN(const TitanProfile profile, TitanProfile::read({.folder = options.profiles}));
  YMIR_TRY_ASSIGN(const Kinds kinds, kinds_of(profile));
  Trace trace{.format = "titan", .file = "generated"};
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    const Draft& draft = drafts[i];
    const auto& settings =
        kinds[static_cast<std::size_t>(draft.backbone)][static_cast<std::size_t>(draft.task)];
    const JobKind& kind = *settings[std::min(
        static_cast<std::size_t>(draft.setting * static_cast<double>(settings.size())),
        settings.size() - 1)];
    trace.jobs.push_back({.name = fmt::format("w{}", i + 1),
                          .application = kind.application,
                          .gpus = std::min({draft.gpus, kind.max_gpus, options.num_gpus}),
                          .batch_size = kind.batch,
                          .learning_rate = kind.learning_rate,
                          .gradient_steps = kind.gradient_steps,
                          .target_metric = kind.target,
                          .line = static_cast<int>(i + 1)});
  }
  YMIR_TRY_ASSIGN(Workload workload, workload_of(trace, options.profiles,
                                                 {.nodes = options.num_gpus / options.gpus_per_node,
                                                  .gpus_per_node = options.gpus_per_node,
                                                  .settings = {{"solo", options.solo}}}));
  for (std::size_t i = 0; i < drafts.size(); ++i) workload.jobs[i].share = drafts[i].share;
  return workload;
}

// --- when they come -------------------------------------------------------------------------

Result<std::vector<double>> gaps_of_trace(const WorkloadOptions& options, const std::string& file) {
  YMIR_TRY_ASSIGN(const Trace trace, read_trace("philly", file));
  std::vector<double> at;
  for (const TraceJob& job : trace.jobs) at.push_back(job.submission_s);
  std::ranges::sort(at);
  const auto needed = static_cast<std::size_t>(options.num_jobs);
  if (at.size() <= needed)
    return wrong(fmt::format("{}: {} jobs are too few for {} gaps", file, at.size(), needed));
  const std::size_t start = draw(options.seed, 0, kArrival).below(at.size() - needed);
  std::vector<double> gaps;
  for (std::size_t i = 0; i < needed; ++i) gaps.push_back(at[start + i + 1] - at[start + i]);
  return gaps;
}

// Moments in [0, 1) as fractions of the window, ascending.
Result<std::vector<double>> moments_of(const WorkloadOptions& options) {
  std::vector<double> gaps;
  if (options.arrivals.starts_with("philly:")) {
    YMIR_TRY_ASSIGN(gaps, gaps_of_trace(options, options.arrivals.substr(7)));
  } else {
    for (int i = 1; i <= options.num_jobs; ++i)
      gaps.push_back(
          -std::log(1 - draw(options.seed, static_cast<std::uint64_t>(i), kArrival).uniform()));
  }
  double sum = 0, at = 0;
  for (const double gap : gaps) sum += gap;
  std::vector<double> moments;
  for (const double gap : gaps) {
    moments.push_back(sum > 0 ? at / sum : 0);
    at += gap;
  }
  if (!options.arrivals.starts_with("hourly:")) return moments;
  std::vector<double> rates;
  double all = 0;
  for (const std::string_view word : split(std::string_view(options.arrivals).substr(7), ','))
    all += rates.emplace_back(parse_double(word).value_or(0));
  for (double& moment : moments) {  // through the inverse of the share that has come by then
    double left = moment * all;
    std::size_t part = 0;
    while (part + 1 < rates.size() && left >= rates[part]) left -= rates[part++];
    moment = (static_cast<double>(part) + (rates[part] > 0 ? left / rates[part] : 0)) /
             static_cast<double>(rates.size());
  }
  return moments;
}

Json quantiles_of(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double p : {0.1, 0.5, 0.9, 0.99})
    list.push_back(std::round(quantile(values, p) * 1000) / 1000);
  return list;
}

std::string header_of(const WorkloadOptions& o, const std::vector<Draft>& drafts,
                      const Workload& workload, double window) {
  std::vector<double> drawn, came;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    drawn.push_back(drafts[i].seconds);
    came.push_back(solo_seconds(workload.jobs[i], workload.jobs[i].gpus));
  }
  return canonical(Json{{"version", 2},
                        {"jobs", o.num_jobs},
                        {"gpus", o.num_gpus},
                        {"gpus_per_node", o.gpus_per_node},
                        {"load", o.load},
                        {"window_s", window},
                        {"seed", o.seed},
                        {"tasks", o.tasks},
                        {"arrivals", o.arrivals.substr(0, o.arrivals.find(':'))},
                        {"median_s", o.median_seconds},
                        {"sigma", o.sigma},
                        {"shares", o.shares},
                        {"zipf", o.zipf},
                        {"share", o.share},
                        {"domains", o.domains},
                        {"gains", o.gains.empty() ? "default" : o.gains},
                        {"solo", o.solo},
                        {"useful_pairs", o.useful_pairs},
                        {"gain_sigma", o.gain_sigma},
                        {"drawn_s_p10_p50_p90_p99", quantiles_of(drawn)},
                        {"resulting_s_p10_p50_p90_p99", quantiles_of(came)}});
}

bool good_rates(const std::string& arrivals) {
  double all = 0;
  const auto words = split(std::string_view(arrivals).substr(7), ',');
  for (const std::string_view word : words) {
    const auto rate = parse_double(word);
    if (!rate || *rate < 0) return false;
    all += *rate;
  }
  return all > 0 && words.size() <= 10'000;
}

}  // namespace

void draw_gains(const WorkloadOptions& options, Workload& workload) {
  workload.temporal.clear();
  workload.spatial.clear();
  std::map<std::string, std::set<std::string>> tasks;
  for (const WorkloadJob& job : workload.jobs) tasks[job.backbone].insert(job.task);
  for (const auto& [backbone, names] : tasks)
    for (const std::string& a : names)
      for (const std::string& b : names) {
        // Keyed by the names, so that a task keeps its gains whatever others are there.
        std::uint64_t key = 14'695'981'039'346'656'037u;
        for (const char c : backbone + "/" + a + ">" + b)
          key = (key ^ static_cast<unsigned char>(c)) * 1'099'511'628'211u;
        Rng rng = draw(options.seed, key >> 8, kGain);
        const double size = 0.33 * std::exp(options.gain_sigma * rng.normal());
        const bool useful = a == b || rng.chance(options.useful_pairs);
        // As a factor of speed the loss mirrors the gain.
        const double gain = useful ? size : -size / (1 + size);
        const std::string first = backbone + "/" + a, second = backbone + "/" + b;
        workload.temporal[first + ">" + second] = gain;
        if (a < b)
          workload.spatial[first + "+" + second] = {gain, gain * rng.uniform(0.5, 1.2),
                                                    rng.uniform(1.1, 1.6)};
      }
}

double sigma_of(double median, double mean) { return std::sqrt(2 * std::log(mean / median)); }

Result<> read_sizes(const std::string& text, WorkloadOptions& options) {
  if (text.empty()) return Ok{};
  double median = 122, mean = 1414.335;
  if (text == "kalos") {
    median = 124;
    mean = 1259.689;
  } else if (text != "seren") {
    const auto words = split(text, ',');
    const auto first = parse_double(words.front());
    const auto second = words.size() == 2 ? parse_double(words[1]) : std::nullopt;
    if (!first || !second || *first <= 0 || *second < *first)
      return Error{ErrorCode::kInvalidArgument,
                   "sizes takes seren, kalos or MEDIAN,MEAN with MEAN >= MEDIAN: " + text};
    median = *first;
    mean = *second;
  }
  options.median_seconds = median;
  options.sigma = sigma_of(median, mean);
  return Ok{};
}

Result<> WorkloadOptions::validate() const {
  if (num_jobs < 1 || num_jobs > 1'000'000) return wrong("jobs must be in 1..1000000");
  if (gpus_per_node < 1 || gpus_per_node > 1024) return wrong("gpus_per_node must be in 1..1024");
  if (num_gpus < gpus_per_node || num_gpus > 100'000 || num_gpus % gpus_per_node != 0)
    return wrong("gpus must be a multiple of gpus_per_node, at most 100000");
  if (!(load > 0 && load <= 100)) return wrong("load must be in (0, 100]");
  if (!(window_s >= 0 && window_s <= 1e8)) return wrong("window must be in 0..1e8 s");
  if (tasks != "paper27" && tasks != "paper27-measured")
    return wrong("tasks must be paper27 or paper27-measured: " + tasks);
  if (arrivals != "poisson" && !arrivals.starts_with("philly:") && !arrivals.starts_with("hourly:"))
    return wrong("arrivals must be poisson, philly:FILE or hourly:W1,W2,...: " + arrivals);
  if (arrivals.starts_with("hourly:") && !good_rates(arrivals))
    return wrong("hourly needs rates of at least 0, not all 0: " + arrivals);
  if (!(median_seconds > 0 && median_seconds <= 1e6 && sigma >= 0 && sigma <= 4))
    return wrong("sizes: the median must be in (0, 1e6] s and sigma in 0..4");
  if (!shares.empty() && (shares.size() != kBackbones ||
                          !std::ranges::all_of(shares, [](double s) { return s >= 0; }) ||
                          !std::ranges::any_of(shares, [](double s) { return s > 0; })))
    return wrong("shares must be three numbers of at least 0, not all 0");
  if (!(zipf >= 0 && zipf <= 10)) return wrong("zipf must be in 0..10");
  if (!(share >= 0 && share <= 1)) return wrong("share must be in 0..1");
  if (domains < 1 || domains > 1000) return wrong("domains must be in 1..1000");
  if (!gains.empty() && gains != "synthetic" && gains != "measured")
    return wrong("gains must be synthetic or measured: " + gains);
  if (gains == "measured" && tasks == "paper27")
    return wrong("gains=measured needs tasks=paper27-measured");
  if (solo != "trace" && !solo_rank_of(solo))
    return wrong("solo must be trace, tuned, p75 or median: " + solo);
  if (solo != "trace" && tasks == "paper27")
    return wrong("solo=" + solo + " needs tasks=paper27-measured");
  if (!(useful_pairs >= 0 && useful_pairs <= 1)) return wrong("density must be in 0..1");
  if (!(gain_sigma >= 0 && gain_sigma <= 2)) return wrong("gain_sigma must be in 0..2");
  return Ok{};
}

Result<Workload> generate_workload(const WorkloadOptions& options) {
  YMIR_TRY(options.validate());
  const std::vector<Draft> drafts = drafts_of(options);
  Workload workload;
  if (options.tasks == "paper27") {
    workload = made_up(options, drafts);
  } else {
    YMIR_TRY_ASSIGN(workload, measured(options, drafts));
  }
  if (options.tasks == "paper27" || options.gains == "synthetic") draw_gains(options, workload);
  workload.nodes = options.num_gpus / options.gpus_per_node;
  workload.gpus_per_node = options.gpus_per_node;
  workload.seed = options.seed;
  for (std::size_t i = 0; options.domains > 1 && i < drafts.size(); ++i)
    workload.jobs[i].domain = fmt::format("domain{}", drafts[i].domain + 1);
  YMIR_TRY_ASSIGN(const std::vector<double> moments, moments_of(options));
  double gpu_seconds = 0;
  for (const WorkloadJob& job : workload.jobs)
    gpu_seconds += solo_seconds(job, job.gpus) * job.gpus;
  // The window in which so many jobs are `load` times what the cluster can do.
  const double window =
      options.window_s > 0 ? options.window_s : gpu_seconds / (options.num_gpus * options.load);
  for (std::size_t i = 0; i < moments.size(); ++i)
    workload.jobs[i].at = std::round(moments[i] * window * 1000) / 1000;
  workload.generator = header_of(options, drafts, workload, window);
  return workload;
}

}  // namespace ymir
