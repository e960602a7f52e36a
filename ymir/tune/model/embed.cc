#include "ymir/tune/model/embed_torch.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ymir/base/result.h"
#include "ymir/tune/model/plain_torch.h"

namespace ymir {
namespace {

const float* data_or_null(const at::Tensor& t) {
  return t.defined() ? t.const_data_ptr<float>() : nullptr;
}

// Each patch's values in the order of the projection's weights: channel, line, column.
at::Tensor patch_lines(const EncoderShape& shape, const at::Tensor& pixels) {
  const std::int64_t rows = pixels.size(0), side = pixels.size(2) / shape.patch;
  YMIR_CHECK(pixels.dim() == 4 && pixels.size(1) == shape.channels &&
                 pixels.size(2) == pixels.size(3) && side * side + 1 == shape.positions,
             "pixels fit the model's image size");
  return pixels.reshape({rows, shape.channels, side, shape.patch, side, shape.patch})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({rows * side * side, std::int64_t{shape.channels} * shape.patch * shape.patch});
}

at::Tensor embed_images(const Encoder& encoder, const EncoderInput& input) {
  const EncoderShape& shape = encoder.shape;
  const std::int64_t rows = input.pixels.size(0), tokens = shape.positions;
  const at::Tensor patches =
      product_with_bias(patch_lines(shape, input.pixels.to(device_of(encoder))), encoder.patches);
  at::Tensor x = at::empty({rows, tokens, shape.hidden}, patches.options());
  x.narrow(1, 0, 1).copy_(encoder.class_token.view({1, 1, shape.hidden}));
  x.narrow(1, 1, tokens - 1).copy_(patches.view({rows, tokens - 1, shape.hidden}));
  x.add_(encoder.positions);
  return x.view({rows * tokens, shape.hidden});
}

// A family with one type (RoBERTa) has all tokens of it, whatever the tokenizer calls a pair.
bool has_types(const EncoderShape& shape, const EncoderInput& input) {
  return !input.types.empty() && shape.token_types > 1;
}

// Lines of the tables that each token reads.
struct TokenLines {
  std::vector<std::int64_t> words{}, types{}, positions{};
};
TokenLines token_lines(const EncoderShape& shape, const EncoderInput& input,
                       std::int64_t first_position) {
  TokenLines lines;
  lines.words.assign(input.ids.begin(), input.ids.end());
  if (has_types(shape, input)) lines.types.assign(input.types.begin(), input.types.end());
  lines.types.resize(input.ids.size(), 0);
  for (std::int64_t row = 0; row < input.layout.rows(); ++row)
    for (std::int64_t t = 0; t < input.layout.length(row); ++t)
      lines.positions.push_back(shape.position_offset + first_position + t);
  return lines;
}

at::Tensor embed_tokens_plain(const Encoder& encoder, const TokenLines& lines) {
  at::Tensor x = in_f32(plain::lines_of(encoder.words, lines.words));
  if (encoder.token_types.defined()) x.add_(plain::lines_of(encoder.token_types, lines.types));
  if (encoder.positions.defined()) x.add_(plain::lines_of(encoder.positions, lines.positions));
  return x;
}

at::Tensor embed_tokens(const Encoder& encoder, const EncoderInput& input,
                        std::int64_t first_position) {
  if (is_plain(encoder.words))
    return embed_tokens_plain(encoder, token_lines(encoder.shape, input, first_position));
  const std::int64_t width = encoder.shape.hidden;
  at::Tensor x = at::empty({input.layout.tokens(), width}, at::kFloat);
  // Of words in half precision only those that occur are widened.
  const bool half = encoder.words.scalar_type() != at::kFloat;
  const at::Tensor gathered =
      half ? in_f32(plain::lines_of(encoder.words,
                                    std::vector<std::int64_t>(input.ids.begin(), input.ids.end())))
           : encoder.words;
  const float* words = gathered.const_data_ptr<float>();
  const float* positions = data_or_null(encoder.positions);
  const float* types = data_or_null(encoder.token_types);
  const bool typed = has_types(encoder.shape, input);
  if (positions != nullptr) positions += (encoder.shape.position_offset + first_position) * width;
  float* out = x.mutable_data_ptr<float>();
  at::parallel_for(0, input.layout.rows(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t first = input.layout.offsets[static_cast<std::size_t>(row)];
      for (std::int64_t t = 0; t < input.layout.length(row); ++t) {
        const auto at = static_cast<std::size_t>(first + t);
        const auto number = half ? first + t : std::int64_t{input.ids[at]};
        const float* word = words + number * width;
        float* line = out + (first + t) * width;
        std::copy(word, word + width, line);
        if (types != nullptr) {
          const float* type = types + (typed ? input.types[at] : 0) * width;
          for (std::int64_t i = 0; i < width; ++i) line[i] += type[i];
        }
        if (positions != nullptr)
          for (std::int64_t i = 0; i < width; ++i) line[i] += positions[t * width + i];
      }
    }
  });
  return x;
}

// Adds lines of dx to the lines of a table that were read. Threads own columns, so that a line's
// sum has one order.
void scatter(const at::Tensor& dx, std::span<const std::int64_t> lines, at::Tensor table) {
  if (is_plain(dx)) return plain::add_to_lines(std::move(table), lines, dx);
  const std::int64_t width = dx.size(1);
  const float* from = dx.const_data_ptr<float>();
  float* to = table.mutable_data_ptr<float>();
  at::parallel_for(0, width, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const float* g = from + static_cast<std::int64_t>(i) * width;
      float* sum = to + lines[i] * width;
      for (std::int64_t c = begin; c < end; ++c) sum[c] += g[c];
    }
  });
}

void images_backward(const Encoder& encoder, const EncoderInput& input, const at::Tensor& dx,
                     Encoder& gradients) {
  const EncoderShape& shape = encoder.shape;
  const at::Tensor d = dx.view({-1, shape.positions, shape.hidden});
  if (gradients.positions.defined()) gradients.positions.add_(d.sum(0));
  if (gradients.class_token.defined())
    gradients.class_token.add_(d.select(1, 0).sum(0, /*keepdim=*/true));
  const at::Tensor patches =
      d.narrow(1, 1, shape.positions - 1).reshape({-1, shape.hidden}).contiguous();
  if (gradients.patches.weight.defined())
    multiply_add(gradients.patches.weight, patches.t(),
                 patch_lines(shape, input.pixels.to(dx.device())), 1, 1);
  if (gradients.patches.bias.defined()) gradients.patches.bias.add_(patches.sum(0));
}

void tokens_backward(const Encoder& encoder, const EncoderInput& input, const at::Tensor& dx,
                     Encoder& gradients) {
  const TokenLines lines = token_lines(encoder.shape, input, 0);
  if (gradients.words.defined()) scatter(dx, lines.words, gradients.words);
  if (gradients.token_types.defined()) scatter(dx, lines.types, gradients.token_types);
  if (gradients.positions.defined()) scatter(dx, lines.positions, gradients.positions);
}

// What is left of the speed of pair `i` under YaRN: all of it where the pair turns often within the
// trained length, 1/factor where it turns hardly at all, a ramp between.
float yarn_share(const RotaryConfig& rotary, std::int64_t width, std::int64_t i) {
  const auto pair_of = [&](double turns) {
    return static_cast<double>(width) *
           std::log(rotary.original_positions / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(rotary.theta));
  };
  double low = pair_of(rotary.beta_fast), high = pair_of(rotary.beta_slow);
  if (rotary.whole_dimensions) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(width - 1));
  if (low == high) high += 0.001;
  const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
  return static_cast<float>(ramp / rotary.factor + (1 - ramp));
}

// 1 / theta^(2 i / width) and what scaling makes of it, in f32 as the reference.
std::vector<float> rotary_speeds(const RotaryConfig& rotary, std::int64_t width,
                                 std::int64_t length) {
  double theta = rotary.theta;
  const auto trained = static_cast<double>(rotary.original_positions);
  if (rotary.scaling == RotaryConfig::Scaling::kDynamic) {
    const double reached = std::max(static_cast<double>(length), trained);
    const auto w = static_cast<double>(width);
    theta *= std::pow(rotary.factor * reached / trained - (rotary.factor - 1), w / (w - 2));
  }
  std::vector<float> speeds;
  for (std::int64_t i = 0; i < width / 2; ++i) {
    float speed = static_cast<float>(
        1 / std::pow(theta, static_cast<double>(2 * i) / static_cast<double>(width)));
    if (rotary.scaling == RotaryConfig::Scaling::kLinear)
      speed /= static_cast<float>(rotary.factor);
    if (rotary.scaling == RotaryConfig::Scaling::kYarn) speed *= yarn_share(rotary, width, i);
    if (rotary.scaling == RotaryConfig::Scaling::kLongRope) {
      const auto& factors =
          static_cast<double>(length) > trained ? rotary.long_factors : rotary.short_factors;
      speed = static_cast<float>(speed / factors[static_cast<std::size_t>(i)]);
    }
    if (rotary.scaling == RotaryConfig::Scaling::kLlama3) {
      const double turns = trained * speed / (2 * std::numbers::pi);  // within the trained length
      const double share = std::clamp(
          (turns - rotary.low_factor) / (rotary.high_factor - rotary.low_factor), 0.0, 1.0);
      speed = static_cast<float>((1 - share) * speed / rotary.factor + share * speed);
    }
    speeds.push_back(speed);
  }
  return speeds;
}

void append_angles(const std::vector<float>& speeds, std::int64_t length, double factor,
                   std::vector<float>& cosine, std::vector<float>& sine) {
  const auto f = static_cast<float>(factor);
  for (std::int64_t t = 0; t < length; ++t)
    for (const float speed : speeds) {
      const float angle = static_cast<float>(t) * speed;
      cosine.push_back(std::cos(angle) * f);
      sine.push_back(std::sin(angle) * f);
    }
}

at::Tensor to_tensor(const std::vector<float>& values, std::int64_t width) {
  at::Tensor t = at::empty({static_cast<std::int64_t>(values.size()) / width, width}, at::kFloat);
  std::copy(values.begin(), values.end(), t.mutable_data_ptr<float>());
  return t;
}

}  // namespace

at::Tensor embed(const Encoder& encoder, const EncoderInput& input, const EncoderOptions& options,
                 std::int64_t first_position, EncoderTape* tape) {
  at::Tensor x = input.pixels.defined() ? embed_images(encoder, input)
                                        : embed_tokens(encoder, input, first_position);
  const bool kept = tape != nullptr && tape->embeddings;
  if (encoder.embedding_norm.gain.defined())
    x = norm_lines(encoder.embedding_norm, x, kept ? &tape->embedding_norm : nullptr);
  if (options.keys == nullptr || !options.hidden) return x;
  const at::Tensor keep = row_mask(input.layout, encoder.shape.hidden, *options.keys,
                                   random_site(Purpose::kEmbedding, 0), options.hidden);
  if (kept) {
    tape->embedding_keep = keep;
    tape->embedding_scale = options.hidden.scale;
  }
  return masked(x, keep, options.hidden.scale);
}

void embed_backward(const Encoder& encoder, const EncoderInput& input, const EncoderTape& tape,
                    const at::Tensor& dx, Encoder& gradients) {
  at::Tensor d = masked(dx, tape.embedding_keep, tape.embedding_scale);
  if (encoder.embedding_norm.gain.defined()) {
    norm_gradient(tape.embedding_norm, d, gradients.embedding_norm);
    d = residual_norm_backward(encoder.embedding_norm, tape.embedding_norm, d).second;
  }
  if (input.pixels.defined()) {
    images_backward(encoder, input, d, gradients);
  } else {
    tokens_backward(encoder, input, d, gradients);
  }
}

RotaryPlan plan_rotary(const EncoderShape& shape, const RowLayout& layout, std::int64_t first) {
  RotaryPlan plan;
  if (shape.rotary.theta <= 0) return plan;
  using Scaling = RotaryConfig::Scaling;
  const bool dynamic =
      shape.rotary.scaling == Scaling::kDynamic || shape.rotary.scaling == Scaling::kLongRope;
  const double factor = shape.rotary.attention_factor;
  const auto stretched = [&](std::int64_t length) {
    return dynamic && length > shape.rotary.original_positions;
  };
  std::int64_t longest = 0;
  for (std::int64_t row = 0; row < layout.rows(); ++row)
    if (const std::int64_t length = first + layout.length(row); !stretched(length))
      longest = std::max(longest, length);
  std::vector<float> cosine, sine;
  append_angles(rotary_speeds(shape.rotary, shape.head_width, longest), longest, factor, cosine,
                sine);
  const std::int64_t half = shape.head_width / 2;
  for (std::int64_t row = 0; row < layout.rows(); ++row) {
    const std::int64_t length = first + layout.length(row);
    std::int64_t start = 0;
    if (stretched(length)) {
      start = static_cast<std::int64_t>(cosine.size()) / half;
      append_angles(rotary_speeds(shape.rotary, shape.head_width, length), length, factor, cosine,
                    sine);
    }
    for (std::int64_t t = first; t < length; ++t)
      plan.positions.push_back(static_cast<std::int32_t>(start + t));
  }
  plan.table = {to_tensor(cosine, half), to_tensor(sine, half)};
  return plan;
}

}  // namespace ymir
