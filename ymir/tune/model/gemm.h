// Matrix products in f32 on one thread, for CPUs with AVX-512: c = (alpha a b + bias) * factor + c,
// the last three where they are asked for. The second factor stands in panels of 48 columns, so a
// frozen weight is put into that form once and read from then on; the library's product copies both
// factors at every call.
//
// Every element is one chain of fused multiply-adds over k, in order. Its value depends on its row
// of a and its column of b alone: not on the other rows, the threads or how rows were shared out.
// The readable form beside it is ATen's mm (ops.cc), taken where has_gemm() is false.
#pragma once

#include <cstdint>

namespace ymir::kernels {

bool has_gemm();

constexpr std::int64_t kPanel = 48;    // columns
constexpr std::int64_t kTileRows = 9;  // rows that one inner loop takes: good cuts are multiples

// Element (i, j) at data[i * row + j * column].
struct Strided {
  const float* data = nullptr;
  std::int64_t row = 0, column = 1;
};
// Element (i, j) at data[j / 48 * step + i * line + j % 48]. Packed: line 48, step 48 k. A
// row-major matrix whose width is a multiple of 16 is one, too: line its stride, step 48.
struct Panels {
  const float* data = nullptr;
  std::int64_t step = 0, line = kPanel;
};

// Floats of a packed [k, n]; its last panel is filled up with zeros.
std::int64_t packed_size(std::int64_t k, std::int64_t n);
// Panels first..last (of 48 columns each) of b [k, n].
void pack(Strided b, std::int64_t k, std::int64_t n, std::int64_t first, std::int64_t last,
          float* packed);
// The same from bits in half precision: bf16, or f16.
struct Strided16 {
  const std::uint16_t* data = nullptr;
  std::int64_t row = 0, column = 1;
  bool f16 = false;
};
void pack(Strided16 b, std::int64_t k, std::int64_t n, std::int64_t first, std::int64_t last,
          float* packed);

struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  float alpha = 1;
  bool add = false;
  const float* bias = nullptr;  // [n], added to every line
  // Each sum begins at what stands in c, as if k had more lines before: the bits are those of one
  // product over all of k. alpha is 1.
  bool go_on = false;
  const float* factor = nullptr;  // [m, n] with the lines of c: each sum is multiplied by its own
  // What will be read or written next, adjacent values: fetched into the L2 cache meanwhile, k
  // lines of 64 bytes with every tile of rows, in place of what multiply() would choose.
  const float* soon = nullptr;
};
// c [m, n] with lines of adjacent values. n = columns of c; b may have more.
void multiply(const Product& product, Strided a, Panels b, float* c, std::int64_t c_row);

}  // namespace ymir::kernels
