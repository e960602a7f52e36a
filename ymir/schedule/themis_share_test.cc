#include "ymir/schedule/themis_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "ymir/base/csv_table.h"

namespace ymir {
namespace {

using testing::HasSubstr;

struct Vector {
  double num_gpus = 0, rho = 0;
  std::vector<ShareJob> jobs{};
  std::vector<double> isolated{}, x{};
};

std::map<std::int64_t, Vector> read_vectors(const CsvTable& table) {
  const auto number = [&](const char* name) { return *table.numbers(name); };
  const auto cases = *table.integers("case");
  const auto gpus = number("N_gpus"), scale = number("scale"), age = number("time_since_start"),
             steps = number("steps_left"), speed = number("steps_per_s"),
             past = number("cum_isolated_time"), isolated = number("isolated_x"),
             rho = number("rho_star"), x = number("x_min_needed");
  std::map<std::int64_t, Vector> out;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Vector& vector = out[cases[i]];
    vector.num_gpus = gpus[i];
    vector.rho = rho[i];
    vector.jobs.push_back({scale[i], steps[i], speed[i], age[i], past[i]});
    vector.isolated.push_back(isolated[i]);
    vector.x.push_back(x[i]);
  }
  return out;
}

TEST(ThemisShare, EqualsThePublishedVectors) {
  const auto table =
      CsvTable::read(YMIR_SOURCE_DIR "/../shared/data/golden/pollux/ftf_vectors.csv");
  if (!table) GTEST_SKIP() << "no reference data: " << table.error().message;
  const auto vectors = read_vectors(*table);
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
