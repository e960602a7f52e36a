#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>

#include <cmath>

#include "ymir/base/hash.h"
#include "ymir/base/rng.h"
#include "ymir/tune/petl/head_torch.h"

namespace ymir {
namespace {

constexpr const char* kPooler = "base_model.model.bert.pooler.dense";
constexpr const char* kClassifier = "base_model.model.classifier";

// A generator that belongs to one tensor: equal names and seeds give equal values anywhere.
Rng named_rng(std::uint64_t seed, const std::string& name) {
  const std::string digest = sha256(std::to_string(seed) + ":" + name);
  return Rng(std::stoull(digest.substr(0, 16), nullptr, 16));
}

std::size_t classifier_at(const Head& head) { return head.own_pooler ? 2 : 0; }

}  // namespace

void fill_normal(at::Tensor to, std::uint64_t seed, const std::string& name, double deviation) {
  Rng rng = named_rng(seed, name);
  float* data = to.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < to.numel(); ++i)
    data[i] = static_cast<float>(rng.normal() * deviation);
}

void fill_uniform(at::Tensor to, std::uint64_t seed, const std::string& name, double bound) {
  Rng rng = named_rng(seed, name);
  float* data = to.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < to.numel(); ++i)
    data[i] = static_cast<float>(rng.uniform(-bound, bound));
}

Head make_head(const Encoder& encoder, int outputs) {
  const std::int64_t width = encoder.shape.hidden;
  Head head;
  head.outputs = outputs;
  head.own_pooler = !encoder.pooler.weight.defined();
  if (head.own_pooler) {
    head.layout.add(std::string(kPooler) + ".weight", {width, width});
    head.layout.add(std::string(kPooler) + ".bias", {width}, false);
  }
  head.layout.add(std::string(kClassifier) + ".weight", {outputs, width});
  head.layout.add(std::string(kClassifier) + ".bias", {outputs}, false);
  return head;
}

at::Tensor initial_head(const Head& head, std::uint64_t seed) {
  at::Tensor values = head.layout.zeros();
  for (std::size_t i = 0; i < head.layout.infos().size(); ++i)
    if (head.layout.infos()[i].decay)  // the matrices
      fill_normal(head.layout.view(values, i), seed, head.layout.infos()[i].name, 0.02);
  return values;
}

at::Tensor pooled_features(const Head& head, const at::Tensor& values, const Encoder& encoder,
                           const at::Tensor& first) {
  if (!head.own_pooler) return product_with_bias(first, encoder.pooler).tanh_();
  return at::addmm(head.layout.view(values, 1), first, head.layout.view(values, 0).t()).tanh_();
}

at::Tensor head_forward(const Head& head, const at::Tensor& values, const Encoder& encoder,
                        const at::Tensor& first, const RandomKeys* keys, kernels::Dropout dropout,
                        HeadTape* tape) {
  const at::Tensor pooled = pooled_features(head, values, encoder, first);
  at::Tensor input = pooled, keep;
  if (keys != nullptr && dropout) {
    RowLayout lines;  // one line a row
    for (std::int64_t row = 0; row < first.size(0); ++row) lines.offsets.push_back(row + 1);
    keep = row_mask(lines, first.size(1), true, *keys, random_site(Purpose::kHead, 0), dropout);
    input = at::empty(pooled.sizes(), at::kFloat);
    kernels::apply_mask(pooled.const_data_ptr<float>(), keep.const_data_ptr<std::uint8_t>(),
                        dropout.scale, pooled.numel(), input.mutable_data_ptr<float>());
  }
  if (tape != nullptr) *tape = {first, pooled, input, keep, dropout.scale};
  const std::size_t at = classifier_at(head);
  return at::addmm(head.layout.view(values, at + 1), input, head.layout.view(values, at).t());
}

at::Tensor head_backward(const Head& head, const at::Tensor& values, const Encoder& encoder,
                         const HeadTape& tape, const at::Tensor& dlogits, at::Tensor gradient) {
  const std::size_t at = classifier_at(head);
  if (gradient.defined()) {
    multiply_add(head.layout.view(gradient, at), dlogits.t(), tape.input, 1, 1);
    head.layout.view(gradient, at + 1).add_(dlogits.sum(0));
  }
  at::Tensor dz = at::mm(dlogits, head.layout.view(values, at));
  float* d = dz.mutable_data_ptr<float>();
  if (tape.keep.defined())
    kernels::apply_mask(d, tape.keep.const_data_ptr<std::uint8_t>(), tape.scale, dz.numel(), d);
  const float* pooled = tape.pooled.const_data_ptr<float>();
  for (std::int64_t i = 0; i < dz.numel(); ++i) d[i] *= 1.0f - pooled[i] * pooled[i];
  if (!head.own_pooler) return product_backward(dz, encoder.pooler);
  if (gradient.defined()) {
    multiply_add(head.layout.view(gradient, 0), dz.t(), tape.first, 1, 1);
    head.layout.view(gradient, 1).add_(dz.sum(0));
  }
  return at::mm(dz, head.layout.view(values, 0));
}

}  // namespace ymir
