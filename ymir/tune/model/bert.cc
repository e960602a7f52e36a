#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include "ymir/base/result.h"
#include "ymir/tune/model/bert_torch.h"

namespace ymir {
namespace {

std::size_t index(Site site) { return static_cast<std::size_t>(site); }

at::Tensor first_lines(const at::Tensor& x, const RowLayout& layout) {
  const std::int64_t width = x.size(1);
  at::Tensor out = at::empty({layout.rows(), width}, at::kFloat);
  for (std::int64_t row = 0; row < layout.rows(); ++row)
    out.select(0, row).copy_(x.select(0, layout.offsets[static_cast<std::size_t>(row)]));
  return out;
}

at::Tensor embed(const Encoder& encoder, const EncoderInput& input, const EncoderOptions& options) {
  const std::int64_t width = encoder.shape.hidden;
  at::Tensor x = at::empty({input.layout.tokens(), width}, at::kFloat);
  const float* words = encoder.words.const_data_ptr<float>();
  const float* positions = encoder.positions.const_data_ptr<float>();
  const float* types = encoder.token_types.const_data_ptr<float>();
  const kernels::Norm norm{encoder.embedding_norm.gain.const_data_ptr<float>(),
                           encoder.embedding_norm.bias.const_data_ptr<float>(),
                           static_cast<float>(encoder.embedding_norm.epsilon), width};
  float* out = x.mutable_data_ptr<float>();
  at::parallel_for(0, input.layout.rows(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t first = input.layout.offsets[static_cast<std::size_t>(row)];
      for (std::int64_t t = 0; t < input.layout.length(row); ++t) {
        const auto at = static_cast<std::size_t>(first + t);
        const float* word = words + input.ids[at] * width;
        const float* type = types + (input.types.empty() ? 0 : input.types[at]) * width;
        const float* position = positions + t * width;
        float* line = out + (first + t) * width;
        for (std::int64_t i = 0; i < width; ++i) line[i] = (word[i] + type[i]) + position[i];
        kernels::norm_row(norm, line, line, nullptr, nullptr);
      }
    }
  });
  if (options.keys == nullptr || !options.hidden) return x;
  const at::Tensor keep = row_mask(input.layout, width, false, *options.keys,
                                   random_site(Purpose::kEmbedding, 0), options.hidden);
  kernels::apply_mask(out, keep.const_data_ptr<std::uint8_t>(), options.hidden.scale, x.numel(),
                      out);
  return x;
}

// One layer of one pass: the arguments that every step of it needs.
struct LayerPass {
  const Encoder& encoder;
  const std::array<LoraSlot, kNumSites>& slots;
  const RowLayout& layout;
  const EncoderOptions& options;
  int number = 0;
  bool last = false;  // first tokens only, beyond keys and values
  LayerTape* tape = nullptr;

  const EncoderLayer& weights() const { return encoder.layers[static_cast<std::size_t>(number)]; }

  void adapt(Site site, bool first_only, const at::Tensor& x, at::Tensor y) const {
    const LoraSlot& slot = slots[index(site)];
    if (!slot) return;
    lora_add(slot, layout, first_only, x, std::move(y), options.keys,
             tape != nullptr ? &tape->lora[index(site)] : nullptr);
  }
  bool keeps(Site site) const {
    return tape != nullptr && (options.keep_inputs || slots[index(site)]);
  }
  at::Tensor mask(Purpose purpose) const {
    if (options.keys == nullptr || !options.hidden) return {};
    return row_mask(layout, encoder.shape.hidden, last, *options.keys, random_site(purpose, number),
                    options.hidden);
  }
};

struct Projections {
  at::Tensor q{}, k{}, v{};
};

Projections project(const LayerPass& pass, const at::Tensor& x, const at::Tensor& first) {
  const Linear& qkv = pass.weights().qkv;
  const std::int64_t width = pass.encoder.shape.hidden;
  Projections out;
  if (pass.last) {
    const at::Tensor kv = product_with_bias(x, qkv.slice(width, 2 * width));
    out = {product_with_bias(first, qkv.slice(0, width)), kv.narrow(1, 0, width),
           kv.narrow(1, width, width)};
  } else {
    const at::Tensor all = product_with_bias(x, qkv);
    out = {all.narrow(1, 0, width), all.narrow(1, width, width), all.narrow(1, 2 * width, width)};
  }
  pass.adapt(Site::kQuery, pass.last, first, out.q);
  pass.adapt(Site::kKey, false, x, out.k);
  pass.adapt(Site::kValue, false, x, out.v);
  return out;
}

at::Tensor forward_layer(const LayerPass& pass, const at::Tensor& x) {
  const EncoderLayer& w = pass.weights();
  LayerTape* tape = pass.tape;
  const float scale = pass.options.hidden.scale;
  const at::Tensor first = pass.last ? first_lines(x, pass.layout) : x;
  const auto [q, k, v] = project(pass, x, first);
  const RandomKeys none{};
  const bool random = pass.options.keys != nullptr;
  const at::Tensor context = attention(pass.layout, pass.encoder.shape.heads, pass.last, q, k, v,
                                       random ? pass.options.attention : kernels::Dropout{},
                                       random ? *pass.options.keys : none, pass.number,
                                       tape != nullptr ? &tape->attention : nullptr);
  at::Tensor z = product(context, w.attention_out);
  pass.adapt(Site::kAttentionOut, pass.last, context, z);
  const at::Tensor middle = residual_norm(w.attention_norm, w.attention_out.bias, z, first,
                                          pass.mask(Purpose::kAttentionOut), scale,
                                          tape != nullptr ? &tape->attention_norm : nullptr);
  at::Tensor f = product(middle, w.ffn_in);
  pass.adapt(Site::kFfnIn, pass.last, middle, f);
  const at::Tensor hidden = gelu(f, w.ffn_in.bias, tape != nullptr ? &tape->slope : nullptr);
  at::Tensor z2 = product(hidden, w.ffn_out);
  pass.adapt(Site::kFfnOut, pass.last, hidden, z2);
  if (tape != nullptr) {
    tape->x = x;
    tape->first = first;
    tape->q = q, tape->k = k, tape->v = v;
    if (pass.keeps(Site::kAttentionOut)) tape->context = context;
    if (pass.keeps(Site::kFfnIn)) tape->middle = middle;
    if (pass.keeps(Site::kFfnOut)) tape->hidden = hidden;
  }
  return residual_norm(w.ffn_norm, w.ffn_out.bias, z2, middle, pass.mask(Purpose::kFfnOut), scale,
                       tape != nullptr ? &tape->ffn_norm : nullptr);
}

struct LayerBackward {
  const Encoder& encoder;
  const std::array<LoraSlot, kNumSites>& slots;
  std::array<SlotGradient, kNumSites>* gradients;
  const SiteObserver& observer;
  const RowLayout& layout;
  LayerTape& tape;
  int number = 0;
  bool last = false;
  bool need_dx = false;

  // What a site owes besides the frozen product: the observer's look, the slot's gradients.
  void site(Site at_site, bool first_only, const at::Tensor& x, const at::Tensor& dy,
            at::Tensor dx) const {
    if (observer) observer(number, at_site, first_only, x, dy);
    const LoraSlot& slot = slots[index(at_site)];
    if (!slot || gradients == nullptr) return;
    const SlotGradient& g = (*gradients)[index(at_site)];
    lora_backward(slot, tape.lora[index(at_site)], x, dy, g.a, g.b, std::move(dx));
  }
};

// From the gradient at the layer's output to that at the attention's output, leaving in
// `dresidual` what flows past the attention.
at::Tensor backward_upper(const LayerBackward& pass, const at::Tensor& dout,
                          at::Tensor* dresidual) {
  const EncoderLayer& w = pass.encoder.layers[static_cast<std::size_t>(pass.number)];
  auto [dz2, dmiddle] = residual_norm_backward(w.ffn_norm, pass.tape.ffn_norm, dout);
  at::Tensor dhidden = product_backward(dz2, w.ffn_out);
  pass.site(Site::kFfnOut, pass.last, pass.tape.hidden, dz2, dhidden);
  float* d = dhidden.mutable_data_ptr<float>();
  const float* slope = pass.tape.slope.const_data_ptr<float>();
  at::parallel_for(0, dhidden.numel(), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    kernels::multiply(d + begin, slope + begin, end - begin);
  });
  // dmiddle may be the same tensor as dz2 (no dropout); dz2 is not needed any more.
  dmiddle = product_backward(dhidden, w.ffn_in, dmiddle);
  pass.site(Site::kFfnIn, pass.last, pass.tape.middle, dhidden, dmiddle);
  auto [dz, dfirst] = residual_norm_backward(w.attention_norm, pass.tape.attention_norm, dmiddle);
  at::Tensor dcontext = product_backward(dz, w.attention_out);
  pass.site(Site::kAttentionOut, pass.last, pass.tape.context, dz, dcontext);
  *dresidual = dfirst;
  return dcontext;
}

at::Tensor backward_layer(const LayerBackward& pass, const at::Tensor& dout) {
  const std::int64_t width = pass.encoder.shape.hidden, tokens = pass.layout.tokens();
  const Linear& qkv = pass.encoder.layers[static_cast<std::size_t>(pass.number)].qkv;
  LayerTape& tape = pass.tape;
  at::Tensor dresidual;
  const at::Tensor dcontext = backward_upper(pass, dout, &dresidual);
  // Query lines differ from key lines in the last layer; else all three share one matrix.
  at::Tensor all = at::empty({tokens, (pass.last ? 2 : 3) * width}, at::kFloat);
  const std::int64_t after_q = pass.last ? 0 : width;
  at::Tensor dq =
      pass.last ? at::empty({pass.layout.rows(), width}, at::kFloat) : all.narrow(1, 0, width);
  at::Tensor dk = all.narrow(1, after_q, width), dv = all.narrow(1, after_q + width, width);
  attention_backward(pass.layout, pass.encoder.shape.heads, pass.last, tape.q, tape.k, tape.v,
                     tape.attention, dcontext, dq, dk, dv);
  at::Tensor dx, dfirst;
  if (pass.need_dx && pass.last) {
    dx = product_backward(all, qkv.slice(width, 2 * width));
    dfirst = product_backward(dq, qkv.slice(0, width), dresidual);
  } else if (pass.need_dx) {
    dx = product_backward(all, qkv, dresidual);
    dfirst = dx;
  }
  pass.site(Site::kQuery, pass.last, tape.first, dq, dfirst);
  pass.site(Site::kKey, false, tape.x, dk, dx);
  pass.site(Site::kValue, false, tape.x, dv, dx);
  if (pass.need_dx && pass.last)
    for (std::int64_t row = 0; row < pass.layout.rows(); ++row)
      dx.select(0, pass.layout.offsets[static_cast<std::size_t>(row)]).add_(dfirst.select(0, row));
  tape = {};  // the memory goes back before the next layer needs some
  return dx;
}

int lowest_slot(const SlotTable& slots, int layers) {
  for (std::size_t layer = 0; layer < slots.size(); ++layer)
    for (const LoraSlot& slot : slots[layer])
      if (slot) return static_cast<int>(layer);
  return layers;
}

}  // namespace

at::Tensor encode(const Encoder& encoder, const SlotTable& slots, const EncoderInput& input,
                  const EncoderOptions& options, EncoderTape* tape) {
  const int layers = encoder.shape.layers;
  YMIR_CHECK(static_cast<int>(slots.size()) == layers, "one line of slots per layer");
  YMIR_CHECK((tape != nullptr) == options.keep_tape, "a tape is given exactly when it is kept");
  // Below the lowest trained layer nothing is kept, and nothing is dropped (tuner.md 7.5).
  const int lowest = options.keep_inputs ? 0 : lowest_slot(slots, layers);
  EncoderOptions frozen = options;
  if (lowest > 0) frozen.keys = nullptr;
  if (tape != nullptr) {
    tape->layout = input.layout;
    tape->layers.assign(static_cast<std::size_t>(layers), {});
    tape->lowest = lowest;
  }
  at::Tensor x = embed(encoder, input, frozen);
  for (int number = 0; number < layers; ++number) {
    const auto at = static_cast<std::size_t>(number);
    const bool keep = tape != nullptr && number >= lowest;
    x = forward_layer({encoder, slots[at], input.layout, number >= lowest ? options : frozen,
                       number, number + 1 == layers, keep ? &tape->layers[at] : nullptr},
                      x);
  }
  return x;
}

void encode_backward(const Encoder& encoder, const SlotTable& slots, EncoderTape& tape,
                     const at::Tensor& dfirst, GradientTable* gradients,
                     const SiteObserver& observer) {
  at::Tensor dout = dfirst;
  for (int number = encoder.shape.layers - 1; number >= tape.lowest; --number) {
    const auto at = static_cast<std::size_t>(number);
    dout = backward_layer({encoder, slots[at], gradients != nullptr ? &(*gradients)[at] : nullptr,
                           observer, tape.layout, tape.layers[at], number,
                           number + 1 == encoder.shape.layers, number > tape.lowest},
                          dout);
  }
}

}  // namespace ymir
