// What the estimator's outlooks and the stop-loss make of transfers together: how much later a task
// ends because of a pairing that did not help, on measured transfers and on random ones.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "ymir/base/rng.h"
#include "ymir/estimate/measured_transfers.h"
#include "ymir/estimate/outlook.h"
#include "ymir/schedule/stop_loss.h"

namespace ymir {
namespace {

using test::MeasuredTransfer;

// The step of the merged run at which the target goes back to its own checkpoint, if it does.
std::optional<std::int64_t> goes_back_at(const MeasuredTransfer& m) {
  bool kept = false;
  for (std::size_t shown = 1; shown <= m.with.size(); ++shown) {
    const std::int64_t step = m.interval * static_cast<std::int64_t>(shown);
    if (m.steps_with > 0 && step >= m.steps_with) break;  // the target is met
    Snapshot now = test::merged_after(m, shown);
    if (kept) now.jobs.at(JobId{1}).transfers[0].verdict = Transfer::Verdict::kKept;
    for (const Judgement& j : judge(now, outlooks(now, Knowledge()), {})) {
      if (j.split && j.restart) return step;
      EXPECT_FALSE(j.split) << m.name << ": " << j.why;  // a target that parts and goes on as it is
      kept = true;
    }
  }
  return std::nullopt;
}

// Steps by which the task ends later than alone. Its own way stopped after one interval; what it
// does after a merge starts at 0, and after a split where its own way stopped.
double steps_lost(const MeasuredTransfer& m) {
  if (const auto back = goes_back_at(m)) return static_cast<double>(*back);
  const std::int64_t end = m.steps_with > 0 ? m.steps_with : 20 * m.interval;
  return static_cast<double>(end + m.interval - m.steps_alone);
}

// A tenth of the time alone, or two epochs and the half one that may pass until the next
// evaluation.
double allowed(const MeasuredTransfer& m) {
  return std::max(kAllowedShare * static_cast<double>(m.steps_alone),
                  (2 * kAllowedEpochs + 1) * static_cast<double>(m.interval));
}

TEST(TransferLosses, NoMeasuredTransferHoldsItsTargetBackForLong) {
  for (const MeasuredTransfer* m :
       {&test::kDefinitionsAfterMovies, &test::kMeasuresAfterNews, &test::kMeasuresAfterMind,
        &test::kMeasuresAfterThings, &test::kScoresAfterTweets, &test::kScoresAfterOtherTweets,
        &test::kThingsAfterLivingThings, &test::kThingsAfterLiving, &test::kNewsAfterMovies,
        &test::kThingsAfterMind, &test::kTweetsAfterMovies})
    EXPECT_LE(steps_lost(*m), allowed(*m)) << m->name;
}

TEST(TransferLosses, WhatHelpsMuchIsNotTakenBack) {
  for (const MeasuredTransfer* m :
       {&test::kNewsAfterMovies, &test::kThingsAfterMind, &test::kTweetsAfterMovies,
        &test::kNounsAfterGeneralNouns, &test::kScoresAfterTweets})
    EXPECT_EQ(goes_back_at(*m), std::nullopt) << m->name;
}

// A random task and a random source: the pace is fast at first and slow at the end, or the same all
// the time, and the evaluations are noisy.
MeasuredTransfer random_transfer(Rng& rng) {
  MeasuredTransfer m{"random", 4, 0.85, 8, 0, 0, {}, {}};
  const double alone = std::exp(std::log(56.0) + 0.5 * rng.normal());
  const double speedup = std::exp(0.8 * rng.normal());
  const double fade = rng.uniform() < 0.5 ? 0 : 4;
  const double start = 0.75, goal = 0.15, floor = 0.11;
  const auto metric = [&](double way) {  // of the task alone at this share of its way
    const double half = std::sqrt((start - floor) / (goal - floor) - 1);
    const double x = way * half;
    return 1 - (floor + (start - floor) / (1 + x * x)) + 0.02 * rng.normal();
  };
  const auto met = [&](std::vector<double>& seen, auto way) -> std::int64_t {
    for (std::int64_t step = m.interval; step <= 20 * m.interval; step += m.interval) {
      seen.push_back(metric(way(static_cast<double>(step))));
      if (seen.back() >= m.target) return step;
    }
    return 0;
  };
  m.steps_alone = met(m.alone, [&](double step) { return step / alone; });
  m.steps_with = met(m.with, [&](double step) {
    const double x = step * speedup / alone;
    return x < 1 ? x * (1 + fade) / (1 + fade * x) : 1 + (x - 1) / (1 + fade);
  });
  return m;
}

TEST(TransferLosses, RandomSourcesSeldomCostMoreThanIsAllowedAndHelpOnTheWhole) {
  Rng rng(11);
  int harmful = 0, too_late = 0;
  double lost_by_harm = 0, unjudged = 0, gained = 0, possible = 0;
  for (int i = 0; i < 150; ++i) {
    const MeasuredTransfer m = random_transfer(rng);
    if (m.steps_alone == 0 || m.alone[0] >= m.target) continue;
    const double lost = steps_lost(m);
    const std::int64_t end = m.steps_with > 0 ? m.steps_with : 20 * m.interval;
    const auto without = static_cast<double>(end + m.interval - m.steps_alone);
    if (without > 0) {
      ++harmful;
      too_late += lost > allowed(m);
      lost_by_harm += lost;
      unjudged += without;
    } else {
      gained -= lost;
      possible -= without;
    }
  }

  EXPECT_GE(harmful, 40);
  EXPECT_LE(too_late, harmful / 5);
  EXPECT_LE(lost_by_harm, 0.6 * unjudged);
  EXPECT_GE(gained, 0.7 * possible);
}

}  // namespace
}  // namespace ymir
