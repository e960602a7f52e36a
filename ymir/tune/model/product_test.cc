// Products on tensors, whichever kernel makes them, beside ATen's.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mm.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>

#include "ymir/base/rng.h"
#include "ymir/tune/model/exact_rows_torch.h"
#include "ymir/tune/model/gemm.h"
#include "ymir/tune/model/ops_torch.h"

namespace ymir {
namespace {

at::Tensor numbers(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  Rng rng(seed);
  at::Tensor out = at::empty({rows, columns}, at::kFloat);
  float* to = out.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < out.numel(); ++i) to[i] = static_cast<float>(rng.uniform() - 0.5);
  return out;
}

// Threads share rows where there are many, panels where there are few.
class Product : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { at::set_num_threads(GetParam()); }
  void TearDown() override { at::set_num_threads(before_); }

 private:
  const int before_ = at::get_num_threads();
};
INSTANTIATE_TEST_SUITE_P(Threads, Product, ::testing::Values(1, 2, 3));

// at::parallel_for is a header: without OpenMP's flag it would be a loop on one thread.
TEST_P(Product, LoopsRunOnAsManyThreadsAsAreAskedFor) {
  std::mutex guard;
  std::set<std::thread::id> seen;
  at::parallel_for(0, 64, 1, [&](std::int64_t, std::int64_t) {
    const std::lock_guard lock(guard);
    seen.insert(std::this_thread::get_id());
  });

  EXPECT_EQ(seen.size(), static_cast<std::size_t>(GetParam()));
}

// A frozen map that is kept packed.
Linear frozen(std::int64_t out, std::int64_t in) {
  Linear linear;
  linear.weight = numbers(out, in, 7);
  linear.bias = numbers(1, out, 8).view({out});
  linear.packed = std::make_shared<PackedWeight>(PackedWeight{linear.weight, {}, {}});
  return linear;
}

TEST_P(Product, OfAFrozenWeightIsTheLibrarysWithinRounding) {
  const at::NoGradGuard no_autograd;
  const Linear linear = frozen(144, 70);
  for (const std::int64_t rows : {1, 10, 19, 250}) {
    const at::Tensor x = numbers(rows, 70, 1), dy = numbers(rows, 144, 2);

    EXPECT_TRUE(at::allclose(product_with_bias(x, linear),
                             at::mm(x, linear.weight.t()) + linear.bias, 1e-5, 1e-5))
        << rows;
    EXPECT_TRUE(at::allclose(product_backward(dy, linear), at::mm(dy, linear.weight), 1e-5, 1e-5))
        << rows;
  }
}

TEST_P(Product, WithItsActivationIsBothOneAfterTheOther) {
  const at::NoGradGuard no_autograd;
  const Linear up = frozen(160, 64), down = frozen(64, 160);
  for (const bool gated : {false, true})
    for (const std::int64_t rows : {1, 10, 250}) {
      const at::Tensor x = numbers(rows, 64, 1), dy = numbers(rows, 64, 2);
      at::Tensor slope, slope_apart;

      const at::Tensor h = activated_product(x, up, Activation::kGelu, gated, &slope);
      const at::Tensor apart =
          activation(Activation::kGelu, gated, product(x, up), up.bias, &slope_apart);

      EXPECT_TRUE(at::equal(h, apart)) << rows;
      EXPECT_TRUE(at::equal(slope, slope_apart)) << rows;
      if (gated) continue;
      EXPECT_TRUE(at::equal(activated_product_backward(dy, down, false, slope),
                            activation_backward(false, product_backward(dy, down), slope)))
          << rows;
    }
}

// Such a weight is unpacked a piece at a time, in pieces that end within its lines and columns.
TEST_P(Product, OfAWeightThatIsNotKeptPackedHasTheBitsOfOneThatIs) {
  if (!kernels::has_gemm()) GTEST_SKIP() << "this CPU has no AVX-512";
  const at::NoGradGuard no_autograd;
  const ExactRows exact;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    Linear kept = frozen(1110, 4200);
    kept.weight = kept.weight.to(type);
    kept.packed->source = kept.weight;
    Linear unkept = kept;
    unkept.packed = nullptr;
    const at::Tensor x = numbers(20, 4200, 1), dy = numbers(20, 1110, 2);
    at::Tensor slope, slope_of_kept, into = numbers(20, 4200, 3), into_of_kept = into.clone();

    const at::Tensor h = activated_product(x, unkept, Activation::kGelu, false, &slope);
    product_backward(dy, unkept, into);

    EXPECT_TRUE(at::equal(h, activated_product(x, kept, Activation::kGelu, false, &slope_of_kept)));
    EXPECT_TRUE(at::equal(slope, slope_of_kept));
    EXPECT_TRUE(at::equal(product_with_bias(x, unkept), product_with_bias(x, kept)));
    EXPECT_TRUE(at::equal(into, product_backward(dy, kept, into_of_kept)));
    EXPECT_TRUE(at::equal(activated_product_backward(dy, unkept, false, x),
                          activated_product_backward(dy, kept, false, x)));
  }
}

TEST_P(Product, GradientsOfAnAdapterAreTheLibrarysWhateverTheStrides) {
  const at::NoGradGuard no_autograd;
  const at::Tensor wide = numbers(130, 96, 1), low = numbers(130, 8, 2);
  const at::Tensor dy = wide.narrow(1, 32, 48);  // a column slice, as of query, key and value
  const at::Tensor before_a = numbers(8, 48, 3), before_b = numbers(48, 8, 4);
  at::Tensor a = before_a.clone(), b = before_b.clone(), odd = numbers(5, 33, 5);
  const at::Tensor before_odd = odd.clone(), narrow = numbers(130, 5, 6), x = numbers(130, 33, 7);

  multiply_add(a, low.t(), dy, 0.5, 1);
  multiply_add(b, dy.t(), low, 0.5, 1);
  multiply_add(odd, narrow.t(), x, 2, 1);

  EXPECT_TRUE(at::allclose(a, before_a + at::mm(low.t(), dy) * 0.5, 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(b, before_b + at::mm(dy.t(), low) * 0.5, 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(odd, before_odd + at::mm(narrow.t(), x) * 2, 1e-5, 1e-5));
}

}  // namespace
}  // namespace ymir
