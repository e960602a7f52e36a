#include "ymir/sim/oracle.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "ymir/base/rng.h"
#include "ymir/base/text.h"

namespace ymir {

namespace {

constexpr int kGainLink = 1, kStepsLink = 2, kStepTimeLink = 3;

std::vector<int> sizes_of(int largest, const JobSpec& spec) {
  const int most = std::min(spec.max_gpus, largest);
  std::vector<int> sizes;
  if (!spec.sizes.empty()) {
    for (const int size : spec.sizes)
      if (size >= spec.min_gpus && size <= most) sizes.push_back(size);
    return sizes;
  }
  if (spec.min_gpus <= most) sizes.push_back(spec.min_gpus);
  for (int size = 1; size <= most; size *= 2)
    if (size > spec.min_gpus) sizes.push_back(size);
  return sizes;
}

double drawn_factor(std::uint64_t seed, std::uint64_t what, int link, const LinkError& error) {
  Rng mix(seed * 0x9e3779b97f4a7c15u + what * 8 + static_cast<std::uint64_t>(link));
  return std::exp(error.bias + error.sigma * Rng(mix.next64()).normal());
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

MemberForecast member(JobId job, double steps, double seconds) {
  return {.job = job, .steps = Interval::exactly(steps), .finish_in = Interval::exactly(seconds)};
}

Candidate make(const Assignment& what, std::initializer_list<MemberForecast> members,
               double switch_seconds) {
  Candidate candidate{.what = what, .members = members};
  candidate.switch_cost = Seconds(switch_seconds);
  candidate.card.seconds = candidate.members.front().finish_in;
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

Result<bool> OracleErrors::read(const std::string& key, const std::string& value) {
  const std::map<std::string_view, LinkError*> links{
      {"error.gain", &gain}, {"error.steps", &steps}, {"error.step_time", &step_time}};
  const auto link = links.find(key);
  if (link == links.end()) return false;
  for (const std::string_view part : split(value, ',')) {
    const std::size_t colon = part.find(':');
    const std::string_view name =
        colon == std::string_view::npos ? "sigma" : trim(part.substr(0, colon));
    const auto number =
        parse_double(trim(colon == std::string_view::npos ? part : part.substr(colon + 1)));
    const bool known = name == "bias" || name == "sigma";
    if (!known || !number || !(std::abs(*number) <= 5) || (name == "sigma" && *number < 0))
      return Error{ErrorCode::kInvalidArgument,
                   key + "=" + value + ": bias:B,sigma:S or a sigma alone, in -5..5"};
    (name == "bias" ? link->second->bias : link->second->sigma) = *number;
  }
  return true;
}

Oracle::Oracle(const JobModel& truth, OracleOptions options)
    : truth_(truth), options_(std::move(options)), by_family_(truth.gains_by_family()) {
  const auto count = static_cast<std::size_t>(truth.num_families());
  if (!options_.errors.gain.any() || count > 2000) return;
  pair_errors_.assign(count, std::vector<double>(count, 1));
  for (std::size_t source = 0; source < count; ++source)
    for (std::size_t target = 0; target < count; ++target)
      pair_errors_[source][target] = drawn_factor(options_.errors.seed, source * 4096 + target,
                                                  kGainLink, options_.errors.gain);
}

double Oracle::error_of_pair(int source, int target) const {
  if (pair_errors_.empty()) return 1;
  return pair_errors_[static_cast<std::size_t>(source)][static_cast<std::size_t>(target)];
}

double Oracle::error_of_job(JobId job, int link, const LinkError& error) const {
  return error.any() ? drawn_factor(options_.errors.seed, job.value, link, error) : 1;
}

double Oracle::step_seconds(JobId job, int gpus) const {
  return truth_.step_time(job, gpus).count() *
         error_of_job(job, kStepTimeLink, options_.errors.step_time);
}

double Oracle::start_seconds(JobId job) const {
  const double own = truth_.job(job).start_time.count();
  return own >= 0 ? own : options_.start_time.count();
}

double Oracle::gain(JobId source, JobId target) const {
  if (options_.declared) return options_.prior_gain;
  if (!options_.temporal.empty())
    if (const auto told = options_.temporal.find({source, target}); told != options_.temporal.end())
      return told->second;
  const double error = error_of_pair(truth_.family(source), truth_.family(target));
  return (1 + truth_.temporal_gain(source, target)) * error - 1;
}

SpatialTruth Oracle::joint(JobId first, JobId second) const {
  if (!options_.spatial.empty())
    if (const auto told = options_.spatial.find({first, second}); told != options_.spatial.end())
      return told->second;
  SpatialTruth truth = truth_.spatial(first, second);
  const int a = truth_.family(first), b = truth_.family(second);
  truth.gain_first =
      options_.declared ? options_.prior_gain : (1 + truth.gain_first) * error_of_pair(b, a) - 1;
  truth.gain_second =
      options_.declared ? options_.prior_gain : (1 + truth.gain_second) * error_of_pair(a, b) - 1;
  return truth;
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
  const double most = static_cast<double>(truth.max_steps) - here;
  if (options_.declared) return std::max(most, 1.0);
  const double target = here + std::max(0.0, 1 - from.progress) / rate;
  double end = std::ceil(target / epoch - 1e-6) * epoch;
  if (end <= here) end = here + epoch;
  const double error = error_of_job(job, kStepsLink, options_.errors.steps);
  return std::min((end - here) * error, most);
}

double Oracle::alone_left(const Snapshot& now, const JobView& job) const {
  return steps_left(job.id, position(now, job),
                    1.0 / static_cast<double>(truth_.job(job.id).steps));
}

Oracle::Seen Oracle::seen(const Snapshot& now, const JobView& job, int largest) const {
  const RunView* run = run_of(now, job);
  return {.job = &job,
          .run = run,
          .left = alone_left(now, job),
          .start = start_seconds(job.id),
          .sizes = sizes_of(largest, job.spec),
          .fresh = !job.has_progress() && !job.merged};
}

Oracle::Field Oracle::look(const Snapshot& now, const Watch* watch) const {
  int largest = 0;
  for (const auto& [id, place] : now.places) largest = std::max(largest, place.num_slots);
  const std::vector<const JobView*> active = now.active_jobs();
  Field field;
  field.active.reserve(active.size());
  for (const JobView* job : active) field.active.push_back(seen(now, *job, largest));
  if (!options_.pairs) return field;
  for (const Seen& each : field.active)
    if (each.job->spec.sharing.allow && !each.job->facts.backbone.empty())
      field.backbones[each.job->facts.backbone][truth_.family(each.job->id)].active.push_back(
          &each);
  for (auto& [backbone, families] : field.backbones)
    for (auto& [family, peers] : families)  // the soonest done first
      std::ranges::stable_sort(peers.active, {}, [&](const Seen* each) {
        return each->left * step_seconds(each->job->id, each->job->spec.min_gpus);
      });
  if (!by_family_) return field;
  const auto done = [&](const JobView& job) {
    const auto backbone = field.backbones.find(job.facts.backbone);
    if (backbone == field.backbones.end()) return;
    Peers& peers = backbone->second[truth_.family(job.id)];
    if (peers.done == nullptr) peers.done = &job;
  };
  if (watch != nullptr)
    for (const auto& [family, id] : watch->done) done(now.jobs.at(id));
  else
    for (const auto& [id, job] : now.jobs)
      if (job.state == JobState::kSucceeded) done(job);
  return field;
}

void Oracle::add_alone(const Seen& seen, Forecast& forecast) const {
  const JobId job = seen.job->id;
  for (const int gpus : seen.sizes) {
    const bool goes_on = seen.run && seen.run->jobs.size() == 1 && seen.run->what.gpus == gpus;
    const double start = goes_on ? 0 : seen.start;
    const double seconds = start + seen.left * step_seconds(job, gpus);
    const Assignment what{.mode = Mode::kNormal, .job = job, .partner = {}, .gpus = gpus};
    Candidate candidate = make(what, {member(job, seen.left, seconds)}, start);
    candidate.card.solo_seconds = Interval::exactly(seconds);
    forecast.candidates.push_back(std::move(candidate));
  }
}

// `running`: the source as seen among the active; null when it has finished.
std::vector<Candidate> Oracle::temporal(const Snapshot& now, const JobView& source,
                                        const Seen* running, const Seen& target) const {
  std::vector<Candidate> made;
  const JobId job = target.job->id;
  const bool runs = runs_as(target.run, Mode::kTemporal, job, source.id);
  const double rate = 1.0 / static_cast<double>(truth_.job(job).steps);
  const double ahead = gain(source.id, job);
  const Position fresh{.step = 0, .progress = ahead / (1 + ahead)};
  double left = steps_left(job, runs ? position(now, *target.job) : fresh, rate);
  if (options_.declared && !runs) left /= 1 + ahead;
  for (const int gpus : target.sizes) {
    if (running != nullptr && std::ranges::count(running->sizes, gpus) == 0) continue;
    const double start = runs && target.run->what.gpus == gpus ? 0 : target.start;
    const double own = start + left * step_seconds(job, gpus);
    const double alone = target.start + target.left * step_seconds(job, gpus);
    const Assignment what{.mode = Mode::kTemporal,
                          .job = job,
                          .partner = source.id,
                          .gpus = gpus,
                          .strength = options_.strength};
    if (running == nullptr) {
      Candidate candidate = make(what, {member(job, left, own)}, start);
      weigh(candidate, alone, 0, own, 0, alone, own);
      if (runs) candidate.transfer_weight = Interval::exactly(1);
      made.push_back(std::move(candidate));
      continue;
    }
    const double first = running->start + running->left * step_seconds(source.id, gpus);
    Candidate candidate = make(
        what, {member(job, left, first + own), member(source.id, running->left, first)}, start);
    weigh(candidate, first, alone, first, first + own, alone, own);
    made.push_back(std::move(candidate));
  }
  return made;
}

std::vector<Candidate> Oracle::spatial(const Snapshot& now, const Seen& a, const Seen& b) const {
  std::vector<Candidate> made;
  const JobId first = a.job->id, second = b.job->id;
  const bool runs = runs_as(a.run, Mode::kSpatial, first, second);
  const SpatialTruth pair = joint(first, second);
  const auto left = [&](const Seen& each, double side) {
    const double rate = (1 + side) / static_cast<double>(truth_.job(each.job->id).steps);
    const double steps =
        steps_left(each.job->id, runs ? position(now, *each.job) : Position{}, rate);
    return options_.declared && !runs ? steps / (1 + side) : steps;
  };
  const double left_first = left(a, pair.gain_first), left_second = left(b, pair.gain_second);
  for (const int gpus : a.sizes) {
    if (std::ranges::count(b.sizes, gpus) == 0) continue;
    const double start = runs && a.run->what.gpus == gpus ? 0 : std::max(a.start, b.start);
    const double step =
        std::max(step_seconds(first, gpus), step_seconds(second, gpus)) * pair.joint;
    // The first to finish leaves, the other goes on alone.
    const double together = std::min(left_first, left_second);
    const auto finish = [&](const Seen& each, double own_left, double side) {
      const double rest = (own_left - together) * (1 + side);
      const double leave = rest > 0 ? each.start : 0;
      return start + together * step + leave + rest * step_seconds(each.job->id, gpus);
    };
    const double end_first = finish(a, left_first, pair.gain_first);
    const double end_second = finish(b, left_second, pair.gain_second);
    const auto alone = [&](const Seen& each) {
      return each.start + each.left * step_seconds(each.job->id, gpus);
    };
    const Assignment what{.mode = Mode::kSpatial, .job = first, .partner = second, .gpus = gpus};
    Candidate candidate =
        make(what, {member(first, left_first, end_first), member(second, left_second, end_second)},
             start);
    weigh(candidate, alone(a), alone(b), end_first, end_second, alone(a), end_first);
    made.push_back(std::move(candidate));
  }
  return made;
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

namespace {

// The candidates of one job with several partners: only those of the best few.
class BestPartners {
 public:
  void add(std::vector<Candidate> candidates, bool runs) {
    if (candidates.empty()) return;
    double weight = 0;
    for (const Candidate& each : candidates) weight = std::max(weight, each.transfer_weight.p50);
    partners_.push_back({runs ? 1e300 : weight, std::move(candidates)});
  }
  void move_to(Forecast& forecast, int most) && {
    std::ranges::stable_sort(partners_, std::greater<>(), &Partner::weight);
    if (std::ssize(partners_) > most) partners_.resize(static_cast<std::size_t>(most));
    for (Partner& partner : partners_)
      for (Candidate& each : partner.candidates) forecast.candidates.push_back(std::move(each));
  }

 private:
  struct Partner {
    double weight = 0;
    std::vector<Candidate> candidates{};
  };
  std::vector<Partner> partners_{};
};

}  // namespace

// Sources of `target`: the one it runs after, the best of those that have finished, and the best
// active ones that would help.
void Oracle::add_sources(const Snapshot& now, const Field& field, const Seen& target,
                         Forecast& forecast) const {
  const JobId job = target.job->id;
  BestPartners best;
  if (target.run && target.run->what.mode == Mode::kTemporal) {  // goes on with this one only
    const JobView& source = now.jobs.at(*target.run->what.partner);
    if (source.state == JobState::kSucceeded)
      best.add(temporal(now, source, nullptr, target), true);
    return std::move(best).move_to(forecast, options_.max_sources);
  }
  if (!target.fresh) return;
  const JobView* best_done = nullptr;
  const auto done = [&](const JobView& source) {
    if (source.id != job && gain(source.id, job) > (best_done ? gain(best_done->id, job) : 0.0))
      best_done = &source;
  };
  for (const auto& [family, peers] : field.backbones.at(target.job->facts.backbone)) {
    if (peers.done != nullptr) done(*peers.done);
    int taken = 0;
    for (const Seen* source : peers.active) {
      if (source->job->id == job) continue;
      if (gain(source->job->id, job) > 0) {
        best.add(temporal(now, *source->job, source, target), false);
        if (by_family_ && ++taken >= options_.max_sources) break;
      } else if (by_family_) {
        break;  // none of this family helps
      }
    }
  }
  if (!by_family_)
    for (const auto& [id, source] : now.jobs)
      if (source.state == JobState::kSucceeded && same_backbone(source, *target.job)) done(source);
  if (best_done != nullptr) best.add(temporal(now, *best_done, nullptr, target), false);
  std::move(best).move_to(forecast, options_.max_sources);
}

void Oracle::add_mates(const Snapshot& now, const Field& field, const Seen& first,
                       Forecast& forecast) const {
  const JobId job = first.job->id;
  BestPartners best;
  for (const auto& [family, peers] : field.backbones.at(first.job->facts.backbone)) {
    int taken = 0;
    for (const Seen* second : peers.active) {
      if (second->job->id <= job) continue;
      const bool runs = runs_as(first.run, Mode::kSpatial, job, second->job->id);
      if (!runs && !(first.fresh && second->fresh)) continue;
      const SpatialTruth pair = joint(job, second->job->id);
      if (runs || pair.gain_first > 0 || pair.gain_second > 0) {
        best.add(spatial(now, first, *second), runs);
        if (by_family_ && ++taken >= options_.max_sources) break;
      } else if (by_family_) {
        break;
      }
    }
  }
  std::move(best).move_to(forecast, options_.max_sources);
}

Forecast Oracle::forecast(const Snapshot& now) const { return forecast(now, nullptr); }

Forecast Oracle::forecast(const Snapshot& now, const Watch* watch) const {
  Forecast forecast;
  const Field field = look(now, watch);
  std::size_t alone = 0;
  for (const Seen& job : field.active) alone += job.sizes.size();
  forecast.candidates.reserve(options_.pairs ? 4 * alone : alone);
  for (const Seen& job : field.active) {
    add_alone(job, forecast);
    if (!options_.pairs || !job.job->spec.sharing.allow || job.job->facts.backbone.empty())
      continue;
    add_sources(now, field, job, forecast);
    add_mates(now, field, job, forecast);
  }
  add_outlooks(now, forecast);
  return forecast;
}

std::vector<TransferOutlook> Oracle::outlooks(const Snapshot& now) const {
  Forecast forecast;
  add_outlooks(now, forecast);
  return std::move(forecast.outlooks);
}

// What a split cost: the time trained in the pair and one more start, less what the progress that
// is kept would have taken alone. How long the job waited for its partner is not counted.
Seconds Oracle::lost_by(const Snapshot& now, const JobView& job, const Transfer& transfer) const {
  const double again = start_seconds(job.id);
  if (transfer.evaluations.empty()) return Seconds(again);
  const Evaluation& last = transfer.evaluations.back();
  const double trained = last.train_time.count();  // a merge begins at step 0
  const auto run = now.runs.find(transfer.run);
  const bool goes_back = run != now.runs.end() ? run->second.goes_back == job.id : !job.merged;
  const auto metric = metric_of(job, last);
  if (goes_back || !metric || last.step < 1) return Seconds(again + trained);
  const int gpus = run != now.runs.end() ? run->second.what.gpus : job.spec.min_gpus;
  double alone = trained / static_cast<double>(last.step);  // of a step
  if (transfer.mode == Mode::kSpatial) {
    const auto [first, second] = std::minmax(job.id, transfer.partner);
    alone *= truth_.step_time(job.id, gpus) / truth_.joint_step_time(first, second, gpus);
  }
  // Its profile's steps were its own already.
  const double kept =
      truth_.progress_at(job.id, *metric) * static_cast<double>(truth_.job(job.id).steps) -
      static_cast<double>(job.profile_steps);
  return Seconds(std::max(0.0, again + trained - std::max(0.0, kept) * alone));
}

std::vector<TransferSettled> Oracle::settle(const Snapshot& now,
                                            const std::set<JobId>& merged) const {
  std::vector<TransferSettled> settled;
  for (const JobId id : merged) {
    const JobView& job = now.jobs.at(id);
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
                         .extra = split ? lost_by(now, job, transfer) : Seconds(0)});
    }
  }
  return settled;
}

KnownLinks Oracle::link(std::string_view name) const {
  KnownLinks known;
  if (name == "similarity")
    known.similarity = [this](JobId source, JobId target) {
      return truth_.probe_value(source, target);
    };
  if (name == "gain")
    known.speedup = [this](JobId source, JobId target, Mode mode) {
      if (mode == Mode::kTemporal) return 1 + truth_.temporal_gain(source, target);
      const SpatialTruth pair = truth_.spatial(std::min(source, target), std::max(source, target));
      return 1 + (target < source ? pair.gain_first : pair.gain_second);
    };
  if (name == "steps")
    known.steps = [this](const Snapshot& now, const JobView& job) {
      const auto alone = static_cast<double>(truth_.job(job.id).steps);
      double rate = 1;
      if (const RunView* run = run_of(now, job); run && run->jobs.size() == 2) {
        const auto [first, second] = std::minmax(run->jobs[0], run->jobs[1]);
        const SpatialTruth pair = truth_.spatial(first, second);
        rate += job.id == first ? pair.gain_first : pair.gain_second;
      }
      const Position at = position(now, job);
      return KnownLinks::Steps{
          .here = static_cast<double>(at.step) + std::max(0.0, 1 - at.progress) * alone / rate,
          .alone = alone};
    };
  if (name == "step_time")
    known.step_seconds = [this](JobId job, int gpus, std::optional<JobId> mate) {
      return (mate ? truth_.joint_step_time(std::min(job, *mate), std::max(job, *mate), gpus)
                   : truth_.step_time(job, gpus))
          .count();
    };
  return known;
}

Beliefs Oracle::bind() const {
  const auto watch = std::make_shared<Watch>();
  const auto observe = [this, watch](const Event& event, const Snapshot& after) {
    if (const auto* e = std::get_if<RunRequested>(&event.body); e && e->what.partner && !e->profile)
      watch->merged.insert(e->jobs.begin(), e->jobs.end());
    if (const auto* e = std::get_if<TransferSettled>(&event.body)) {
      const auto& transfers = after.jobs.at(e->job).transfers;
      if (std::ranges::all_of(transfers, [](const Transfer& t) { return t.settled.has_value(); }))
        watch->merged.erase(e->job);
    }
    const auto* e = std::get_if<JobFinished>(&event.body);
    if (by_family_ && e && e->outcome == Outcome::kSucceeded)
      watch->done.emplace(truth_.family(e->job), e->job);
  };
  return {
      .observe = observe,
      .forecast = [this, watch](const Snapshot& now) { return forecast(now, watch.get()); },
      .outlooks = [this](const Snapshot& now) { return outlooks(now); },
      .settle = [this, watch](const Snapshot& now) { return settle(now, watch->merged); },
      .probes_wanted = [](const Snapshot&, JobId) { return std::vector<Estimator::ProbeWish>{}; }};
}

}  // namespace ymir
