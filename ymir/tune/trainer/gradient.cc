#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/square.h>
#include <ATen/ops/sum.h>

#include <cmath>

#include "ymir/base/result.h"
#include "ymir/tune/model/exact_rows_torch.h"
#include "ymir/tune/model/plain_torch.h"
#include "ymir/tune/petl/lm_head_torch.h"
#include "ymir/tune/trainer/task_torch.h"

namespace ymir {
namespace {

std::span<const float> values_of(const at::Tensor& t) {
  return {t.const_data_ptr<float>(), static_cast<std::size_t>(t.numel())};
}

double square_of(const at::Tensor& flat) {
  if (is_plain(flat)) return flat.to(at::kDouble).square().sum().item<double>();
  return kernels::sum_of_squares(flat.const_data_ptr<float>(), flat.numel());
}

bool is_language_model(const TaskSetup& setup) { return setup.kind == TaskKind::kLanguageModel; }

// What the mean runs over.
std::int64_t labels_of(const TaskSetup& setup, const Batch& batch) {
  if (!is_language_model(setup)) return batch.num_rows();
  return count_labels(next_tokens(batch.input.layout, batch.input.ids, batch.learn));
}

// One pass forward and back over one batch: what flows into the flat blocks of `out`.
struct Pass {
  const Task& task;
  const Encoder& encoder;  // with the trained weights in place
  const SlotTable& slots;
  Trained& gradients;
  const EncoderOptions& options;
  double divisor = 1;
  TaskGradient& out;

  at::Tensor through_head(const Batch& batch, const at::Tensor& first) const {
    const TaskSetup& setup = task.setup;
    HeadTape tape;
    const at::Tensor logits =
        head_forward(setup.head, task.head, encoder, first, options.keys, setup.classifier, &tape);
    at::Tensor dlogits = at::empty(logits.sizes(), at::kFloat);
    const std::span<float> slope(dlogits.mutable_data_ptr<float>(),
                                 static_cast<std::size_t>(dlogits.numel()));
    out.loss_sum +=
        loss_of(batch.targets(setup.kind, setup.outputs), values_of(logits), divisor, slope);
    return head_backward(setup.head, task.head, encoder, tape, dlogits.to(first.device()), out.head,
                         &gradients.weights.pooler);
  }
  at::Tensor through_output(const Batch& batch, const at::Tensor& hidden) const {
    // A tied output layer is the embedding: both shares of its gradient meet there.
    const bool tied = encoder.output.weight.is_same(encoder.words);
    const CausalLoss loss = causal_loss(
        encoder, hidden, next_tokens(batch.input.layout, batch.input.ids, batch.learn), divisor,
        true, tied ? gradients.weights.words : gradients.weights.output.weight);
    out.loss_sum += loss.sum;
    return loss.dhidden;
  }
  void run(const Batch& batch) const {
    EncoderTape tape;
    const at::Tensor result = encode(encoder, slots, batch.input, options, &tape);
    const at::Tensor dresult =
        is_language_model(task.setup) ? through_output(batch, result) : through_head(batch, result);
    encode_backward(encoder, slots, batch.input, tape, dresult, &gradients, {});
  }
};

}  // namespace

Batch part_of(const Batch& batch, std::int64_t first, std::int64_t count) {
  Batch part;
  const RowLayout& layout = batch.input.layout;
  const auto row = [](const auto& values, std::int64_t begin, std::int64_t end) {
    using Values = std::decay_t<decltype(values)>;
    return values.empty() ? Values{} : Values(values.begin() + begin, values.begin() + end);
  };
  const std::int64_t begin = layout.offsets[static_cast<std::size_t>(first)];
  const std::int64_t end = layout.offsets[static_cast<std::size_t>(first + count)];
  for (std::int64_t i = 1; i <= count; ++i)
    part.input.layout.offsets.push_back(layout.offsets[static_cast<std::size_t>(first + i)] -
                                        begin);
  part.input.ids = row(batch.input.ids, begin, end);
  part.input.types = row(batch.input.types, begin, end);
  if (batch.input.pixels.defined()) part.input.pixels = batch.input.pixels.narrow(0, first, count);
  if (batch.input.hidden.defined())
    part.input.hidden = batch.input.hidden.narrow(0, begin, end - begin);
  part.input.first_layer = batch.input.first_layer;
  part.rows = row(batch.rows, first, first + count);
  part.classes = row(batch.classes, first, first + count);
  const auto outputs = static_cast<std::int64_t>(batch.values.size()) / layout.rows();
  part.values = row(batch.values, first * outputs, (first + count) * outputs);
  part.learn = row(batch.learn, begin, end);
  return part;
}

namespace {

TaskGradient zero_gradient(const Task& task, const Batch& batch) {
  TaskGradient out;
  out.adapter = task.setup.adapter.layout.zeros().to(task.adapter.device());
  out.head = task.setup.head.layout.zeros().to(task.head.device());
  out.rows = batch.num_rows();
  out.tokens = batch.input.layout.tokens();
  out.labels = labels_of(task.setup, batch);
  return out;
}

void append(EncoderInput& all, const EncoderInput& part) {
  const std::int64_t before = all.layout.tokens();
  for (std::size_t i = 1; i < part.layout.offsets.size(); ++i)
    all.layout.offsets.push_back(before + part.layout.offsets[i]);
  all.ids.insert(all.ids.end(), part.ids.begin(), part.ids.end());
  all.types.insert(all.types.end(), part.types.begin(), part.types.end());
  const auto join = [](at::Tensor& whole, const at::Tensor& more) {
    if (more.defined()) whole = whole.defined() ? at::cat({whole, more}) : more;
  };
  join(all.pixels, part.pixels);
  join(all.hidden, part.hidden);
  all.first_layer = part.first_layer;
}

}  // namespace

std::vector<TaskGradient> gradients_of(std::span<const TaskBatch> parts, const Encoder& encoder) {
  const at::NoGradGuard no_autograd;
  const ExactRows exact;
  const TaskSetup& setup = parts.front().task.setup;
  std::vector<TaskGradient> out;
  std::vector<Trained> trained, gradients;
  EncoderInput input;
  std::vector<std::uint32_t> rows, epochs;
  std::vector<std::uint64_t> seeds;
  for (const TaskBatch& part : parts) {
    out.push_back(zero_gradient(part.task, part.batch));
    trained.push_back(bind(part.task.setup.adapter, part.task.adapter));
    gradients.push_back(bind(part.task.setup.adapter, out.back().adapter));
    append(input, part.batch.input);
    rows.insert(rows.end(), part.batch.rows.begin(), part.batch.rows.end());
    seeds.resize(rows.size(), part.task.setup.seed);
    epochs.resize(rows.size(), part.epoch);
  }
  std::vector<JobRows> shares;
  std::vector<SlotTable*> tables;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    shares.push_back({out[i].rows, &trained[i].slots});
    tables.push_back(&gradients[i].slots);
  }
  const RowShares slots(std::move(shares));
  const RandomKeys keys{0, 0, rows, seeds, epochs};
  EncoderOptions options;
  options.keep_tape = true;
  options.hidden = setup.hidden;
  options.attention = setup.attention;
  options.keys = &keys;
  EncoderTape tape;
  const at::Tensor result = encode(encoder, slots, input, options, &tape);
  const at::Tensor dresult = at::empty(result.sizes(), result.options());
  std::int64_t first = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const RandomKeys own{parts[i].task.setup.seed, parts[i].epoch, parts[i].batch.rows, {}, {}};
    options.keys = &own;
    const Pass pass{parts[i].task, encoder, trained[i].slots,
                    gradients[i],  options, static_cast<double>(out[i].labels),
                    out[i]};
    dresult.narrow(0, first, out[i].rows)
        .copy_(pass.through_head(parts[i].batch, result.narrow(0, first, out[i].rows)));
    first += out[i].rows;
  }
  encode_backward(encoder, slots, input, tape, dresult, tables);
  for (TaskGradient& g : out) g.norm = std::sqrt(square_of(g.adapter) + square_of(g.head));
  return out;
}

TaskGradient gradient_of(const Task& task, const Encoder& encoder, const Batch& batch,
                         std::uint32_t epoch, std::int64_t micro_rows, bool recompute) {
  const at::NoGradGuard no_autograd;
  const TaskSetup& setup = task.setup;
  TaskGradient out = zero_gradient(task, batch);
  const Trained trained = bind(setup.adapter, task.adapter);
  Trained gradients = bind(setup.adapter, out.adapter);
  const Encoder model = with_weights(encoder, trained.weights);
  EncoderOptions options;
  options.lines = is_language_model(setup) ? Lines::kAll : Lines::kPooled;
  options.keep_tape = true;
  options.recompute = recompute;
  options.trained = &gradients.weights;
  options.hidden = setup.hidden;
  options.attention = setup.attention;
  const std::int64_t limit = micro_rows > 0 ? micro_rows : out.rows;
  const std::int64_t shares = (out.rows + limit - 1) / limit;
  for (std::int64_t share = 0; share < shares; ++share) {
    const std::int64_t first = out.rows * share / shares, end = out.rows * (share + 1) / shares;
    const Batch part = shares == 1 ? batch : part_of(batch, first, end - first);
    const RandomKeys keys{setup.seed, epoch, part.rows, {}, {}};
    options.keys = &keys;
    Pass{task,      model,   trained.slots,
         gradients, options, static_cast<double>(std::max<std::int64_t>(1, out.labels)),
         out}
        .run(part);
  }
  out.norm = std::sqrt(square_of(out.adapter) + square_of(out.head));
  return out;
}

at::Tensor logits_of(const TaskSetup& setup, const at::Tensor& adapter, const at::Tensor& head,
                     const Encoder& encoder, const EncoderInput& input) {
  const at::NoGradGuard no_autograd;
  const Trained trained = bind(setup.adapter, adapter);
  const Encoder model = with_weights(encoder, trained.weights);
  EncoderOptions options;
  if (is_language_model(setup)) {
    options.lines = Lines::kAll;
    return output_logits(model, encode(model, trained.slots, input, options, nullptr)).cpu();
  }
  const at::Tensor first = encode(model, trained.slots, input, options, nullptr);
  return head_forward(setup.head, head, model, first, nullptr, setup.classifier, nullptr).cpu();
}

at::Tensor next_logits(const TaskSetup& setup, const at::Tensor& adapter, const Encoder& encoder,
                       const EncoderInput& input) {
  const at::NoGradGuard no_autograd;
  const Trained trained = bind(setup.adapter, adapter);
  const Encoder model = with_weights(encoder, trained.weights);
  return output_logits(model, encode(model, trained.slots, input, {}, nullptr)).cpu();
}

LossSum causal_loss_of(const TaskSetup& setup, const at::Tensor& adapter, const Encoder& encoder,
                       const Batch& batch) {
  const at::NoGradGuard no_autograd;
  const Trained trained = bind(setup.adapter, adapter);
  const Encoder model = with_weights(encoder, trained.weights);
  EncoderOptions options;
  options.lines = Lines::kAll;
  const at::Tensor hidden = encode(model, trained.slots, batch.input, options, nullptr);
  const auto next = next_tokens(batch.input.layout, batch.input.ids, batch.learn);
  return {causal_loss(model, hidden, next, 1, false, {}).sum, count_labels(next)};
}

}  // namespace ymir
