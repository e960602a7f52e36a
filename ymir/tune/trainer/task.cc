#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "ymir/tune/model/plain_torch.h"
#include "ymir/tune/trainer/task_torch.h"

namespace ymir {
namespace {

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
  if (is_plain(values)) {
    for (const ParameterInfo& info : layout.infos()) {
      options.decay = info.decay ? decay : 0.0f;
      const auto part = [&](const at::Tensor& t) { return t.narrow(0, info.offset, info.count); };
      plain::adamw(options, part(gradient), part(values), part(moments.m), part(moments.v));
    }
    return;
  }
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
  if (is_plain(gradient)) return plain::adamw(options, gradient, unused, moments.m, moments.v);
  kernels::adamw(options, gradient.const_data_ptr<float>(), gradient.numel(),
                 unused.mutable_data_ptr<float>(), moments.m.mutable_data_ptr<float>(),
                 moments.v.mutable_data_ptr<float>());
}

}  // namespace

Moments zero_moments(const ParameterLayout& layout) { return {layout.zeros(), layout.zeros()}; }

std::string cannot_share_a_pass(const TaskSetup& a, const TaskSetup& b) {
  const auto is_plain_lora = [](const TaskSetup& setup) {
    return !setup.adapter.lora.empty() && setup.adapter.weights.empty() &&
           setup.adapter.bottlenecks.empty() && !setup.adapter.prefix &&
           std::none_of(setup.adapter.lora.begin(), setup.adapter.lora.end(),
                        [](const AdapterPlan::LoraPlace& place) { return place.magnitude; });
  };
  if (!is_plain_lora(a) || !is_plain_lora(b)) return "only LoRA without magnitudes can";
  if (a.kind == TaskKind::kLanguageModel || b.kind == TaskKind::kLanguageModel)
    return "language models can't";
  if (a.hidden.threshold != b.hidden.threshold || a.attention.threshold != b.attention.threshold)
    return "they drop out at different rates";
  const auto lowest = [](const TaskSetup& setup) {
    int layer = setup.adapter.layers;
    for (const auto& place : setup.adapter.lora) layer = std::min(layer, place.layer);
    return layer;
  };
  if (lowest(a) != lowest(b)) return "their lowest adapted layers differ";
  return "";
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

}  // namespace ymir
