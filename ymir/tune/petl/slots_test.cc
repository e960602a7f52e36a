// DoRA with dropout against the formula of PEFT's layer, written out in double.
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ymir/base/rng.h"
#include "ymir/tune/petl/slots_torch.h"

namespace ymir {
namespace {

constexpr std::int64_t kRows = 3, kIn = 6, kOut = 4, kRank = 2;

at::Tensor filled(at::IntArrayRef shape, Rng& rng, double deviation, double mean = 0) {
  at::Tensor t = at::empty(shape, at::kFloat);
  for (std::int64_t i = 0; i < t.numel(); ++i)
    t.mutable_data_ptr<float>()[i] = static_cast<float>(mean + deviation * rng.normal());
  return t;
}

class DoraWithDropout : public ::testing::Test {
 protected:
  double at(const at::Tensor& t, std::int64_t i, std::int64_t j) const {
    return t.const_data_ptr<float>()[i * t.size(1) + j];
  }
  std::vector<double> stretch() const {  // m / |W + s B A|, constant in the backward
    std::vector<double> f;
    for (std::int64_t o = 0; o < kOut; ++o) {
      double square = 0;
      for (std::int64_t i = 0; i < kIn; ++i) {
        double w = at(linear.weight, o, i);
        for (std::int64_t k = 0; k < kRank; ++k)
          w += slot.scale * at(slot.b, o, k) * at(slot.a, k, i);
        square += w * w;
      }
      f.push_back(slot.magnitude.const_data_ptr<float>()[o] / std::sqrt(square));
    }
    return f;
  }
  // W x + b + (f - 1) W x' + f s B A x' of row n, output o.
  double by_hand(std::int64_t n, std::int64_t o, const std::vector<double>& f) const {
    double plain = 0, dropped = 0, low = 0;
    std::vector<double> kept;
    for (std::int64_t i = 0; i < kIn; ++i)
      kept.push_back(keep.const_data_ptr<std::uint8_t>()[n * kIn + i] != 0
                         ? at(x, n, i) * static_cast<double>(slot.dropout.scale)
                         : 0);
    for (std::int64_t i = 0; i < kIn; ++i) {
      plain += at(linear.weight, o, i) * at(x, n, i);
      dropped += at(linear.weight, o, i) * kept[static_cast<std::size_t>(i)];
      for (std::int64_t k = 0; k < kRank; ++k)
        low += at(slot.b, o, k) * at(slot.a, k, i) * kept[static_cast<std::size_t>(i)];
    }
    const double factor = f[static_cast<std::size_t>(o)];
    return plain + linear.bias.const_data_ptr<float>()[o] + (factor - 1) * dropped +
           factor * slot.scale * low;
  }
  double loss(const std::vector<double>& f) const {
    double sum = 0;
    for (std::int64_t n = 0; n < kRows; ++n)
      for (std::int64_t o = 0; o < kOut; ++o) sum += at(dy, n, o) * by_hand(n, o, f);
    return sum;
  }
  // Compares a gradient with the slope of the loss by each element of `of`.
  void expect_slopes(const at::Tensor& of, const at::Tensor& gradient, bool of_magnitude) {
    const std::vector<double> fixed = stretch();
    float* data = of.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < of.numel(); ++i) {
      const float before = data[i];
      data[i] = before + 1e-2f;
      const double up = loss(of_magnitude ? stretch() : fixed);
      data[i] = before - 1e-2f;
      const double down = loss(of_magnitude ? stretch() : fixed);
      data[i] = before;
      EXPECT_NEAR(gradient.const_data_ptr<float>()[i], (up - down) / 2e-2, 2e-3) << i;
    }
  }

  Rng rng{11};
  Linear linear{filled({kOut, kIn}, rng, 0.5), {}, filled({kOut}, rng, 0.5)};
  LoraSlot slot{filled({kRank, kIn}, rng, 0.5), filled({kOut, kRank}, rng, 0.5),
                filled({kOut}, rng, 0.3, 1.5),  1.5,
                kernels::make_dropout(0.4),     7};
  at::Tensor x = filled({kRows, kIn}, rng, 1), dy = filled({kRows, kOut}, rng, 1);
  std::vector<std::uint32_t> rows{0, 1, 2};
  RandomKeys keys{3, 1, rows};
  RowLayout layout = one_line_a_row(kRows);
  at::Tensor keep = row_mask(layout, kIn, keys, slot.random_site, slot.dropout);
};

TEST_F(DoraWithDropout, GivesWhatPeftsLayerGives) {
  at::Tensor y = product_with_bias(x, linear);

  lora_add(slot, layout, x, y, linear, true, &keys, nullptr);

  const std::vector<double> f = stretch();
  for (std::int64_t n = 0; n < kRows; ++n)
    for (std::int64_t o = 0; o < kOut; ++o) EXPECT_NEAR(at(y, n, o), by_hand(n, o, f), 1e-5);
}

TEST_F(DoraWithDropout, GradientsAreTheSlopesAtTheSameMask) {
  LoraTape tape;
  at::Tensor y = product_with_bias(x, linear);
  lora_add(slot, layout, x, y, linear, true, &keys, &tape);
  LoraSlot gradient{at::zeros_like(slot.a), at::zeros_like(slot.b), at::zeros_like(slot.magnitude)};

  const at::Tensor before = magnitude_backward(tape, dy, &gradient);
  at::Tensor dx = product_backward(before, linear);
  lora_backward(slot, tape, x, before, gradient, dx);

  expect_slopes(slot.magnitude, gradient.magnitude, true);
  expect_slopes(slot.a, gradient.a, false);
  expect_slopes(slot.b, gradient.b, false);
  expect_slopes(x, dx, false);
}

}  // namespace
}  // namespace ymir
