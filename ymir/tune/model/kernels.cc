// Built with -ffp-contract=fast: a product and its sum are one instruction where the CPU has it.
#include "ymir/tune/model/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

// Vectors are the compiler's, as wide as a register of each instruction set. Sums run in so many
// lanes and are folded in a fixed order.
#define YMIR_INLINE static inline __attribute__((always_inline))
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed between inlined functions only

namespace ymir::kernels {
namespace {

// Counters that one call of Philox takes.
constexpr int kBlocks = 16;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define YMIR_DISPATCH 1
#pragma GCC push_options
#pragma GCC target("arch=skylake-avx512,prefer-vector-width=512")
#define YMIR_LANES 16
namespace avx512 {
#include "ymir/tune/model/kernels_body.inc"
}
#undef YMIR_LANES
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("arch=haswell")
#define YMIR_LANES 8
namespace avx2 {
#include "ymir/tune/model/kernels_body.inc"
}
#undef YMIR_LANES
#pragma GCC pop_options
#endif
#define YMIR_LANES 4
namespace base {
#include "ymir/tune/model/kernels_body.inc"
}
#undef YMIR_LANES

struct Table {
  const char* name = "base";
  decltype(&kernels::dropout_mask) dropout_mask = base::dropout_mask;
  decltype(&kernels::apply_mask) apply_mask = base::apply_mask;
  decltype(&kernels::norm_row) norm_row = base::norm_row;
  decltype(&kernels::residual_norm_row) residual_norm_row = base::residual_norm_row;
  decltype(&kernels::norm_backward_row) norm_backward_row = base::norm_backward_row;
  decltype(&kernels::residual_row) residual_row = base::residual_row;
  decltype(&kernels::activation_row) activation_row = base::activation_row;
  decltype(&kernels::gated_row) gated_row = base::gated_row;
  decltype(&kernels::rotate_row) rotate_row = base::rotate_row;
  decltype(&kernels::multiply) multiply = base::multiply;
  decltype(&kernels::softmax_row) softmax_row = base::softmax_row;
  decltype(&kernels::sign_mask) sign_mask = base::sign_mask;
  decltype(&kernels::drop_signed) drop_signed = base::drop_signed;
  decltype(&kernels::softmax_backward_row) softmax_backward_row = base::softmax_backward_row;
  decltype(&kernels::adamw) adamw = base::adamw;
};

// The build of that name, where this CPU runs it.
std::optional<Table> build_of(std::string_view set) {
#ifdef YMIR_DISPATCH
#define YMIR_TABLE(set)                                                                     \
  Table {                                                                                   \
    #set, set::dropout_mask, set::apply_mask, set::norm_row, set::residual_norm_row,        \
        set::norm_backward_row, set::residual_row, set::activation_row, set::gated_row,     \
        set::rotate_row, set::multiply, set::softmax_row, set::sign_mask, set::drop_signed, \
        set::softmax_backward_row, set::adamw                                               \
  }
  __builtin_cpu_init();
  if (set == "avx512" && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512cd"))
    return YMIR_TABLE(avx512);
  if (set == "avx2" && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2"))
    return YMIR_TABLE(avx2);
#endif
  return set == "base" ? std::optional<Table>(Table{}) : std::nullopt;
}

Table best() {
  for (const char* set : {"avx512", "avx2"})
    if (const auto build = build_of(set)) return *build;
  return {};
}

Table table = best();

}  // namespace

const char* instruction_set() { return table.name; }

bool take_instruction_set(std::string_view set) {
  const auto build = build_of(set);
  if (build) table = *build;
  return build.has_value();
}

Dropout make_dropout(double probability) {
  Dropout d;
  d.threshold = static_cast<std::uint32_t>(std::lround(std::clamp(probability, 0.0, 1.0) * 65536));
  if (d.threshold > 65535) d.threshold = 65535;
  d.scale = static_cast<float>(65536.0 / (65536.0 - d.threshold));
  return d;
}

void dropout_mask(const DropoutKey& key, Dropout dropout, std::int64_t count, std::uint8_t* keep) {
  table.dropout_mask(key, dropout, count, keep);
}
void apply_mask(const float* x, const std::uint8_t* keep, float scale, std::int64_t count,
                float* out) {
  table.apply_mask(x, keep, scale, count, out);
}
void norm_row(const Norm& norm, const float* x, float* y, float* normalised, float* inverse) {
  table.norm_row(norm, x, y, normalised, inverse);
}
void residual_norm_row(const Norm& norm, const float* bias, const std::uint8_t* keep, float scale,
                       const float* residual, float* z, float* y, float* normalised,
                       float* inverse) {
  table.residual_norm_row(norm, bias, keep, scale, residual, z, y, normalised, inverse);
}
void norm_backward_row(const Norm& norm, const float* dy, const float* normalised, float inverse,
                       float* dsum) {
  table.norm_backward_row(norm, dy, normalised, inverse, dsum);
}
void residual_row(const float* bias, const std::uint8_t* keep, float scale, const float* residual,
                  std::int64_t width, float* z) {
  table.residual_row(bias, keep, scale, residual, width, z);
}
void activation_row(Activation f, const float* z, const float* bias, std::int64_t width, float* h,
                    float* slope) {
  table.activation_row(f, z, bias, width, h, slope);
}
void gated_row(Activation f, const float* z, const float* bias, std::int64_t width, float* h,
               float* factors) {
  table.gated_row(f, z, bias, width, h, factors);
}
void rotate_row(float* x, int heads, std::int64_t head_width, const float* cosine,
                const float* sine, bool back) {
  table.rotate_row(x, heads, head_width, cosine, sine, back);
}
void multiply(float* x, const float* factor, std::int64_t count) {
  table.multiply(x, factor, count);
}
void softmax_row(float* x, std::int64_t width, float scale) { table.softmax_row(x, width, scale); }
void sign_mask(float* p, const std::uint8_t* keep, std::int64_t count) {
  table.sign_mask(p, keep, count);
}
void drop_signed(const float* p, float scale, std::int64_t count, float* out) {
  table.drop_signed(p, scale, count, out);
}
void softmax_backward_row(const float* p, float drop_scale, float scale, std::int64_t width,
                          float* g) {
  table.softmax_backward_row(p, drop_scale, scale, width, g);
}
void adamw(const AdamW& o, const float* g, std::int64_t count, float* p, float* m, float* v) {
  table.adamw(o, g, count, p, m, v);
}

double sum_of_squares(const float* x, std::int64_t count) {
  double lanes[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int l = 0; l < 8; ++l) lanes[l] += static_cast<double>(x[i + l]) * x[i + l];
  for (; i < count; ++i) lanes[0] += static_cast<double>(x[i]) * x[i];
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

}  // namespace ymir::kernels
