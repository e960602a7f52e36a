// Work that is done once for several: one pass for the rows of several jobs, outputs of frozen
// layers kept between epochs and jobs, layers run again in the backward. All must give the bits of
// the plain way.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

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

TEST(SharedWork, GradientAboveKeptOutputsIsTheWholePassGradient) {
  const at::NoGradGuard no_autograd;
  const ExactRows exact;
  const Encoder encoder = testing::random_encoder();
  const Task task = lora_task(encoder, 5, 8, {"layer.1.attention.self.query"});
  const EvaluationRows plain = rows_of(random_batch({5, 12, 1, 7}, 1));
  FrozenOutputsStore store(1 << 20);
  const auto outputs = store.of("rows", 1, 4);
  const EvaluationRows kept = with_frozen_outputs(plain, outputs, encoder);
  const std::vector<std::uint32_t> first = {0, 2}, second = {2, 3, 0};

  const TaskGradient before = gradient_of(task, encoder, kept.batch(first), 0);
  const TaskGradient after = gradient_of(task, encoder, kept.batch(second), 1);

  EXPECT_EQ(outputs->kept(), 3u);
  expect_same(before.adapter, gradient_of(task, encoder, plain.batch(first), 0).adapter);
  expect_same(after.adapter, gradient_of(task, encoder, plain.batch(second), 1).adapter);
}

TEST(SharedWork, NothingIsKeptBeyondTheBudgetAndTheResultIsTheSame) {
  const at::NoGradGuard no_autograd;
  const ExactRows exact;
  const Encoder encoder = testing::random_encoder();
  const Task task = lora_task(encoder, 5, 8, {"layer.1.attention.self.query"});
  const EvaluationRows plain = rows_of(random_batch({5, 12, 1, 7}, 1));
  FrozenOutputsStore store(6 * 64 * sizeof(float));  // 6 tokens: rows 0 and 2
  const auto outputs = store.of("rows", 1, 4);
  const EvaluationRows kept = with_frozen_outputs(plain, outputs, encoder);
  const std::vector<std::uint32_t> all = {0, 1, 2, 3};

  kept.batch(all);
  const TaskGradient mixed = gradient_of(task, encoder, kept.batch(all), 1);

  EXPECT_EQ(outputs->kept(), 2u);
  expect_same(mixed.adapter, gradient_of(task, encoder, plain.batch(all), 1).adapter);
}

TEST(SharedWork, OneKeyIsKeptOnceForAllThatAskForIt) {
  FrozenOutputsStore store(1 << 20);

  EXPECT_EQ(store.of("a", 1, 4), store.of("a", 1, 4));
  EXPECT_NE(store.of("a", 1, 4), store.of("a", 2, 4));
  EXPECT_NE(store.of("a", 1, 4), store.of("b", 1, 4));
}

}  // namespace
}  // namespace ymir
