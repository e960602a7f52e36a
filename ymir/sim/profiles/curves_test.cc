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

}  // namespace
}  // namespace ymir
