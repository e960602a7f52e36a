#include "ymir/sim/oracle.h"

#include <algorithm>
#include <cmath>

namespace ymir {

namespace {

std::vector<int> sizes_of(const Snapshot& now, const JobSpec& spec) {
  int largest = 0;
  for (const auto& [id, place] : now.places) largest = std::max(largest, place.num_slots);
  std::vector<int> sizes;
  for (int size = 1; size <= std::min(spec.max_gpus, largest); ++size) {
    const bool power = (size & (size - 1)) == 0;
    const bool named = std::ranges::count(spec.sizes, size) > 0;
    const bool offered = spec.sizes.empty() ? power || size == spec.min_gpus : named;
    if (size >= spec.min_gpus && offered) sizes.push_back(size);
  }
  return sizes;
}

const RunView* run_of(const Snapshot& now, const JobView& job) {
  const auto run = now.runs.find(job.run);
  return run == now.runs.end() || run->second.profile ? nullptr : &run->second;
}

bool runs_as(const RunView* run, Mode mode, JobId job, std::optional<JobId> partner) {
  return run && run->what.mode == mode && run->what.job == job && run->what.partner == partner;
}

std::optional<double> metric_of(const JobView& job, const Evaluation& evaluation) {
  const auto found = evaluation.metrics.find(job.spec.target.metric);
  if (found != evaluation.metrics.end()) return found->second;
  if (evaluation.metrics.empty()) return std::nullopt;
  return evaluation.metrics.begin()->second;
}

bool same_backbone(const JobView& a, const JobView& b) {
  return !a.facts.backbone.empty() && a.facts.backbone == b.facts.backbone;
}

Candidate make(const Assignment& what, std::vector<std::pair<JobId, double>> steps,
               std::vector<double> seconds, double switch_seconds) {
  Candidate candidate{.what = what};
  for (std::size_t i = 0; i < steps.size(); ++i)
    candidate.members.push_back({.job = steps[i].first,
                                 .steps = Interval::exactly(steps[i].second),
                                 .finish_in = Interval::exactly(seconds[i])});
  candidate.switch_cost = Seconds(switch_seconds);
  candidate.card.seconds = Interval::exactly(seconds.front());
  candidate.card.source = "exact";
  return candidate;
}

// TranWt and its relatives, from the times of the two alone and in the mode.
void weigh(Candidate& candidate, double alone_a, double alone_b, double mode_a, double mode_b,
           double target_alone, double target_in_mode) {
  const double alone = alone_a + alone_b + std::min(alone_a, alone_b);
  const double merged = mode_a + mode_b;
  candidate.transfer_weight = Interval::exactly(alone / std::max(merged, 1e-9));
  candidate.expected_saving = alone - merged;
  candidate.card.transfer_weight = candidate.transfer_weight.p50;
  candidate.card.speedup = Interval::exactly(target_alone / std::max(target_in_mode, 1e-9));
  candidate.card.helps = candidate.card.speedup.p50 > 1 ? 1 : 0;
  candidate.card.solo_seconds = Interval::exactly(target_alone);
}

}  // namespace

double Oracle::gain(JobId source, JobId target) const {
  const auto found = options_.temporal.find({source, target});
  return found == options_.temporal.end() ? truth_.temporal_gain(source, target) : found->second;
}

SpatialTruth Oracle::joint(JobId first, JobId second) const {
  const auto found = options_.spatial.find({first, second});
  return found == options_.spatial.end() ? truth_.spatial(first, second) : found->second;
}

Oracle::Position Oracle::position(const Snapshot& now, const JobView& job) const {
  const JobTruth& truth = truth_.job(job.id);
  Position at{.step = job.steps_done,
              .progress = static_cast<double>(job.steps_done) / static_cast<double>(truth.steps)};
  if (const RunView* run = run_of(now, job); run && run->started) {
    const auto member = std::ranges::find(run->jobs, job.id) - run->jobs.begin();
    const Seconds step =
        run->jobs.size() == 2
            ? truth_.joint_step_time(std::min(run->jobs[0], run->jobs[1]),
                                     std::max(run->jobs[0], run->jobs[1]), run->what.gpus)
            : truth_.step_time(job.id, run->what.gpus);
    const double done = (now.now - *run->started).count() / step.count();
    at.step = run->from_steps.at(static_cast<std::size_t>(member)) +
              static_cast<std::int64_t>(std::floor(done + 1e-6));
  }
  if (!job.evaluations.empty()) {
    const Evaluation& newest = job.evaluations.back();
    if (const auto metric = metric_of(job, newest))
      at.progress = truth_.progress_at(job.id, *metric) +
                    static_cast<double>(std::max<std::int64_t>(0, at.step - newest.step)) /
                        static_cast<double>(truth.steps);
    at.step = std::max(at.step, newest.step);
  } else if (const Transfer* merge = job.merge(); merge && merge->mode == Mode::kTemporal) {
    const double ahead = gain(merge->partner, job.id);
    at.progress += ahead / (1 + ahead);
  }
  return at;
}

double Oracle::steps_left(JobId job, Position from, double rate) const {
  const JobTruth& truth = truth_.job(job);
  const double epoch = static_cast<double>(truth.steps_per_epoch);
  const double here = static_cast<double>(from.step);
  const double target = here + std::max(0.0, 1 - from.progress) / rate;
  double end = std::ceil(target / epoch - 1e-6) * epoch;
  if (end <= here) end = here + epoch;
  return std::min(end, static_cast<double>(truth.max_steps)) - here;
}

double Oracle::alone_left(const Snapshot& now, const JobView& job) const {
  return steps_left(job.id, position(now, job),
                    1.0 / static_cast<double>(truth_.job(job.id).steps));
}

void Oracle::add_alone(const Snapshot& now, const JobView& job, Forecast& forecast) const {
  const RunView* run = run_of(now, job);
  const double left = alone_left(now, job);
  for (const int gpus : sizes_of(now, job.spec)) {
    const bool goes_on = run && run->jobs.size() == 1 && run->what.gpus == gpus;
    const double start = goes_on ? 0 : options_.start_time.count();
    const double seconds = start + left * truth_.step_time(job.id, gpus).count();
    const Assignment what{.mode = Mode::kNormal, .job = job.id, .partner = {}, .gpus = gpus};
    Candidate candidate = make(what, {{job.id, left}}, {seconds}, start);
    candidate.card.solo_seconds = Interval::exactly(seconds);
    forecast.candidates.push_back(std::move(candidate));
  }
}

void Oracle::add_temporal(const Snapshot& now, const JobView& source, const JobView& target,
                          Forecast& forecast) const {
  const bool done = source.state == JobState::kSucceeded;
  const RunView* run = run_of(now, target);
  const bool runs = runs_as(run, Mode::kTemporal, target.id, source.id);
  if (!runs && target.has_progress()) return;
  const double rate = 1.0 / static_cast<double>(truth_.job(target.id).steps);
  const double ahead = gain(source.id, target.id);
  const Position fresh{.step = 0, .progress = ahead / (1 + ahead)};
  const double left = steps_left(target.id, runs ? position(now, target) : fresh, rate);
  for (const int gpus : sizes_of(now, target.spec)) {
    const std::vector<int> both = done ? std::vector{gpus} : sizes_of(now, source.spec);
    if (!std::ranges::count(both, gpus)) continue;
    const double start = runs && run->what.gpus == gpus ? 0 : options_.start_time.count();
    const double own = start + left * truth_.step_time(target.id, gpus).count();
    const double alone = options_.start_time.count() +
                         alone_left(now, target) * truth_.step_time(target.id, gpus).count();
    const Assignment what{.mode = Mode::kTemporal,
                          .job = target.id,
                          .partner = source.id,
                          .gpus = gpus,
                          .strength = options_.strength};
    if (done) {
      Candidate candidate = make(what, {{target.id, left}}, {own}, start);
      weigh(candidate, alone, 0, own, 0, alone, own);
      if (runs) candidate.transfer_weight = Interval::exactly(1);
      forecast.candidates.push_back(std::move(candidate));
      continue;
    }
    const double source_left = alone_left(now, source);
    const double first =
        options_.start_time.count() + source_left * truth_.step_time(source.id, gpus).count();
    Candidate candidate =
        make(what, {{target.id, left}, {source.id, source_left}}, {first + own, first}, start);
    weigh(candidate, first, alone, first, first + own, alone, own);
    forecast.candidates.push_back(std::move(candidate));
  }
}

void Oracle::add_spatial(const Snapshot& now, const JobView& first, const JobView& second,
                         Forecast& forecast) const {
  const RunView* run = run_of(now, first);
  const bool runs = runs_as(run, Mode::kSpatial, first.id, second.id);
  if (!runs && (first.has_progress() || second.has_progress())) return;
  const SpatialTruth pair = joint(first.id, second.id);
  const auto rate = [&](const JobView& job, double side) {
    return (1 + side) / static_cast<double>(truth_.job(job.id).steps);
  };
  const auto left = [&](const JobView& job, double side) {
    return steps_left(job.id, runs ? position(now, job) : Position{}, rate(job, side));
  };
  const double left_first = left(first, pair.gain_first);
  const double left_second = left(second, pair.gain_second);
  for (const int gpus : sizes_of(now, first.spec)) {
    if (!std::ranges::count(sizes_of(now, second.spec), gpus)) continue;
    const double start = runs && run->what.gpus == gpus ? 0 : options_.start_time.count();
    const double step =
        std::max(truth_.step_time(first.id, gpus), truth_.step_time(second.id, gpus)).count() *
        pair.joint;
    // The first to finish leaves, the other goes on alone.
    const double together = std::min(left_first, left_second);
    const auto finish = [&](const JobView& job, double own_left, double side) {
      const double rest = (own_left - together) * (1 + side);
      const double leave = rest > 0 ? options_.start_time.count() : 0;
      return start + together * step + leave + rest * truth_.step_time(job.id, gpus).count();
    };
    const double end_first = finish(first, left_first, pair.gain_first);
    const double end_second = finish(second, left_second, pair.gain_second);
    const auto alone = [&](const JobView& job) {
      return options_.start_time.count() +
             alone_left(now, job) * truth_.step_time(job.id, gpus).count();
    };
    const Assignment what{
        .mode = Mode::kSpatial, .job = first.id, .partner = second.id, .gpus = gpus};
    Candidate candidate = make(what, {{first.id, left_first}, {second.id, left_second}},
                               {end_first, end_second}, start);
    weigh(candidate, alone(first), alone(second), end_first, end_second, alone(first), end_first);
    forecast.candidates.push_back(std::move(candidate));
  }
}

void Oracle::add_outlooks(const Snapshot& now, Forecast& forecast) const {
  for (const auto& [id, run] : now.runs) {
    if (run.profile || run.what.mode == Mode::kNormal) continue;
    for (std::size_t i = 0; i < run.jobs.size(); ++i) {
      const JobView& job = now.jobs.at(run.jobs[i]);
      if (job.transfers.empty() || job.transfers.back().run != id) continue;
      const std::vector<Evaluation>& seen = job.transfers.back().evaluations;
      if (seen.empty()) continue;
      const JobTruth& truth = truth_.job(job.id);
      const double observed = metric_of(job, seen.back()).value_or(0);
      const double here = truth_.progress_at(job.id, observed);
      const double solo = static_cast<double>(seen.back().step) / static_cast<double>(truth.steps);
      TransferOutlook outlook{.run = id, .job = job.id};
      outlook.epochs = static_cast<double>(seen.back().step - run.from_steps.at(i)) /
                       static_cast<double>(truth.steps_per_epoch);
      outlook.helps = here >= solo ? 0.95 : here >= 0 ? 0.2 : 0.05;
      outlook.literal_rule_failed =
          seen.size() >= 2 && observed <= metric_of(job, seen.front()).value_or(0);
      outlook.baseline = "measured";
      outlook.observed = observed;
      outlook.expected = truth_.metric(job.id, solo);
      forecast.outlooks.push_back(outlook);
    }
  }
}

// Sources of `target`: the one it runs after, the best of those that have finished, and each active
// one that would help.
void Oracle::add_sources(const Snapshot& now, const JobView& target, Forecast& forecast) const {
  const RunView* run = run_of(now, target);
  if (target.has_progress() && !(run && run->what.mode == Mode::kTemporal)) return;
  const JobView* best = nullptr;
  for (const auto& [id, source] : now.jobs) {
    if (id == target.id || !same_backbone(source, target)) continue;
    const bool runs = runs_as(run, Mode::kTemporal, target.id, id);
    const bool done = source.state == JobState::kSucceeded;
    if (runs || (source.active() && gain(id, target.id) > 0))
      add_temporal(now, source, target, forecast);
    else if (done && gain(id, target.id) > (best ? gain(best->id, target.id) : 0.0))
      best = &source;
  }
  if (best) add_temporal(now, *best, target, forecast);
}

void Oracle::add_mates(const Snapshot& now, const JobView& first, Forecast& forecast) const {
  const RunView* run = run_of(now, first);
  for (auto it = now.jobs.upper_bound(first.id); it != now.jobs.end(); ++it) {
    const JobView& second = it->second;
    if (!second.active() || !same_backbone(first, second)) continue;
    const SpatialTruth pair = joint(first.id, second.id);
    if (runs_as(run, Mode::kSpatial, first.id, second.id) || pair.gain_first > 0 ||
        pair.gain_second > 0)
      add_spatial(now, first, second, forecast);
  }
}

Forecast Oracle::forecast(const Snapshot& now) const {
  Forecast forecast;
  for (const auto& [id, job] : now.jobs) {
    if (!job.active()) continue;
    add_alone(now, job, forecast);
    if (!options_.pairs || !job.spec.sharing.allow) continue;
    add_sources(now, job, forecast);
    add_mates(now, job, forecast);
  }
  add_outlooks(now, forecast);
  return forecast;
}

std::vector<TransferSettled> Oracle::settle(const Snapshot& now) const {
  std::vector<TransferSettled> settled;
  for (const auto& [id, job] : now.jobs) {
    for (const Transfer& transfer : job.transfers) {
      const bool split = transfer.verdict == Transfer::Verdict::kSplit;
      if (transfer.settled || (!split && !job.ended())) continue;
      if (job.state == JobState::kCancelled) continue;
      const double solo = static_cast<double>(truth_.job(id).steps);
      const bool reached = !split && job.result && job.result->target_reached;
      const double used =
          static_cast<double>(reached                        ? job.result->step
                              : transfer.evaluations.empty() ? 1
                                                             : transfer.evaluations.back().step);
      settled.push_back({.job = id,
                         .partner = transfer.partner,
                         .mode = transfer.mode,
                         .strength = transfer.strength,
                         .similarity = transfer.card.similarity,
                         .predicted = transfer.card.speedup,
                         .actual = solo / std::max(used, 1.0),
                         .censored = !reached,
                         .baseline = "measured",
                         .kept = !split,
                         .extra = Seconds(0)});
    }
  }
  return settled;
}

Beliefs Oracle::bind() const {
  return {
      .observe = [](const Event&, const Snapshot&) {},
      .forecast = [this](const Snapshot& now) { return forecast(now); },
      .settle = [this](const Snapshot& now) { return settle(now); },
      .probes_wanted = [](const Snapshot&, JobId) { return std::vector<Estimator::ProbeWish>{}; }};
}

}  // namespace ymir
