// The pure rules of training: learning rate, metrics, loss, stop rules, progress as JSON, AdamW.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "ymir/tune/model/kernels.h"
#include "ymir/tune/trainer/loss.h"
#include "ymir/tune/trainer/lr_schedule.h"
#include "ymir/tune/trainer/metrics.h"
#include "ymir/tune/trainer/progress.h"

namespace ymir {
namespace {

TEST(LrSchedule, IsTheClosedFormOfTheStep) {
  TrainSpec train;
  train.lr = 0.01;
  train.warmup = 0.1;
  const LrSchedule linear = *make_schedule(train, 100);
  train.schedule = "cosine";
  const LrSchedule cosine = *make_schedule(train, 100);

  EXPECT_EQ(linear.at(0), 0);
  EXPECT_DOUBLE_EQ(linear.at(5), 0.005);
  EXPECT_DOUBLE_EQ(linear.at(10), 0.01);
  EXPECT_DOUBLE_EQ(linear.at(55), 0.005);
  EXPECT_EQ(linear.at(100), 0);
  EXPECT_DOUBLE_EQ(cosine.at(55), 0.005);
  EXPECT_NEAR(cosine.at(100), 0, 1e-12);
}

TEST(LrSchedule, AnUnknownNameIsRefused) {
  TrainSpec train;
  train.schedule = "liner";

  EXPECT_FALSE(make_schedule(train, 10));
}

Outcomes classified(const std::vector<std::int32_t>& actual,
                    const std::vector<std::int32_t>& predicted, int outputs) {
  Outcomes outcomes;
  outcomes.outputs = outputs;
  outcomes.classes = actual;
  for (const std::int32_t label : predicted)
    for (int c = 0; c < outputs; ++c) outcomes.scores.push_back(c == label ? 1.0f : 0.0f);
  return outcomes;
}

// Expected values: scikit-learn 1.9.1, SciPy 1.17.1.
TEST(Metrics, OfClassesEqualScikitLearn) {
  const auto two =
      compute_metrics(classified({0, 1, 1, 0, 1, 0, 0, 1, 1}, {0, 1, 0, 0, 1, 1, 0, 1, 1}, 2));
  const auto three = compute_metrics(classified({0, 1, 2, 2, 1, 0, 1, 2, 0, 0, 1, 2, 2},
                                                {0, 2, 2, 1, 1, 0, 0, 2, 0, 1, 1, 2, 2}, 3));

  EXPECT_NEAR(two.at("accuracy"), 0.7777777777777778, 1e-12);
  EXPECT_NEAR(two.at("f1"), 0.8, 1e-12);
  EXPECT_NEAR(two.at("f1_macro"), 0.775, 1e-12);
  EXPECT_NEAR(two.at("mcc"), 0.55, 1e-12);
  EXPECT_NEAR(three.at("accuracy"), 0.6923076923076923, 1e-12);
  EXPECT_NEAR(three.at("f1"), 0.6833333333333332, 1e-12);
  EXPECT_NEAR(three.at("mcc"), 0.5357142857142857, 1e-12);
}

TEST(Metrics, OfOutcomesThatAreNotFiniteThereAreNone) {
  Outcomes one_score = classified({0, 0, 1}, {0, 0, 1}, 2);
  one_score.scores[3] = std::numeric_limits<float>::quiet_NaN();
  Outcomes loss = classified({0, 0, 1}, {0, 0, 1}, 2);
  loss.loss_sum = std::numeric_limits<double>::infinity();

  EXPECT_THAT(compute_metrics(one_score), testing::IsEmpty());
  EXPECT_THAT(compute_metrics(loss), testing::IsEmpty());
}

TEST(Metrics, WithOneClassOnlyMccIsZero) {
  const auto metrics = compute_metrics(classified({1, 1, 1, 1}, {1, 1, 0, 1}, 2));

  EXPECT_EQ(metrics.at("mcc"), 0);
  EXPECT_NEAR(metrics.at("f1"), 0.8571428571428571, 1e-12);
  EXPECT_NEAR(metrics.at("f1_macro"), 0.42857142857142855, 1e-12);
}

TEST(Metrics, OfValuesEqualScipyAndTiesShareTheirRank) {
  Outcomes outcomes;
  outcomes.kind = TaskKind::kRegress;
  outcomes.outputs = 1;
  outcomes.scores = {0.5f, 2.25f, -1, 3.5f, 3.5f, 0, 1.25f};
  outcomes.values = {1, 2, -0.5f, 4, 3, 0.25f, 1};

  const auto metrics = compute_metrics(outcomes);

  EXPECT_NEAR(metrics.at("pearson"), 0.9711985351509244, 1e-12);
  EXPECT_NEAR(metrics.at("spearman"), 0.9818181818181818, 1e-12);
  EXPECT_NEAR(metrics.at("mse"), 0.16964285714285715, 1e-12);
}

TEST(Metrics, AnUndefinedCorrelationIsAbsent) {
  Outcomes outcomes;
  outcomes.kind = TaskKind::kRegress;
  outcomes.outputs = 1;
  outcomes.scores = {2, 2, 2};
  outcomes.values = {1, 2, 3};

  const auto metrics = compute_metrics(outcomes);

  EXPECT_FALSE(metrics.contains("pearson"));
  EXPECT_FALSE(metrics.contains("spearman"));
  EXPECT_TRUE(metrics.contains("mse"));
}

TEST(Loss, GradientIsTheDerivativeOfTheMean) {
  const std::vector<std::int32_t> classes = {2, 0};
  const Targets targets{TaskKind::kClassify, 3, classes, {}};
  std::vector<float> logits = {0.5f, -1, 2, 1, 1, -0.25f}, gradient(6);
  loss_of(targets, logits, 2, gradient);

  for (std::size_t i = 0; i < 6; ++i) {
    std::vector<float> up = logits, down = logits;
    up[i] += 1e-2f;
    down[i] -= 1e-2f;
    const double slope = (loss_of(targets, up, 2, {}) - loss_of(targets, down, 2, {})) / 2 / 2e-2;
    EXPECT_NEAR(gradient[i], slope, 1e-4);
  }
}

// torch.optim.AdamW 2.15.0, lr 1e-2, the same gradients, 1,000 steps.
TEST(AdamW, EqualsTorchAfterAThousandSteps) {
  const std::vector<std::pair<float, std::vector<float>>> cases = {
      {0.0f, {0.09674652f, 0.04082129f, 0.09695402f, -0.05419262f, -0.63035983f}},
      {0.05f, {0.09659663f, 0.04607194f, 0.05085902f, -0.06283452f, -0.41419184f}}};
  for (const auto& [decay, expected] : cases) {
    std::vector<float> p = {0.5f, -1.25f, 2.0f, 0.01f, -3.0f}, m(5), v(5), g(5);
    for (int t = 0; t < 1000; ++t) {
      for (std::size_t k = 0; k < 5; ++k) {
        const auto n = static_cast<float>(k);
        g[k] = std::cos(n * 0.7f + 0.1f * static_cast<float>(t)) * (1 + n) * 0.3f + 0.2f * p[k];
      }
      kernels::AdamW options;
      options.lr = 1e-2f;
      options.decay = decay;
      options.correction1 = static_cast<float>(1 - std::pow(0.9, t + 1));
      options.correction2 = static_cast<float>(1 - std::pow(0.999, t + 1));
      kernels::adamw(options, g.data(), 5, p.data(), m.data(), v.data());
    }
    for (std::size_t k = 0; k < 5; ++k) EXPECT_NEAR(p[k], expected[k], 2e-5) << decay;
  }
}

Evaluation scored(std::int64_t step, double accuracy) {
  Evaluation evaluation;
  evaluation.step = step;
  evaluation.metrics["accuracy"] = accuracy;
  return evaluation;
}

TEST(StopRules, TheTargetEndsAJobAndPatienceCountsEvaluationsWithoutABest) {
  JobSpec spec;
  spec.target = {"accuracy", 0.9};
  spec.stop.patience = 2;
  Progress reached, impatient;

  const bool first = note_evaluation(impatient, spec, scored(10, 0.7), 100);
  const bool second = note_evaluation(impatient, spec, scored(20, 0.6), 100);
  const std::string before = impatient.ended;
  note_evaluation(impatient, spec, scored(30, 0.7), 100);
  note_evaluation(reached, spec, scored(10, 0.91), 100);

  EXPECT_TRUE(first);
  EXPECT_FALSE(second);
  EXPECT_EQ(before, "");
  EXPECT_EQ(impatient.ended, "patience");
  EXPECT_EQ(impatient.best->step, 10);
  EXPECT_EQ(reached.ended, "target");
  EXPECT_TRUE(reached.target_reached);
}

TEST(StopRules, AnUndefinedMetricIsNeverBestAndReachesNothing) {  // NanIsNeverBest
  JobSpec spec;
  spec.target = {"accuracy", 0.0};
  Progress progress;

  const bool best = note_evaluation(progress, spec, scored(10, std::nan("")), 100);

  EXPECT_FALSE(best);
  EXPECT_FALSE(progress.best);
  EXPECT_EQ(progress.ended, "");
}

TEST(StopRules, TheLastStepIsAlwaysEvaluated) {
  EXPECT_TRUE(evaluation_due(40, 40, 95));
  EXPECT_FALSE(evaluation_due(41, 40, 95));
  EXPECT_TRUE(evaluation_due(95, 40, 95));
}

TEST(Progress, ComesBackFromItsJsonBitForBit) {
  Progress progress;
  progress.step = 17;
  progress.interval_loss = 0.1 + 0.2;
  progress.train_seconds = 1.0 / 3;
  progress.losses = {{16, 0.7}};
  progress.best = Best{10, 0.875};
  progress.lineage = Lineage{JobId{4}, "abc", 0.5};
  progress.evaluations = {scored(10, 0.875)};

  const auto back = decode_progress(encode_progress(progress));

  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(encode_progress(*back), encode_progress(progress));
  EXPECT_EQ(back->interval_loss, progress.interval_loss);
  EXPECT_EQ(back->evaluations[0].metrics.at("accuracy"), 0.875);
}

}  // namespace
}  // namespace ymir
