#include "ymir/sim/profiles/curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/base/temp_folder.h"

namespace ymir {
namespace {

using testing::HasSubstr;

class WrittenCurves : public testing::Test {
 protected:
  void SetUp() override {
    write("normal",
          "model,task,lr,grad_accum_steps,metric,epoch,value\nm,a,1e-3,1,acc,1,0.4\n"
          "m,a,1e-3,1,acc,2,0.6\nm,a,1e-3,1,acc,1,0.9\nm,a,1e-3,1,acc,3,0.95\n");
    write("temporal", "model,source_task,target_task,metric,epoch,value\nm,a,b,acc,1,0.7\n");
    write("spatial",
          "model,task_a,task_b,metric_of,metric,epoch,value\nm,a,b,a,acc,1,0.5\n"
          "m,a,b,b,acc,1,0.1\nm,a,b,b,acc,2.5,0.8\n");
  }
  void write(const std::string& kind, const std::string& text) {
    ASSERT_TRUE(write_file(folder + "/" + kind + "_curves.csv", text));
  }
  const TempFolder temporary{"curves"};
  const std::string folder = temporary.path();
};

TEST_F(WrittenCurves, ASecondRunBeginsWhereTheEpochFallsBackAndIsNotRead) {
  const auto curves = LearningCurves::read(folder);
  ASSERT_TRUE(curves) << curves.error().message;

  const Curve* curve = curves->normal("m", "a", {"1e-3", 1});

  ASSERT_NE(curve, nullptr);
  EXPECT_EQ(curve->size(), 2u);
  EXPECT_EQ(best_value(*curve), 0.6);
}

TEST_F(WrittenCurves, TheTargetIsMetAtTheFirstRecordedEpochWithItOrNever) {
  const auto curves = LearningCurves::read(folder);
  ASSERT_TRUE(curves);
  const Curve& curve = *curves->normal("m", "a", {"1e-3", 1});

  EXPECT_EQ(epochs_to(curve, 0.4), 1.0);
  EXPECT_EQ(epochs_to(curve, 0.41), 2.0);
  EXPECT_EQ(epochs_to(curve, 0.61), std::nullopt);
}

TEST_F(WrittenCurves, APairWorksTogetherUntilOneLeavesAndTheOtherGoesOnAlone) {
  const auto curves = LearningCurves::read(folder);
  ASSERT_TRUE(curves);

  const auto pair = spatial_samples(*curves->spatial("m", "a", "b"), {0.5, 100}, {0.8, 10});
  const auto turned = spatial_samples(*curves->spatial("m", "b", "a"), {0.8, 10}, {0.5, 100});

  ASSERT_TRUE(pair && turned);
  EXPECT_EQ(pair->first, 110);   // one epoch of both
  EXPECT_EQ(pair->second, 125);  // then 1.5 of b alone
  EXPECT_EQ(turned->first, pair->second);
  EXPECT_FALSE(spatial_samples(*curves->spatial("m", "a", "b"), {0.6, 100}, {0.8, 10}));
}

TEST_F(WrittenCurves, ATemporalPairTrainsTheSourceFirst) {
  const auto curves = LearningCurves::read(folder);
  ASSERT_TRUE(curves);

  const auto pair = temporal_samples(300, *curves->temporal("m", "a", "b"), {0.7, 50});

  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->first, 300);
  EXPECT_EQ(pair->second, 350);
  EXPECT_EQ(curves->temporal("m", "b", "a"), nullptr);
  EXPECT_TRUE(curves->settings("m", "z").empty());
}

TEST_F(WrittenCurves, FaultsNameFileAndLine) {
  write("spatial", "model,task_a,task_b,metric_of,metric,epoch,value\nm,a,b,c,acc,1,0.5\n");
  const auto stranger = LearningCurves::read(folder);
  write("spatial", "model,task_a,task_b,metric_of,metric,epoch,value\nm,a,b,a,acc,1,0.5\n");
  const auto half = LearningCurves::read(folder);
  const auto other_model = LearningCurves::read(folder, {"k"});
  write("normal", "model,task,lr,grad_accum_steps,metric,epoch,value\nm,a,1,0,acc,1,0.4\n");
  const auto steps = LearningCurves::read(folder);

  ASSERT_FALSE(stranger);
  EXPECT_THAT(stranger.error().message, HasSubstr("spatial_curves.csv:2: column `metric_of`"));
  ASSERT_FALSE(half);
  EXPECT_THAT(half.error().message, HasSubstr("metric of one task is missing for m a b"));
  EXPECT_TRUE(other_model);
  EXPECT_THAT(steps.error().message, HasSubstr("normal_curves.csv:2: column `grad_accum_steps`"));
}

TEST_F(WrittenCurves, TheSoloBaselineIsASettingByRankAndItsTargetTwoPerCentBelowItsBest) {
  write("normal",
        "model,task,lr,grad_accum_steps,metric,epoch,value\nm,a,1e-3,1,loss,1,-3\n"
        "m,a,1e-3,1,loss,1.98,-2.03\nm,a,1e-3,1,loss,3,-2\nm,a,1e-4,1,loss,1,-8\n"
        "m,a,1e-5,1,loss,1,-9\nm,a,1e-5,2,loss,1,-5\n");
  const auto curves = LearningCurves::read(folder);
  ASSERT_TRUE(curves);

  const auto tuned = curves->solo("m", "a", SoloRank::kBest);
  const auto upper = curves->solo("m", "a", SoloRank::kUpperQuartile);
  const auto median = curves->solo("m", "a", SoloRank::kMedian);

  ASSERT_TRUE(tuned && upper && median);
  EXPECT_EQ(tuned->best, -2);
  EXPECT_DOUBLE_EQ(tuned->target, -2.04);
  EXPECT_EQ(tuned->epochs, 2);  // 1.98
  EXPECT_EQ(upper->best, -5);
  EXPECT_EQ(median->best, -5);  // rank 1.5 counts as 2
  EXPECT_FALSE(curves->solo("m", "z", SoloRank::kBest));
}

// What transfer is worth against three solo baselines, by an independent count over the same files:
// percent of the targets with a better metric, faster to the target, slower or never; and of how
// many joint pairs both sides are faster. Tasks with all settings only; joint runs of vit are
// polluted, so not of it.
struct SoloCase {
  const char* model;
  SoloRank rank;
  int better, faster, slower, both;
};
class MeasuredSolo : public testing::TestWithParam<SoloCase> {};

TEST_P(MeasuredSolo, TransferIsWorthWhatAnIndependentCountSays) {
  const std::string shared = YMIR_SOURCE_DIR "/../shared/data/profiles/titan";
  if (!std::filesystem::exists(shared)) GTEST_SKIP() << "no measured profiles: " << shared;
  const SoloCase& given = GetParam();
  const auto curves = LearningCurves::read(shared, {given.model});
  ASSERT_TRUE(curves) << curves.error().message;
  constexpr double kNever = 1e9;
  const auto left_out = [&](const std::string& task) {
    return task == "wnli" || curves->settings(given.model, task).size() < 27;
  };
  const auto solo = [&](const std::string& task) {
    return *curves->solo(given.model, task, given.rank);
  };

  double pairs = 0, better = 0, faster = 0, slower = 0;
  for (const auto& [key, curve] : curves->temporal_pairs()) {
    const auto& [model, source, target] = key;
    if (left_out(source) || left_out(target)) continue;
    const SoloRun alone = solo(target);
    const double epochs = whole_epochs_to(curve, alone.target).value_or(kNever);
    ++pairs;
    better += best_value(curve) > alone.best;
    faster += epochs < alone.epochs;
    slower += epochs > alone.epochs;
  }
  int both = 0;
  for (const auto& [key, joint] : curves->spatial_pairs()) {
    const auto& [model, first, second] = key;
    if (left_out(first) || left_out(second)) continue;
    const auto sooner = [&](const Curve& curve, const std::string& task) {
      return whole_epochs_to(curve, solo(task).target).value_or(kNever) < solo(task).epochs;
    };
    both += sooner(joint.first, first) && sooner(joint.second, second);
  }

  EXPECT_NEAR(100 * better / pairs, given.better, 0.501);  // whole per cent
  EXPECT_NEAR(100 * faster / pairs, given.faster, 0.501);  // whole per cent
  EXPECT_NEAR(100 * slower / pairs, given.slower, 0.501);  // whole per cent
  if (given.both >= 0) {
    EXPECT_EQ(both, given.both);
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllBaselines, MeasuredSolo,
    testing::Values(SoloCase{"roberta-base", SoloRank::kBest, 29, 36, 33, 1},
                    SoloCase{"roberta-large", SoloRank::kBest, 7, 20, 41, 0},
                    SoloCase{"vit", SoloRank::kBest, 7, 6, 76, -1},
                    SoloCase{"vit-large", SoloRank::kBest, 6, 17, 46, 16},
                    SoloCase{"roberta-base", SoloRank::kUpperQuartile, 96, 64, 2, 4},
                    SoloCase{"roberta-large", SoloRank::kUpperQuartile, 80, 62, 5, 8},
                    SoloCase{"vit", SoloRank::kUpperQuartile, 57, 38, 42, -1},
                    SoloCase{"vit-large", SoloRank::kUpperQuartile, 79, 44, 21, 26},
                    SoloCase{"roberta-base", SoloRank::kMedian, 100, 82, 4, 13},
                    SoloCase{"roberta-large", SoloRank::kMedian, 93, 64, 0, 13},
                    SoloCase{"vit", SoloRank::kMedian, 88, 76, 18, -1},
                    SoloCase{"vit-large", SoloRank::kMedian, 92, 78, 12, 20}));

}  // namespace
}  // namespace ymir
