// Built with -ffp-contract=fast: a product and its sum are one instruction here.
#include "ymir/tune/model/gemm.h"

#include <algorithm>
#include <cstring>
#include <utility>

#define YMIR_INLINE static inline __attribute__((always_inline))
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed between inlined functions only

namespace ymir::kernels {
namespace {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define YMIR_GEMM 1
#pragma GCC push_options
#pragma GCC target("arch=skylake-avx512,prefer-vector-width=512")

constexpr int kLanes = 16;
constexpr std::int64_t kAhead = 16;  // lines of b that are fetched early
using F16 = float __attribute__((vector_size(64)));

YMIR_INLINE F16 load(const float* x) {
  F16 r;
  __builtin_memcpy(&r, x, sizeof r);
  return r;
}
YMIR_INLINE void store(float* x, F16 r) { __builtin_memcpy(x, &r, sizeof r); }
YMIR_INLINE F16 everywhere(float x) { return F16{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }

struct Tile {
  const float* a;
  std::int64_t a_row, a_column;
  const float* b;
  std::int64_t line, k;
  float* c;
  std::int64_t c_row;
  std::int64_t columns;  // of the last vector
  const float* bias;
  float alpha;
  bool add;
};

// Rows x (16 Vectors) elements of c. The loops over rows and vectors are unrolled: up to 27 sums,
// a line of b and one element of a live in registers. Rows of a are reached from three pointers, so
// that their addresses need few registers; the empty statement keeps the compiler from giving each
// row one of its own.
template <int Rows, int Vectors>
void tile(const Tile& t) {
  F16 sum[Rows][Vectors];
#pragma GCC unroll 9
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) sum[r][v] = F16{};
  const std::int64_t a_row = t.a_row, a_column = t.a_column, line = t.line, ahead = kAhead * line;
  const float *a0 = t.a, *a1 = t.a + 3 * a_row, *a2 = t.a + 6 * a_row, *b = t.b;
#pragma GCC unroll 2
  for (std::int64_t i = 0; i < t.k; ++i) {
    F16 factor[Vectors];
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      factor[v] = load(b + kLanes * v);
      __builtin_prefetch(b + ahead + kLanes * v);
    }
    __asm__("" : "+r"(a0), "+r"(a1), "+r"(a2));
#pragma GCC unroll 9
    for (int r = 0; r < Rows; ++r) {
      const float* from = r < 3 ? a0 : r < 6 ? a1 : a2;
      const F16 x = everywhere(from[r % 3 * a_row]);
#pragma GCC unroll 3
      for (int v = 0; v < Vectors; ++v) sum[r][v] += x * factor[v];
    }
    a0 += a_column;
    a1 += a_column;
    a2 += a_column;
    b += line;
  }
  const F16 alpha = everywhere(t.alpha);
#pragma GCC unroll 9
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      float* c = t.c + r * t.c_row + kLanes * v;
      F16 value = sum[r][v] * alpha;
      if (v + 1 < Vectors || t.columns == kLanes) {
        if (t.bias != nullptr) value += load(t.bias + kLanes * v);
        if (t.add) value += load(c);
        store(c, value);
      } else {
        float part[kLanes];
        store(part, value);
        for (std::int64_t j = 0; j < t.columns; ++j) {
          if (t.bias != nullptr) part[j] += t.bias[kLanes * v + j];
          c[j] = t.add ? c[j] + part[j] : part[j];
        }
      }
    }
}

using TileFunction = void (*)(const Tile&);
template <int Vectors, std::size_t... Rows>
TileFunction tile_of(std::size_t rows, std::index_sequence<Rows...>) {
  static constexpr TileFunction kTiles[] = {tile<static_cast<int>(Rows) + 1, Vectors>...};
  return kTiles[rows - 1];
}
TileFunction tile_of(std::int64_t rows, std::int64_t vectors) {
  constexpr auto kRows = std::make_index_sequence<kTileRows>{};
  const auto at = static_cast<std::size_t>(rows);
  if (vectors == 1) return tile_of<1>(at, kRows);
  return vectors == 2 ? tile_of<2>(at, kRows) : tile_of<3>(at, kRows);
}

void multiply_panels(const Product& p, Strided a, Panels b, float* c, std::int64_t c_row) {
  for (std::int64_t first = 0; first < p.n; first += kPanel) {
    const std::int64_t columns = p.n - first < kPanel ? p.n - first : kPanel;
    const std::int64_t vectors = (columns + kLanes - 1) / kLanes;
    Tile t{a.data,
           a.row,
           a.column,
           b.data + first / kPanel * b.step,
           b.line,
           p.k,
           c + first,
           c_row,
           columns - (vectors - 1) * kLanes,
           p.bias != nullptr ? p.bias + first : nullptr,
           p.alpha,
           p.add};
    // Rows in shares of about equal height: one row alone would wait for each of its sums.
    std::int64_t row = 0;
    for (std::int64_t left = (p.m + kTileRows - 1) / kTileRows; left > 0; --left) {
      const std::int64_t rows = (p.m - row + left - 1) / left;
      t.a = a.data + row * a.row;
      t.c = c + first + row * c_row;
      tile_of(rows, vectors)(t);
      row += rows;
    }
  }
}

#pragma GCC pop_options
#endif

float value_of(float x) { return x; }
float value_of(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float x;
  std::memcpy(&x, &wide, sizeof x);
  return x;
}

template <class Matrix>
void pack_any(Matrix b, std::int64_t k, std::int64_t n, std::int64_t first, std::int64_t last,
              float* packed) {
  for (std::int64_t panel = first; panel < last; ++panel) {
    const std::int64_t columns = std::min(kPanel, n - panel * kPanel);
    const auto* from = b.data + panel * kPanel * b.column;
    float* to = packed + panel * kPanel * k;
    if (columns < kPanel) std::fill(to, to + kPanel * k, 0.0f);
    if (b.column == 1) {
      for (std::int64_t i = 0; i < k; ++i)
        for (std::int64_t j = 0; j < columns; ++j)
          to[i * kPanel + j] = value_of(from[i * b.row + j]);
      continue;
    }
    // Transposed: 16 lines of k at a time, so that what is written stays in the nearest cache.
    for (std::int64_t begin = 0; begin < k; begin += 16)
      for (std::int64_t j = 0; j < columns; ++j)
        for (std::int64_t i = begin; i < std::min(k, begin + 16); ++i)
          to[i * kPanel + j] = value_of(from[i * b.row + j * b.column]);
  }
}

}  // namespace

bool has_gemm() {
#ifdef YMIR_GEMM
  static const bool has = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
  }();
  return has;
#else
  return false;
#endif
}

std::int64_t packed_size(std::int64_t k, std::int64_t n) {
  return (n + kPanel - 1) / kPanel * kPanel * k;
}

void pack(Strided b, std::int64_t k, std::int64_t n, std::int64_t first, std::int64_t last,
          float* packed) {
  pack_any(b, k, n, first, last, packed);
}
void pack(Strided16 b, std::int64_t k, std::int64_t n, std::int64_t first, std::int64_t last,
          float* packed) {
  pack_any(b, k, n, first, last, packed);
}

void multiply(const Product& product, Strided a, Panels b, float* c, std::int64_t c_row) {
#ifdef YMIR_GEMM
  multiply_panels(product, a, b, c, c_row);
#else
  (void)product, (void)a, (void)b, (void)c, (void)c_row;
  __builtin_trap();  // has_gemm() was false
#endif
}

}  // namespace ymir::kernels
