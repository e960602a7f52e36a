#include "ymir/tune/trainer/frozen_outputs_torch.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/prune.h"
#include "ymir/tune/model/exact_rows_torch.h"

namespace ymir {
namespace {

constexpr const char* kExtension = ".ymirkept";

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

at::Tensor FrozenOutputs::compute(const Encoder& encoder, const EncoderInput& input) const {
  const ExactRows exact;
  EncoderOptions options;
  options.only_layers = layers_;
  return encode(encoder, no_slots(encoder.shape), input, options, nullptr);
}

void FrozenOutputs::fill(const Encoder& encoder, Batch& batch) {
  const at::NoGradGuard no_autograd;
  EncoderInput& input = batch.input;
  const std::int64_t width = encoder.shape.hidden;
  at::Tensor hidden = at::empty({input.layout.tokens(), width}, at::kFloat);
  float* const begin = hidden.mutable_data_ptr<float>();
  const auto lines_of = [&](std::size_t i) {
    return std::span(begin + input.layout.offsets[i] * width,
                     begin + input.layout.offsets[i + 1] * width);
  };
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < batch.rows.size(); ++i)
    if (!rows_.read(batch.rows[i], lines_of(i))) missing.push_back(i);
  if (!missing.empty()) {
    const at::Tensor computed = compute(encoder, some_rows(input, missing));
    const float* from = computed.const_data_ptr<float>();
    for (const std::size_t i : missing) {
      const auto to = lines_of(i);
      std::copy_n(from, to.size(), to.begin());
      rows_.write(batch.rows[i], to);
      from += to.size();
    }
  }
  input.hidden = hidden;
  input.first_layer = layers_;
}

Result<std::shared_ptr<FrozenOutputs>> FrozenOutputsCache::open(const std::string& key, int layers,
                                                                const Encoder& encoder,
                                                                const EvaluationRows& rows) const {
  YMIR_TRY(make_folders(folder));
  std::vector<std::int64_t> sizes;
  for (const std::int64_t length : rows.lengths) sizes.push_back(length * encoder.shape.hidden);
  const std::string path = fmt::format(
      "{}/{}{}", folder, sha256(fmt::format("{} {} {}", YMIR_VERSION, key, layers)), kExtension);
  YMIR_TRY_ASSIGN(KeptRows kept, KeptRows::open(path, sizes, max_bytes));
  mark_used(path);
  prune_folder(folder, kExtension, max_bytes);
  return std::make_shared<FrozenOutputs>(layers, std::move(kept));
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
