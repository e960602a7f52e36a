#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "ymir/tune/trainer/task_torch.h"

namespace ymir {
namespace {

std::span<const float> values_of(const at::Tensor& t) {
  return {t.const_data_ptr<float>(), static_cast<std::size_t>(t.numel())};
}

kernels::AdamW adam_options(const TrainSpec& train, double lr, std::int64_t updates) {
  kernels::AdamW options;
  options.lr = static_cast<float>(lr);
  options.beta1 = static_cast<float>(train.beta1);
  options.beta2 = static_cast<float>(train.beta2);
  options.epsilon = static_cast<float>(train.epsilon);
  options.decay = static_cast<float>(train.weight_decay);
  const auto t = static_cast<double>(updates);
  options.correction1 = static_cast<float>(1 - std::pow(train.beta1, t));
  options.correction2 = static_cast<float>(1 - std::pow(train.beta2, t));
  return options;
}

void update_block(const ParameterLayout& layout, kernels::AdamW options, const at::Tensor& gradient,
                  at::Tensor values, Moments& moments) {
  const float decay = options.decay;
  const float* g = gradient.const_data_ptr<float>();
  float* p = values.mutable_data_ptr<float>();
  float* m = moments.m.mutable_data_ptr<float>();
  float* v = moments.v.mutable_data_ptr<float>();
  for (const ParameterInfo& info : layout.infos()) {
    options.decay = info.decay ? decay : 0.0f;
    kernels::adamw(options, g + info.offset, info.count, p + info.offset, m + info.offset,
                   v + info.offset);
  }
}

// Moves the moments only: what a task needs to go on alone after a split.
void follow(const TrainSpec& train, const at::Tensor& gradient, Moments& moments) {
  kernels::AdamW options = adam_options(train, 0, 1);
  at::Tensor unused = at::zeros_like(gradient);
  kernels::adamw(options, gradient.const_data_ptr<float>(), gradient.numel(),
                 unused.mutable_data_ptr<float>(), moments.m.mutable_data_ptr<float>(),
                 moments.v.mutable_data_ptr<float>());
}

}  // namespace

Moments zero_moments(const ParameterLayout& layout) { return {layout.zeros(), layout.zeros()}; }

TaskGradient gradient_of(const Task& task, const Encoder& encoder, const Batch& batch,
                         std::uint32_t epoch) {
  const at::NoGradGuard no_autograd;
  const TaskSetup& setup = task.setup;
  TaskGradient out;
  out.adapter = setup.adapter.layout.zeros();
  out.head = setup.head.layout.zeros();
  out.rows = batch.input.layout.rows();
  out.tokens = batch.input.layout.tokens();
  const RandomKeys keys{setup.seed, epoch, batch.rows};
  const SlotTable slots = bind_slots(setup.adapter, task.adapter);
  GradientTable gradients = bind_gradients(setup.adapter, out.adapter);
  EncoderOptions options;
  options.keep_tape = true;
  options.hidden = setup.hidden;
  options.attention = setup.attention;
  options.keys = &keys;
  EncoderTape tape;
  HeadTape head_tape;
  const at::Tensor first = encode(encoder, slots, batch.input, options, &tape);
  const at::Tensor logits =
      head_forward(setup.head, task.head, encoder, first, &keys, setup.classifier, &head_tape);
  at::Tensor dlogits = at::empty(logits.sizes(), at::kFloat);
  const std::span<float> slope(dlogits.mutable_data_ptr<float>(),
                               static_cast<std::size_t>(dlogits.numel()));
  out.loss_sum = loss_of(batch.targets(setup.kind, setup.outputs), values_of(logits),
                         static_cast<double>(out.rows), slope);
  const at::Tensor dfirst =
      head_backward(setup.head, task.head, encoder, head_tape, dlogits, out.head);
  encode_backward(encoder, slots, tape, dfirst, &gradients, {});
  out.norm =
      std::sqrt(kernels::sum_of_squares(out.adapter.const_data_ptr<float>(), out.adapter.numel()) +
                kernels::sum_of_squares(out.head.const_data_ptr<float>(), out.head.numel()));
  return out;
}

bool clip(TaskGradient& gradient, double limit) {
  if (!std::isfinite(gradient.norm) || !std::isfinite(gradient.loss_sum)) return false;
  if (limit <= 0) return true;
  const double factor = limit / (gradient.norm + 1e-6);
  if (factor >= 1) return true;
  gradient.adapter.mul_(factor);
  gradient.head.mul_(factor);
  return true;
}

bool update_task(Task& task, TaskGradient& gradient) {
  const double lr = task.setup.schedule.at(task.step);
  ++task.step;
  if (!clip(gradient, task.setup.train.clip)) return false;
  ++task.updates;
  const kernels::AdamW options = adam_options(task.setup.train, lr, task.updates);
  update_block(task.setup.adapter.layout, options, gradient.adapter, task.adapter,
               task.adapter_moments);
  update_block(task.setup.head.layout, options, gradient.head, task.head, task.head_moments);
  return true;
}

bool update_pair(Task& a, Task& b, JointState& joint, TaskGradient& ga, TaskGradient& gb) {
  const double lr_a = a.setup.schedule.at(a.step), lr_b = b.setup.schedule.at(b.step);
  bool all_fine = true;
  at::Tensor sum;
  for (auto [task, gradient] : {std::pair{&a, &ga}, std::pair{&b, &gb}}) {
    const double lr = task->setup.schedule.at(task->step);
    ++task->step;
    if (!clip(*gradient, task->setup.train.clip)) {
      all_fine = false;
      continue;
    }
    ++task->updates;
    update_block(task->setup.head.layout, adam_options(task->setup.train, lr, task->updates),
                 gradient->head, task->head, task->head_moments);
    follow(task->setup.train, gradient->adapter, task->adapter_moments);
    sum = sum.defined() ? sum.add_(gradient->adapter) : gradient->adapter.clone();
  }
  if (!sum.defined()) return false;
  ++joint.updates;
  update_block(a.setup.adapter.layout,
               adam_options(a.setup.train, (lr_a + lr_b) / 2, joint.updates), sum, a.adapter,
               joint.moments);
  return all_fine;
}

at::Tensor logits_of(const TaskSetup& setup, const at::Tensor& adapter, const at::Tensor& head,
                     const Encoder& encoder, const EncoderInput& input) {
  const at::NoGradGuard no_autograd;
  const at::Tensor first =
      encode(encoder, bind_slots(setup.adapter, adapter), input, EncoderOptions{}, nullptr);
  return head_forward(setup.head, head, encoder, first, nullptr, setup.classifier, nullptr);
}

}  // namespace ymir
