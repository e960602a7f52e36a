#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>

#include <cmath>

#include "ymir/base/hash.h"
#include "ymir/base/rng.h"
#include "ymir/tune/petl/head_torch.h"

namespace ymir {
namespace {

constexpr std::string_view kPrefix = "base_model.model.";

// A generator that belongs to one tensor: equal names and seeds give equal values anywhere.
Rng named_rng(std::uint64_t seed, const std::string& name) {
  const std::string digest = sha256(std::to_string(seed) + ":" + name);
  return Rng(std::stoull(digest.substr(0, 16), nullptr, 16));
}

at::Tensor dropped(const at::Tensor& x, const RandomKeys* keys, kernels::Dropout dropout, int place,
                   at::Tensor* keep) {
  if (keys == nullptr || !dropout) return x;
  *keep = row_mask(one_line_a_row(x.size(0)), x.size(1), *keys,
                   random_site(Purpose::kHead, 0, place), dropout);
  return masked(x, *keep, dropout.scale);
}

// The dense layer with its activation.
at::Tensor dense(const Head& head, const at::Tensor& values, const Encoder& encoder,
                 const at::Tensor& x) {
  if (head.kind == HeadKind::kClassifier) return x;
  at::Tensor z = head.own_dense
                     ? at::addmm(head.layout.view(values, 1), x, head.layout.view(values, 0).t())
                     : product_with_bias(x, encoder.pooler);
  return head.kind == HeadKind::kDenseRelu ? z.relu_() : z.tanh_();
}

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
  const Family& family = family_of(encoder.shape.family);
  const std::int64_t width = encoder.shape.hidden;
  Head head;
  head.outputs = outputs;
  head.kind = family.head;
  head.own_dense = family.head != HeadKind::kClassifier &&
                   !(family.head == HeadKind::kPooler && encoder.pooler.weight.defined());
  head.bias = family.classifier_bias;
  const auto name = [](std::string_view module, std::string_view parameter) {
    return std::string(kPrefix) + std::string(module) + std::string(parameter);
  };
  if (head.own_dense) {
    head.layout.add(name(family.head_dense, ".weight"), {width, width});
    head.layout.add(name(family.head_dense, ".bias"), {width}, false);
  }
  head.layout.add(name(family.classifier, ".weight"), {outputs, width});
  if (head.bias) head.layout.add(name(family.classifier, ".bias"), {outputs}, false);
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
  return dense(head, values, encoder, first);
}

at::Tensor head_forward(const Head& head, const at::Tensor& values, const Encoder& encoder,
                        const at::Tensor& first, const RandomKeys* keys, kernels::Dropout dropout,
                        HeadTape* tape) {
  at::Tensor keep_first, keep;
  const at::Tensor read =
      head.kind == HeadKind::kDenseTanh ? dropped(first, keys, dropout, 1, &keep_first) : first;
  const at::Tensor pooled = dense(head, values, encoder, read);
  const at::Tensor input = dropped(pooled, keys, dropout, 0, &keep);
  if (tape != nullptr) *tape = {read, keep_first, pooled, input, keep, dropout.scale};
  const at::Tensor weight = head.layout.view(values, head.classifier());
  if (!head.bias) return at::mm(input, weight.t());
  return at::addmm(head.layout.view(values, head.classifier() + 1), input, weight.t());
}

at::Tensor head_backward(const Head& head, const at::Tensor& values, const Encoder& encoder,
                         const HeadTape& tape, const at::Tensor& dlogits, at::Tensor gradient,
                         Linear* pooler) {
  const std::size_t at = head.classifier();
  if (gradient.defined()) {
    multiply_add(head.layout.view(gradient, at), dlogits.t(), tape.input, 1, 1);
    if (head.bias) head.layout.view(gradient, at + 1).add_(dlogits.sum(0));
  }
  at::Tensor dz = masked(at::mm(dlogits, head.layout.view(values, at)), tape.keep, tape.scale);
  if (head.kind == HeadKind::kClassifier) return dz;
  if (head.kind == HeadKind::kDenseRelu) {
    dz.mul_(tape.pooled > 0);
  } else {
    dz.mul_(1 - tape.pooled * tape.pooled);
  }
  at::Tensor dfirst;
  if (head.own_dense) {
    if (gradient.defined()) {
      multiply_add(head.layout.view(gradient, 0), dz.t(), tape.first, 1, 1);
      head.layout.view(gradient, 1).add_(dz.sum(0));
    }
    dfirst = at::mm(dz, head.layout.view(values, 0));
  } else {
    if (pooler != nullptr) linear_gradient(tape.first, dz, *pooler);
    dfirst = product_backward(dz, encoder.pooler);
  }
  return masked(dfirst, tape.keep_first, tape.scale);
}

}  // namespace ymir
