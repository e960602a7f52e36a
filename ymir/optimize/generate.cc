#include "ymir/optimize/generate.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "ymir/base/text.h"

namespace ymir {
namespace {

constexpr float kRound = 120;       // seconds; nothing ends sooner
constexpr float kSaturation = 0.5;  // of the concave speed-up term
constexpr float kUtilityUnit = 1e6;
constexpr std::array<double, 3> kScaling = {0.93, 0.88, 0.85};  // speed = gpus ^ scaling

// How far a pair of jobs departs from what its tasks suggest: 0.85 .. 1.15, by position.
float pair_jitter(int i, int j) {
  const std::uint64_t bits = mix_bits(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(j));
  return 0.85f + 0.3f * static_cast<float>(bits >> 40) * 0x1p-24f;
}

// Spatial sharing slows the longer of the two by this much, before the gain.
float crowding(float jitter) { return 1.14f + 0.4f * (jitter - 0.85f); }

}  // namespace

Result<> GenerateOptions::validate() const {
  const auto bad = [](std::string what) {
    return Error{ErrorCode::kInvalidArgument, "generate: " + std::move(what)};
  };
  if (jobs < 0 || jobs > 50'000) return bad(fmt::format("jobs must be in 0..50000: {}", jobs));
  if (gpus < 0 || gpus > 1'000'000) return bad(fmt::format("gpus must be in 0..1000000: {}", gpus));
  if (!(pairs >= 0 && pairs <= 1)) return bad(fmt::format("pairs must be in 0..1: {}", pairs));
  if (!(gamma >= 0 && gamma <= 4)) return bad(fmt::format("gamma must be in 0..4: {}", gamma));
  return Ok{};
}

Result<GenerateOptions> parse_generate_options(std::string_view text) {
  GenerateOptions options;
  for (const std::string_view part : split(text, ',')) {
    if (trim(part).empty()) continue;
    const std::size_t equals = part.find('=');
    const std::string_view name = trim(part.substr(0, equals));
    const std::string_view given = equals == part.npos ? "" : trim(part.substr(equals + 1));
    const auto integer = parse_int(given);
    const auto number = parse_double(given);
    const bool whole = name == "jobs" || name == "gpus" || name == "seed";
    if ((whole && !integer) || !number) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("generate: no number: {}", part)};
    }
    const auto small = [&] {
      return static_cast<int>(std::clamp<std::int64_t>(*integer, -1, 1 << 30));
    };
    if (name == "jobs") {
      options.jobs = small();
    } else if (name == "gpus") {
      options.gpus = small();
    } else if (name == "pairs") {
      options.pairs = *number;
    } else if (name == "gamma") {
      options.gamma = *number;
    } else if (name == "seed") {
      options.seed = static_cast<std::uint64_t>(*integer);
    } else {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("generate: jobs, gpus, pairs, gamma or seed, not {}", name)};
    }
  }
  YMIR_TRY(options.validate());
  return options;
}

Generator::Generator(const GenerateOptions& options) : options_(options) {
  YMIR_CHECK(options.validate(), "bad options");
  Rng rng(mix_bits(options.seed, 0x6f7074));
  for (auto& backbone : gain_) {
    for (auto& from : backbone) {
      for (float& gain : from) {
        gain = rng.chance(0.45) ? 0.0f : static_cast<float>(std::exp(-0.7 + 0.8 * rng.normal()));
      }
    }
  }
  // One backbone where more pairs are wanted than three would leave.
  const int backbones = options.pairs > 0.15 ? 1 : kBackbones;
  const double fair_share = static_cast<double>(options.gpus) / std::max(1, options.jobs);
  for (int j = 0; j < options.jobs; ++j) jobs_.push_back(draw(rng, backbones, fair_share));

  // The least transfer weight that leaves the wanted share of pairs, from a sample.
  if (options.jobs < 2) return;
  std::vector<float> best;
  const std::int64_t all = std::int64_t{options.jobs} * (options.jobs - 1) / 2;
  for (std::int64_t k = std::min<std::int64_t>(all, 200'000); k > 0; --k) {
    int i = static_cast<int>(rng.below(options.jobs)),
        j = static_cast<int>(rng.below(options.jobs));
    if (i == j) continue;
    if (i > j) std::swap(i, j);
    float weight = 0;
    together(jobs_[i], jobs_[j], pair_jitter(i, j), 0.0f,
             [&](const PairOption& option) { weight = std::max(weight, option.transfer_weight); });
    best.push_back(weight);
  }
  std::sort(best.begin(), best.end(), std::greater<>());
  const auto at = static_cast<std::size_t>(options.pairs * static_cast<double>(best.size()));
  least_transfer_ = std::max(1.02f, at < best.size() ? best[at] : 1.02f);
}

Generator::Job Generator::draw(Rng& rng, int backbones, double fair_share) const {
  const auto pick = [&](std::initializer_list<double> upto) {
    const double x = rng.uniform();
    return static_cast<int>(
        std::count_if(upto.begin(), upto.end(), [&](double u) { return x >= u; }));
  };
  Job job;
  job.backbone = static_cast<int>(rng.below(backbones));
  job.task = static_cast<int>(rng.below(kTasks));
  const double work = std::clamp(3600 * std::exp(1.4 * rng.normal()), 120.0, 4e5);
  job.first_level = job.backbone == 2 ? 1 + pick({0.6}) : pick({0.85});
  job.last_level = std::max(job.first_level, pick({0.05, 0.15, 0.4, 0.7, 0.9}));
  job.shares = rng.chance(0.9);
  job.fresh = rng.chance(0.6);
  const double unfairness = std::clamp(std::exp(0.5 * rng.normal()), 0.25, 4.0);
  const double idle_rounds = rng.chance(0.5) ? 0 : std::floor(-5 * std::log(1 - rng.uniform()));
  job.weight = static_cast<float>(unfairness * (1 + 0.1 * idle_rounds));
  for (int level = 0; level < kLevels; ++level) {
    const double noise = 1 + 0.03 * (2 * rng.uniform() - 1);
    const double speed = std::pow(1 << level, kScaling[job.backbone]) * (level > 2 ? 0.95 : 1);
    job.seconds[level] = static_cast<float>(work / (speed * noise));
  }
  for (int level = job.last_level + 1; level < kLevels; ++level) {
    job.seconds[level] = job.seconds[job.last_level];  // more GPUs than it can use
  }
  if (!job.fresh && idle_rounds == 0) {
    const double most = std::max(1.0, 2 * fair_share * rng.uniform());
    job.held = job.first_level;
    while (job.held < job.last_level && (2 << job.held) <= most) ++job.held;
  }
  job.switching = static_cast<float>(rng.uniform(15, 60));
  // Seconds at the fair share of GPUs: time-sliced below the smallest size, linear between sizes.
  double speed = 0;
  const double smallest = 1 << job.first_level, largest = 1 << job.last_level;
  if (fair_share >= largest) {
    speed = 1 / job.seconds[job.last_level];
  } else if (fair_share <= smallest) {
    speed = fair_share / smallest / job.seconds[job.first_level];
  } else {
    int level = job.first_level;
    while ((2 << level) <= fair_share) ++level;
    const double low = 1 / job.seconds[level], high = 1 / job.seconds[level + 1];
    speed = low + (high - low) * (fair_share - (1 << level)) / (1 << level);
  }
  job.fair = speed > 0 ? std::max(kRound, static_cast<float>(1 / speed)) : 1e9f;
  return job;
}

float Generator::utility(const Job& job, float seconds) const {
  const float speed_up = job.fair / seconds;
  return job.weight * (1 + kSaturation) * speed_up / (speed_up + kSaturation);
}

void Generator::alone(const Job& job, std::vector<Option>& out) const {
  out.clear();
  for (int level = job.first_level; level <= job.last_level; ++level) {
    const float pause = level == job.held ? 0.0f : job.switching;
    const float u = utility(job, std::max(kRound, job.seconds[level]) + pause);
    out.push_back({static_cast<std::int32_t>(kUtilityUnit * u),
                   static_cast<std::uint16_t>(1 << level), 0, 0});
  }
}

template <class Visit>
void Generator::together(const Job& a, const Job& b, float jitter, float least,
                         const Visit& visit) const {
  if (a.backbone != b.backbone || !a.shares || !b.shares || (!a.fresh && !b.fresh)) return;
  const float gain_b = gain(a, b) * jitter, gain_a = gain(b, a) * jitter;
  const float shorter_b = 1 / (1 + gain_b), shorter_a = 1 / (1 + gain_a);
  const float joint = crowding(jitter) / (1 + 0.5f * (gain_a + gain_b));
  float most = a.fresh && b.fresh ? 1.5f / joint : 0.0f;  // jobs of equal length
  if (b.fresh) most = std::max(most, 1 + gain_b);
  if (a.fresh) most = std::max(most, 1 + gain_a);
  if (most < least) return;
  const float pause = std::max(a.switching, b.switching);
  const int last = std::max(a.last_level, b.last_level);
  const auto offer = [&](int level, std::uint8_t mode, float end_a, float end_b, float alone) {
    if (alone < least * (end_a + end_b)) return;
    const float weight = alone / (end_a + end_b);
    const float factor = options_.gamma == 1 ? weight
                         : options_.gamma == 0
                             ? 1.0f
                             : std::pow(weight, static_cast<float>(options_.gamma));
    const float u = factor * (utility(a, std::max(end_a, kRound) + pause) +
                              utility(b, std::max(end_b, kRound) + pause));
    visit(PairOption{level, mode, weight, u});
  };
  for (int level = std::max(a.first_level, b.first_level); level <= last; ++level) {
    const float time_a = a.seconds[level], time_b = b.seconds[level];
    const float alone = time_a + time_b + std::min(time_a, time_b);  // shortest first
    if (b.fresh) offer(level, 1, time_a, time_a + time_b * shorter_b, alone);
    if (a.fresh) offer(level, 2, time_b + time_a * shorter_a, time_b, alone);
    if (a.fresh && b.fresh) {
      const float end = joint * std::max(time_a, time_b);
      offer(level, 3, end, end, alone);
    }
  }
}

float Generator::most_transfer(int backbone, int task_a, int task_b) const {
  constexpr float kMost = 1.15f;  // jitter
  const float gain_b = gain_[backbone][task_a][task_b] * kMost;
  const float gain_a = gain_[backbone][task_b][task_a] * kMost;
  return std::max({1 + gain_b, 1 + gain_a, 1.5f / 1.14f * (1 + 0.5f * (gain_a + gain_b))});
}

void Generator::build(RoundProblem& problem) const {
  problem.reset(std::vector<Capacity>{{options_.gpus, {}}});
  std::vector<Option> options;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    alone(jobs_[j], options);
    problem.add_job(j + 1, options);
  }
  // Sharing jobs by backbone, task and whether they have begun. Most pairs of tasks cannot reach
  // the threshold at all: their jobs are not looked at.
  std::array<std::array<std::array<std::vector<std::int32_t>, 2>, kTasks>, kBackbones> sharing;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    const Job& job = jobs_[j];
    if (job.shares) sharing[job.backbone][job.task][job.fresh].push_back(static_cast<int>(j));
  }
  for (int i = 0; i < static_cast<int>(jobs_.size()); ++i) {
    const Job& a = jobs_[i];
    if (!a.shares) continue;
    for (int task = 0; task < kTasks; ++task) {
      if (most_transfer(a.backbone, a.task, task) < least_transfer_) continue;
      for (int fresh = a.fresh ? 0 : 1; fresh < 2; ++fresh) {
        const std::vector<std::int32_t>& others = sharing[a.backbone][task][fresh];
        auto j = std::upper_bound(others.begin(), others.end(), i);
        for (; j != others.end(); ++j) offer_pair(problem, i, *j, options);
      }
    }
  }
}

void Generator::offer_pair(RoundProblem& problem, int i, int j,
                           std::vector<Option>& options) const {
  options.clear();
  together(jobs_[i], jobs_[j], pair_jitter(i, j), least_transfer_, [&](const PairOption& option) {
    const auto u = static_cast<std::int32_t>(kUtilityUnit * option.utility);
    const auto size = static_cast<std::uint16_t>(1 << option.level);
    if (!options.empty() && options.back().gpus == size) {  // the best mode of the size
      if (u > options.back().utility) options.back() = {u, size, 0, option.mode};
    } else {
      options.push_back({u, size, 0, option.mode});
    }
  });
  if (!options.empty()) problem.add_pair(i, j, options);
}

}  // namespace ymir
