#include "ymir/sim/artifact/pollux/goodput.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "ymir/base/csv.h"
#include "ymir/base/file.h"
#include "ymir/sim/artifact/pollux/bounded_minimum.h"

namespace ymir::artifact::pollux {
namespace {

const std::string kVectors = YMIR_SOURCE_DIR "/../shared/data/golden/pollux/";

// The parameters of goodput_params.txt.
GoodputModel published_model() {
  return {{0.121, 0.00568, 0.0236, 0.00634, 0.0118, 0.00317, 1.14}, {0.00136, 0.000502}, 128};
}

TEST(Goodput, EqualsThePublishedVectors) {
  const std::string file = kVectors + "goodput_vectors.csv";
  const auto text = read_file(file);
  if (!text) GTEST_SKIP() << "no reference data: " << text.error().message;
  CsvRows rows(file, *text);
  const auto at = rows.columns({"num_nodes", "num_replicas", "atomic_bsz", "accum_steps",
                                "throughput", "efficiency", "goodput"});
  const GoodputModel model = published_model();
  int compared = 0;

  while (rows.next()) {
    const auto whole = [&](std::size_t c) {
      return static_cast<int>(rows.whole(at[c], 0, 100000));
    };
    const auto number = [&](std::size_t c) { return rows.number(at[c], 0, 1e9); };
    const int nodes = whole(0), replicas = whole(1), atomic = whole(2), accumulation = whole(3);
    EXPECT_NEAR(model.throughput(nodes, replicas, atomic, accumulation) / number(4), 1, 1e-12);
    EXPECT_NEAR(model.efficiency(replicas, atomic, accumulation) / number(5), 1, 1e-12);
    EXPECT_NEAR(model.goodput(nodes, replicas, atomic, accumulation) / number(6), 1, 1e-12);
    ++compared;
  }
  EXPECT_TRUE(rows.ok());
  EXPECT_EQ(compared, 108);
}

TEST(Goodput, FindsThePublishedBestBatches) {
  const std::string file = kVectors + "goodput_optimize_vectors.csv";
  const auto text = read_file(file);
  if (!text) GTEST_SKIP() << "no reference data: " << text.error().message;
  CsvRows rows(file, *text);
  const auto at =
      rows.columns({"num_nodes", "num_replicas", "max_batch_size", "min_atomic", "max_atomic",
                    "accumulation", "goodput", "atomic_bsz", "accum_steps"});
  const GoodputModel model = published_model();
  int compared = 0;

  while (rows.next()) {
    const auto whole = [&](std::size_t c) {
      return static_cast<int>(rows.whole(at[c], 0, 100000));
    };
    const BestBatch best = model.best(
        whole(0), whole(1), {model.init_batch, whole(2), whole(3), whole(4)}, whole(5) == 1);
    EXPECT_NEAR(best.goodput / rows.number(at[6], 0, 1e9), 1, 1e-12);
    EXPECT_EQ(best.split.atomic, whole(7));
    EXPECT_EQ(best.split.accumulation, whole(8));
    ++compared;
  }
  EXPECT_TRUE(rows.ok());
  EXPECT_EQ(compared, 14);
}

TEST(Goodput, HasNoBatchWhereTheLeastOnAllGpusIsTooLarge) {
  const GoodputModel model = published_model();

  const BestBatch best = model.best(2, 8, {128, 256, 64, 256});

  EXPECT_EQ(best.goodput, 0);
}

TEST(StepModelFit, GivesBackTheTimesOfTheModelThatMadeThem) {
  const StepModel truth{0.12, 0.006, 0.05, 0.002, 0.02, 0.001, 1.3};
  std::vector<StepSample> samples;
  for (const int atomic : {32, 64, 128})
    for (const auto& [nodes, replicas] : {std::pair{1, 1}, {1, 2}, {1, 4}, {2, 8}, {4, 16}})
      samples.push_back({nodes, replicas, atomic, truth.grad_s(atomic),
                         truth.step_s(nodes, replicas, atomic, 0)});

  const StepModel fit = fit_step_model(samples);

  for (const StepSample& s : samples) {
    EXPECT_NEAR(fit.grad_s(s.atomic) / s.grad_s, 1, 0.01);
    EXPECT_NEAR(fit.step_s(s.nodes, s.replicas, s.atomic, 0) / s.step_s, 1, 0.01);
  }
}

TEST(StepModelFit, KeepsToThePriorsForWhatWasNotSeen) {
  const std::vector<StepSample> one_gpu = {{1, 1, 32, 0.4, 0.41}};
  const std::vector<StepSample> one_node = {{1, 1, 32, 0.4, 0.41}, {1, 4, 48, 0.5, 0.8}};

  const StepModel first = fit_step_model(one_gpu), second = fit_step_model(one_node);

  EXPECT_DOUBLE_EQ(first.alpha_c, 0.2);
  EXPECT_LT(first.alpha_r, 1e-7);
  EXPECT_LT(first.alpha_n, 1e-7);
  EXPECT_DOUBLE_EQ(second.alpha_n, 1.1 * second.alpha_r);
  EXPECT_NEAR(second.step_s(1, 4, 48, 0), 0.8, 0.05);
}

TEST(BoundedMinimum, FindsTheBottomOfACurvedValley) {
  const Differentiable rosenbrock = [](const std::vector<double>& x, std::vector<double>& g) {
    const double a = 1 - x[0], b = x[1] - x[0] * x[0];
    g = {-2 * a - 400 * x[0] * b, 200 * b};
    return a * a + 100 * b * b;
  };
  const std::vector<double> lower = {-5, -5}, upper = {5, 5};

  const BoundedMinimum found = bounded_minimum(rosenbrock, {-1.2, 1}, lower, upper);

  EXPECT_NEAR(found.x[0], 1, 1e-4);
  EXPECT_NEAR(found.x[1], 1, 1e-4);
}

TEST(BoundedMinimum, StopsAtABoundAndKeepsFixedVariables) {
  const Differentiable bowl = [](const std::vector<double>& x, std::vector<double>& g) {
    g.clear();
    double value = 0;
    for (const double v : x) {
      value += (v - 3) * (v - 3);
      g.push_back(2 * (v - 3));
    }
    return value;
  };
  const std::vector<double> lower = {0, 7, -10}, upper = {2, 7, 10};

  const BoundedMinimum found = bounded_minimum(bowl, {1, 7, 0}, lower, upper);

  EXPECT_TRUE(found.converged);
  EXPECT_THAT(found.x, testing::ElementsAre(2, 7, testing::DoubleNear(3, 1e-6)));
}

}  // namespace
}  // namespace ymir::artifact::pollux
