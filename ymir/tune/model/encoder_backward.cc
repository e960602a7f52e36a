#include <ATen/ops/empty.h>

#include <algorithm>

#include "ymir/base/result.h"
#include "ymir/tune/model/embed_torch.h"
#include "ymir/tune/model/encoder_torch.h"

namespace ymir {
namespace {

std::size_t index(Site site) { return static_cast<std::size_t>(site); }

struct LayerBackward {
  const Encoder& encoder;
  const RowShares& shares;
  std::span<SlotTable* const> share_gradients;  // empty: none wanted
  const LayerSlots& slots;                      // of the first share
  LayerSlots* gradients;                        // null: none wanted
  EncoderLayer* weights;                        // gradients of trained weights; null: none
  const SiteObserver& observer;
  const EncoderTape& pass;
  const RowLayout& queries;
  std::span<const std::int64_t> pooled;
  LayerTape& tape;
  int number = 0;
  bool picked = false;
  bool need_dx = false;

  const EncoderLayer& layer() const { return encoder.layers[static_cast<std::size_t>(number)]; }

  bool adapts(Site at_site) const {
    return std::any_of(shares.parts.begin(), shares.parts.end(), [&](const JobRows& share) {
      return static_cast<bool>(
          (*share.slots)[static_cast<std::size_t>(number)].lora[index(at_site)]);
    });
  }
  // Before the frozen product's backward: DoRA's magnitude.
  at::Tensor before(Site site, const at::Tensor& dy) const {
    return magnitude_backward(tape.lora.front()[index(site)], dy,
                              gradients != nullptr ? &gradients->lora[index(site)] : nullptr);
  }
  // What a site owes besides the frozen product: the observer's look, the slot's gradients.
  void site(Site at_site, bool one_line, const at::Tensor& x, const at::Tensor& dy,
            at::Tensor dx) const {
    if (observer) observer(number, at_site, one_line, x, dy);
    const RowLayout& lines = one_line ? queries : pass.layout;
    const auto layer_at = static_cast<std::size_t>(number);
    std::size_t row = 0;
    for (std::size_t i = 0; i < share_gradients.size(); ++i) {
      const LoraSlot& slot = (*shares.parts[i].slots)[layer_at].lora[index(at_site)];
      const RowLayout part = rows_of(lines, shares, i, row);
      const std::int64_t first = lines.offsets[row], count = part.tokens();
      row += static_cast<std::size_t>(part.rows());
      if (!slot) continue;
      lora_backward(slot, tape.lora[i][index(at_site)], x.narrow(0, first, count),
                    dy.narrow(0, first, count),
                    (*share_gradients[i])[layer_at].lora[index(at_site)],
                    dx.defined() ? dx.narrow(0, first, count) : at::Tensor());
    }
  }
  void weight(Linear EncoderLayer::* linear, const at::Tensor& x, const at::Tensor& dy) const {
    if (weights != nullptr) linear_gradient(x, dy, weights->*linear);
  }
  void norm(NormWeights EncoderLayer::* norm, const NormTape& norm_tape,
            const at::Tensor& dy) const {
    if (weights != nullptr) norm_gradient(norm_tape, dy, weights->*norm);
  }
  at::Tensor bottleneck(const BottleneckSlot& slot, const BottleneckTape& bottleneck_tape,
                        const at::Tensor& dz, BottleneckSlot LayerSlots::* gradient) const {
    if (!slot) return dz;
    YMIR_CHECK(gradients != nullptr, "slots come with gradients");
    return bottleneck_backward(slot, bottleneck_tape, dz, gradients->*gradient);
  }
};

// The feed-forward part: from the gradient at its output (bias included) to that at its input,
// added to `dmiddle` when that is defined.
at::Tensor feed_backward(const LayerBackward& pass, const at::Tensor& dz, at::Tensor dmiddle) {
  const EncoderLayer& w = pass.layer();
  const EncoderShape& shape = pass.encoder.shape;
  LayerTape& tape = pass.tape;
  pass.weight(&EncoderLayer::ffn_out, tape.hidden, dz);
  const at::Tensor dout = pass.before(Site::kFfnOut, dz);
  at::Tensor df;
  if (pass.adapts(Site::kFfnOut)) {
    at::Tensor dhidden = product_backward(dout, w.ffn_out);
    pass.site(Site::kFfnOut, pass.picked, tape.hidden, dout, dhidden);
    df = activation_backward(shape.gated, dhidden, tape.slope);
  } else {
    pass.site(Site::kFfnOut, pass.picked, tape.hidden, dout, {});
    df = activated_product_backward(dout, w.ffn_out, shape.gated, tape.slope);
  }
  pass.weight(&EncoderLayer::ffn_in, tape.middle, df);
  at::Tensor dup = df.narrow(1, 0, shape.ffn);
  if (const at::Tensor scaled = pass.before(Site::kFfnIn, dup); !scaled.is_same(dup))
    dup.copy_(scaled);
  if (shape.gated) {
    at::Tensor dgate = df.narrow(1, shape.ffn, shape.ffn);
    if (const at::Tensor scaled = pass.before(Site::kFfnGate, dgate); !scaled.is_same(dgate))
      dgate.copy_(scaled);
  }
  dmiddle = product_backward(df, w.ffn_in, dmiddle);
  pass.site(Site::kFfnIn, pass.picked, tape.middle, dup, dmiddle);
  if (shape.gated)
    pass.site(Site::kFfnGate, pass.picked, tape.middle, df.narrow(1, shape.ffn, shape.ffn),
              dmiddle);
  return dmiddle;
}

struct ProjectionGradients {
  at::Tensor q{}, k{}, v{};
  at::Tensor all{};  // the three as columns, where they lie together
  at::Tensor x{};    // through keys and values, where these were not made
};

void turn_back(const LayerBackward& pass, const ProjectionGradients& g) {
  const EncoderTape& tape = pass.pass;
  if (!tape.rotary.table.cosine.defined()) return;
  const std::int64_t width = pass.encoder.shape.head_width;
  rotate(tape.rotary.table, tape.rotary.positions, width, true, g.k);
  if (!pass.picked) {
    rotate(tape.rotary.table, tape.rotary.positions, width, true, g.q);
    return;
  }
  std::vector<std::int32_t> positions;
  for (const std::int64_t line : pass.pooled)
    positions.push_back(tape.rotary.positions[static_cast<std::size_t>(line)]);
  rotate(tape.rotary.table, positions, width, true, g.q);
}

ProjectionGradients attention_gradients(const LayerBackward& pass, const at::Tensor& dcontext) {
  const EncoderShape& shape = pass.encoder.shape;
  const RowLayout& layout = pass.pass.layout;
  const std::int64_t wide = shape.query_width(), narrow = shape.kv_width();
  const AttentionShape attention{shape.heads, shape.kv_heads, shape.head_width, shape.causal};
  if (pass.tape.attention.folded.defined()) {
    const ProjectionWeights w = projections_of(pass.layer(), shape);
    const SeenLines seen{pass.tape.x, w.key, w.value, pass.tape.k, pass.tape.v};
    const SeenGradients d = attention_of_one_backward(attention, layout, pass.tape.q, seen,
                                                      pass.tape.attention, dcontext, pass.need_dx);
    return {d.q, d.more_keys, d.more_values, {}, d.x};
  }
  ProjectionGradients g;
  if (pass.picked || has_own_products(dcontext)) {
    g.q = at::empty({pass.queries.tokens(), wide}, dcontext.options());
    g.k = at::empty({layout.tokens(), narrow}, dcontext.options());
    g.v = at::empty({layout.tokens(), narrow}, dcontext.options());
  } else {
    g.all = at::empty({layout.tokens(), wide + 2 * narrow}, dcontext.options());
    g.q = g.all.narrow(1, 0, wide);
    g.k = g.all.narrow(1, wide, narrow);
    g.v = g.all.narrow(1, wide + narrow, narrow);
  }
  if (!pass.slots.prefix) {
    attention_backward(attention, pass.queries, layout, pass.tape.q, pass.tape.k, pass.tape.v,
                       pass.tape.attention, dcontext, g.q, g.k, g.v);
  } else {
    YMIR_CHECK(pass.gradients != nullptr, "slots come with gradients");
    const RowLayout& keys = pass.pass.keys;
    const at::Tensor dk = at::empty({keys.tokens(), narrow}, dcontext.options());
    const at::Tensor dv = at::empty({keys.tokens(), narrow}, dcontext.options());
    attention_backward(attention, pass.queries, keys, pass.tape.q, pass.tape.k, pass.tape.v,
                       pass.tape.attention, dcontext, g.q, dk, dv);
    prepend_backward(layout, dk, pass.gradients->prefix.keys, g.k);
    prepend_backward(layout, dv, pass.gradients->prefix.values, g.v);
  }
  turn_back(pass, g);
  return g;
}

// Gradients of the stacked projection: query lines may be others than key lines.
void projection_weights(const LayerBackward& pass, const ProjectionGradients& g) {
  if (pass.weights == nullptr) return;
  Linear& gradient = pass.weights->qkv;
  if (!gradient.weight.defined() && !gradient.bias.defined()) return;
  const std::int64_t wide = pass.encoder.shape.query_width();
  const std::int64_t narrow = pass.encoder.shape.kv_width();
  const auto part = [&](std::int64_t first, std::int64_t count, const at::Tensor& x,
                        const at::Tensor& dy) {
    Linear slice;
    if (gradient.weight.defined()) slice.weight = gradient.weight.narrow(0, first, count);
    if (gradient.bias.defined()) slice.bias = gradient.bias.narrow(0, first, count);
    linear_gradient(x, dy, slice);
  };
  part(0, wide, pass.tape.picked, g.q);
  part(wide, narrow, pass.tape.x, g.k);
  part(wide + narrow, narrow, pass.tape.x, g.v);
}

struct InputGradients {
  at::Tensor all{}, picked{};  // of all lines, and of the queries': the same tensor unless picked
};

// Through the frozen projections. `dresidual` (lines of the queries) may be undefined.
InputGradients projection_inputs(const LayerBackward& pass, const ProjectionGradients& g,
                                 const at::Tensor& dresidual) {
  if (!pass.need_dx) return {};
  if (g.all.defined()) {
    const at::Tensor dx = product_backward(g.all, pass.layer().qkv, dresidual);
    return {dx, dx};
  }
  const ProjectionWeights w = projections_of(pass.layer(), pass.encoder.shape);
  const at::Tensor dpicked = product_backward(g.q, w.query, dresidual);
  if (g.x.defined()) return {g.x, dpicked};
  const at::Tensor through_key = product_backward(g.k, w.key, pass.picked ? at::Tensor() : dpicked);
  const at::Tensor dx = product_backward(g.v, w.value, through_key);
  return {dx, pass.picked ? dpicked : dx};
}

void add_lines(at::Tensor to, std::span<const std::int64_t> lines, const at::Tensor& from) {
  for (std::size_t i = 0; i < lines.size(); ++i)
    to.select(0, lines[i]).add_(from.select(0, static_cast<std::int64_t>(i)));
}

// From the gradient at the attention part's output to that at what the projections read, all
// lines. `dresidual` (lines of the queries) is added when blocks norm last.
at::Tensor attend_backward(const LayerBackward& pass, const at::Tensor& dz,
                           const at::Tensor& dresidual) {
  const EncoderLayer& w = pass.layer();
  LayerTape& tape = pass.tape;
  pass.weight(&EncoderLayer::attention_out, tape.context, dz);
  const at::Tensor dout = pass.before(Site::kAttentionOut, dz);
  at::Tensor dcontext = product_backward(dout, w.attention_out);
  pass.site(Site::kAttentionOut, pass.picked, tape.context, dout, dcontext);
  const ProjectionGradients g = attention_gradients(pass, dcontext);
  projection_weights(pass, g);
  for (auto [site, d] : {std::pair{Site::kQuery, g.q}, {Site::kKey, g.k}, {Site::kValue, g.v}})
    if (const at::Tensor scaled = pass.before(site, d); !scaled.is_same(d)) d.copy_(scaled);
  const auto [dx, dpicked] = projection_inputs(pass, g, dresidual);
  pass.site(Site::kQuery, pass.picked, tape.picked, g.q, dpicked);
  pass.site(Site::kKey, false, tape.x, g.k, dx);
  pass.site(Site::kValue, false, tape.x, g.v, dx);
  if (pass.need_dx && pass.picked) add_lines(dx, pass.pooled, dpicked);
  return dx;
}

at::Tensor backward_norm_last(const LayerBackward& pass, const at::Tensor& dout) {
  const EncoderLayer& w = pass.layer();
  LayerTape& tape = pass.tape;
  pass.norm(&EncoderLayer::ffn_norm, tape.ffn_norm, dout);
  auto [dz2, dmiddle] = residual_norm_backward(w.ffn_norm, tape.ffn_norm, dout);
  // dmiddle may be the same tensor as dz2 (no dropout); it changes only after dz2's last use.
  const at::Tensor dfeed =
      pass.bottleneck(pass.slots.after_ffn, tape.after_ffn, dz2, &LayerSlots::after_ffn);
  dmiddle = feed_backward(pass, dfeed, dmiddle);
  pass.norm(&EncoderLayer::attention_norm, tape.attention_norm, dmiddle);
  const auto [dz, dresidual] =
      residual_norm_backward(w.attention_norm, tape.attention_norm, dmiddle);
  return attend_backward(pass,
                         pass.bottleneck(pass.slots.after_attention, tape.after_attention, dz,
                                         &LayerSlots::after_attention),
                         dresidual);
}

at::Tensor backward_norm_first(const LayerBackward& pass, const at::Tensor& dout) {
  const EncoderLayer& w = pass.layer();
  LayerTape& tape = pass.tape;
  const at::Tensor dfeed =
      pass.bottleneck(pass.slots.after_ffn, tape.after_ffn,
                      masked(dout, tape.keep_out, tape.scale_out), &LayerSlots::after_ffn);
  const at::Tensor dmiddle = feed_backward(pass, dfeed, {});
  pass.norm(&EncoderLayer::ffn_norm, tape.ffn_norm, dmiddle);
  const auto [dz, dstream] = residual_norm_backward(w.ffn_norm, tape.ffn_norm, dmiddle, dout);
  const at::Tensor din =
      attend_backward(pass,
                      pass.bottleneck(pass.slots.after_attention, tape.after_attention, dz,
                                      &LayerSlots::after_attention),
                      {});
  if (!pass.need_dx) return {};
  pass.norm(&EncoderLayer::attention_norm, tape.attention_norm, din);
  if (!pass.picked)
    return residual_norm_backward(w.attention_norm, tape.attention_norm, din, dstream).second;
  at::Tensor dx = residual_norm_backward(w.attention_norm, tape.attention_norm, din).second;
  add_lines(dx, pass.pooled, dstream);
  return dx;
}

bool trains(const NormWeights& norm) { return norm.gain.defined() || norm.bias.defined(); }

// `weights`: gradients of trained weights, null: none.
void backward(const Encoder& encoder, const RowShares& slots, const EncoderInput& input,
              EncoderTape& tape, const at::Tensor& dresult, std::span<SlotTable* const> gradients,
              Encoder* trained, const SiteObserver& observer) {
  const int layers = encoder.shape.layers;
  const auto pooled = pooled_lines(encoder.shape, tape.layout);
  const RowLayout single = one_line_a_row(tape.layout.rows());
  const bool has_weights = trained != nullptr && !trained->layers.empty();
  at::Tensor dout = dresult;
  if (encoder.shape.norm_first) {
    if (trained != nullptr) norm_gradient(tape.final_norm, dout, trained->final_norm);
    dout = residual_norm_backward(encoder.final_norm, tape.final_norm, dout).second;
  }
  for (int number = layers - 1; number >= tape.lowest; --number) {
    const auto at = static_cast<std::size_t>(number);
    EncoderLayer* weights = has_weights ? &trained->layers[at] : nullptr;
    const bool picked = number + 1 == layers && tape.lines == Lines::kPooled;
    const bool need_dx =
        number > tape.lowest || tape.embeddings ||
        (weights != nullptr && encoder.shape.norm_first && trains(weights->attention_norm));
    if (tape.options.recompute) run_layer_again(encoder, slots, tape, number);
    const LayerBackward pass{encoder,
                             slots,
                             gradients,
                             slots.first()[at],
                             gradients.empty() ? nullptr : &(*gradients.front())[at],
                             weights,
                             observer,
                             tape,
                             picked ? single : tape.layout,
                             pooled,
                             tape.layers[at],
                             number,
                             picked,
                             need_dx};
    dout =
        encoder.shape.norm_first ? backward_norm_first(pass, dout) : backward_norm_last(pass, dout);
    tape.layers[at] = {};  // the memory goes back before the next layer needs some
  }
  if (tape.embeddings) embed_backward(encoder, input, tape, dout, *trained);
}

}  // namespace

void encode_backward(const Encoder& encoder, const SlotTable& slots, const EncoderInput& input,
                     EncoderTape& tape, const at::Tensor& dresult, Trained* gradients,
                     const SiteObserver& observer) {
  if (gradients == nullptr)
    return backward(encoder, slots, input, tape, dresult, {}, nullptr, observer);
  SlotTable* const own[] = {&gradients->slots};
  backward(encoder, slots, input, tape, dresult, own, &gradients->weights, observer);
}

void encode_backward(const Encoder& encoder, const RowShares& slots, const EncoderInput& input,
                     EncoderTape& tape, const at::Tensor& dresult,
                     std::span<SlotTable* const> gradients) {
  YMIR_CHECK(gradients.size() == slots.parts.size(), "gradients of every share");
  backward(encoder, slots, input, tape, dresult, gradients, nullptr, {});
}

}  // namespace ymir
