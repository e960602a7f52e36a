#include "ymir/tune/trainer/frozen_outputs_torch.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <numeric>

#include "ymir/base/result.h"
#include "ymir/tune/model/exact_rows_torch.h"

namespace ymir {
namespace {

// Some rows of a batch, by their places in it.
EncoderInput some_rows(const EncoderInput& input, const std::vector<std::size_t>& places) {
  EncoderInput some;
  std::vector<at::Tensor> pixels;
  for (const std::size_t place : places) {
    const std::int64_t begin = input.layout.offsets[place], end = input.layout.offsets[place + 1];
    some.layout.offsets.push_back(some.layout.tokens() + end - begin);
    if (!input.ids.empty())
      some.ids.insert(some.ids.end(), input.ids.begin() + begin, input.ids.begin() + end);
    if (!input.types.empty())
      some.types.insert(some.types.end(), input.types.begin() + begin, input.types.begin() + end);
    if (input.pixels.defined())
      pixels.push_back(input.pixels.select(0, static_cast<std::int64_t>(place)));
  }
  if (!pixels.empty()) some.pixels = at::stack(pixels);
  return some;
}

}  // namespace

FrozenOutputs::FrozenOutputs(int layers, std::size_t rows, std::shared_ptr<Budget> budget)
    : layers_(layers), rows_(rows), budget_(std::move(budget)) {}

FrozenOutputs::~FrozenOutputs() { budget_->used -= bytes_; }

at::Tensor FrozenOutputs::compute(const Encoder& encoder, const EncoderInput& input) const {
  const ExactRows exact;
  EncoderOptions options;
  options.only_layers = layers_;
  return encode(encoder, no_slots(encoder.shape), input, options, nullptr);
}

void FrozenOutputs::keep(std::uint32_t row, const at::Tensor& lines) {
  const auto size = static_cast<std::size_t>(lines.numel()) * sizeof(float);
  if (rows_[row].defined() || budget_->used + size > budget_->limit) return;
  rows_[row] = lines.clone();
  budget_->used += size;
  bytes_ += size;
  ++kept_;
}

void FrozenOutputs::fill(const Encoder& encoder, Batch& batch) {
  const at::NoGradGuard no_autograd;
  EncoderInput& input = batch.input;
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < batch.rows.size(); ++i)
    if (!rows_[batch.rows[i]].defined()) missing.push_back(i);
  const bool all = missing.size() == batch.rows.size();
  at::Tensor hidden, computed;
  if (all) {
    hidden = computed = compute(encoder, input);
  } else {
    hidden = at::empty({input.layout.tokens(), encoder.shape.hidden}, at::kFloat);
    if (!missing.empty()) computed = compute(encoder, some_rows(input, missing));
  }
  std::int64_t line = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    const std::int64_t count = input.layout.length(static_cast<std::int64_t>(i));
    at::Tensor to = hidden.narrow(0, input.layout.offsets[i], count);
    if (next < missing.size() && missing[next] == i) {
      const at::Tensor lines = computed.narrow(0, line, count);
      if (!all) to.copy_(lines);
      keep(batch.rows[i], lines);
      line += count;
      ++next;
    } else {
      const at::Tensor& kept = rows_[batch.rows[i]];
      YMIR_CHECK(kept.size(0) == count, "a row keeps its length");
      to.copy_(kept);
    }
  }
  input.hidden = hidden;
  input.first_layer = layers_;
}

FrozenOutputsStore::FrozenOutputsStore(std::size_t limit)
    : budget_(std::make_shared<FrozenOutputs::Budget>(FrozenOutputs::Budget{limit, 0})) {}

std::shared_ptr<FrozenOutputs> FrozenOutputsStore::of(const std::string& key, int layers,
                                                      std::size_t rows) {
  const std::string whole = fmt::format("{} {} {}", key, layers, rows);
  for (auto it = kept_.begin(); it != kept_.end(); ++it) {
    if (it->key != whole) continue;
    kept_.splice(kept_.begin(), kept_, it);
    return kept_.front().outputs;
  }
  while (!kept_.empty() && budget_->used > budget_->limit / 4 * 3 &&
         kept_.back().outputs.use_count() == 1)
    kept_.pop_back();
  kept_.push_front({whole, std::make_shared<FrozenOutputs>(layers, rows, budget_)});
  return kept_.front().outputs;
}

EvaluationRows with_frozen_outputs(const EvaluationRows& rows,
                                   std::shared_ptr<FrozenOutputs> outputs, const Encoder& encoder) {
  EvaluationRows out = rows;
  out.batch = [make = rows.batch, outputs = std::move(outputs),
               &encoder](std::span<const std::uint32_t> chosen) {
    Batch batch = make(chosen);
    outputs->fill(encoder, batch);
    return batch;
  };
  return out;
}

}  // namespace ymir
