#include "ymir/tune/model/encoder_torch.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ymir/tune/model/random_encoder_torch.h"
#include "ymir/tune/petl/adapter_torch.h"

namespace ymir {
namespace {

using testing::random_encoder;
using testing::random_input;
using testing::random_matrix;

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

AdapterPlan adapter_for(const Encoder& encoder, std::vector<std::string> targets,
                        double dropout = 0) {
  MethodSpec method;
  method.rank = 4;
  method.alpha = 8;
  method.dropout = dropout;
  method.targets = std::move(targets);
  return *make_adapter(encoder, method);
}

// Both matrices away from 0, so that every gradient is.
at::Tensor trained_values(const AdapterPlan& adapter) {
  at::Tensor values = adapter.layout.zeros();
  fill_normal(values, 5, "trained", 0.05);
  return values;
}

// The layer as the paper writes it, one padded row, from the library's own operations.
at::Tensor plain_row(const Encoder& e, const EncoderInput& input, std::int64_t row) {
  const std::int64_t first = input.layout.offsets[static_cast<std::size_t>(row)];
  const std::int64_t length = input.layout.length(row), width = e.shape.hidden;
  const std::int64_t heads = e.shape.heads, part = width / heads;
  at::Tensor x = at::zeros({length, width});
  for (std::int64_t t = 0; t < length; ++t)
    x.select(0, t).copy_(e.words.select(0, input.ids[static_cast<std::size_t>(first + t)]) +
                         e.positions.select(0, t) + e.token_types.select(0, 0));
  const auto norm = [&](const at::Tensor& t, const NormWeights& n) {
    return at::layer_norm(t, {width}, n.gain, n.bias, n.epsilon);
  };
  x = norm(x, e.embedding_norm);
  for (const EncoderLayer& layer : e.layers) {
    const at::Tensor qkv = at::linear(x, layer.qkv.weight, layer.qkv.bias);
    const auto split = [&](std::int64_t at) {
      return qkv.narrow(1, at * width, width).view({length, heads, part}).transpose(0, 1);
    };
    const at::Tensor scores =
        at::matmul(split(0), split(1).transpose(1, 2)) / std::sqrt(static_cast<double>(part));
    const at::Tensor context =
        at::matmul(at::softmax(scores, -1), split(2)).transpose(0, 1).reshape({length, width});
    const at::Tensor middle =
        norm(x + at::linear(context, layer.attention_out.weight, layer.attention_out.bias),
             layer.attention_norm);
    const at::Tensor hidden = at::gelu(at::linear(middle, layer.ffn_in.weight, layer.ffn_in.bias));
    x = norm(middle + at::linear(hidden, layer.ffn_out.weight, layer.ffn_out.bias), layer.ffn_norm);
  }
  return x.select(0, 0);
}

TEST(Encoder, EqualsTheSameLayersWrittenPlainly) {
  const at::NoGradGuard no_autograd;
  const Encoder encoder = random_encoder();
  const EncoderInput input = random_input({5, 17, 1, 33});

  const at::Tensor first = encode(encoder, no_slots(encoder.shape), input, {}, nullptr);

  for (std::int64_t row = 0; row < 4; ++row)
    EXPECT_LT(largest_difference(first.select(0, row), plain_row(encoder, input, row)), 2e-5)
        << "row " << row;
}

TEST(Encoder,
     PaddingDoesNotChangeLogits) {  // a row alone, and between batch mates of other lengths
  const at::NoGradGuard no_autograd;
  const Encoder encoder = random_encoder();
  const EncoderInput many = random_input({9, 64, 3, 20});
  EncoderInput alone;
  alone.layout.offsets.push_back(3);
  alone.ids.assign(many.ids.begin() + 73, many.ids.begin() + 76);

  const at::Tensor together = encode(encoder, no_slots(encoder.shape), many, {}, nullptr);
  const at::Tensor single = encode(encoder, no_slots(encoder.shape), alone, {}, nullptr);

  EXPECT_LT(largest_difference(together.select(0, 2), single.select(0, 0)), 1e-5);
}

struct Probe {  // a scalar of the encoder's result, and its gradient at the adapter
  Encoder encoder;
  AdapterPlan adapter;
  EncoderInput input;
  std::vector<std::uint32_t> rows;
  kernels::Dropout dropout;
  at::Tensor weights;

  double value(const at::Tensor& values, at::Tensor* gradient) const {
    const RandomKeys keys{7, 2, rows, {}, {}};
    EncoderOptions options;
    options.keep_tape = gradient != nullptr;
    options.hidden = options.attention = dropout;
    options.keys = &keys;
    EncoderTape tape;
    const SlotTable slots = bind(adapter, values).slots;
    const at::Tensor first =
        encode(encoder, slots, input, options, gradient != nullptr ? &tape : nullptr);
    if (gradient != nullptr) {
      *gradient = adapter.layout.zeros();
      Trained gradients = bind(adapter, *gradient);
      encode_backward(encoder, slots, input, tape, weights, &gradients, {});
    }
    return (first.to(at::kDouble) * weights.to(at::kDouble)).sum().item<double>();
  }
};

Probe probe_of(std::vector<std::string> targets, double dropout, double lora_dropout) {
  Probe probe{random_encoder(),
              {},
              random_input({5, 12, 1, 8}),
              {11, 12, 13, 14},
              kernels::make_dropout(dropout),
              random_matrix({4, 64}, "loss", 1.0)};
  probe.adapter = adapter_for(probe.encoder, std::move(targets), lora_dropout);
  return probe;
}

// Moves every slot along its own gradient and compares the change with the gradient's square.
void expect_gradient(const Probe& probe) {
  const at::NoGradGuard no_autograd;
  const at::Tensor values = trained_values(probe.adapter);
  at::Tensor gradient;
  probe.value(values, &gradient);
  for (std::size_t i = 0; i < probe.adapter.layout.infos().size(); ++i) {
    at::Tensor direction = probe.adapter.layout.zeros();
    const at::Tensor part = probe.adapter.layout.view(gradient, i);
    const double norm = part.norm().item<double>();
    probe.adapter.layout.view(direction, i).copy_(part / norm);
    constexpr double kStep = 2e-2;

    const double up = probe.value(values + direction * kStep, nullptr);
    const double down = probe.value(values - direction * kStep, nullptr);

    EXPECT_NEAR((up - down) / (2 * kStep), norm, 0.02 * norm + 2e-3)
        << probe.adapter.layout.infos()[i].name;
  }
}

TEST(Encoder, GradientOfEverySiteIsTheDerivative) {
  expect_gradient(probe_of(
      {"query", "key", "value", "attention.output.dense", "intermediate.dense", "output.dense"}, 0,
      0));
}

TEST(Encoder, GradientWithDropoutIsTheDerivativeAtTheSameMask) {
  expect_gradient(probe_of({"query", "value", "intermediate.dense"}, 0.1, 0));
}

TEST(Encoder, GradientWithDropoutInsideTheAdapterIsTheDerivative) {
  expect_gradient(probe_of({"query", "key", "output.dense"}, 0.1, 0.2));
}

// In the last layer of pooled lines keys and values are not made (attention_of_one); of all lines
// they are. Only the pooled lines count in either.
TEST(Encoder, PooledLinesAreThoseOfAllLinesForwardAndBackward) {
  const at::NoGradGuard no_autograd;
  for (const double dropout : {0.0, 0.2}) {
    const Probe probe = probe_of({"query", "key", "value", "output.dense"}, dropout, dropout);
    const at::Tensor values = trained_values(probe.adapter);
    const RandomKeys keys{7, 2, probe.rows, {}, {}};
    EncoderOptions options;
    options.keep_tape = true;
    // Dropout behind attention is drawn by line of the batch: what is drawn differs there.
    options.attention = probe.dropout;
    options.keys = &keys;
    const SlotTable slots = bind(probe.adapter, values).slots;
    const auto lines = pooled_lines(probe.encoder.shape, probe.input.layout);
    EncoderTape tape, whole_tape;
    at::Tensor gradient = probe.adapter.layout.zeros(),
               whole_gradient = probe.adapter.layout.zeros();

    const at::Tensor pooled = encode(probe.encoder, slots, probe.input, options, &tape);
    EXPECT_EQ(tape.layers.back().attention.folded.defined(), has_own_products(pooled));
    Trained to = bind(probe.adapter, gradient);
    encode_backward(probe.encoder, slots, probe.input, tape, probe.weights, &to, {});
    options.lines = Lines::kAll;
    const at::Tensor all = encode(probe.encoder, slots, probe.input, options, &whole_tape);
    at::Tensor dall = at::zeros_like(all);
    for (std::size_t row = 0; row < lines.size(); ++row)
      dall.select(0, lines[row]).copy_(probe.weights.select(0, static_cast<std::int64_t>(row)));
    Trained whole_to = bind(probe.adapter, whole_gradient);
    encode_backward(probe.encoder, slots, probe.input, whole_tape, dall, &whole_to, {});

    for (std::size_t row = 0; row < lines.size(); ++row)
      EXPECT_LT(largest_difference(pooled.select(0, static_cast<std::int64_t>(row)),
                                   all.select(0, lines[row])),
                1e-5)
          << "row " << row << ", dropout " << dropout;
    for (std::size_t i = 0; i < probe.adapter.layout.infos().size(); ++i) {
      const at::Tensor expected = probe.adapter.layout.view(whole_gradient, i);
      EXPECT_LT(largest_difference(probe.adapter.layout.view(gradient, i), expected),
                1e-4 * expected.abs().max().item<double>() + 1e-6)
          << probe.adapter.layout.infos()[i].name << ", dropout " << dropout;
    }
  }
}

TEST(Encoder, DropoutOfARowDoesNotDependOnItsBatchMates) {
  const at::NoGradGuard no_autograd;
  Probe probe = probe_of({"query"}, 0.3, 0);
  const at::Tensor values = trained_values(probe.adapter);
  const RandomKeys keys{7, 2, probe.rows, {}, {}};
  EncoderOptions options;
  options.hidden = options.attention = probe.dropout;
  options.keys = &keys;
  EncoderInput alone;
  alone.layout.offsets.push_back(12);
  alone.ids.assign(probe.input.ids.begin() + 5, probe.input.ids.begin() + 17);
  const std::vector<std::uint32_t> one = {12};
  const RandomKeys one_key{7, 2, one, {}, {}};
  EncoderOptions alone_options = options;
  alone_options.keys = &one_key;

  const at::Tensor together =
      encode(probe.encoder, bind(probe.adapter, values).slots, probe.input, options, nullptr);
  const at::Tensor single =
      encode(probe.encoder, bind(probe.adapter, values).slots, alone, alone_options, nullptr);

  EXPECT_LT(largest_difference(together.select(0, 1), single.select(0, 0)), 1e-5);
}

TEST(Encoder, LowerLayersWithoutSlotsAreLeftOutOfTheBackward) {
  const at::NoGradGuard no_autograd;
  const Encoder encoder = random_encoder();
  const AdapterPlan adapter = adapter_for(encoder, {"layer.1.attention.self.query"});
  EncoderOptions options;
  options.keep_tape = true;
  EncoderTape tape;

  encode(encoder, bind(adapter, adapter.layout.zeros()).slots, random_input({6, 7}), options,
         &tape);

  EXPECT_EQ(tape.lowest, 1);
  EXPECT_FALSE(tape.layers[0].x.defined());
  EXPECT_TRUE(tape.layers[1].x.defined());
}

}  // namespace
}  // namespace ymir
