#include "ymir/estimate/estimator.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "ymir/estimate/test_world.h"

namespace ymir {
namespace {

using test::TestWorld;
using test::Truth;

// Every number of a forecast, exactly.
std::string text_of(const Forecast& f) {
  std::string text;
  auto add = [&](double x) { text += fmt::format("{:a} ", x); };
  auto add_interval = [&](const Interval& x) { add(x.p10), add(x.p50), add(x.p90); };
  for (const Candidate& c : f.candidates) {
    text += fmt::format("\n{} {} {} {} ", to_string(c.what.mode), to_string(c.what.job),
                        c.what.partner ? to_string(*c.what.partner) : "-", c.what.gpus);
    add(c.what.strength), add(c.work_ratio), add(c.expected_saving), add(c.switch_cost.count());
    add_interval(c.transfer_weight), add_interval(c.card.speedup), add_interval(c.card.seconds);
    add(c.card.helps), add(c.card.similarity);
    for (const MemberForecast& m : c.members) add_interval(m.steps), add_interval(m.finish_in);
  }
  for (const TransferOutlook& o : f.outlooks) add(o.helps), add(o.expected), add(o.restart_saves);
  for (const Refused& r : f.refused) text += r.why;
  return text;
}

std::vector<Candidate> of_mode(const Forecast& forecast, Mode mode) {
  std::vector<Candidate> found;
  std::ranges::copy_if(forecast.candidates, std::back_inserter(found),
                       [&](const Candidate& c) { return c.what.mode == mode; });
  return found;
}

struct Outcomes {
  int helpful = 0, harmful = 0;                    // transfers that were started, by truth
  int admitted_helpful = 0, admitted_harmful = 0;  // of these, not as exploration
  int helpful_split = 0, harmful_kept = 0;
  double saved = 0;  // seconds against alone
  Outcomes& operator+=(const Outcomes& o) {
    helpful += o.helpful, harmful += o.harmful;
    admitted_helpful += o.admitted_helpful, admitted_harmful += o.admitted_harmful;
    helpful_split += o.helpful_split, harmful_kept += o.harmful_kept, saved += o.saved;
    return *this;
  }
};

// Twelve tasks of some families on one slot, shortest job first, profiled and probed before. A
// source of the own family makes a target 2.8 times as fast, one of another half as fast; probes
// say so with noise, or, shuffled, say nothing.
class Morning {
 public:
  Morning(std::uint64_t seed, int families, bool shuffled)
      : world_(seed, {.exploration_share = 0.3}), families_(families), shuffled_(shuffled) {
    for (int i = 0; i < 12; ++i) {
      Truth truth;
      truth.family = i % families;
      truth.steps = world_.rng().uniform(28, 75);
      truth.start = truth.family == 0 ? 0.5 : 0.75;
      truth.goal = truth.family == 0 ? 0.2 : 0.15;
      waiting_.push_back(world_.submit(truth));
      world_.profile(waiting_.back());
    }
  }

  Outcomes run() {
    while (!waiting_.empty()) {
      bring_probes();
      const Candidate chosen = choose();
      chosen.what.mode == Mode::kNormal ? run_alone(chosen) : run_transfer(chosen);
      std::erase(waiting_, chosen.what.job);
    }
    return outcomes_;
  }
  const TestWorld& world() const { return world_; }

 private:
  double speedup(JobId source, JobId target) const {
    return world_.truth(source).family == world_.truth(target).family ? 2.8 : 0.5;
  }
  void bring_probes() {
    for (const JobId target : waiting_) {
      for (const auto& wish : world_.estimator().probes_wanted(world_.now(), target)) {
        const bool good =
            shuffled_ ? world_.rng().chance(1.0 / families_) : speedup(wish.source, target) > 1;
        world_.probe(wish.source, target,
                     good ? world_.rng().uniform(0.08, 0.3) : world_.rng().uniform(-0.1, 0.04));
      }
    }
  }
  // As the scheduler's filters and its preference for short jobs and large TranWt.
  Candidate choose() const {
    const Candidate* best = nullptr;
    auto key = [](const Candidate& c) {
      return c.members[0].finish_in.p50 / std::max(1.0, c.transfer_weight.p50);
    };
    const Forecast forecast = world_.estimator().forecast(world_.now());
    for (const Candidate& c : forecast.candidates) {
      const bool pays = c.what.mode == Mode::kNormal || c.card.explores ||
                        (c.transfer_weight.p50 >= 1.1 && c.expected_saving > 0);
      if (pays && c.members.size() == 1 && (!best || key(c) < key(*best))) best = &c;
    }
    return *best;
  }
  void run_alone(const Candidate& chosen) {
    const RunId run = world_.begin(chosen.what, chosen.card);
    while (!world_.advance(run, chosen.what.job, 1)) {
    }
  }
  void run_transfer(const Candidate& chosen) {
    const JobId id = chosen.what.job, source = *chosen.what.partner;
    const bool helpful = speedup(source, id) > 1;
    const double begun = to_seconds(world_.now().now);
    ++(helpful ? outcomes_.helpful : outcomes_.harmful);
    if (!chosen.card.explores) {
      ++(helpful ? outcomes_.admitted_helpful : outcomes_.admitted_harmful);
    }
    RunId run = world_.begin(chosen.what, chosen.card);
    while (!world_.advance(run, id, world_.job(id).merged ? speedup(source, id) : 1)) {
      if (!world_.job(id).merge() || !is_bad(id)) continue;
      world_.split(run, id, source, true);
      run = world_.begin({.mode = Mode::kNormal, .job = id, .gpus = 1}, {});
    }
    const bool split = world_.job(id).transfers.back().verdict == Transfer::Verdict::kSplit;
    outcomes_.helpful_split += helpful && split;
    outcomes_.harmful_kept += !helpful && !split;
    outcomes_.saved +=
        (world_.truth(id).steps - 8) * TestWorld::kStep - (to_seconds(world_.now().now) - begun);
  }
  bool is_bad(JobId id) const {
    const Forecast forecast = world_.estimator().forecast(world_.now());
    const auto outlook = std::ranges::find(forecast.outlooks, id, &TransferOutlook::job);
    return outlook->helps < 0.1 || (outlook->epochs >= 2 && outlook->helps < 0.5) ||
           (outlook->helps < 0.35 && outlook->restart_saves > 0);
  }

  TestWorld world_;
  int families_;
  bool shuffled_;
  std::vector<JobId> waiting_{};
  Outcomes outcomes_{};
};

Outcomes mornings(int families, bool shuffled) {
  Outcomes sum;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) sum += Morning(seed, families, shuffled).run();
  return sum;
}

TEST(Estimator, LearnsWhichPairsHelpWhenProbesTell) {
  const Outcomes o = mornings(2, false);

  EXPECT_GE(o.admitted_helpful, 15);  // of 36 jobs, each with helpful sources after its first few
  EXPECT_LE(o.admitted_harmful, 1);
  EXPECT_LE(o.harmful, 3);
  EXPECT_EQ(o.helpful_split, 0);
  EXPECT_GT(o.saved, 0);
}

TEST(Estimator, AdmitsHardlyAnythingWhenProbesSayNothing) {
  const Outcomes o = mornings(3, true);

  EXPECT_GT(o.harmful, 2);  // it was tried, inside the budget
  EXPECT_LE(o.admitted_helpful + o.admitted_harmful, 2);
  EXPECT_EQ(o.harmful_kept, 0);
}

TEST(Estimator, SameEventsGiveTheSameForecast) {
  Morning morning(3, 2, false);
  morning.run();
  Estimator again = *Estimator::create({.exploration_share = 0.3});
  Snapshot state;

  for (const Event& event : morning.world().log()) {
    state.apply(event);
    again.observe(event, state);
  }

  EXPECT_EQ(text_of(again.forecast(state)),
            text_of(morning.world().estimator().forecast(morning.world().now())));
}

TEST(Estimator, OffersEveryActiveJobAloneProfiledOrNot) {
  TestWorld world(1);
  const JobId profiled = world.submit({}), fresh = world.submit({});
  world.profile(profiled);

  const Forecast forecast = world.estimator().forecast(world.now());

  ASSERT_EQ(forecast.candidates.size(), 2u);
  for (const Candidate& c : forecast.candidates) {
    EXPECT_EQ(c.what.mode, Mode::kNormal);
    ASSERT_EQ(c.members.size(), 1u);
    EXPECT_GT(c.members[0].finish_in.p10, 0);
    EXPECT_LE(c.members[0].finish_in.p10, c.members[0].finish_in.p50);
    EXPECT_LE(c.members[0].finish_in.p50, c.members[0].finish_in.p90);
  }
  EXPECT_EQ(forecast.candidates[0].card.source, "model");
  EXPECT_EQ(forecast.candidates[1].what.job, fresh);
  EXPECT_EQ(forecast.candidates[1].card.source, "prior");
}

TEST(Estimator, OffersNoTransferWithoutConsentBudgetOrTarget) {
  TestWorld world(1, {.exploration_share = 0.3});
  const JobId source = world.submit({.steps = 20});
  world.profile(source);
  const RunId run = world.begin({.mode = Mode::kNormal, .job = source, .gpus = 1}, {});
  while (!world.advance(run, source, 1)) {
  }
  const JobId unwilling = world.submit({}, 250, false);
  world.profile(unwilling);
  world.probe(source, unwilling, 0.25);

  const Forecast before = world.estimator().forecast(world.now());
  const JobId willing = world.submit({}, 250, true);
  world.profile(willing);
  world.probe(source, willing, 0.25);
  const Forecast too_early = world.estimator().forecast(world.now());

  EXPECT_TRUE(of_mode(before, Mode::kTemporal).empty());
  ASSERT_EQ(before.refused.size(), 1u);
  EXPECT_EQ(before.refused[0].job, unwilling);
  EXPECT_TRUE(of_mode(too_early, Mode::kTemporal).empty());  // 30 % of so little buys no trial
}

TEST(Estimator, TriesOnePromisingPairOfAKindWithinItsBudget) {
  TestWorld world(1, {.exploration_share = 0.5});
  const JobId source = world.submit({.steps = 60});
  world.profile(source);
  RunId run = world.begin({.mode = Mode::kNormal, .job = source, .gpus = 1}, {});
  while (!world.advance(run, source, 1)) {
  }
  std::vector<JobId> targets;
  for (int i = 0; i < 3; ++i) {
    targets.push_back(world.submit({.steps = 60}));
    world.profile(targets.back());
    world.probe(source, targets.back(), 0.25);
  }

  const std::vector<Candidate> offered =
      of_mode(world.estimator().forecast(world.now()), Mode::kTemporal);
  ASSERT_EQ(offered.size(), 1u);
  world.begin(offered[0].what, offered[0].card);
  const std::vector<Candidate> while_running =
      of_mode(world.estimator().forecast(world.now()), Mode::kTemporal);

  EXPECT_TRUE(offered[0].card.explores);
  EXPECT_GE(offered[0].transfer_weight.p50, offered[0].card.transfer_weight);
  ASSERT_EQ(while_running.size(), 1u);  // only that it goes on
  EXPECT_EQ(while_running[0].what, offered[0].what);
}

TEST(Estimator, WantsProbesOfAdaptersThatMayBeUsedAndOnlyOnce) {
  TestWorld world(1);
  const JobId source = world.submit({.steps = 20});
  world.profile(source);
  const JobId target = world.submit({});
  EXPECT_TRUE(world.estimator().probes_wanted(world.now(), target).empty());
  const RunId run = world.begin({.mode = Mode::kNormal, .job = source, .gpus = 1}, {});
  while (!world.advance(run, source, 1)) {
  }

  const auto wishes = world.estimator().probes_wanted(world.now(), target);
  world.probe(source, target, 0.1);
  const auto after = world.estimator().probes_wanted(world.now(), target);

  ASSERT_EQ(wishes.size(), 1u);
  EXPECT_EQ(wishes[0].source, source);
  EXPECT_EQ(wishes[0].strength, 0.5);
  EXPECT_TRUE(after.empty());
}

TEST(EstimatorOptions, NameFieldAndRule) {
  const auto bad = Estimator::create({.exploration_share = 1.5});

  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("exploration_share"), std::string::npos);
  EXPECT_FALSE(Estimator::create({.strengths = {0}}));
  EXPECT_FALSE(Estimator::create({.similarity = "magic"}));
}

}  // namespace
}  // namespace ymir
