// Built with -ffp-contract=fast: a product and its sum are one instruction here.
#include "ymir/tune/model/gemm.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ymir/tune/checkpoint/half.h"

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
using I16 = int __attribute__((vector_size(64)));

YMIR_INLINE F16 load(const float* x) {
  F16 r;
  __builtin_memcpy(&r, x, sizeof r);
  return r;
}
YMIR_INLINE void store(float* x, F16 r) { __builtin_memcpy(x, &r, sizeof r); }
// The first `count` of 16 lanes.
YMIR_INLINE std::uint16_t lanes(std::int64_t count) {
  return static_cast<std::uint16_t>((1u << count) - 1);
}
YMIR_INLINE F16 load_some(const float* x, std::int64_t count) {
  return __builtin_ia32_loadups512_mask(x, F16{}, lanes(count));
}
YMIR_INLINE void store_some(float* x, F16 r, std::int64_t count) {
  __builtin_ia32_storeups512_mask(x, r, lanes(count));
}
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
  const float* factor;  // with the lines of c
  float alpha;
  bool add, go_on;
  const float* soon;  // fetched into the L2 cache meanwhile, 64 bytes a line of b
};

// Rows x (16 Vectors) elements of c. The loops over rows and vectors are unrolled: up to 27 sums,
// a line of b and one element of a live in registers. Rows of a are reached from three pointers, so
// that their addresses need few registers; the empty statement keeps the compiler from giving each
// row one of its own.
template <int Rows, int Vectors>
void tile(const Tile& t) {
  F16 sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) sum[r][v] = F16{};
  if (t.go_on) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 3
      for (int v = 0; v < Vectors; ++v)
        sum[r][v] = load_some(t.c + r * t.c_row + kLanes * v, v + 1 < Vectors ? kLanes : t.columns);
  }
  const std::int64_t a_row = t.a_row, a_column = t.a_column, line = t.line, ahead = kAhead * line;
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) __builtin_prefetch(t.c + r * t.c_row + kLanes * v, 1);
  if (t.factor != nullptr) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 3
      for (int v = 0; v < Vectors; ++v)
        __builtin_prefetch(t.factor + r * t.c_row + kLanes * v, 0, 2);
  }
  const float *soon = t.soon, *b = t.b, *a[(Rows + 2) / 3];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; r += 3) a[r / 3] = t.a + r * a_row;
#pragma GCC unroll 2
  for (std::int64_t i = 0; i < t.k; ++i) {
    F16 factor[Vectors];
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      factor[v] = load(b + kLanes * v);
      __builtin_prefetch(b + ahead + kLanes * v);
    }
    __builtin_prefetch(soon, 0, 2);
    soon += kLanes;
#pragma GCC unroll 16
    for (int r = 0; r < Rows; r += 3) __asm__("" : "+r"(a[r / 3]));
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const F16 x = everywhere(a[r / 3][r % 3 * a_row]);
#pragma GCC unroll 3
      for (int v = 0; v < Vectors; ++v) sum[r][v] += x * factor[v];
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; r += 3) a[r / 3] += a_column;
    b += line;
  }
  if (t.alpha != 1) {
    const F16 alpha = everywhere(t.alpha);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 3
      for (int v = 0; v < Vectors; ++v) sum[r][v] *= alpha;
  }
  if (t.bias != nullptr) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      const F16 bias = load_some(t.bias + kLanes * v, v + 1 < Vectors ? kLanes : t.columns);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) sum[r][v] += bias;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    float* c = t.c + r * t.c_row;
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v, c += kLanes) {
      const std::int64_t columns = v + 1 < Vectors ? kLanes : t.columns;
      if (t.factor != nullptr) sum[r][v] *= load_some(t.factor + (c - t.c), columns);
      if (t.add) sum[r][v] += load_some(c, columns);
      store_some(c, sum[r][v], columns);
    }
  }
}

using TileFunction = void (*)(const Tile&);
template <int Vectors, std::size_t... Rows>
TileFunction tile_of(std::size_t rows, std::index_sequence<Rows...>) {
  static constexpr TileFunction kTiles[] = {tile<static_cast<int>(Rows) + 1, Vectors>...};
  return kTiles[rows - 1];
}
// As many rows as registers hold.
constexpr std::int64_t kRowsOf[] = {0, 14, 14, kTileRows};
TileFunction tile_of(std::int64_t rows, std::int64_t vectors) {
  const auto at = static_cast<std::size_t>(rows);
  if (vectors == 1) return tile_of<1>(at, std::make_index_sequence<kRowsOf[1]>{});
  if (vectors == 2) return tile_of<2>(at, std::make_index_sequence<kRowsOf[2]>{});
  return tile_of<3>(at, std::make_index_sequence<kRowsOf[3]>{});
}

void multiply_panels(const Product& p, Strided a, Panels b, float* c, std::int64_t c_row) {
  const float* soon = p.soon;
  for (std::int64_t first = 0; first < p.n; first += kPanel) {
    const std::int64_t columns = p.n - first < kPanel ? p.n - first : kPanel;
    const std::int64_t vectors = (columns + kLanes - 1) / kLanes, tallest = kRowsOf[vectors];
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
           nullptr,
           p.alpha,
           p.add,
           p.go_on,
           nullptr};
    // Rows in shares of about equal height: one row alone would wait for each of its sums.
    std::int64_t row = 0, fetched = b.line == kPanel && first + kPanel < p.n ? 0 : b.step;
    for (std::int64_t left = (p.m + tallest - 1) / tallest; left > 0; --left) {
      const std::int64_t rows =  // 32 bits: the longer division takes as long as a small tile
          static_cast<std::int32_t>(p.m - row + left - 1) / static_cast<std::int32_t>(left);
      t.a = a.data + row * a.row;
      t.c = c + first + row * c_row;
      if (p.factor != nullptr) t.factor = p.factor + (t.c - c);
      // What will be read next, where nobody said: the panel behind this one, and new rows before
      // their first panel.
      t.soon = t.b;
      if (soon != nullptr) {
        t.soon = soon;
        soon += p.k * kLanes;
      } else if (fetched < b.step) {
        t.soon = t.b + b.step + fetched;
        fetched += p.k * kLanes;
      } else if (first == 0 && left > 1 && a.column == 1) {
        t.soon = t.a + rows * a.row;
      }
      tile_of(rows, vectors)(t);
      row += rows;
    }
  }
}

// Sixteen lines of lanes become sixteen of columns.
YMIR_INLINE void turn(I16 (&x)[kLanes]) {
  const I16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#pragma GCC unroll 4
  for (int step = 8; step > 0; step /= 2) {
    const I16 in_low = (lane & step) == 0;
    const I16 low = (in_low & lane) | (~in_low & (lane + kLanes - step));
    const I16 high = (in_low & (lane + step)) | (~in_low & (lane + kLanes));
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if ((i & step) != 0) continue;
      const I16 a = x[i], b = x[i + step];
      x[i] = __builtin_shuffle(a, b, low);
      x[i + step] = __builtin_shuffle(a, b, high);
    }
  }
}

// What is adjacent along k, 64 bytes of each of 16 columns, turned: what lies across the columns.
// Columns from `count` on are 0.
template <class T>
YMIR_INLINE void load_turned(const T* from, std::int64_t column, std::int64_t count,
                             I16 (&x)[kLanes]) {
#pragma GCC unroll 16
  for (int j = 0; j < kLanes; ++j) {
    x[j] = I16{};
    if (j < count) __builtin_memcpy(&x[j], from + j * column, sizeof x[j]);
  }
  turn(x);
}

// Lines of k from up to 16 columns whose values along k are adjacent; returns how many were done.
std::int64_t pack_turned(Strided b, std::int64_t k, std::int64_t columns, float* to) {
  std::int64_t i = 0;
  for (; i + kLanes <= k; i += kLanes, to += kLanes * kPanel) {
    I16 x[kLanes];
    load_turned(b.data + i, b.column, columns, x);
#pragma GCC unroll 16
    for (int j = 0; j < kLanes; ++j) __builtin_memcpy(to + j * kPanel, &x[j], sizeof x[j]);
  }
  return i;
}

// Of half precision: bf16, or f16 (sign, 5 bits of exponent, 10 more).
YMIR_INLINE F16 values_of(I16 bits, bool f16) {
  if (!f16) return (F16)(bits << 16);
  const I16 size = (bits & 0x7fff) << 13;
  const I16 no_number = (size >= 31 << 23) & (255 << 23);  // infinity, NaN
  const F16 scaled = (F16)size * 0x1p112f;
  return (F16)(((I16)scaled | no_number) | (bits & 0x8000) << 16);
}

// Two values along k are one lane until they are turned.
std::int64_t pack_turned(Strided16 b, std::int64_t k, std::int64_t columns, float* to) {
  std::int64_t i = 0;
  for (; i + 2 * kLanes <= k; i += 2 * kLanes, to += 2 * kLanes * kPanel) {
    I16 x[kLanes];
    load_turned(b.data + i, b.column, columns, x);
#pragma GCC unroll 16
    for (int j = 0; j < kLanes; ++j) {
      store(to + 2 * j * kPanel, values_of(x[j] & 0xffff, b.f16));
      store(to + (2 * j + 1) * kPanel, values_of((x[j] >> 16) & 0xffff, b.f16));
    }
  }
  return i;
}

// A line of 16 columns.
YMIR_INLINE void copy_line(const float* from, bool, float* to) { store(to, load(from)); }
YMIR_INLINE void copy_line(const std::uint16_t* from, bool f16, float* to) {
  using U16 = std::uint16_t __attribute__((vector_size(32)));
  U16 bits;
  __builtin_memcpy(&bits, from, sizeof bits);
  store(to, values_of(__builtin_convertvector(bits, I16), f16));
}
template <class Value>
void pack_lines(const Value* from, std::int64_t row, bool f16, std::int64_t k, std::int64_t vectors,
                float* to) {
  for (std::int64_t i = 0; i < k; ++i, from += row, to += kPanel)
    for (std::int64_t v = 0; v < vectors; ++v) copy_line(from + v * kLanes, f16, to + v * kLanes);
}

#pragma GCC pop_options
#endif

float value_of(float x, bool) { return x; }
float value_of(std::uint16_t bits, bool f16) { return f16 ? f16_value(bits) : bf16_value(bits); }

bool is_f16(const Strided&) { return false; }
bool is_f16(const Strided16& b) { return b.f16; }

// Packs what vectors can take of a panel. What is left: columns from .first on, and of those before
// it lines of k from .second on.
template <class Matrix>
std::pair<std::int64_t, std::int64_t> pack_vectors(Matrix b, std::int64_t k, std::int64_t columns,
                                                   float* to) {
#ifdef YMIR_GEMM
  const std::int64_t vectors = columns / kLanes;
  if (!has_gemm()) return {0, 0};
  if (b.column == 1) {
    pack_lines(b.data, b.row, is_f16(b), k, vectors, to);
    return {vectors * kLanes, k};
  }
  if (b.row == 1) {
    std::int64_t done = 0;
    for (std::int64_t first = 0; first < columns; first += kLanes, b.data += kLanes * b.column)
      done = pack_turned(b, k, std::min<std::int64_t>(kLanes, columns - first), to + first);
    return {columns, done};
  }
#else
  (void)b, (void)k, (void)columns, (void)to;
#endif
  return {0, 0};
}

template <class Matrix>
void pack_any(Matrix b, std::int64_t k, std::int64_t n, std::int64_t first, std::int64_t last,
              float* packed) {
  for (std::int64_t panel = first; panel < last; ++panel) {
    const std::int64_t columns = std::min(kPanel, n - panel * kPanel);
    Matrix from = b;
    from.data += panel * kPanel * b.column;
    float* to = packed + panel * kPanel * k;
    if (columns < kPanel) std::fill(to, to + kPanel * k, 0.0f);
    const auto [wide, deep] = pack_vectors(from, k, columns, to);
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = j < wide ? deep : 0; i < k; ++i)
        to[i * kPanel + j] = value_of(from.data[i * b.row + j * b.column], is_f16(b));
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
