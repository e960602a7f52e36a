// Two tasks on one adapter, and one step of one task: what may influence what.
#include "ymir/tune/trainer/task_torch.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "ymir/tune/trainer/random_batch_torch.h"

namespace ymir {
namespace {

using testing::random_batch;

Task tiny_task(const Encoder& encoder, std::uint64_t seed, double dropout = 0.1) {
  Task task;
  MethodSpec method;
  method.targets = {"query", "value"};
  task.setup.outputs = 2;
  task.setup.seed = seed;
  task.setup.train.lr = 1e-2;
  task.setup.train.schedule = "constant";
  task.setup.schedule = *make_schedule(task.setup.train, 100);
  task.setup.adapter = *make_adapter(encoder, method);
  task.setup.head = make_head(encoder, 2);
  task.setup.hidden = task.setup.attention = task.setup.classifier = kernels::make_dropout(dropout);
  task.adapter = initial_adapter(task.setup.adapter, encoder, 1);
  fill_normal(task.adapter, 3, "start", 0.05);
  task.head = initial_head(task.setup.head, seed);
  task.adapter_moments = zero_moments(task.setup.adapter.layout);
  task.head_moments = zero_moments(task.setup.head.layout);
  return task;
}

struct PairResult {
  Task a, b;
  JointState joint;
};

// `steps` joint steps; B sees its rows repeated `copies` times.
PairResult joint_steps(const Encoder& encoder, int steps, std::uint64_t seed_b, int copies,
                       int outputs_b = 2) {
  PairResult pair{tiny_task(encoder, 5), tiny_task(encoder, seed_b), {}};
  if (outputs_b != 2) {
    pair.b.setup.outputs = outputs_b;
    pair.b.setup.head = make_head(encoder, outputs_b);
    pair.b.head = initial_head(pair.b.setup.head, seed_b);
    pair.b.head_moments = zero_moments(pair.b.setup.head.layout);
  }
  pair.b.adapter = pair.a.adapter;
  pair.joint.moments = zero_moments(pair.a.setup.adapter.layout);
  std::vector<int> lengths;
  for (int copy = 0; copy < copies; ++copy) lengths.insert(lengths.end(), {4, 9, 6});
  for (int step = 0; step < steps; ++step) {
    TaskGradient ga = gradient_of(pair.a, encoder, random_batch({5, 8, 11, 3}, 7), 0);
    TaskGradient gb = gradient_of(pair.b, encoder, random_batch(lengths, 8), 0);
    update_pair(pair.a, pair.b, pair.joint, ga, gb);
  }
  return pair;
}

TEST(Pair, GradientIsolation) {  // A's gradient is bit-equal whatever B's rows, labels and head are
  const at::NoGradGuard no_autograd;
  const Encoder encoder = testing::random_encoder();

  const PairResult with_one = joint_steps(encoder, 1, 6, 1);
  const PairResult with_other = joint_steps(encoder, 1, 99, 3, 4);

  EXPECT_TRUE(at::equal(with_one.a.adapter_moments.m, with_other.a.adapter_moments.m));
  EXPECT_TRUE(at::equal(with_one.a.head, with_other.a.head));
  EXPECT_FALSE(at::equal(with_one.a.adapter, with_other.a.adapter));
}

TEST(Pair, OwnMomentsFollowTheTasksOwnGradientAsIfAlone) {
  const at::NoGradGuard no_autograd;
  const Encoder encoder = testing::random_encoder();
  Task alone = tiny_task(encoder, 5);

  const PairResult pair = joint_steps(encoder, 1, 6, 1);
  TaskGradient gradient = gradient_of(alone, encoder, random_batch({5, 8, 11, 3}, 7), 0);
  update_task(alone, gradient);

  EXPECT_TRUE(at::equal(pair.a.adapter_moments.m, alone.adapter_moments.m));
  EXPECT_TRUE(at::equal(pair.a.adapter_moments.v, alone.adapter_moments.v));
  EXPECT_TRUE(at::equal(pair.a.head, alone.head));
}

TEST(Pair, LossNormalisation) {  // doubling B's rows moves A's share and B's direction by nothing
  const at::NoGradGuard no_autograd;
  const Encoder encoder = testing::random_encoder();
  Task once = tiny_task(encoder, 6, 0), twice = tiny_task(encoder, 6, 0);

  const TaskGradient g = gradient_of(once, encoder, random_batch({4, 9}, 8), 0);
  Batch doubled = random_batch({4, 9}, 8);
  const Batch again = doubled;
  doubled.input.ids.insert(doubled.input.ids.end(), again.input.ids.begin(), again.input.ids.end());
  doubled.input.layout.offsets = {0, 4, 13, 17, 26};
  doubled.rows = {0, 1, 0, 1};
  doubled.classes = {0, 1, 0, 1};
  const TaskGradient h = gradient_of(twice, encoder, doubled, 0);

  const float *x = g.adapter.const_data_ptr<float>(), *y = h.adapter.const_data_ptr<float>();
  for (std::int64_t i = 0; i < g.adapter.numel(); ++i) ASSERT_NEAR(x[i], y[i], 1e-6);
  EXPECT_NEAR(h.norm, g.norm, 1e-6);
}

TEST(Task, AGradientThatIsNotFiniteChangesNothingButTheCursor) {
  const at::NoGradGuard no_autograd;
  const Encoder encoder = testing::random_encoder();
  Task task = tiny_task(encoder, 5);
  const at::Tensor before = task.adapter.clone();
  TaskGradient gradient = gradient_of(task, encoder, random_batch({5, 8}, 7), 0);
  gradient.norm = std::numeric_limits<double>::quiet_NaN();

  const bool updated = update_task(task, gradient);

  EXPECT_FALSE(updated);
  EXPECT_TRUE(at::equal(task.adapter, before));
  EXPECT_EQ(task.step, 1);
  EXPECT_EQ(task.updates, 0);
}

TEST(Task, ClippingScalesBothBlocksToTheLimit) {
  const at::NoGradGuard no_autograd;
  const Encoder encoder = testing::random_encoder();
  const Task task = tiny_task(encoder, 5);
  TaskGradient gradient = gradient_of(task, encoder, random_batch({5, 8}, 7), 0);
  const double limit = gradient.norm / 4;

  clip(gradient, limit);

  const double norm = std::sqrt(
      kernels::sum_of_squares(gradient.adapter.const_data_ptr<float>(), gradient.adapter.numel()) +
      kernels::sum_of_squares(gradient.head.const_data_ptr<float>(), gradient.head.numel()));
  EXPECT_NEAR(norm, limit, 1e-4 * limit);
}

}  // namespace
}  // namespace ymir
