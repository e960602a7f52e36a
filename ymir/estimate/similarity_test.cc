#include "ymir/estimate/similarity.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ymir {
namespace {

TaskVector vector_of(std::vector<float> fisher, double scale = 1) {
  return {.key = "k", .fisher = std::move(fisher), .scale = scale, .rows = 512, .split_half = 0.98};
}

TEST(Similarity, CosineIsLargestForTheSameTaskSymmetricAndScaleFree) {
  const TaskVector a = vector_of({1, 2, 0.5f, 0.5f}), b = vector_of({2, 0.2f, 1, 0.8f});
  const TaskVector louder = vector_of(a.fisher, 7);
  auto cosine = [](const TaskVector& x, const TaskVector& y) {
    return *similarity("cosine", {JobId{1}, &x, {}}, {JobId{2}, &y, {}}, 1);
  };

  EXPECT_NEAR(cosine(a, a), 1, 1e-12);
  EXPECT_LT(cosine(a, b), 1);
  EXPECT_EQ(cosine(a, b), cosine(b, a));
  EXPECT_EQ(cosine(louder, b), cosine(a, b));
}

TEST(Similarity, AsymDependsOnDirectionAndSize) {
  const TaskVector a = vector_of({1, 2, 0.5f, 0.5f}, 3), b = vector_of({2, 0.2f, 1, 0.8f}, 0.1);
  auto asym = [](const TaskVector& x, const TaskVector& y) {
    return *similarity("asym", {JobId{1}, &x, {}}, {JobId{2}, &y, {}}, 1);
  };

  EXPECT_NE(asym(a, b), asym(b, a));
  EXPECT_GT(asym(a, a), asym(a, b));
}

TEST(Similarity, ProbeTakesTheNearestStrength) {
  const std::vector<Probe> probes{
      {JobId{1}, 0.5, 0.2, 250}, {JobId{1}, 1.0, 0.1, 250}, {JobId{9}, 0.5, 0.9, 250}};
  const TaskEvidence source{JobId{1}, nullptr, {}}, target{JobId{2}, nullptr, probes};

  EXPECT_EQ(*similarity("probe", source, target, 0.5), 0.2);
  EXPECT_EQ(*similarity("probe", source, target, 0.9), 0.1);
  EXPECT_EQ(*similarity("zero", source, target, 1), 0);
}

TEST(Similarity, RefusesWhatCannotBeCompared) {
  TaskVector a = vector_of({1, 1}), other_key = a, unreliable = a, longer = vector_of({1, 1, 1});
  other_key.key = "other";
  unreliable.split_half = 0.9;
  auto code = [&](const TaskVector* x) {
    const auto s = similarity("cosine", {JobId{1}, x, {}}, {JobId{2}, &a, {}}, 1);
    return s ? ErrorCode::kInternal : s.error().code;
  };

  EXPECT_EQ(code(nullptr), ErrorCode::kNotFound);
  EXPECT_EQ(code(&other_key), ErrorCode::kConflict);
  EXPECT_EQ(code(&unreliable), ErrorCode::kConflict);
  EXPECT_EQ(code(&longer), ErrorCode::kConflict);
  EXPECT_EQ(similarity("probe", {}, {}, 1).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(similarity("magic", {}, {}, 1).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace ymir
