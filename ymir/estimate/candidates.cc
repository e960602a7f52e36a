#include "ymir/estimate/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "ymir/estimate/outlook.h"
#include "ymir/estimate/similarity.h"
#include "ymir/estimate/weigh.h"

namespace ymir {
namespace {

// Seconds from the order to the first step, for a candidate that is not what runs now.
constexpr double kSmallest = 1e-3;  // seconds: a forecast is positive

Interval positive(Interval x) {
  x.p10 = std::max(x.p10, kSmallest);
  x.p50 = std::max(x.p50, x.p10);
  x.p90 = std::max(x.p90, x.p50);
  return x;
}

Draws constant(double value) {
  Draws draws{};
  draws.fill(value);
  return draws;
}

template <class F>
Draws each(F function) {
  Draws draws{};
  for (std::size_t i = 0; i < draws.size(); ++i) draws[i] = function(i);
  return draws;
}

// What is believed of one job, shared by all its candidates.
struct Subject {
  const JobView* job = nullptr;
  std::shared_ptr<const SoloBelief> alone{};  // of a job with a target
  Draws remaining{};                          // steps left as it stands (merged or not)
  Draws alone_total{};                        // steps from the beginning to the target, alone
  Draws alone_left{};                         // alone from its own checkpoint
  double done = 0;                            // steps on the present path
  double slowness = 0;                        // see slowness_of
  std::string class_name{};
  Source source = Source::kPrior;

  bool fresh() const { return !job->merged && !job->has_progress(); }
  double own_step() const {
    return job->own_checkpoint ? static_cast<double>(job->own_checkpoint->step) : 0;
  }
  double last_step() const {
    return static_cast<double>(std::max<std::int64_t>(job->facts.total_steps, 1));
  }
  // The last step when the target is met at `step`.
  double end_at(double step) const {
    return noticed_at(step, steps_between_evaluations(*job), last_step());
  }
  bool may_be_target() const {
    return alone && fresh() && job->active() && job->state != JobState::kProfiling;
  }
};

double steps_done(const JobView& job) {
  std::int64_t done = job.steps_done;
  if (!job.evaluations.empty()) done = std::max(done, job.evaluations.back().step);
  return static_cast<double>(done);
}

Subject subject_of(const Snapshot& now, const JobView& job, const Knowledge& knowledge,
                   const KnownLinks& known) {
  Subject s;
  s.job = &job;
  s.done = steps_done(job);
  s.class_name = class_key(job);
  auto left = [&](double total, double done) { return std::max(1.0, s.end_at(total) - done); };
  if (!has_target(job.spec)) {  // ends after its epochs, whatever it has learnt
    s.source = Source::kExact;
    s.alone_total = constant(s.last_step());
    s.remaining = s.alone_left = constant(left(s.last_step(), s.done));
    return s;
  }
  s.alone = knowledge.alone(job);
  s.slowness = slowness_of(job, *s.alone, knowledge.classes());
  s.source = s.alone->points() > 0 ? Source::kModel : Source::kPrior;
  if (known.steps) {
    const KnownLinks::Steps steps = known.steps(now, job);
    s.source = Source::kExact;
    s.alone_total = constant(std::min(steps.alone, s.last_step()));
    s.remaining = constant(left(steps.here, s.done));
    s.alone_left = constant(left(s.alone_total[0], s.own_step()));
    return s;
  }
  const Draws& u = uniform(Dimension::kCurve);
  s.alone_total = each(
      [&](std::size_t i) { return std::min(s.alone->at(u[i]).steps_to_target, s.last_step()); });
  if (job.merged && !job.transfers.empty()) {
    const Draws with = merged_belief(*s.alone, job, job.transfers.back()).steps();
    s.remaining = each([&](std::size_t i) { return left(with[i], s.done); });
    s.alone_left = each([&](std::size_t i) { return left(s.alone_total[i], s.own_step()); });
  } else {
    s.remaining = each([&](std::size_t i) { return left(s.alone_total[i], s.done); });
    s.alone_left = s.remaining;
  }
  return s;
}

class Forecaster {
 public:
  Forecaster(const Snapshot& now, const Knowledge& knowledge, const EstimatorOptions& options,
             const KnownLinks& known, Forecast& forecast)
      : now_(now),
        knowledge_(knowledge),
        options_(options),
        known_(known),
        forecast_(forecast),
        overhead_(draw(knowledge.overhead(), Dimension::kStepTime)),
        switch_(draw(knowledge.switch_cost(), Dimension::kSwitch)) {
    for (const auto& [id, place] : now.places) {
      if (hardware_.empty()) hardware_ = place.hardware;
    }
    for (const JobView* job : now.active_jobs())
      subjects_.emplace(job->id, subject_of(now, *job, knowledge, known));
  }

  void add() {
    for (const auto& [id, subject] : subjects_) {
      for (const int gpus : offered_sizes(subject.job->spec)) add_normal(subject, gpus);
    }
    add_running();
    if (!options_.transfer) return;
    for (const auto& [id, subject] : subjects_) {
      if (subject.may_be_target()) add_sources(subject);
    }
    add_explorations();
    add_spatial();
  }

 private:
  // A temporal pair under consideration.
  struct Pair {
    const Subject* target = nullptr;
    const JobView* source = nullptr;
    const Subject* waiting_source = nullptr;  // null: it has finished
    GainInput input{};
    GainBelief belief{};
  };

  // --- times ---

  Link tau_link(const Subject& s, int gpus, bool joint) const {
    const StepKey* measured = knowledge_.step_times().key_of(s.job->id);
    StepKey key = measured ? *measured : step_key(s.job->spec, s.job->facts, hardware_, gpus);
    key.gpus = gpus;
    key.joint = joint;
    return knowledge_.step_times().predict(key);
  }
  // Wall seconds a step, evaluation included.
  Draws tau(const Subject& s, int gpus, const Subject* mate = nullptr) const {
    if (known_.step_seconds)
      return constant(known_.step_seconds(
          s.job->id, gpus, mate ? std::optional(mate->job->id) : std::optional<JobId>{}));
    Draws step = draw(tau_link(s, gpus, mate != nullptr).value, Dimension::kStepTime);
    for (std::size_t i = 0; i < step.size(); ++i) step[i] *= overhead_[i];
    return step;
  }
  // The run in which the assignment goes on unchanged costs no start.
  bool goes_on(const Assignment& what) const {
    const JobView& job = now_.jobs.at(what.job);
    const auto run = now_.runs.find(job.run);
    return run != now_.runs.end() && !run->second.profile && !run->second.stopping &&
           run->second.what.mode == what.mode && run->second.what.partner == what.partner &&
           run->second.what.gpus == what.gpus;
  }
  Draws start_of(const Assignment& what) const { return goes_on(what) ? constant(0) : switch_; }

  // --- making candidates ---

  MemberForecast member(JobId job, const Draws& steps, const Draws& seconds) const {
    return {job, positive(interval_of(steps)), positive(interval_of(seconds))};
  }
  // Of the weakest link.
  Source source_of(const Subject& s, int gpus, bool joint) const {
    return known_.step_seconds ? s.source : std::max(s.source, tau_link(s, gpus, joint).source);
  }

  void add_normal(const Subject& s, int gpus) {
    Candidate c;
    c.what = {.mode = Mode::kNormal, .job = s.job->id, .gpus = gpus};
    const Draws start = start_of(c.what), step = tau(s, gpus);
    const Draws seconds = each([&](std::size_t i) { return start[i] + s.remaining[i] * step[i]; });
    c.members = {member(s.job->id, s.remaining, seconds)};
    c.switch_cost = Seconds(goes_on(c.what) ? 0 : knowledge_.switch_cost().p50);
    c.card.solo_seconds = c.card.seconds = c.members[0].finish_in;
    c.card.source = to_string(source_of(s, gpus, false));
    forecast_.candidates.push_back(std::move(c));
  }

  // Pairs that run now, whatever is believed of them: the stop-loss ends them, not the forecast.
  void add_running() {
    for (const auto& [id, run] : now_.runs) {
      if (run.profile || run.what.mode == Mode::kNormal || !run.what.partner) continue;
      const auto job = subjects_.find(run.what.job), partner = subjects_.find(*run.what.partner);
      const auto trains = [&](JobId member) { return std::ranges::count(run.jobs, member) > 0; };
      if (job == subjects_.end() || !trains(run.what.job)) continue;
      if (run.what.mode == Mode::kTemporal) {
        for (const int gpus : offered_sizes(job->second.job->spec)) {
          add_merged(job->second, run.what, gpus);
        }
      } else if (partner != subjects_.end() && trains(*run.what.partner)) {
        add_joint(job->second, partner->second, run.what.gpus, job->second.remaining,
                  partner->second.remaining, running_card(job->second));
      }
    }
  }

  Card running_card(const Subject& s) const {
    const Transfer& transfer = s.job->transfers.back();
    Card card = transfer.card;
    card.explores = false;  // its cost is in the budget already
    if (s.alone) {
      const MergedBelief belief = merged_belief(*s.alone, *s.job, transfer);
      card.speedup = belief.speedup();
      card.helps = belief.helps(s.done, s.own_step());
    }
    return card;
  }

  void add_merged(const Subject& s, Assignment what, int gpus) {
    what.gpus = gpus;
    Candidate c;
    c.what = what;
    const Draws start = start_of(what), step = tau(s, gpus);
    const Draws with = each([&](std::size_t i) { return start[i] + s.remaining[i] * step[i]; });
    const Draws alone = each([&](std::size_t i) { return switch_[i] + s.alone_left[i] * step[i]; });
    c.card = running_card(s);
    c.members = {member(s.job->id, s.remaining, with)};
    c.switch_cost = Seconds(goes_on(what) ? 0 : knowledge_.switch_cost().p50);
    finish(c, alone, with, each([&](std::size_t i) {
             return finished_source_weight(alone[i], std::max(with[i], kSmallest));
           }));
    c.expected_saving = mean_of(alone) - mean_of(with);
    c.card.source = to_string(source_of(s, gpus, false));
    forecast_.candidates.push_back(std::move(c));
  }

  // The parts that every pair's candidate has.
  void finish(Candidate& c, const Draws& alone, const Draws& with, const Draws& weight) const {
    c.transfer_weight = positive(interval_of(weight));
    c.work_ratio = mean_of(alone) / std::max(mean_of(with), kSmallest);
    c.card.solo_seconds = positive(interval_of(alone));
    c.card.seconds = positive(interval_of(with));
    c.card.transfer_weight = c.transfer_weight.p50;
  }

  // --- temporal ---

  void refuse(const Pair& pair, std::string why) {
    forecast_.refused.push_back({pair.target->job->id, pair.source->id, std::move(why)});
  }

  // Jobs of which the similarity to the target is known, or may be.
  std::set<JobId> comparable(const JobView& target) const {
    std::set<JobId> ids;
    if (options_.similarity == "probe" && !known_.similarity && !known_.speedup) {
      for (const Probe& probe : target.probes) ids.insert(probe.source);
    } else {
      for (const auto& [id, job] : now_.jobs) ids.insert(id);
    }
    ids.erase(target.id);
    return ids;
  }

  void add_sources(const Subject& target) {
    for (const JobId id : comparable(*target.job)) {
      const auto found = now_.jobs.find(id);
      if (found == now_.jobs.end() || found->second.adapter().empty()) continue;
      const JobView& source = found->second;
      const bool done = source.state == JobState::kSucceeded;
      if (!done && !source.active()) continue;
      const auto waiting = subjects_.find(id);
      if (!done && (waiting == subjects_.end() || source.state == JobState::kProfiling)) continue;
      Pair pair{&target, &source, done ? nullptr : &waiting->second};
      if (const std::string why = cannot_share(source, *target.job, Mode::kTemporal);
          !why.empty()) {
        continue;  // no estimate is missing: they may not
      }
      if (!estimate(pair)) continue;
      consider(pair);
    }
  }

  GainBelief certain(JobId source, JobId target, Mode mode) const {
    constexpr std::int64_t kEnough = 1000;  // rows: nobody doubts it
    return {
        .mean = std::log(known_.speedup(source, target, mode)), .deviation = 1e-6, .rows = kEnough};
  }
  Result<double> similarity_of(const JobView& source, const JobView& target,
                               double strength) const {
    if (known_.similarity) return known_.similarity(source.id, target.id);
    return similarity(options_.similarity, evidence_of(source), evidence_of(target), strength);
  }

  // The gain at the best strength: the default until rows at several strengths can tell.
  bool estimate(Pair& pair) {
    if (known_.speedup) {
      pair.belief = certain(pair.source->id, pair.target->job->id, Mode::kTemporal);
      pair.input = gain_input(*pair.source, *pair.target->job, pair.target->slowness, 0,
                              options_.default_strength);
      return true;
    }
    const std::string key = gain_key(pair.target->class_name, Mode::kTemporal);
    const GainModel& model = knowledge_.gains(Mode::kTemporal).model(key);
    bool found = false;
    for (const double strength : strengths_worth_trying(key)) {
      const Result<double> s = similarity_of(*pair.source, *pair.target->job, strength);
      if (!s) continue;
      const GainInput input =
          gain_input(*pair.source, *pair.target->job, pair.target->slowness, *s, strength);
      const GainBelief belief = model.predict(input);
      if (found && belief.mean <= pair.belief.mean) continue;
      pair.input = input;
      pair.belief = belief;
      found = true;
    }
    return found;
  }

  std::vector<double> strengths_worth_trying(const std::string& key) const {
    constexpr std::size_t kRowsEach = 3;
    std::vector<double> result{options_.default_strength};
    const std::vector<GainRow>& rows = knowledge_.gains(Mode::kTemporal).rows(key);
    for (const double strength : options_.strengths) {
      const auto seen = static_cast<std::size_t>(std::ranges::count_if(
          rows, [&](const GainRow& row) { return row.input.strength == strength; }));
      if (strength != options_.default_strength && seen >= kRowsEach) result.push_back(strength);
    }
    return result;
  }

  void consider(const Pair& pair) {
    const double similarity = pair.input.similarity;
    // Progress that is dropped and limits on steps only lower the chance: no need to look closer.
    const bool hopeless =
        pair.belief.rows == 0 || pair.belief.helps() < options_.admit_above - 0.05;
    bool any = false;
    for (const int gpus : offered_sizes(pair.target->job->spec)) {
      if (hopeless && !options_.offer_every) break;
      Candidate c = temporal(pair, gpus, false);
      const bool admitted =
          !hopeless && c.card.helps >= options_.admit_above && c.expected_saving > 0;
      if (!admitted && !options_.offer_every) continue;
      forecast_.candidates.push_back(std::move(c));
      any = true;
    }
    if (any) return;
    const bool worth_trying = similarity >= options_.explore_similarity &&
                              pair.belief.helps() >= options_.explore_above &&
                              pair.target->job->spec.sharing.explore && !pair.waiting_source;
    if (worth_trying) {
      to_explore_.push_back(pair);
    } else {
      refuse(pair, fmt::format("gain: P(helps) {:.2f} with {} rows, {} {:.3f}", pair.belief.helps(),
                               pair.belief.rows, options_.similarity, similarity));
    }
  }

  Candidate temporal(const Pair& pair, int gpus, bool explores) const {
    const Subject& target = *pair.target;
    Candidate c;
    c.what = {.mode = Mode::kTemporal,
              .job = target.job->id,
              .partner = pair.source->id,
              .gpus = gpus,
              .strength = pair.input.strength};
    const Draws step = tau(target, gpus);
    const Draws believed = speedups(pair.belief, 0);
    const Draws shown = explores ? speedups(pair.belief, 1 - pair.belief.helps()) : believed;
    auto after = [&](const Draws& rho) {
      return each([&](std::size_t i) {
        return switch_[i] + target.end_at(target.alone_total[i] / rho[i]) * step[i];
      });
    };
    const Draws alone =
        each([&](std::size_t i) { return switch_[i] + target.alone_left[i] * step[i]; });
    const Draws with = after(believed), offered = after(shown);
    const Draws steps =
        each([&](std::size_t i) { return target.end_at(target.alone_total[i] / shown[i]); });
    const Draws source = source_seconds(pair, gpus);
    auto weight = [&](const Draws& target_after) {
      return each([&](std::size_t i) {
        return pair.waiting_source ? temporal_weight(source[i], alone[i], target_after[i])
                                   : finished_source_weight(alone[i], target_after[i]);
      });
    };
    const double judged = judged_after(target, step);
    finish(c, alone, with, weight(with));
    c.transfer_weight = positive(interval_of(weight(offered)));
    c.members = {
        member(target.job->id, steps, each([&](std::size_t i) { return source[i] + offered[i]; }))};
    if (pair.waiting_source) {
      c.members.push_back(member(pair.source->id, pair.waiting_source->remaining, source));
    }
    c.expected_saving = mean_of(each([&](std::size_t i) {
      return saving(alone[i], with[i], judged, knowledge_.detection_rate());
    }));
    c.switch_cost = Seconds(knowledge_.switch_cost().p50);
    c.card.speedup = pair.belief.speedup();
    c.card.helps = mean_of(each([&](std::size_t i) { return with[i] < alone[i] ? 1.0 : 0.0; }));
    c.card.similarity = pair.input.similarity;
    c.card.similarity_name = options_.similarity;
    c.card.source = to_string(source_of(target, gpus, false));
    c.card.explores = explores;
    return c;
  }

  // Draws of rho above the given share of the belief.
  static Draws speedups(const GainBelief& belief, double above) {
    const Draws& u = uniform(Dimension::kGain);
    return each([&](std::size_t i) {
      const double z = above > 0
                           ? normal_quantile(std::clamp(above + (1 - above) * u[i], 0.02, 0.98))
                           : normal(Dimension::kGain)[i];
      return std::exp(belief.mean + belief.deviation * z);
    });
  }

  Draws source_seconds(const Pair& pair, int gpus) const {
    if (!pair.waiting_source) return constant(0);
    const Assignment what{.mode = Mode::kNormal, .job = pair.source->id, .gpus = gpus};
    const Draws start = start_of(what), step = tau(*pair.waiting_source, gpus);
    return each(
        [&](std::size_t i) { return start[i] + pair.waiting_source->remaining[i] * step[i]; });
  }

  // Seconds until the stop-loss has judged at the latest: two epochs and the way back.
  double judged_after(const Subject& s, const Draws& step) const {
    return 2 * static_cast<double>(s.job->facts.steps_per_epoch) * mean_of(step) +
           2 * knowledge_.switch_cost().p50;
  }

  // --- exploration ---

  // Pairs of one backbone with about the same similarity look alike to the model: trying one tells
  // of all.
  static std::string family(const std::string& backbone, double similarity) {
    return fmt::format("{} {}", static_cast<int>(std::floor(similarity / 0.1)), backbone);
  }
  std::set<std::string> families_running() const {
    std::set<std::string> result;
    for (const auto& [id, run] : now_.runs) {
      for (const JobId member : run.jobs) {
        const JobView& job = now_.jobs.at(member);
        if (job.transfers.empty() || job.transfers.back().run != id) continue;
        const Transfer& t = job.transfers.back();
        if (!t.card.explores || t.verdict != Transfer::Verdict::kOpen) continue;
        result.insert(family(job.facts.backbone, t.card.similarity));
      }
    }
    return result;
  }

  // The most promising first, one a family and one a target, while the budget lasts.
  void add_explorations() {
    if (to_explore_.empty()) return;  // the budget is a sum over all jobs that ever were
    std::ranges::stable_sort(to_explore_, [](const Pair& a, const Pair& b) {
      return a.belief.helps() > b.belief.helps();
    });
    std::set<std::string> families = families_running();
    std::set<JobId> targets;
    double spent = knowledge_.explored(now_);
    const double budget = options_.exploration_share * slot_seconds(now_);
    for (const Pair& pair : to_explore_) {
      const int gpus = offered_sizes(pair.target->job->spec).front();
      const Draws step = tau(*pair.target, gpus);
      const double cost = judged_after(*pair.target, step) * gpus;
      const double delay = steps_between_evaluations(*pair.target->job) * mean_of(step) +
                           2 * knowledge_.switch_cost().p50;
      const double alone =
          mean_of(each([&](std::size_t i) { return pair.target->alone_left[i] * step[i]; }));
      if (delay > options_.explore_delay * alone) {
        refuse(pair, "exploration: the target would be done before it could be judged");
      } else if (spent + cost > budget) {
        refuse(pair,
               fmt::format("exploration: budget {:.1f}s of {:.1f}s is spent, this costs {:.1f}s",
                           spent, budget, cost));
      } else if (families.contains(
                     family(pair.target->job->facts.backbone, pair.input.similarity)) ||
                 targets.contains(pair.target->job->id)) {
        refuse(pair, "exploration: a pair like this is being tried");
      } else if (Candidate c = temporal(pair, gpus, true); c.transfer_weight.p50 <= 1) {
        refuse(pair, "exploration: not even a source that helps would pay");
      } else {
        spent += cost;
        families.insert(family(pair.target->job->facts.backbone, pair.input.similarity));
        targets.insert(pair.target->job->id);
        forecast_.candidates.push_back(std::move(c));
      }
    }
  }

  // --- spatial ---

  void add_spatial() {
    for (auto a = subjects_.begin(); a != subjects_.end(); ++a) {
      if (!may_join(a->second)) continue;
      for (auto b = std::next(a); b != subjects_.end(); ++b) {
        if (may_join(b->second)) consider_joint(a->second, b->second);
      }
    }
  }
  static bool may_join(const Subject& s) { return s.may_be_target() && !s.job->run; }

  GainBelief joint_belief(const Subject& source, const Subject& target) const {
    if (known_.speedup) return certain(source.job->id, target.job->id, Mode::kSpatial);
    const std::string key = gain_key(target.class_name, Mode::kSpatial);
    // Spatial: the mean of both directions, nothing where a direction is not known.
    double sum = 0;
    int known = 0;
    for (const auto& [from, to] : {std::pair{&source, &target}, std::pair{&target, &source}}) {
      const Result<double> s = similarity_of(*from->job, *to->job, 1);
      if (!s) continue;
      sum += *s;
      ++known;
    }
    const GainInput input =
        gain_input(*source.job, *target.job, target.slowness, known ? sum / known : 0, 1);
    return knowledge_.gains(Mode::kSpatial).model(key).predict(input);
  }

  void consider_joint(const Subject& a, const Subject& b) {
    const std::string key = gain_key(a.class_name, Mode::kSpatial);
    const bool nothing_known =
        knowledge_.gains(Mode::kSpatial).rows(key).empty() && !known_.speedup;
    if (nothing_known && !options_.offer_every) return;
    if (!cannot_share(*a.job, *b.job, Mode::kSpatial).empty()) return;
    if (!cannot_share(*b.job, *a.job, Mode::kSpatial).empty()) return;
    const GainBelief for_a = joint_belief(b, a), for_b = joint_belief(a, b);
    // A joint step costs about two: without a large gain it cannot pay, and without rows a large
    // gain is not believed.
    const bool hopeless = for_a.rows == 0 || for_a.mean + for_b.mean < 2 * std::log(1.2);
    if (hopeless && !options_.offer_every) return;
    auto joint_steps = [&](const Subject& s, const GainBelief& belief) {
      const Draws rho = speedups(belief, 0);
      return each([&](std::size_t i) { return s.end_at(s.alone_total[i] / rho[i]); });
    };
    Card card;
    card.speedup = for_a.speedup();
    card.similarity_name = options_.similarity;
    for (const int gpus : offered_sizes(a.job->spec)) {
      add_joint(a, b, gpus, joint_steps(a, for_a), joint_steps(b, for_b), card);
    }
  }

  // `a_steps`, `b_steps`: joint steps until each meets its target.
  void add_joint(const Subject& a, const Subject& b, int gpus, const Draws& a_steps,
                 const Draws& b_steps, Card card) {
    const bool in_order = a.job->id < b.job->id;
    Candidate c;
    c.what = {.mode = Mode::kSpatial,
              .job = in_order ? a.job->id : b.job->id,
              .partner = in_order ? b.job->id : a.job->id,
              .gpus = gpus};
    c.card = std::move(card);
    const bool runs = goes_on(c.what);
    const Draws start = start_of(c.what);
    const Draws a_alone = tau(a, gpus), b_alone = tau(b, gpus);
    const Draws a_joint = tau(a, gpus, &b), b_joint = tau(b, gpus, &a);
    Draws a_ends{}, b_ends{}, alone_work{}, joint_work{}, weight{}, saved{};
    for (std::size_t i = 0; i < a_ends.size(); ++i) {
      const bool a_first = a_steps[i] <= b_steps[i];
      const double joint = (a_joint[i] + b_joint[i]) / 2;
      const SpatialTimes t =
          spatial_times(a_first ? a_steps[i] : b_steps[i], a_first ? b_steps[i] : a_steps[i], joint,
                        a_first ? b_alone[i] : a_alone[i], start[i], switch_[i]);
      a_ends[i] = a_first ? t.first : t.second;
      b_ends[i] = a_first ? t.second : t.first;
      const double one = switch_[i] + a.alone_left[i] * a_alone[i];
      const double two = switch_[i] + b.alone_left[i] * b_alone[i];
      alone_work[i] = one + two;
      joint_work[i] = std::max(a_ends[i], b_ends[i]);
      weight[i] = spatial_weight(one, two, a_ends[i], b_ends[i]);
      saved[i] =
          saving(alone_sum(one, two), a_ends[i] + b_ends[i],
                 judged_after(a, a_joint) + judged_after(b, b_joint), knowledge_.detection_rate());
    }
    finish(c, alone_work, joint_work, weight);
    c.members = {member(a.job->id, a_steps, a_ends), member(b.job->id, b_steps, b_ends)};
    if (!in_order) std::swap(c.members[0], c.members[1]);
    c.expected_saving = mean_of(saved);
    c.switch_cost = Seconds(runs ? 0 : knowledge_.switch_cost().p50);
    if (!runs) {
      c.card.helps = mean_of(each([&](std::size_t i) { return weight[i] > 1 ? 1.0 : 0.0; }));
      const bool pays = c.card.helps >= options_.admit_above && c.expected_saving > 0;
      if (!pays && !options_.offer_every) return;
    }
    c.card.source = to_string(std::max(source_of(a, gpus, true), source_of(b, gpus, true)));
    forecast_.candidates.push_back(std::move(c));
  }

  const Snapshot& now_;
  const Knowledge& knowledge_;
  const EstimatorOptions& options_;
  const KnownLinks& known_;
  Forecast& forecast_;
  Draws overhead_, switch_;
  std::string hardware_{};
  std::map<JobId, Subject> subjects_{};
  std::vector<Pair> to_explore_{};
};

}  // namespace

std::vector<int> offered_sizes(const JobSpec& spec) {
  if (!spec.sizes.empty()) return spec.sizes;
  const int least = std::max(1, spec.min_gpus), most = std::max(least, spec.max_gpus);
  std::set<int> sizes{least, most};
  for (int size = 1; size <= most; size *= 2) {
    if (size >= least) sizes.insert(size);
  }
  return {sizes.begin(), sizes.end()};
}

namespace {

// By name; the common case without making any.
bool same_shape(const MethodSpec& a, const MethodSpec& b) {
  const auto plain = [](const MethodSpec& m) {
    return m.kind == "lora" && m.rank_pattern.empty() && !m.rank_stabilised && !m.magnitude;
  };
  if (plain(a) && plain(b) && a.rank == b.rank && a.targets == b.targets) return true;
  return method_name(a) == method_name(b);
}

}  // namespace

std::string cannot_share(const JobView& source, const JobView& target, Mode mode) {
  const SharingSpec &give = source.spec.sharing, &take = target.spec.sharing;
  const bool temporal = mode == Mode::kTemporal;
  if (source.facts.backbone.empty() || source.facts.backbone != target.facts.backbone) {
    return "other backbone";
  }
  if (!same_shape(source.spec.method, target.spec.method)) return "other adapter shape";
  if (!give.allow || !take.allow || !give.give || !take.take) return "no consent";
  if (temporal ? !give.temporal || !take.temporal : !give.spatial || !take.spatial) {
    return "no consent to this mode";
  }
  if (give.trust_domain != take.trust_domain) return "other trust domain";
  if (target.barred.contains(source.id) || source.barred.contains(target.id)) {
    return "split from each other before";
  }
  if (!source.facts.data_hash.empty() && source.facts.data_hash == target.facts.data_hash) {
    return "same data";
  }
  return {};
}

void add_candidates(const Snapshot& now, const Knowledge& knowledge,
                    const EstimatorOptions& options, const KnownLinks& known, Forecast& forecast) {
  Forecaster(now, knowledge, options, known, forecast).add();
}

}  // namespace ymir
