#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "ymir/base/result.h"
#include "ymir/tune/model/embed_torch.h"
#include "ymir/tune/model/encoder_torch.h"

namespace ymir {
namespace {

std::size_t index(Site site) { return static_cast<std::size_t>(site); }

const LoraSlot& slot_of(const RowShares& shares, std::size_t share, int layer, Site site) {
  return (*shares.parts[share].slots)[static_cast<std::size_t>(layer)].lora[index(site)];
}

// One layer of one pass: the arguments that every step of it needs.
struct LayerPass {
  const Encoder& encoder;
  const RowShares& shares;
  const LayerSlots& slots;   // of the first share
  const RowLayout& layout;   // of all tokens
  const RowLayout& queries;  // of those that are computed beyond keys and values
  std::span<const std::int64_t> pooled;
  const RotaryPlan& rotary;
  const EncoderOptions& options;
  int number = 0;
  bool picked = false;  // one query a row
  LayerTape* tape = nullptr;

  const EncoderLayer& weights() const { return encoder.layers[static_cast<std::size_t>(number)]; }
  AttentionShape attention_shape() const {
    const EncoderShape& s = encoder.shape;
    return {s.heads, s.kv_heads, s.head_width, s.causal};
  }

  void adapt(Site site, const RowLayout& lines, const at::Tensor& x, at::Tensor y,
             const Linear& linear, bool biased) const {
    std::size_t row = 0;
    for (std::size_t i = 0; i < shares.parts.size(); ++i) {
      const LoraSlot& slot = slot_of(shares, i, number, site);
      const RowLayout part = rows_of(lines, shares, i, row);
      const std::int64_t first = lines.offsets[row], count = part.tokens();
      RandomKeys keys;
      if (options.keys != nullptr)
        keys = options.keys->part(row, static_cast<std::size_t>(part.rows()));
      row += static_cast<std::size_t>(part.rows());
      if (!slot) continue;
      lora_add(slot, part, x.narrow(0, first, count), y.narrow(0, first, count), linear, biased,
               options.keys != nullptr ? &keys : nullptr,
               tape != nullptr ? &tape->lora[i][index(site)] : nullptr);
    }
  }
  bool adapts(Site site) const {
    for (std::size_t i = 0; i < shares.parts.size(); ++i)
      if (slot_of(shares, i, number, site)) return true;
    return false;
  }
  bool trains(Linear EncoderLayer::* linear, at::Tensor Linear::* part) const {
    const auto at = static_cast<std::size_t>(number);
    return options.trained != nullptr && options.trained->layers.size() > at &&
           (options.trained->layers[at].*linear.*part).defined();
  }
  // Whether the backward reads the site's input.
  bool keeps(Site site, Linear EncoderLayer::* linear) const {
    return tape != nullptr &&
           (options.keep_inputs || adapts(site) || trains(linear, &Linear::weight));
  }
  // Whether nobody needs the keys and values themselves.
  bool folds(const at::Tensor& x) const {
    if (!picked || slots.prefix || rotary.table.cosine.defined() || options.keep_inputs ||
        trains(&EncoderLayer::qkv, &Linear::weight) || trains(&EncoderLayer::qkv, &Linear::bias))
      return false;
    for (std::size_t i = 0; i < shares.parts.size(); ++i)
      for (const Site site : {Site::kKey, Site::kValue})
        if (slot_of(shares, i, number, site).magnitude.defined()) return false;
    return has_own_products(x);
  }
  at::Tensor mask(Purpose purpose) const {
    if (options.keys == nullptr || !options.hidden) return {};
    return row_mask(queries, encoder.shape.hidden, *options.keys, random_site(purpose, number),
                    options.hidden);
  }
  // The bottleneck sees the part's whole output: the bias goes in before it.
  at::Tensor bottleneck(const BottleneckSlot& slot, const at::Tensor& bias, at::Tensor z,
                        BottleneckTape LayerTape::* where) const {
    if (!slot) return bias;
    if (bias.defined()) z.add_(bias);
    bottleneck_add(slot, z, tape != nullptr ? &(tape->*where) : nullptr);
    return {};
  }
};

at::Tensor picked_lines(const at::Tensor& x, std::span<const std::int64_t> lines) {
  at::Tensor out = at::empty({static_cast<std::int64_t>(lines.size()), x.size(1)}, x.options());
  for (std::size_t i = 0; i < lines.size(); ++i)
    out.select(0, static_cast<std::int64_t>(i)).copy_(x.select(0, lines[i]));
  return out;
}

struct Projections {
  at::Tensor q{}, k{}, v{};
};

void turn(const LayerPass& pass, const Projections& p) {
  if (!pass.rotary.table.cosine.defined()) return;
  const std::int64_t width = pass.encoder.shape.head_width;
  rotate(pass.rotary.table, pass.rotary.positions, width, false, p.k);
  if (!pass.picked) {
    rotate(pass.rotary.table, pass.rotary.positions, width, false, p.q);
    return;
  }
  std::vector<std::int32_t> positions;
  for (const std::int64_t line : pass.pooled)
    positions.push_back(pass.rotary.positions[static_cast<std::size_t>(line)]);
  rotate(pass.rotary.table, positions, width, false, p.q);
}

Projections project(const LayerPass& pass, const at::Tensor& x, const at::Tensor& picked) {
  const ProjectionWeights w = projections_of(pass.weights(), pass.encoder.shape);
  Projections out;
  if (pass.picked || has_own_products(x)) {
    // Apart: attention finds the lines of a head in fewer pages, 1.2 times as fast.
    out = {product_with_bias(picked, w.query), product_with_bias(x, w.key),
           product_with_bias(x, w.value)};
  } else {
    const std::int64_t wide = pass.encoder.shape.query_width(),
                       narrow = pass.encoder.shape.kv_width();
    const at::Tensor all = product_with_bias(x, pass.weights().qkv);
    out = {all.narrow(1, 0, wide), all.narrow(1, wide, narrow),
           all.narrow(1, wide + narrow, narrow)};
  }
  pass.adapt(Site::kQuery, pass.queries, picked, out.q, w.query, true);
  pass.adapt(Site::kKey, pass.layout, x, out.k, w.key, true);
  pass.adapt(Site::kValue, pass.layout, x, out.v, w.value, true);
  turn(pass, out);
  if (const PrefixSlot& prefix = pass.slots.prefix) {
    out.k = prepend(pass.layout, prefix.keys, out.k);
    out.v = prepend(pass.layout, prefix.values, out.v);
  }
  return out;
}

// What a site's adapters add to its lines; undefined: they have none.
at::Tensor added(const LayerPass& pass, Site site, const at::Tensor& x, const Linear& linear) {
  if (!pass.adapts(site)) return {};
  at::Tensor y = at::zeros({x.size(0), linear.weight.size(0)}, x.options());
  pass.adapt(site, pass.layout, x, y, linear, false);
  return y;
}

// Attention's result, and what its backward will read.
at::Tensor context_of(const LayerPass& pass, const at::Tensor& x, const at::Tensor& picked) {
  const RandomKeys none{};
  const bool random = pass.options.keys != nullptr;
  const kernels::Dropout dropout = random ? pass.options.attention : kernels::Dropout{};
  const RandomKeys& keys = random ? *pass.options.keys : none;
  LayerTape* tape = pass.tape;
  AttentionTape* kept = tape != nullptr ? &tape->attention : nullptr;
  Projections p;
  at::Tensor context;
  if (pass.folds(x)) {
    const ProjectionWeights w = projections_of(pass.weights(), pass.encoder.shape);
    p.q = product_with_bias(picked, w.query);
    pass.adapt(Site::kQuery, pass.queries, picked, p.q, w.query, true);
    p.k = added(pass, Site::kKey, x, w.key);
    p.v = added(pass, Site::kValue, x, w.value);
    context = attention_of_one(pass.attention_shape(), pass.layout, p.q,
                               {x, w.key, w.value, p.k, p.v}, dropout, keys, pass.number, kept);
  } else {
    p = project(pass, x, picked);
    const PrefixSlot& prefix = pass.slots.prefix;
    context = attention(pass.attention_shape(), pass.queries,
                        prefix ? with_prefix(pass.layout, prefix.keys.size(0)) : pass.layout, p.q,
                        p.k, p.v, dropout, keys, pass.number, kept);
  }
  if (tape != nullptr) tape->q = p.q, tape->k = p.k, tape->v = p.v;
  return context;
}

// From the projections' input to the attention part's output, without its bias.
at::Tensor attend(const LayerPass& pass, const at::Tensor& x, const at::Tensor& picked) {
  const EncoderLayer& w = pass.weights();
  LayerTape* tape = pass.tape;
  const at::Tensor context = context_of(pass, x, picked);
  at::Tensor z = product(context, w.attention_out);
  pass.adapt(Site::kAttentionOut, pass.queries, context, z, w.attention_out, false);
  if (tape == nullptr) return z;
  tape->x = x;
  tape->picked = picked;
  if (pass.keeps(Site::kAttentionOut, &EncoderLayer::attention_out)) tape->context = context;
  return z;
}

// The feed-forward part's output, without its bias.
at::Tensor feed(const LayerPass& pass, const at::Tensor& middle) {
  const EncoderLayer& w = pass.weights();
  const EncoderShape& shape = pass.encoder.shape;
  LayerTape* tape = pass.tape;
  at::Tensor* slope = tape != nullptr ? &tape->slope : nullptr;
  at::Tensor hidden;
  if (pass.adapts(Site::kFfnIn) || pass.adapts(Site::kFfnGate)) {
    at::Tensor f = product(middle, w.ffn_in);
    pass.adapt(Site::kFfnIn, pass.queries, middle, f.narrow(1, 0, shape.ffn),
               w.ffn_in.slice(0, shape.ffn), false);
    if (shape.gated)
      pass.adapt(Site::kFfnGate, pass.queries, middle, f.narrow(1, shape.ffn, shape.ffn),
                 w.ffn_in.slice(shape.ffn, shape.ffn), false);
    hidden = activation(shape.activation, shape.gated, f, w.ffn_in.bias, slope);
  } else {
    hidden = activated_product(middle, w.ffn_in, shape.activation, shape.gated, slope);
  }
  at::Tensor z = product(hidden, w.ffn_out);
  pass.adapt(Site::kFfnOut, pass.queries, hidden, z, w.ffn_out, false);
  if (pass.keeps(Site::kFfnIn, &EncoderLayer::ffn_in) ||
      pass.keeps(Site::kFfnGate, &EncoderLayer::ffn_in))
    tape->middle = middle;
  if (pass.keeps(Site::kFfnOut, &EncoderLayer::ffn_out)) tape->hidden = hidden;
  return z;
}

at::Tensor forward_layer(const LayerPass& pass, const at::Tensor& x) {
  const EncoderLayer& w = pass.weights();
  LayerTape* tape = pass.tape;
  const bool norm_first = pass.encoder.shape.norm_first;
  const float scale = pass.options.hidden.scale;
  NormTape* attention_norm = tape != nullptr ? &tape->attention_norm : nullptr;
  NormTape* ffn_norm = tape != nullptr ? &tape->ffn_norm : nullptr;
  const at::Tensor in = norm_first ? norm_lines(w.attention_norm, x, attention_norm) : x;
  const at::Tensor residual = pass.picked ? picked_lines(x, pass.pooled) : x;
  const at::Tensor picked = !pass.picked ? in
                            : norm_first ? picked_lines(in, pass.pooled)
                                         : residual;
  at::Tensor z = attend(pass, in, picked);
  const at::Tensor bias = pass.bottleneck(pass.slots.after_attention, w.attention_out.bias, z,
                                          &LayerTape::after_attention);
  // Norm-first: z becomes the stream, `middle` its norm; else `middle` is both.
  const at::Tensor middle = residual_norm(norm_first ? w.ffn_norm : w.attention_norm, bias, z,
                                          residual, pass.mask(Purpose::kAttentionOut), scale,
                                          norm_first ? ffn_norm : attention_norm);
  at::Tensor z2 = feed(pass, middle);
  const at::Tensor bias2 =
      pass.bottleneck(pass.slots.after_ffn, w.ffn_out.bias, z2, &LayerTape::after_ffn);
  const at::Tensor keep = pass.mask(Purpose::kFfnOut);
  if (!norm_first) return residual_norm(w.ffn_norm, bias2, z2, middle, keep, scale, ffn_norm);
  if (tape != nullptr) {
    tape->keep_out = keep;
    tape->scale_out = scale;
  }
  return residual_add(bias2, z2, z, keep, scale);
}

bool any_defined(const EncoderLayer& layer) {
  const auto linear = [](const Linear& l) { return l.weight.defined() || l.bias.defined(); };
  const auto norm = [](const NormWeights& n) { return n.gain.defined() || n.bias.defined(); };
  return linear(layer.qkv) || linear(layer.attention_out) || linear(layer.ffn_in) ||
         linear(layer.ffn_out) || norm(layer.attention_norm) || norm(layer.ffn_norm);
}

bool any_slot(const LayerSlots& slots) {
  return std::any_of(slots.lora.begin(), slots.lora.end(),
                     [](const LoraSlot& slot) { return static_cast<bool>(slot); }) ||
         slots.after_attention || slots.after_ffn || slots.prefix;
}

bool trains_embeddings(const Encoder* t) {
  return t != nullptr &&
         (t->words.defined() || t->positions.defined() || t->token_types.defined() ||
          t->patches.weight.defined() || t->patches.bias.defined() || t->class_token.defined() ||
          t->embedding_norm.gain.defined() || t->embedding_norm.bias.defined());
}

std::int64_t prefix_length(const RowShares& slots) {
  const SlotTable& first = slots.first();
  return !first.empty() && first.front().prefix ? first.front().prefix.keys.size(0) : 0;
}

void replace(at::Tensor& to, const at::Tensor& from) {
  if (from.defined()) to = from;
}
void replace(Linear& to, const Linear& from) {
  if (from.weight.defined() && to.weight16.defined()) to.weight16 = from.weight.to(at::kBFloat16);
  if (from.weight.defined()) to.packed = nullptr;
  replace(to.weight, from.weight);
  replace(to.bias, from.bias);
}
void replace(NormWeights& to, const NormWeights& from) {
  replace(to.gain, from.gain);
  replace(to.bias, from.bias);
}

}  // namespace

int lowest_trained(const RowShares& slots, const Encoder* trained, int layers) {
  if (trains_embeddings(trained)) return 0;
  for (int layer = 0; layer < layers; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    for (const JobRows& share : slots.parts)
      if (any_slot((*share.slots)[at])) return layer;
    if (trained != nullptr && trained->layers.size() > at && any_defined(trained->layers[at]))
      return layer;
  }
  return layers;
}

RowLayout rows_of(const RowLayout& lines, const RowShares& shares, std::size_t share,
                  std::size_t first) {
  const std::int64_t rows = shares.parts[share].rows;
  if (rows < 0) return lines;
  RowLayout part;
  for (std::size_t i = 1; i <= static_cast<std::size_t>(rows); ++i)
    part.offsets.push_back(lines.offsets[first + i] - lines.offsets[first]);
  return part;
}

std::int64_t EncoderShape::width_in(Site site) const {
  if (site == Site::kAttentionOut) return query_width();
  return site == Site::kFfnOut ? ffn : hidden;
}

std::int64_t EncoderShape::width_out(Site site) const {
  switch (site) {
    case Site::kQuery:
      return query_width();
    case Site::kKey:
    case Site::kValue:
      return kv_width();
    case Site::kFfnIn:
    case Site::kFfnGate:
      return ffn;
    default:
      return hidden;
  }
}

ProjectionWeights projections_of(const EncoderLayer& layer, const EncoderShape& shape) {
  const std::int64_t wide = shape.query_width(), narrow = shape.kv_width();
  return {layer.qkv.slice(0, wide), layer.qkv.slice(wide, narrow),
          layer.qkv.slice(wide + narrow, narrow)};
}

EncoderShape shape_of(const ModelConfig& config) {
  EncoderShape s;
  s.layers = config.num_layers;
  s.hidden = config.hidden_size;
  s.heads = config.num_heads;
  s.ffn = config.intermediate_size;
  s.vocabulary = config.vocabulary_size;
  s.positions = config.max_positions;
  s.token_types = config.num_token_types;
  s.kv_heads = config.num_kv_heads;
  s.head_width = config.head_width;
  s.family = config.family;
  s.activation = config.activation;
  s.norm_first = config.norm_first;
  s.gated = config.gated;
  s.causal = config.causal;
  s.position_offset = config.position_offset;
  s.rotary = config.rotary;
  s.patch = config.patch_size;
  s.channels = config.num_channels;
  return s;
}

Encoder with_weights(const Encoder& encoder, const Encoder& weights) {
  Encoder e = encoder;
  const bool tied = e.output.weight.defined() && e.output.weight.is_same(e.words);
  replace(e.words, weights.words);
  replace(e.positions, weights.positions);
  replace(e.token_types, weights.token_types);
  replace(e.patches, weights.patches);
  replace(e.class_token, weights.class_token);
  replace(e.embedding_norm, weights.embedding_norm);
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    EncoderLayer& to = e.layers[i];
    const EncoderLayer& from = weights.layers[i];
    replace(to.qkv, from.qkv);
    replace(to.attention_out, from.attention_out);
    replace(to.ffn_in, from.ffn_in);
    replace(to.ffn_out, from.ffn_out);
    replace(to.attention_norm, from.attention_norm);
    replace(to.ffn_norm, from.ffn_norm);
  }
  replace(e.final_norm, weights.final_norm);
  replace(e.pooler, weights.pooler);
  replace(e.output, weights.output);
  if (tied) replace(e.output, Linear{weights.words, {}, {}});
  return e;
}

std::vector<std::int64_t> pooled_lines(const EncoderShape& shape, const RowLayout& layout) {
  std::vector<std::int64_t> lines;
  for (std::size_t row = 0; row + 1 < layout.offsets.size(); ++row)
    lines.push_back(shape.causal ? layout.offsets[row + 1] - 1 : layout.offsets[row]);
  return lines;
}

namespace {

// One forward pass over the layers, with what all of them share.
struct EncoderPass {
  const Encoder& encoder;
  const RowShares& slots;
  const RowLayout& layout;
  const RotaryPlan& rotary;
  const EncoderOptions& options;
  Lines lines = Lines::kPooled;
  std::vector<std::int64_t> pooled = pooled_lines(encoder.shape, layout);
  RowLayout single = one_line_a_row(layout.rows());

  at::Tensor layer(int number, const at::Tensor& x, LayerTape* tape) const {
    const bool picked = number + 1 == encoder.shape.layers && lines == Lines::kPooled;
    if (tape != nullptr) tape->lora.assign(slots.parts.size(), {});
    return forward_layer({encoder, slots, slots.first()[static_cast<std::size_t>(number)], layout,
                          picked ? single : layout, pooled, rotary, options, number, picked, tape},
                         x);
  }
};

void check_shares(const RowShares& slots, const RowLayout& layout, int layers) {
  std::int64_t rows = 0;
  for (const JobRows& share : slots.parts) {
    YMIR_CHECK(static_cast<int>(share.slots->size()) == layers, "one line of slots per layer");
    rows += share.rows;
  }
  YMIR_CHECK((slots.parts.size() == 1 && rows < 0) || rows == layout.rows(),
             "shares cover the rows of the batch");
}

}  // namespace

at::Tensor encode(const Encoder& encoder, const RowShares& slots, const EncoderInput& input,
                  const EncoderOptions& options, EncoderTape* tape) {
  const int layers = encoder.shape.layers;
  check_shares(slots, input.layout, layers);
  YMIR_CHECK((tape != nullptr) == options.keep_tape, "a tape is given exactly when it is kept");
  // Below the lowest trained layer nothing is kept, and nothing is dropped.
  const bool embeddings = trains_embeddings(options.trained);
  const int lowest = options.keep_inputs ? 0 : lowest_trained(slots, options.trained, layers);
  EncoderOptions frozen = options;
  if (lowest > 0) frozen.keys = nullptr;
  const std::int64_t prefix = prefix_length(slots);
  const RotaryPlan rotary = plan_rotary(encoder.shape, input.layout, prefix);
  if (tape != nullptr) {
    *tape = {};
    tape->layout = input.layout;
    tape->keys = with_prefix(input.layout, prefix);
    tape->rotary = rotary;
    tape->lines = options.lines;
    tape->layers.assign(static_cast<std::size_t>(layers), {});
    tape->lowest = lowest;
    tape->embeddings = embeddings;
    tape->options = options;
  }
  const EncoderPass below{encoder, slots, input.layout, rotary, frozen, options.lines};
  const EncoderPass above{encoder, slots, input.layout, rotary, options, options.lines};
  const bool known = input.hidden.defined();
  YMIR_CHECK(!known || input.first_layer <= lowest, "what is known lies below what is trained");
  at::Tensor x = known ? input.hidden : embed(encoder, input, frozen, 0, tape);
  const int end = options.only_layers < 0 ? layers : options.only_layers;
  for (int number = known ? input.first_layer : 0; number < end; ++number) {
    LayerTape* kept = tape != nullptr && number >= lowest
                          ? &tape->layers[static_cast<std::size_t>(number)]
                          : nullptr;
    if (kept != nullptr && options.recompute) {
      kept->input = x;
      kept = nullptr;
    }
    x = (number >= lowest ? above : below).layer(number, x, kept);
  }
  if (!encoder.shape.norm_first || end < layers) return x;
  return norm_lines(encoder.final_norm, x, tape != nullptr ? &tape->final_norm : nullptr);
}

void run_layer_again(const Encoder& encoder, const RowShares& slots, EncoderTape& tape,
                     int number) {
  LayerTape& layer = tape.layers[static_cast<std::size_t>(number)];
  const at::Tensor x = std::move(layer.input);
  layer = {};
  EncoderPass{encoder, slots, tape.layout, tape.rotary, tape.options, tape.lines}.layer(number, x,
                                                                                        &layer);
}

}  // namespace ymir
