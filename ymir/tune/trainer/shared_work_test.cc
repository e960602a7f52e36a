// Work that is done once for several: one pass for the rows of several jobs, outputs of frozen
// layers kept between epochs and jobs, layers run again in the backward. All must give the bits of
// the plain way.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "ymir/base/temp_folder.h"
#include "ymir/tune/model/exact_rows_torch.h"
#include "ymir/tune/model/gemm.h"
#include "ymir/tune/trainer/frozen_outputs_torch.h"
#include "ymir/tune/trainer/random_batch_torch.h"

namespace ymir {
namespace {

using testing::random_batch;

Task lora_task(const Encoder& encoder, std::uint64_t seed, int rank,
               std::vector<std::string> targets = {"query", "value"}) {
  Task task;
  MethodSpec method;
  method.rank = rank;
  method.dropout = 0.05;
  method.targets = std::move(targets);
  task.setup.outputs = 2;
  task.setup.seed = seed;
  task.setup.adapter = *make_adapter(encoder, method);
  task.setup.head = make_head(encoder, 2);
  task.setup.hidden = task.setup.attention = task.setup.classifier = kernels::make_dropout(0.1);
  task.adapter = initial_adapter(task.setup.adapter, encoder, seed);
  fill_normal(task.adapter, seed, "start", 0.05);
  task.head = initial_head(task.setup.head, seed);
  return task;
}

// Bit for bit where products are ours; else within rounding.
void expect_same(const at::Tensor& a, const at::Tensor& b) {
  if (kernels::has_gemm()) {
    EXPECT_TRUE(at::equal(a, b));
  } else {
    EXPECT_TRUE(at::allclose(a, b, 1e-4, 1e-6));
  }
}

TEST(SharedWork, GradientsOfSeveralJobsInOnePassAreThoseOfEachAlone) {
  const at::NoGradGuard no_autograd;
  const Encoder encoder = testing::random_encoder();
  const Task a = lora_task(encoder, 5, 8), b = lora_task(encoder, 6, 4),
             c = lora_task(encoder, 7, 8, {"query", "output.dense"});
  const Batch rows_a = random_batch({5, 12}, 1), rows_b = random_batch({3, 7, 9}, 2),
              rows_c = random_batch({8}, 3);
  const std::vector<TaskBatch> parts = {{a, rows_a, 0}, {b, rows_b, 4}, {c, rows_c, 1}};

  const std::vector<TaskGradient> together = gradients_of(parts, encoder);

  const ExactRows exact;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const TaskGradient alone = gradient_of(parts[i].task, encoder, parts[i].batch, parts[i].epoch);
    expect_same(together[i].adapter, alone.adapter);
    expect_same(together[i].head, alone.head);
    EXPECT_EQ(together[i].tokens, alone.tokens);
    EXPECT_NEAR(together[i].loss_sum, alone.loss_sum, 1e-5);
    EXPECT_GT(alone.norm, 0);
  }
}

TEST(SharedWork, JobsThatWouldDisturbEachOtherDoNotShareAPass) {
  const Encoder encoder = testing::random_encoder();
  const Task a = lora_task(encoder, 5, 8),
             top = lora_task(encoder, 6, 8, {"layer.1.attention.self.query"});
  Task calm = lora_task(encoder, 7, 8);
  calm.setup.hidden = {};

  EXPECT_EQ(cannot_share_a_pass(a.setup, lora_task(encoder, 9, 4).setup), "");
  EXPECT_NE(cannot_share_a_pass(a.setup, top.setup), "");
  EXPECT_NE(cannot_share_a_pass(a.setup, calm.setup), "");
}

TEST(SharedWork, LayersRunAgainInTheBackwardGiveTheSameGradient) {
  const at::NoGradGuard no_autograd;
  const Encoder encoder = testing::random_encoder();
  const Task task = lora_task(encoder, 5, 8);
  const Batch batch = random_batch({5, 12, 1}, 1);

  const TaskGradient kept = gradient_of(task, encoder, batch, 2);
  const TaskGradient again = gradient_of(task, encoder, batch, 2, 0, true);

  EXPECT_TRUE(at::equal(kept.adapter, again.adapter));
  EXPECT_TRUE(at::equal(kept.head, again.head));
}

EvaluationRows rows_of(const Batch& all) {
  EvaluationRows rows;
  for (std::int64_t row = 0; row < all.num_rows(); ++row)
    rows.lengths.push_back(all.input.layout.length(row));
  rows.batch = [all](std::span<const std::uint32_t> chosen) {
    Batch out = part_of(all, chosen.front(), 1);
    for (std::size_t i = 1; i < chosen.size(); ++i) {
      const Batch next = part_of(all, chosen[i], 1);
      out.input.ids.insert(out.input.ids.end(), next.input.ids.begin(), next.input.ids.end());
      out.input.layout.offsets.push_back(static_cast<std::int64_t>(out.input.ids.size()));
      out.rows.push_back(next.rows.front());
      out.classes.push_back(next.classes.front());
    }
    return out;
  };
  return rows;
}

// `layers` of the rows kept in a folder that is made for the test.
class KeptOutputs : public ::testing::Test {
 protected:
  EvaluationRows kept(std::uint64_t max_bytes = 1 << 20) const {
    auto outputs =
        FrozenOutputsCache{folder_ / "frozen", max_bytes}.open("rows", 1, encoder, plain);
    EXPECT_TRUE(outputs);
    return with_frozen_outputs(plain, *std::move(outputs), encoder);
  }
  TaskGradient gradient(const Batch& batch) const { return gradient_of(task, encoder, batch, 0); }

  const at::NoGradGuard no_autograd{};
  const ExactRows exact{};
  const Encoder encoder = testing::random_encoder();
  const Task task = lora_task(encoder, 5, 8, {"layer.1.attention.self.query"});
  const EvaluationRows plain = rows_of(random_batch({5, 12, 1, 7}, 1));
  TempFolder folder_{"kept"};
};

TEST_F(KeptOutputs, GiveTheGradientOfTheWholePass) {
  const std::vector<std::uint32_t> first = {0, 2}, second = {2, 3, 0};
  const EvaluationRows rows = kept();

  const TaskGradient before = gradient(rows.batch(first)), after = gradient(rows.batch(second));

  expect_same(before.adapter, gradient(plain.batch(first)).adapter);
  expect_same(after.adapter, gradient(plain.batch(second)).adapter);
}

TEST_F(KeptOutputs, AreReadByAnotherWorkerAndARepeatedRun) {
  const std::vector<std::uint32_t> all = {0, 1, 2, 3};
  const EvaluationRows one = kept(), other = kept();
  const at::Tensor computed = one.batch(all).input.hidden;

  // A backbone of other weights would give other values if it were asked.
  Encoder unlike = testing::random_encoder();
  unlike.words.neg_();
  auto outputs = FrozenOutputsCache{folder_ / "frozen", 1 << 20}.open("rows", 1, unlike, plain);
  ASSERT_TRUE(outputs);
  const EvaluationRows later = with_frozen_outputs(plain, *outputs, unlike);

  EXPECT_TRUE(at::equal(later.batch(all).input.hidden, computed));
  EXPECT_TRUE(at::equal(other.batch(all).input.hidden, computed));
}

TEST_F(KeptOutputs, AreTheSameWhereNotAllHaveRoom) {
  const std::vector<std::uint32_t> all = {0, 1, 2, 3};
  const EvaluationRows rows = kept(64 + 4 * 8 + 6 * 64 * sizeof(float));  // 6 tokens: row 0

  rows.batch(all);

  expect_same(gradient(rows.batch(all)).adapter, gradient(plain.batch(all)).adapter);
}

TEST_F(KeptOutputs, OfOtherLayersOrRowsAreOthers) {
  const FrozenOutputsCache cache{folder_ / "frozen", 1 << 20};

  ASSERT_TRUE(cache.open("a", 1, encoder, plain));
  ASSERT_TRUE(cache.open("a", 2, encoder, plain));
  ASSERT_TRUE(cache.open("b", 1, encoder, plain));

  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "frozen"), {}), 3);
}

}  // namespace
}  // namespace ymir
