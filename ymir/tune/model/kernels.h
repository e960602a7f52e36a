// CPU kernels of the encoder that are not matrix products: float32, row-major, no allocation, no
// torch. Each works on rows on its own (no sum crosses a row), so results do not depend on how rows
// are spread over threads or mixed in a batch. Built for AVX-512, AVX2 and plain x86-64; the CPU
// picks at load time.
#pragma once

#include <cstdint>
#include <string_view>

#include "ymir/tune/model_config.h"

namespace ymir::kernels {

// Which of the builds this CPU takes: avx512, avx2 or base. Part of the numerics key.
const char* instruction_set();
// From now on that build; false where this CPU does not run it. For tests, while no kernel runs.
bool take_instruction_set(std::string_view set);
// Raised whenever a bit of what these kernels, products (gemm.h) or attention give changes: outputs
// kept before are not taken for today's. Part of the numerics key.
constexpr int kRevision = 2;

// Which random decisions: counter-based, so a mask is a function of these alone.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint32_t row = 0;  // of the data set
  std::uint32_t epoch = 0;
  std::uint32_t site = 0;  // purpose, layer, head
};
// An entry is dropped with probability threshold / 65536; what stays is multiplied by `scale`.
struct Dropout {
  std::uint32_t threshold = 0;
  float scale = 1;
  explicit operator bool() const { return threshold != 0; }
};
Dropout make_dropout(double probability);

// keep[i] = 1 or 0 for positions 0..count. A shorter call gives a prefix of a longer one.
void dropout_mask(const DropoutKey& key, Dropout dropout, std::int64_t count, std::uint8_t* keep);
// out[i] = keep[i] ? scale * x[i] : 0. In place allowed.
void apply_mask(const float* x, const std::uint8_t* keep, float scale, std::int64_t count,
                float* out);

struct Norm {
  const float* gain = nullptr;
  const float* bias = nullptr;  // null: none
  float epsilon = 0;
  std::int64_t width = 0;
  bool centred = true;  // LayerNorm; false: RMSNorm, the mean stays
};
// y = norm(x); normalised values and 1/deviation are kept for the backward when asked for.
void norm_row(const Norm& norm, const float* x, float* y, float* normalised, float* inverse);
// z = residual + dropout(z + bias). `bias` null: none; `keep` null: no dropout.
void residual_row(const float* bias, const std::uint8_t* keep, float scale, const float* residual,
                  std::int64_t width, float* z);
// residual_row, then norm_row of the sum, which stays in z.
void residual_norm_row(const Norm& norm, const float* bias, const std::uint8_t* keep, float scale,
                       const float* residual, float* z, float* y, float* normalised,
                       float* inverse);
// dsum = gradient at the norm's input.
void norm_backward_row(const Norm& norm, const float* dy, const float* normalised, float inverse,
                       float* dsum);

// h = f(z + bias); slope = its derivative, when not null. `bias` null: none. One row.
void activation_row(Activation f, const float* z, const float* bias, std::int64_t width, float* h,
                    float* slope);
// z = [up | gate], both `width` wide: h = up * f(gate). `factors` (when not null, as wide as z):
// the derivatives of h by up and by gate.
void gated_row(Activation f, const float* z, const float* bias, std::int64_t width, float* h,
               float* factors);
void multiply(float* x, const float* factor, std::int64_t count);  // x *= factor

// Rotary positions, in place: of each head the halves (a, b) turn by the line's angles:
// (a cos - b sin, b cos + a sin). cosine and sine: head_width / 2 values. `back`: by -angle.
void rotate_row(float* x, int heads, std::int64_t head_width, const float* cosine,
                const float* sine, bool back);

// In place: softmax(scale * x) of one row.
void softmax_row(float* x, std::int64_t width, float scale);
// Attention dropout keeps the decision in the sign bit of the probability: dropped -> negative.
void sign_mask(float* p, const std::uint8_t* keep, std::int64_t count);
// out = dropout(p) of signed probabilities.
void drop_signed(const float* p, float scale, std::int64_t count, float* out);
// g: gradient of dropout(p) -> scale * gradient of the scores. One row; p signed.
void softmax_backward_row(const float* p, float drop_scale, float scale, std::int64_t width,
                          float* g);

struct AdamW {
  float lr = 0, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f, decay = 0;
  float correction1 = 1, correction2 = 1;  // 1 - beta^t
};
// One decoupled-decay Adam update of `count` values (Loshchilov and Hutter, 2019, algorithm 2).
void adamw(const AdamW& options, const float* g, std::int64_t count, float* p, float* m, float* v);
double sum_of_squares(const float* x, std::int64_t count);

}  // namespace ymir::kernels
