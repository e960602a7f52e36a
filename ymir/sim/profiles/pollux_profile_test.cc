#include "ymir/sim/profiles/pollux_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "ymir/base/csv.h"
#include "ymir/base/file.h"

namespace ymir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Source = PolluxStepTime::Source;

const std::string kData = YMIR_SOURCE_DIR "/../shared/data";

bool have_data() { return std::filesystem::exists(kData + "/profiles/pollux/ncf"); }

// A folder with one small application, each of whose files a test may replace.
class Folder {
 public:
  Folder() {
    root_ = std::filesystem::temp_directory_path() / "ymir_pollux_profile_test" /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ / "toy");
    write("toy/placements.csv",
          "placement,local_bsz,step_time,sync_time\n1,4,0.4,0\n1,8,0.6,0\n2,4,0.5,0.1\n");
    write("toy/scalability.csv", "num_nodes,num_replicas,local_bsz,step_time,sync_time\n");
    write("toy/validation-8.csv",
          "progress,iteration,metric,grad_sqr,grad_var\n10,10,0,2,1\n20,20,0,4,1\n");
    write("toy/validation-16.csv",
          "progress,iteration,metric,grad_sqr,grad_var\n11,6,0,4,1\n22,12,0,8,1\n33,18,0,8,1\n");
  }
  ~Folder() { std::filesystem::remove_all(root_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name) << text;
  }
  std::string path() const { return root_.string(); }

 private:
  std::filesystem::path root_;
};

TEST(PolluxProfile, ReadsAnApplication) {
  const Folder folder;

  const auto profile = read_pollux_profile(folder.path());

  ASSERT_TRUE(profile) << profile.error().message;
  const PolluxApplication* toy = profile->find("toy");
  ASSERT_NE(toy, nullptr);
  EXPECT_EQ(profile->find("other"), nullptr);
  EXPECT_EQ(toy->init_batch, 8);
  EXPECT_EQ(toy->max_batch, 16);
  EXPECT_EQ(toy->min_local, 4);
  EXPECT_EQ(toy->max_local, 8);
  EXPECT_EQ(toy->max_epochs, 2);
  EXPECT_DOUBLE_EQ(toy->progress_after(2), 20);
  EXPECT_DOUBLE_EQ(toy->iterations(12, 0), 8);
  EXPECT_DOUBLE_EQ(toy->grad_stats(12, 1).sqr, 6);
  EXPECT_DOUBLE_EQ(PolluxApplication::gain({2, 1}, 2), 3 / 2.5);
}

TEST(PolluxProfile, InterpolatesBetweenLocalBatchesAndDoesNotExtrapolate) {
  const Folder folder;
  const auto profile = read_pollux_profile(folder.path());
  ASSERT_TRUE(profile);

  const auto inside = profile->find("toy")->step_time(std::vector{1}, 5);
  const auto above = profile->find("toy")->step_time(std::vector{1}, 9);

  ASSERT_TRUE(inside);
  EXPECT_DOUBLE_EQ(inside->step_s, 0.45);
  ASSERT_FALSE(above);
  EXPECT_THAT(above.error().message, HasSubstr("toy on 1, local batch 9"));
}

TEST(PolluxProfile, PrefersTheFileOfLookUps) {
  const Folder folder;
  folder.write("throughput_queries.csv",
               "app,placement_id,local_bsz,method,step_time,sync_time\n"
               "toy,1,5,x,0.7,0.1\ntoy,11112,4,x,0.9,0.2\n");

  const auto profile = read_pollux_profile(folder.path());

  ASSERT_TRUE(profile) << profile.error().message;
  const PolluxApplication& toy = profile->applications.front();
  EXPECT_EQ(toy.step_time(std::vector{1}, 5)->source, Source::kLookUp);
  EXPECT_DOUBLE_EQ(toy.step_time(std::vector{1}, 5)->step_s, 0.7);
  EXPECT_EQ(toy.step_time(std::vector{1, 2, 1, 1, 1}, 4)->source, Source::kLookUp);
  EXPECT_THAT(profile->look_ups, HasSubstr("throughput_queries.csv"));
}

TEST(PolluxProfile, NamesFileAndLineOfAFault) {
  struct Case {
    std::string file{}, text{}, message{};
  };
  const std::string head = "placement,local_bsz,step_time,sync_time\n";
  const std::string curve = "progress,iteration,metric,grad_sqr,grad_var\n";
  const std::vector<Case> cases = {
      {"toy/placements.csv", head + "1,4,0.4,0\n21,4,0.4,0\n", "placements.csv:3: column"},
      {"toy/placements.csv", head + "1,0,0.4,0\n", "placements.csv:2: column `local_bsz`"},
      {"toy/placements.csv", head + "1,4,0.4,0.5\n", "placements.csv:2: column `sync_time`"},
      {"toy/placements.csv", head, "placements.csv: no row"},
      {"toy/placements.csv", "placement,step_time\n", "placements.csv:1: no column `local_bsz`"},
      {"toy/validation-8.csv", curve + "10,1,0,1,1\n10,2,0,1,1\n", "must grow"},
      {"toy/validation-8.csv", curve + "10,1,0,0,0\n", "validation-8.csv:2"},
      {"toy/validation-8.csv", curve + "10,1,0,nan,1\n", "validation-8.csv:2"},
      {"toy/validation-x.csv", curve, "not validation-BATCH.csv"},
      {"throughput_queries.csv", "app,placement_id,local_bsz,step_time,sync_time\nno,1,4,1,0\n",
       "throughput_queries.csv:2: column `app`"}};

  for (const Case& c : cases) {
    const Folder folder;
    folder.write(c.file, c.text);

    const auto profile = read_pollux_profile(folder.path());

    ASSERT_FALSE(profile) << c.message;
    EXPECT_THAT(profile.error().message, HasSubstr(c.message));
  }
  EXPECT_EQ(read_pollux_profile("/nonexistent").error().code, ErrorCode::kNotFound);
}

TEST(PolluxProfile, CallsAPlacementByItsSmallestRotation) {
  EXPECT_EQ(pollux_placement_id(std::vector{4, 2}), 24U);
  EXPECT_EQ(pollux_placement_id(std::vector{3, 1, 2, 1}), 1213U);
  EXPECT_EQ(pollux_placement_id(std::vector{10, 1}), 0U);
  EXPECT_EQ(pollux_placement_id(std::vector<int>(20, 1)), 0U);
  EXPECT_THAT(packed_placement(10, 4), ElementsAre(4, 4, 2));
}

TEST(PolluxProfile, EqualsTheDerivedTables) {
  if (!have_data()) GTEST_SKIP() << "no reference data: " << kData;
  const auto profile = read_pollux_profile(kData + "/profiles/pollux");
  ASSERT_TRUE(profile) << profile.error().message;
  const std::string file = kData + "/golden/pollux/app_tables.csv";
  const std::string text = *read_file(file);
  CsvRows rows(file, text);
  const auto at = rows.columns({"app", "init_batch_size", "max_batch_size", "min_local_bsz",
                                "max_local_bsz", "max_epochs", "batch_size", "completion_epoch",
                                "iterations_at_completion", "progress_at_completion"});
  int compared = 0;

  while (rows.next()) {
    const PolluxApplication* app = profile->find(rows.name(at[0]));
    ASSERT_NE(app, nullptr);
    const auto whole = [&](std::size_t column) { return rows.whole(at[column], 0, 1000000); };
    EXPECT_EQ(app->init_batch, whole(1));
    EXPECT_EQ(app->max_batch, whole(2));
    EXPECT_EQ(app->min_local, whole(3));
    EXPECT_EQ(app->max_local, whole(4));
    EXPECT_EQ(app->max_epochs, whole(5));
    EXPECT_EQ(app->last_epoch(), whole(7));
    const double iterations = rows.number(at[8], 0, 1e9), progress = rows.number(at[9], 0, 1e9);
    const auto batch = static_cast<double>(whole(6));
    EXPECT_NEAR(app->iterations(batch, app->last_epoch()), iterations, 1e-12 * iterations);
    EXPECT_NEAR(app->progress_after(app->last_epoch()), progress, 1e-12 * progress);
    ++compared;
  }
  EXPECT_TRUE(rows.ok());
  EXPECT_EQ(compared, 40);
}

TEST(PolluxProfile, EqualsTheTunedConfigurations) {
  if (!have_data()) GTEST_SKIP() << "no reference data: " << kData;
  const auto profile = read_pollux_profile(kData + "/profiles/pollux");
  ASSERT_TRUE(profile) << profile.error().message;
  const std::string file = kData + "/golden/pollux/tuned_configurations.csv";
  const std::string text = *read_file(file);
  CsvRows rows(file, text);
  const auto at = rows.columns({"app", "num_replicas", "batch_size", "single_job_jct_s"});
  int compared = 0;

  while (rows.next()) {
    const PolluxApplication& app = *profile->find(rows.name(at[0]));
    const int replicas = static_cast<int>(rows.whole(at[1], 1, 64));
    const int batch = static_cast<int>(rows.whole(at[2], 1, 100000));
    PolluxSplit split = app.split(batch, replicas, PolluxAlone::kNever);
    // That table rounds the share of a pass up even where the total is then above the batch.
    const int local = static_cast<int>(std::ceil(1.0 * batch / replicas));
    split.atomic = static_cast<int>(std::ceil(1.0 * local / (split.accumulation + 1)));
    const auto time = app.step_time(packed_placement(replicas, 4), split.atomic);
    ASSERT_TRUE(time) << time.error().message;
    const double expected = rows.number(at[3], 0, 1e9);
    EXPECT_NEAR(
        app.iterations(batch, app.last_epoch()) * PolluxApplication::step_seconds(*time, split),
        expected, 1e-12 * expected)
        << app.name << " on " << replicas;
    ++compared;
  }
  EXPECT_TRUE(rows.ok());
  EXPECT_EQ(compared, 16);
}

// The profiles without the file of look-ups must give what it holds: exactly where the answer is
// unique, and within a few percent where the grid can be triangulated in several ways. Of the
// latter kind every sixth row, for the time it takes.
TEST(PolluxProfile, InterpolatesAsTheFileOfLookUpsDoes) {
  if (!have_data()) GTEST_SKIP() << "no reference data: " << kData;
  const Folder folder;
  folder.write("throughput_queries.csv", "app,placement_id,local_bsz,step_time,sync_time\n");
  for (const char* app : {"bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"})
    std::filesystem::create_directory_symlink(
        std::filesystem::absolute(kData + "/profiles/pollux/" + app), folder.path() + "/" + app);
  const auto profile = read_pollux_profile(folder.path());
  ASSERT_TRUE(profile) << profile.error().message;
  const std::string file = kData + "/golden/pollux/throughput_queries.csv";
  const std::string text = *read_file(file);
  CsvRows rows(file, text);
  const auto at =
      rows.columns({"app", "placement_id", "local_bsz", "method", "step_time", "sync_time"});
  int along = 0, unique = 0, several = 0;

  while (rows.next()) {
    const bool measured = rows.name(at[3]) == "interp1d";
    if (!measured && rows.line() % 6 != 0) continue;
    std::vector<int> placement;
    for (const char digit : rows.name(at[1])) placement.push_back(digit - '0');
    const int batch = static_cast<int>(rows.whole(at[2], 1, 100000));
    const auto time = profile->find(rows.name(at[0]))->step_time(placement, batch);
    ASSERT_TRUE(time) << time.error().message;
    const double step = rows.number(at[4], 0, 1e6), sync = rows.number(at[5], 0, 1e6);
    EXPECT_EQ(time->source, measured ? Source::kMeasured : Source::kScattered);
    const double tolerance = measured ? 1e-12 : time->unique ? 1e-12 : 0.05;
    EXPECT_NEAR(time->step_s, step, tolerance * step) << file << ":" << rows.line();
    EXPECT_NEAR(time->sync_s, sync, tolerance * step) << file << ":" << rows.line();
    ++(measured ? along : time->unique ? unique : several);
  }
  EXPECT_TRUE(rows.ok());
  EXPECT_EQ(along, 520);
  EXPECT_GT(unique, 40);
  EXPECT_GT(several, 100);
}

}  // namespace
}  // namespace ymir
