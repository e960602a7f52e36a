#include "ymir/sim/profiles/titan_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "ymir/base/csv.h"
#include "ymir/base/file.h"
#include "ymir/base/temp_folder.h"
#include "ymir/sim/profiles/curves.h"

namespace ymir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The measured tables, which the repository does not hold.
class MeasuredTables : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(folder))
      GTEST_SKIP() << "the measured profiles are absent: " << folder;
  }
  std::string folder = YMIR_SOURCE_DIR "/../shared/data/profiles/titan";
};

// A small folder of tables of one model, written by the test.
class Written : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_folders(folder + "/lut/V100"));
    write("jobs_effective.csv",
          "application,target_lr,target_gradient_steps,target_batch_size,target_metric_csv,"
          "epochs_used,epochs_of_best,progress_per_epoch,max_progress,max_gpus,min_local_bsz,"
          "max_local_bsz,ctx_switch_s\nm@t,1e-3,1,16,0.5,2,2,100,200,8,2,8,5\n");
    write("throughput_per_job.csv",
          "application,target_batch_size,gpus,placement,atomic_bsz,accum_steps,step_time,"
          "sync_time\nm@t,16,5,1-1-1-1-1,3,0,9,1\n");
    write("lut/V100/m_placements.csv",
          "placement,local_bsz,step_time,sync_time\n1,2,1,0\n1,8,4,0\n12,2,2,1\n12,8,5,1\n");
    write("lut/V100/m_scalability.csv",
          "num_nodes,num_replicas,local_bsz,step_time,sync_time\n6,6,2,10,6\n6,6,8,16,6\n"
          "6,8,2,20,8\n6,8,8,26,8\n");
    write("lut/V100/m_memory.csv", "local_bsz,gpu_memory\n4,1\n8,3\n");
    write("lut/V100/m_context_switch.csv", "app,time_cost\nt,5\n");
  }
  void write(const std::string& file, const std::string& text) {
    ASSERT_TRUE(write_file(folder + "/" + file, text));
  }
  Result<TitanProfile> read() const { return TitanProfile::read({.folder = folder}); }
  const TempFolder temporary{"profile"};
  const std::string folder = temporary.path();
};

TEST(PlacementKey, IsTheSmallestRotationNotTheSmallestOrder) {
  EXPECT_EQ(placement_key(std::vector<int>{2, 1, 3, 1}), "1213");
  EXPECT_EQ(placement_key(std::vector<int>{1, 3, 2}), "132");
  EXPECT_EQ(placement_key(std::vector<int>{12, 1}), "");
}

TEST(PackedPlacement, TakesAsFewNodesAsCanBe) {
  EXPECT_THAT(packed_placement(10, 4), ElementsAre(4, 4, 2));
  EXPECT_THAT(packed_placement(8, 4), ElementsAre(4, 4));
}

TEST(SplitBatch, AccumulatesWhereTheBatchDoesNotFit) {
  JobKind kind;
  kind.batch = 100, kind.min_local = 4, kind.max_local = 32;

  const BatchSplit one = split_batch(kind, 1), two = split_batch(kind, 2),
                   many = split_batch(kind, 50);

  EXPECT_EQ(one.local, 25);
  EXPECT_EQ(one.accumulation, 3);
  EXPECT_EQ(two.accumulation, 1);
  EXPECT_EQ(two.samples, 100);
  EXPECT_EQ(many.local, 4);  // the least, though the step then has more samples than asked for
  EXPECT_EQ(many.samples, 200);
}

TEST_F(Written, AStepIsLinearInTheBatchAndAccumulates) {
  const auto profile = read();
  ASSERT_TRUE(profile) << profile.error().message;
  const JobKind& kind = profile->kinds().front();

  const auto one = profile->rate(kind, std::vector<int>{1});
  const auto three = profile->rate(kind, std::vector<int>{2, 1});

  ASSERT_TRUE(one);
  EXPECT_EQ(one->samples, 16);
  EXPECT_DOUBLE_EQ(one->seconds, 8);             // two passes of 8
  EXPECT_DOUBLE_EQ(one->predicted_seconds, 12);  // and one that never is
  ASSERT_TRUE(three);
  EXPECT_EQ(three->samples, 15);  // 5 a GPU
  EXPECT_DOUBLE_EQ(three->seconds, 3.5);
}

TEST_F(Written, ALookUpInNoTableIsAnErrorThatNamesIt) {
  const auto profile = read();
  ASSERT_TRUE(profile);
  const JobKind& kind = profile->kinds().front();

  const auto rate = profile->rate(kind, std::vector<int>{4, 4});
  const auto anywhere = profile->rate_anywhere(kind, std::vector<int>{4, 4, 1});
  const auto batch = profile->pass_time("m", std::vector<int>{1}, 9);
  const auto job = profile->find("m@t", "1e-4", 1, 16);

  ASSERT_FALSE(rate);
  EXPECT_EQ(rate.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(rate.error().message, HasSubstr("m at placement 4-4, batch 2"));
  ASSERT_FALSE(anywhere);
  EXPECT_THAT(anywhere.error().message, HasSubstr("m on 9 GPUs of 3 nodes"));
  EXPECT_THAT(batch.error().message, HasSubstr("measured from batch 2 to 8"));
  EXPECT_THAT(job.error().message, HasSubstr("no m@t with rate 1e-4"));
}

TEST_F(Written, ManyNodesGoByJobOnlyAtTheMeasuredNodesAndElseBetweenNumbersOfGpus) {
  const auto profile = read();
  ASSERT_TRUE(profile);
  const JobKind& kind = profile->kinds().front();

  const auto listed = profile->rate(kind, std::vector<int>{1, 1, 1, 1, 1});
  const auto spread = profile->rate(kind, std::vector<int>{2, 1, 1, 1, 1, 1});
  const auto anywhere = profile->rate_anywhere(kind, std::vector<int>{2, 1, 1, 1, 1, 1});

  ASSERT_TRUE(listed);
  EXPECT_DOUBLE_EQ(listed->seconds, 9);
  EXPECT_FALSE(spread);
  ASSERT_TRUE(anywhere) << anywhere.error().message;
  EXPECT_DOUBLE_EQ(anywhere->seconds, 15);  // between 10 and 20 at batch 2
}

TEST_F(Written, MemoryIsLinearAndNeverBeyondWhatWasMeasured) {
  const auto profile = read();
  ASSERT_TRUE(profile);

  EXPECT_DOUBLE_EQ(*profile->memory_gib("m", 6), 2);
  EXPECT_DOUBLE_EQ(*profile->memory_gib("m", 1), 1);
  EXPECT_FALSE(profile->memory_gib("m", 9));
  EXPECT_DOUBLE_EQ(*profile->switch_seconds("m"), 5);
}

TEST_F(Written, FaultsNameFileAndLine) {
  write("lut/V100/m_placements.csv",
        "placement,local_bsz,step_time,sync_time\n1,2,1,0\n\n1,2,3,0\n");
  const auto twice = read();
  write("lut/V100/m_placements.csv", "placement,local_bsz,step_time,sync_time\n10,2,1,0\n");
  const auto digit = read();
  write("lut/V100/m_placements.csv", "placement,local_bsz,step_time,sync_time\n1,2,-1,0\n");
  const auto negative = read();

  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message,
              HasSubstr("m_placements.csv:4: column `placement`: stands there twice"));
  ASSERT_FALSE(digit);
  EXPECT_THAT(digit.error().message,
              HasSubstr("m_placements.csv:2: column `placement`: is not of digits"));
  ASSERT_FALSE(negative);
  EXPECT_THAT(negative.error().message, HasSubstr("m_placements.csv:2: column `step_time`"));
}

TEST_F(MeasuredTables, EveryJobAndNumberOfGpusTakesAsLongAsThePublishedTableSays) {
  const auto profile = TitanProfile::read({.folder = folder});
  ASSERT_TRUE(profile) << profile.error().message;
  int rows = 0;

  const auto read = read_csv(
      folder + "/throughput_per_job.csv",
      {"application", "target_batch_size", "gpus", "atomic_bsz", "accum_steps", "predicted_total_s",
       "true_total_s"},
      [&](CsvRows& row, const std::vector<std::size_t>& at) {
        const std::int64_t batch = row.whole(at[1], 1, 1 << 20);
        const auto gpus = static_cast<int>(row.whole(at[2], 1, 32));
        const auto kind = std::ranges::find_if(profile->kinds(), [&](const JobKind& k) {
          return k.application == row.text(at[0]) && k.batch == batch;
        });
        ASSERT_NE(kind, profile->kinds().end()) << "line " << row.line();
        const BatchSplit split = split_batch(*kind, gpus);
        const auto rate = profile->rate(*kind, packed_placement(gpus, 4));
        ASSERT_TRUE(rate) << rate.error().message;
        const double steps = kind->samples / static_cast<double>(rate->samples);
        EXPECT_EQ(split.local, row.whole(at[3], 1, 1 << 20)) << "line " << row.line();
        EXPECT_EQ(split.accumulation, row.whole(at[4], 0, 1 << 20)) << "line " << row.line();
        EXPECT_EQ(std::nearbyint(steps * rate->predicted_seconds), row.number(at[5], 0, 1e9))
            << "line " << row.line();
        const double truth = row.number(at[6], 0, 1e9);
        EXPECT_NEAR(steps * rate->seconds, truth, 1e-12 * truth) << "line " << row.line();
        ++rows;
      });

  EXPECT_TRUE(read) << read.error().message;
  EXPECT_EQ(rows, 892);
}

TEST_F(MeasuredTables, BothTypesOfGpuAndAllModelsAreReadAndManyNodesAreKnown) {
  for (const std::string gpu : {"V100", "A100"}) {
    const auto profile = TitanProfile::read({.folder = folder, .gpu_type = gpu});
    ASSERT_TRUE(profile) << profile.error().message;
    for (const JobKind& kind : profile->kinds())
      for (int g = 1; g <= kind.max_gpus; ++g) {
        const auto rate = profile->rate_anywhere(kind, packed_placement(g, 4));
        ASSERT_TRUE(rate) << rate.error().message;
        EXPECT_GT(rate->seconds, 0);
      }
  }
}

TEST_F(MeasuredTables, PairsThatPayAreAsManyAsCounted) {
  const auto profile = TitanProfile::read({.folder = folder});
  const auto curves = LearningCurves::read(folder);
  ASSERT_TRUE(profile && curves);
  struct Count {
    int paying = 0, all = 0;
  };
  std::map<std::string, Count> spatial, temporal;
  const auto find = [&](const std::string& model, const std::string& task) -> const JobKind* {
    for (const JobKind& kind : profile->kinds())
      if (kind.model == model && kind.task == task) return &kind;
    return nullptr;
  };
  const auto task = [](const JobKind& k) { return CurveTask{k.target, k.samples_per_epoch}; };

  for (const auto& [key, joint] : curves->spatial_pairs()) {
    const auto& [model, a, b] = key;
    const JobKind *first = find(model, a), *second = find(model, b);
    if (!first || !second) continue;
    const auto pair = spatial_samples(joint, task(*first), task(*second));
    const double alone =
        first->samples + second->samples + std::min(first->samples, second->samples);
    ++spatial[model].all;
    if (pair && alone / (2 * pair->total()) >= 1.1) ++spatial[model].paying;
  }
  for (const auto& [key, curve] : curves->temporal_pairs()) {
    const auto& [model, a, b] = key;
    const JobKind *first = find(model, a), *second = find(model, b);
    if (!first || !second) continue;
    const auto pair = temporal_samples(first->samples, curve, task(*second));
    const double alone =
        first->samples + second->samples + std::min(first->samples, second->samples);
    ++temporal[model].all;
    if (pair && alone / (pair->first + pair->second) >= 1.1) ++temporal[model].paying;
  }

  const auto expect = [](const Count& count, int paying, int all) {
    EXPECT_EQ(count.paying, paying);
    EXPECT_EQ(count.all, all);
  };
  expect(spatial["roberta-base"], 3, 36);
  expect(spatial["roberta-large"], 2, 36);
  expect(spatial["vit"], 24, 36);
  expect(spatial["vit-large"], 15, 36);
  expect(temporal["roberta-base"], 25, 70);
  expect(temporal["roberta-large"], 29, 72);
  expect(temporal["vit"], 0, 72);
  expect(temporal["vit-large"], 1, 72);
}

TEST_F(MeasuredTables, SecondRunsAreCutOff) {
  const auto curves = LearningCurves::read(folder);
  ASSERT_TRUE(curves) << curves.error().message;

  const Curve* twice = curves->normal("vit", "imagenet-split-0", {"1e-2", 1});
  const auto pair = curves->spatial("vit-large", "frgfm#imagenette", "imagenet-split-2");
  const auto turned = curves->spatial("vit-large", "imagenet-split-2", "frgfm#imagenette");

  ASSERT_NE(twice, nullptr);
  EXPECT_EQ(twice->size(), 10u);
  ASSERT_TRUE(pair && turned);
  EXPECT_EQ(pair->first.size(), 10u);
  EXPECT_EQ(pair->first.front().value, turned->second.front().value);
  EXPECT_TRUE(pair->trusted);
  EXPECT_FALSE(curves->spatial("vit", "mnist", "food101")->trusted);
  EXPECT_EQ(curves->settings("vit", "mnist").size(), 28u);
}

}  // namespace
}  // namespace ymir
