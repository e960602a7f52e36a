#include "ymir/schedule/themis_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "ymir/base/csv.h"
#include "ymir/base/file.h"

namespace ymir {
namespace {

using testing::HasSubstr;

struct Vector {
  double num_gpus = 0, rho = 0;
  std::vector<ShareJob> jobs{};
  std::vector<double> isolated{}, x{};
};

std::map<std::int64_t, Vector> read_vectors(CsvRows& rows) {
  std::map<std::int64_t, Vector> out;
  const auto at =
      rows.columns({"case", "N_gpus", "scale", "steps_left", "steps_per_s", "time_since_start",
                    "cum_isolated_time", "isolated_x", "rho_star", "x_min_needed"});
  while (rows.next()) {
    const auto number = [&](std::size_t column) { return rows.number(at[column], 0, 1e9); };
    Vector& vector = out[rows.whole(at[0], 0, 1000)];
    vector.num_gpus = number(1);
    vector.jobs.push_back({number(2), number(3), number(4), number(5), number(6)});
    vector.isolated.push_back(number(7));
    vector.rho = number(8);
    vector.x.push_back(number(9));
  }
  return out;
}

TEST(ThemisShare, EqualsThePublishedVectors) {
  const std::string file = YMIR_SOURCE_DIR "/../shared/data/golden/pollux/ftf_vectors.csv";
  const auto text = read_file(file);
  if (!text) GTEST_SKIP() << "no reference data: " << text.error().message;
  CsvRows rows(file, *text);
  const auto vectors = read_vectors(rows);
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(vectors.size(), 12U);

  for (const auto& [number, vector] : vectors) {
    const auto shares = max_min_shares(vector.jobs, vector.num_gpus);

    ASSERT_TRUE(shares) << shares.error().message;
    EXPECT_NEAR(shares->rho, vector.rho, 1e-9) << "case " << number;
    for (std::size_t i = 0; i < vector.jobs.size(); ++i) {
      EXPECT_NEAR(shares->x[i], vector.x[i], 1e-9) << "case " << number << " job " << i;
      EXPECT_NEAR(isolated_share(vector.jobs[i].gpus, vector.num_gpus, vector.jobs.size()),
                  vector.isolated[i], 1e-9);
    }
  }
}

TEST(ThemisShare, MeasuresTheIsolatedLifeBySpeedNotByShare) {
  // Two jobs of 4 GPUs on 4: each alone would hold half of the time, at 8 steps a second.
  const ShareJob job{.gpus = 4, .steps_left = 800, .steps_per_s = 8, .age_s = 0};

  const double life = isolated_life_s(job, 4, 2);

  EXPECT_DOUBLE_EQ(life, 200);  // 800 / (8 / 2); by the share alone it would be 1600
}

TEST(ThemisShare, GivesTwoEqualNewJobsHalfOfTheTimeEach) {
  const ShareJob job{.gpus = 4, .steps_left = 800, .steps_per_s = 8};

  const auto shares = max_min_shares(std::vector{job, job}, 4);

  ASSERT_TRUE(shares);
  EXPECT_TRUE(shares->capacity_binds);
  EXPECT_NEAR(shares->rho, 1, 1e-12);
  EXPECT_NEAR(shares->x[0], 0.5, 1e-12);
}

TEST(ThemisShare, SaysWhichJobIsWrong) {
  const ShareJob good{.gpus = 1, .steps_left = 1, .steps_per_s = 1};
  ShareJob done = good, still = good, odd = good;
  done.steps_left = 0;
  still.steps_per_s = 0;
  odd.age_s = std::nan("");

  EXPECT_THAT(max_min_shares(std::vector{good, done}, 4).error().message,
              HasSubstr("job 1: has no steps left"));
  EXPECT_THAT(max_min_shares(std::vector{still}, 4).error().message, HasSubstr("no speed"));
  EXPECT_THAT(max_min_shares(std::vector{odd}, 4).error().message, HasSubstr("not finite"));
  EXPECT_FALSE(max_min_shares(std::vector{good}, 0));
}

RC_GTEST_PROP(ThemisShare, IsFeasibleAndNoSmallerRhoIs, ()) {
  const auto num_gpus = static_cast<double>(*rc::gen::inRange(1, 64));
  std::vector<ShareJob> jobs(static_cast<std::size_t>(*rc::gen::inRange(1, 12)));
  for (ShareJob& job : jobs)
    job = {static_cast<double>(*rc::gen::inRange(1, static_cast<int>(num_gpus) + 1)),
           static_cast<double>(*rc::gen::inRange(1, 100000)),
           static_cast<double>(*rc::gen::inRange(1, 1000)) / 10,
           static_cast<double>(*rc::gen::inRange(0, 10000)),
           static_cast<double>(*rc::gen::inRange(0, 10000))};

  const auto shares = max_min_shares(jobs, num_gpus);

  RC_ASSERT(static_cast<bool>(shares));
  double gpus = 0, gpus_below = 0;
  bool above_one = false;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    RC_ASSERT(shares->x[i] > 0 && shares->x[i] <= 1);
    gpus += jobs[i].gpus * shares->x[i];
    const double left =
        shares->rho * (1 - 1e-9) * isolated_life_s(jobs[i], num_gpus, jobs.size()) - jobs[i].age_s;
    const double below = left > 0 ? jobs[i].steps_left / jobs[i].steps_per_s / left : 1e300;
    gpus_below += jobs[i].gpus * below;
    above_one = above_one || below > 1;
  }
  RC_ASSERT(gpus <= num_gpus * (1 + 1e-9));
  RC_ASSERT(above_one || gpus_below > num_gpus);
}

}  // namespace
}  // namespace ymir
