#include "ymir/estimate/step_time.h"

#include <gtest/gtest.h>

namespace ymir {
namespace {

StepKey key(int batch, int tokens, int gpus = 1) {
  return {.backbone = "minilm",
          .method = "lora r8 query,value",
          .hardware = "cpu",
          .precision = "f32",
          .gpus = gpus,
          .batch = batch,
          .tokens_per_row = tokens};
}
StepTiming timing(const StepKey& key, double seconds, std::int64_t steps = 100) {
  return {key, steps, Seconds(seconds), Seconds(0.01 * seconds)};
}
double width(const Link& link) { return link.value.p90 / link.value.p10; }

TEST(StepTable, AnswersWhatItMeasured) {
  StepTable table;
  table.add(JobId{1}, timing(key(16, 24), 0.2));

  const Link link = table.predict(key(16, 24));

  EXPECT_EQ(link.source, Source::kMeasured);
  EXPECT_EQ(link.rows, 100);
  EXPECT_NEAR(link.value.p50, 0.2, 1e-12);
  EXPECT_LT(width(link), 1.12);
  ASSERT_NE(table.key_of(JobId{1}), nullptr);
  EXPECT_EQ(table.key_of(JobId{2}), nullptr);
}

TEST(StepTable, AFewStepsOfAProfileAreMeasuredButWider) {
  StepTable few, many;
  few.add({}, timing(key(16, 24), 0.2, 8));
  many.add({}, timing(key(16, 24), 0.2, 80));

  EXPECT_EQ(few.predict(key(16, 24)).source, Source::kMeasured);
  EXPECT_GT(width(few.predict(key(16, 24))), width(many.predict(key(16, 24))));
}

TEST(StepTable, FollowsALoadThatChanges) {
  StepTable table;
  for (int i = 0; i < 5; ++i) table.add({}, timing(key(16, 24), 0.2));
  for (int i = 0; i < 20; ++i) table.add({}, timing(key(16, 24), 0.4));

  EXPECT_NEAR(table.predict(key(16, 24)).value.p50, 0.4, 0.02);
}

TEST(StepTable, InterpolatesBetweenButNeverBeyond) {
  StepTable table;
  table.add({}, timing(key(8, 24), 0.1));
  table.add({}, timing(key(32, 24), 0.4));

  const Link between = table.predict(key(16, 24)), beyond = table.predict(key(64, 24));

  EXPECT_EQ(between.source, Source::kInterpolated);
  EXPECT_NEAR(between.value.p50, 0.2, 1e-9);  // geometric mean of a doubling
  EXPECT_EQ(beyond.source, Source::kModel);
  EXPECT_GT(width(beyond), width(between));
}

TEST(StepTable, ScalesFromOtherShapesByRowsTimesTokens) {
  StepTable table;
  table.add({}, timing(key(16, 24), 0.2));

  const Link longer = table.predict(key(16, 48));

  EXPECT_EQ(longer.source, Source::kModel);
  EXPECT_NEAR(longer.value.p50, 0.4, 1e-9);
}

TEST(StepTable, AJointStepCostsTwoAndTwoGpusSaveLessThanHalfUntilMeasured) {
  StepTable table;
  table.add({}, timing(key(16, 24), 0.2));
  StepKey joint = key(16, 24);
  joint.joint = true;

  EXPECT_NEAR(table.predict(joint).value.p50, 0.4, 1e-9);
  EXPECT_GT(table.predict(key(16, 24, 2)).value.p50, 0.1);
  EXPECT_LT(table.predict(key(16, 24, 2)).value.p50, 0.13);
}

TEST(StepTable, OtherHardwareIsOnlyAFallbackAndNothingAPrior) {
  StepTable table;
  const Link nothing = table.predict(key(16, 24));
  table.add({}, timing(key(16, 24), 0.2));
  StepKey other = key(16, 24);
  other.hardware = "gpu";
  StepKey backbone = key(16, 24);
  backbone.backbone = "other";

  EXPECT_EQ(nothing.source, Source::kPrior);
  EXPECT_EQ(table.predict(other).source, Source::kFallback);
  EXPECT_EQ(table.predict(backbone).source, Source::kPrior);
}

TEST(StepTable, IgnoresWhatIsNoMeasurement) {
  StepTable table;
  table.add({}, timing(key(16, 24), 0));
  table.add({}, timing(key(16, 24), 0.2, 0));

  EXPECT_EQ(table.predict(key(16, 24)).source, Source::kPrior);
}

TEST(StepKeyOf, RoundsTokensUpSoThatNearShapesShareAKey) {
  JobSpec spec;
  spec.method.targets = {"query", "value"};
  DataFacts a, b;
  a.mean_tokens = 17.2, b.mean_tokens = 23.9;

  EXPECT_EQ(step_key(spec, a, "cpu", 1), step_key(spec, b, "cpu", 1));
  EXPECT_EQ(step_key(spec, a, "cpu", 1).method, "lora r8 query,value");
}

}  // namespace
}  // namespace ymir
