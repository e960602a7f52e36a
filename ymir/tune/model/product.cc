// Matrix products of the encoder. Our own kernel (gemm.h), where the CPU has it, takes those with
// frozen weights that are kept packed or are in half precision (in bf16 only on a CPU without
// matrix units), all within an ExactRows, and the small ones of adapters. The others, and all on
// other CPUs, are ATen's mm, which is also the readable form.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "ymir/base/result.h"
#include "ymir/tune/model/exact_rows_torch.h"
#include "ymir/tune/model/gemm.h"
#include "ymir/tune/model/plain_torch.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ymir {
namespace {

thread_local int exact_rows = 0;

constexpr std::int64_t kBlockTiles = 22;  // 198 rows: a block of both factors fits the L2 cache
constexpr std::int64_t kLanes = 16;
constexpr std::int64_t kUnpackedLines = 4096;  // of a panel: 768 KiB, which fit the L2 cache
constexpr double kSmallWork = 1 << 20;         // multiply-adds that are not worth another thread

// Matrix units for bf16 (AMX). Without them a product in bf16 is no faster than one in f32.
bool has_bf16_units() {
#if defined(__x86_64__)
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 22 & 1) != 0 && (d >> 24 & 1) != 0;
  }();
  return has;
#else
  return false;
#endif
}

bool is_own(const at::Tensor& x) { return has_own_products(x) && x.scalar_type() == at::kFloat; }
bool is_own(const at::Tensor& x, const Linear& linear) {
  const bool wanted = linear.weight16.defined() ? !has_bf16_units()
                                                : exact_rows > 0 || linear.packed != nullptr ||
                                                      linear.weight.scalar_type() != at::kFloat;
  return wanted && is_own(x) && x.stride(1) == 1;
}

std::int64_t panels_of(std::int64_t columns) {
  return (columns + kernels::kPanel - 1) / kernels::kPanel;
}

at::Tensor floats(std::int64_t count) { return at::empty({count}, at::kFloat); }

// Panels first..last of lines `line` .. `line` + depth of a matrix [k, n].
void pack(const at::Tensor& b, std::int64_t line, std::int64_t depth, std::int64_t first,
          std::int64_t last, float* to) {
  const std::int64_t at = line * b.stride(0) + first * kernels::kPanel * b.stride(1);
  const std::int64_t columns = b.size(1) - first * kernels::kPanel;
  if (b.scalar_type() == at::kFloat) {
    kernels::pack(kernels::Strided{b.const_data_ptr<float>() + at, b.stride(0), b.stride(1)}, depth,
                  columns, 0, last - first, to);
  } else {
    const auto* bits = static_cast<const std::uint16_t*>(b.const_data_ptr()) + at;
    kernels::pack(kernels::Strided16{bits, b.stride(0), b.stride(1), b.scalar_type() == at::kHalf},
                  depth, columns, 0, last - first, to);
  }
}

// A matrix [k, n] as panels.
at::Tensor packed(const at::Tensor& b) {
  const std::int64_t k = b.size(0), n = b.size(1);
  at::Tensor out = floats(kernels::packed_size(k, n));
  float* to = out.mutable_data_ptr<float>();
  const auto each =
      std::max<std::int64_t>(1, (1 << 15) / (kernels::kPanel * std::max<std::int64_t>(1, k)));
  at::parallel_for(0, panels_of(n), each, [&](std::int64_t begin, std::int64_t end) {
    pack(b, 0, k, begin, end, to + begin * kernels::kPanel * k);
  });
  return out;
}

// A frozen weight as the second factor.
struct Factor {
  at::Tensor values{};  // [k, n]
  // Its panels, with what must stay alive while they are read. Undefined: not kept, each product
  // makes them a few at a time.
  at::Tensor memory{};
  kernels::Panels panels{};
};

// Of x W^T: [in, out].
Factor forward_factor(const Linear& linear) {
  const at::Tensor values = linear.values().t();
  if (linear.packed == nullptr) return {values, {}, {}};
  const std::int64_t count = values.size(1);
  at::Tensor& memory = linear.packed->forward[{linear.first, count}];
  if (!memory.defined()) memory = packed(linear.packed->source.narrow(0, linear.first, count).t());
  return {values,
          memory,
          {memory.const_data_ptr<float>(), kernels::kPanel * values.size(0), kernels::kPanel}};
}

// Of dy W: [out, in].
Factor backward_factor(const Linear& linear) {
  const at::Tensor& values = linear.values();
  if (linear.packed == nullptr) return {values, {}, {}};
  at::Tensor& memory = linear.packed->backward;
  if (!memory.defined()) memory = packed(linear.packed->source);
  return {values,
          memory,
          {memory.const_data_ptr<float>() + linear.first * kernels::kPanel,
           kernels::kPanel * linear.packed->source.size(0), kernels::kPanel}};
}

// The rows of a block stay in the cache while all panels pass by. Few rows: threads share the
// panels. Neither changes a bit of the result.
void multiply_all(const kernels::Product& p, kernels::Strided a, kernels::Panels b, float* c,
                  std::int64_t c_row) {
  const std::int64_t tiles = (p.m + kernels::kTileRows - 1) / kernels::kTileRows;
  const double tile_work =
      static_cast<double>(kernels::kTileRows) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const std::int64_t panels = panels_of(p.n);
  if (tiles < 2 * at::get_num_threads() && panels > tiles) {
    const auto each = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(kSmallWork / (static_cast<double>(tiles) * tile_work) *
                                     static_cast<double>(panels)));
    at::parallel_for(0, panels, each, [&](std::int64_t begin, std::int64_t end) {
      kernels::Product part = p;
      part.n = std::min(p.n, end * kernels::kPanel) - begin * kernels::kPanel;
      if (p.bias != nullptr) part.bias = p.bias + begin * kernels::kPanel;
      if (p.factor != nullptr) part.factor = p.factor + begin * kernels::kPanel;
      kernels::multiply(part, a, {b.data + begin * b.step, b.step, b.line},
                        c + begin * kernels::kPanel, c_row);
    });
    return;
  }
  const auto each = std::max<std::int64_t>(1, static_cast<std::int64_t>(kSmallWork / tile_work));
  at::parallel_for(0, tiles, each, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; tile += kBlockTiles) {
      const std::int64_t row = tile * kernels::kTileRows;
      kernels::Product part = p;
      part.m = std::min(p.m, std::min(end, tile + kBlockTiles) * kernels::kTileRows) - row;
      if (p.factor != nullptr) part.factor = p.factor + row * c_row;
      kernels::multiply(part, {a.data + row * a.row, a.row, a.column}, b, c + row * c_row, c_row);
    }
  });
}

kernels::Strided strided(const at::Tensor& t) {
  return {t.const_data_ptr<float>(), t.stride(0), t.stride(1)};
}

// The same with a weight of which no panels are kept: each thread unpacks a few into memory of its
// own, and all rows pass them by. Sums go on from one cut of k to the next: no bit changes.
void multiply_unpacking(const kernels::Product& p, kernels::Strided a, const at::Tensor& b,
                        float* c, std::int64_t c_row) {
  // What lies adjacent in memory is read in long runs.
  const std::int64_t wide = b.stride(0) == 1 ? 1 : 8, deep = kUnpackedLines / wide;
  const auto each = static_cast<std::int64_t>(
      kSmallWork / (static_cast<double>(p.m * kernels::kPanel) * static_cast<double>(p.k)));
  at::parallel_for(
      0, panels_of(p.n), std::max<std::int64_t>(1, each),
      [&](std::int64_t begin, std::int64_t end) {
        const at::Tensor memory =
            floats(std::min(wide, end - begin) * std::min(deep, p.k) * kernels::kPanel);
        float* unpacked = memory.mutable_data_ptr<float>();
        for (std::int64_t first = begin; first < end; first += wide) {
          const std::int64_t last = std::min(end, first + wide), column = first * kernels::kPanel;
          for (std::int64_t line = 0; line < p.k; line += deep) {
            kernels::Product part{p.m, std::min(p.n, last * kernels::kPanel) - column,
                                  std::min(deep, p.k - line)};
            part.go_on = line > 0;
            const bool ends = line + deep >= p.k;
            if (p.bias != nullptr && ends) part.bias = p.bias + column;
            if (p.factor != nullptr && ends) part.factor = p.factor + column;
            pack(b, line, part.k, first, last, unpacked);
            kernels::multiply(part, {a.data + line * a.column, a.row, a.column},
                              {unpacked, kernels::kPanel * part.k, kernels::kPanel}, c + column,
                              c_row);
          }
        }
      });
}

// c = (a b + bias) * factor, c with lines of adjacent values; bias, factor [like c] undefined:
// none.
void multiply_frozen(const at::Tensor& a, const Factor& b, const at::Tensor& bias, at::Tensor c,
                     const at::Tensor& factor = {}) {
  kernels::Product p{a.size(0), c.size(1), a.size(1)};
  if (bias.defined()) p.bias = bias.const_data_ptr<float>();
  if (factor.defined()) p.factor = factor.const_data_ptr<float>();
  float* to = c.mutable_data_ptr<float>();
  if (b.memory.defined()) return multiply_all(p, strided(a), b.panels, to, c.stride(0));
  multiply_unpacking(p, strided(a), b.values, to, c.stride(0));
}

// c = alpha a b (+ c), c with lines of adjacent values.
void own_multiply_add(at::Tensor c, const at::Tensor& a, const at::Tensor& b, float alpha,
                      bool add) {
  const std::int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  if (c.stride(1) != 1) return own_multiply_add(c.t(), b.t(), a.t(), alpha, add);
  const bool in_place = b.stride(1) == 1 && n % kLanes == 0;
  if (m < kernels::kPanel && in_place) {
    // A flat result, a gradient of an adapter: lines of b are read as they lie.
    multiply_all({m, n, k, alpha, add}, strided(a),
                 {b.const_data_ptr<float>(), kernels::kPanel, b.stride(0)},
                 c.mutable_data_ptr<float>(), c.stride(0));
    return;
  }
  const bool better_turned =
      m < kernels::kPanel ? n > 4 * m : n < kernels::kPanel && a.stride(0) == 1 && m % kLanes == 0;
  if (better_turned) {
    at::Tensor turned = at::empty({n, m}, at::kFloat);
    own_multiply_add(turned, b.t(), a.t(), alpha, false);
    if (add) {
      c.add_(turned.t());
    } else {
      c.copy_(turned.t());
    }
    return;
  }
  const at::Tensor panels = packed(b);
  // Lines along k would be read from a page each.
  const at::Tensor rows = a.stride(1) == 1 || k < 128 ? a : a.contiguous();
  multiply_all({m, n, k, alpha, add}, strided(rows),
               {panels.const_data_ptr<float>(), kernels::kPanel * k, kernels::kPanel},
               c.mutable_data_ptr<float>(), c.stride(0));
}

}  // namespace

bool has_exact_rows(bool bf16) { return kernels::has_gemm() && !(bf16 && has_bf16_units()); }

bool has_own_products(const at::Tensor& x) { return kernels::has_gemm() && !is_plain(x); }

ExactRows::ExactRows() { ++exact_rows; }
ExactRows::~ExactRows() { --exact_rows; }

at::Tensor product(const at::Tensor& x, const Linear& linear) {
  Linear bare = linear;
  bare.bias = at::Tensor();
  return product_with_bias(x, bare);
}

at::Tensor activated_product(const at::Tensor& x, const Linear& linear, Activation f, bool gated,
                             at::Tensor* slope) {
  if (!is_own(x, linear)) return activation(f, gated, product(x, linear), linear.bias, slope);
  const std::int64_t m = x.size(0), k = x.size(1), n = linear.weight.size(0);
  at::Tensor h = at::empty({m, gated ? n / 2 : n}, at::kFloat);
  if (slope != nullptr) *slope = at::empty({m, n}, at::kFloat);
  const Factor b = forward_factor(linear);
  constexpr std::int64_t kBlock = kBlockTiles * kernels::kTileRows;
  if (m <= kBlock || !b.memory.defined()) {
    const at::Tensor z = at::empty({m, n}, at::kFloat);
    multiply_frozen(x, b, {}, z);
    at::parallel_for(0, m, kernels::kTileRows, [&](std::int64_t first, std::int64_t last) {
      activation_lines(f, gated, z.narrow(0, first, last - first), linear.bias, h, slope, first);
    });
    return h;
  }
  // Nobody needs the sums beyond their activation: one block of them a thread is enough.
  const std::int64_t tiles = (m + kernels::kTileRows - 1) / kernels::kTileRows;
  at::parallel_for(0, tiles, 1, [&](std::int64_t begin, std::int64_t end) {
    const at::Tensor z = at::empty({kBlock, n}, at::kFloat);
    const std::int64_t last = std::min(m, end * kernels::kTileRows);
    for (std::int64_t row = begin * kernels::kTileRows; row < last; row += kBlock) {
      const std::int64_t rows = std::min(kBlock, last - row);
      const kernels::Strided lines = strided(x.narrow(0, row, rows));
      kernels::multiply({rows, n, k}, lines, b.panels, z.mutable_data_ptr<float>(), n);
      activation_lines(f, gated, z.narrow(0, 0, rows), linear.bias, h, slope, row);
    }
  });
  return h;
}

at::Tensor product_with_bias(const at::Tensor& x, const Linear& linear) {
  if (is_own(x, linear)) {
    at::Tensor y = at::empty({x.size(0), linear.weight.size(0)}, at::kFloat);
    multiply_frozen(x, forward_factor(linear), linear.bias, y);
    return y;
  }
  if (linear.weight16.defined()) {
    at::Tensor y = at::mm(x.to(at::kBFloat16), linear.weight16.t()).to(at::kFloat);
    return linear.bias.defined() ? y.add_(linear.bias) : y;
  }
  if (!linear.bias.defined()) return at::mm(x, in_f32(linear.weight).t());
  return at::addmm(linear.bias, x, in_f32(linear.weight).t());
}

at::Tensor activated_product_backward(const at::Tensor& dy, const Linear& linear, bool gated,
                                      const at::Tensor& slope) {
  if (gated || !is_own(dy, linear))
    return activation_backward(gated, product_backward(dy, linear), slope);
  at::Tensor dh = at::empty({dy.size(0), linear.weight.size(1)}, at::kFloat);
  multiply_frozen(dy, backward_factor(linear), {}, dh, slope);
  return dh;
}

at::Tensor product_backward(const at::Tensor& dy, const Linear& linear, at::Tensor into) {
  if (is_own(dy, linear)) {
    const Factor b = backward_factor(linear);
    const std::int64_t m = dy.size(0), k = dy.size(1), n = linear.weight.size(1);
    if (into.defined() && b.memory.defined()) {
      multiply_all({m, n, k, 1, true}, strided(dy), b.panels, into.mutable_data_ptr<float>(),
                   into.stride(0));
      return into;
    }
    const at::Tensor dx = at::empty({m, n}, at::kFloat);
    multiply_frozen(dy, b, {}, dx);
    return into.defined() ? into.add_(dx) : dx;
  }
  if (linear.weight16.defined()) {
    at::Tensor dx = at::mm(dy.to(at::kBFloat16), linear.weight16).to(at::kFloat);
    return into.defined() ? into.add_(dx) : dx;
  }
  if (!into.defined()) return at::mm(dy, in_f32(linear.weight));
  return into.addmm_(dy, in_f32(linear.weight));
}

at::Tensor times(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor c = at::empty({a.size(0), b.size(1)}, a.options());
  multiply_add(c, a, b, 1, 0);
  return c;
}

void multiply_add(at::Tensor c, const at::Tensor& a, const at::Tensor& b, double alpha,
                  double beta) {
  // The gradient of a whole weight is the library's: it is no small product.
  const bool small = std::min({c.size(0), c.size(1), a.size(1)}) <= kernels::kPanel;
  if (is_own(c) && small && (beta == 0 || beta == 1) && (c.stride(1) == 1 || c.stride(0) == 1) &&
      a.scalar_type() == at::kFloat && b.scalar_type() == at::kFloat) {
    own_multiply_add(std::move(c), a, b, static_cast<float>(alpha), beta == 1);
    return;
  }
  c.addmm_(a, b, beta, alpha);
}

}  // namespace ymir
