// Attention of each (row, head) on its own, at the row's exact length: nothing is padded, grouped
// or masked, so a row can't see its batch mates.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/model/ops_torch.h"

// The matrix library inside the PyTorch wheel. ATen offers no call for one small strided product.
extern "C" void sgemm_(const char* transa, const char* transb, const int* m, const int* n,
                       const int* k, const float* alpha, const float* a, const int* lda,
                       const float* b, const int* ldb, const float* beta, float* c, const int* ldc);

namespace ymir {
namespace {

// A matrix in memory: line i at data + i * stride.
struct View {
  float* data = nullptr;
  std::int64_t stride = 0;
};
View view(const at::Tensor& t) {
  YMIR_CHECK(t.dim() == 2 && t.stride(1) == 1, "attention takes rows of adjacent values");
  return {const_cast<float*>(t.const_data_ptr<float>()), t.stride(0)};
}
View at_line(View v, std::int64_t line, std::int64_t column) {
  return {v.data + line * v.stride + column, v.stride};
}

enum class Form { kPlain, kTransposed };

// c [m, n] = alpha * op(a) op(b), row-major. The library is column-major: it sees c^T = b^T a^T.
void small_product(Form form_a, Form form_b, std::int64_t m, std::int64_t n, std::int64_t k,
                   float alpha, View a, View b, View c) {
  const char ta = form_a == Form::kPlain ? 'N' : 'T', tb = form_b == Form::kPlain ? 'N' : 'T';
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), inner = static_cast<int>(k);
  const int lda = static_cast<int>(a.stride), ldb = static_cast<int>(b.stride),
            ldc = static_cast<int>(c.stride);
  const float zero = 0;
  sgemm_(&tb, &ta, &columns, &rows, &inner, &alpha, b.data, &ldb, a.data, &lda, &zero, c.data,
         &ldc);
}

// Where each row's block of probabilities begins.
std::vector<std::int64_t> block_starts(const RowLayout& layout, int heads, bool first_only) {
  std::vector<std::int64_t> starts{0};
  for (std::int64_t row = 0; row < layout.rows(); ++row) {
    const std::int64_t keys = layout.length(row), queries = first_only ? 1 : keys;
    starts.push_back(starts.back() + heads * queries * keys);
  }
  return starts;
}

struct Work {  // one (row, head)
  std::int64_t first_key = 0, keys = 0, first_query = 0, queries = 0, column = 0, block = 0;
  std::size_t row = 0;
  int head = 0;
};
Work work_of(const RowLayout& layout, const std::vector<std::int64_t>& starts, int heads,
             std::int64_t width, bool first_only, std::int64_t index) {
  Work w;
  w.row = static_cast<std::size_t>(index / heads);
  w.head = static_cast<int>(index % heads);
  w.first_key = layout.offsets[w.row];
  w.keys = layout.offsets[w.row + 1] - w.first_key;
  w.first_query = first_only ? static_cast<std::int64_t>(w.row) : w.first_key;
  w.queries = first_only ? 1 : w.keys;
  w.column = w.head * width;
  w.block = starts[w.row] + w.head * w.queries * w.keys;
  return w;
}

}  // namespace

at::Tensor attention(const RowLayout& layout, int heads, bool first_only, const at::Tensor& q,
                     const at::Tensor& k, const at::Tensor& v, kernels::Dropout dropout,
                     const RandomKeys& keys, int layer, AttentionTape* tape) {
  const std::int64_t hidden = q.size(1), width = hidden / heads;
  const auto starts = block_starts(layout, heads, first_only);
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  at::Tensor context = at::empty({q.size(0), hidden}, at::kFloat);
  at::Tensor probabilities;
  if (tape != nullptr) {
    probabilities = at::empty({starts.back()}, at::kFloat);
    *tape = {probabilities, dropout.scale};
  }
  float* kept = tape != nullptr ? probabilities.mutable_data_ptr<float>() : nullptr;
  const View vq = view(q), vk = view(k), vv = view(v), out = view(context);
  at::parallel_for(0, layout.rows() * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> scratch;
    std::vector<std::uint8_t> mask;
    for (std::int64_t i = begin; i < end; ++i) {
      const Work w = work_of(layout, starts, heads, width, first_only, i);
      const std::int64_t size = w.queries * w.keys;
      if (scratch.size() < static_cast<std::size_t>(size))
        scratch.resize(static_cast<std::size_t>(size));
      float* p = kept != nullptr ? kept + w.block : scratch.data();
      small_product(Form::kPlain, Form::kTransposed, w.queries, w.keys, width, 1.0f,
                    at_line(vq, w.first_query, w.column), at_line(vk, w.first_key, w.column),
                    {p, w.keys});
      for (std::int64_t line = 0; line < w.queries; ++line)
        kernels::softmax_row(p + line * w.keys, w.keys, scale);
      float* used = p;
      if (dropout) {
        mask.resize(static_cast<std::size_t>(size));
        kernels::dropout_mask({keys.seed, keys.rows[w.row], keys.epoch,
                               random_site(Purpose::kAttention, layer, w.head)},
                              dropout, size, mask.data());
        kernels::sign_mask(p, mask.data(), size);
        kernels::drop_signed(p, dropout.scale, size, scratch.data());
        used = scratch.data();
      }
      small_product(Form::kPlain, Form::kPlain, w.queries, width, w.keys, 1.0f, {used, w.keys},
                    at_line(vv, w.first_key, w.column), at_line(out, w.first_query, w.column));
    }
  });
  return context;
}

void attention_backward(const RowLayout& layout, int heads, bool first_only, const at::Tensor& q,
                        const at::Tensor& k, const at::Tensor& v, const AttentionTape& tape,
                        const at::Tensor& dcontext, at::Tensor dq, at::Tensor dk, at::Tensor dv) {
  const std::int64_t hidden = q.size(1), width = hidden / heads;
  const auto starts = block_starts(layout, heads, first_only);
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  const float* kept = tape.probabilities.const_data_ptr<float>();
  const View vq = view(q), vk = view(k), vv = view(v), g = view(dcontext);
  const View gq = view(dq), gk = view(dk), gv = view(dv);
  at::parallel_for(0, layout.rows() * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> dropped, ds;
    for (std::int64_t i = begin; i < end; ++i) {
      const Work w = work_of(layout, starts, heads, width, first_only, i);
      const std::int64_t size = w.queries * w.keys;
      if (ds.size() < static_cast<std::size_t>(size)) {
        ds.resize(static_cast<std::size_t>(size));
        dropped.resize(static_cast<std::size_t>(size));
      }
      const float* p = kept + w.block;
      const View dout = at_line(g, w.first_query, w.column);
      const View scores{ds.data(), w.keys};
      kernels::drop_signed(p, tape.scale, size, dropped.data());
      small_product(Form::kTransposed, Form::kPlain, w.keys, width, w.queries, 1.0f,
                    {dropped.data(), w.keys}, dout, at_line(gv, w.first_key, w.column));
      small_product(Form::kPlain, Form::kTransposed, w.queries, w.keys, width, 1.0f, dout,
                    at_line(vv, w.first_key, w.column), scores);
      for (std::int64_t line = 0; line < w.queries; ++line)
        kernels::softmax_backward_row(p + line * w.keys, tape.scale, scale, w.keys,
                                      ds.data() + line * w.keys);
      small_product(Form::kPlain, Form::kPlain, w.queries, width, w.keys, 1.0f, scores,
                    at_line(vk, w.first_key, w.column), at_line(gq, w.first_query, w.column));
      small_product(Form::kTransposed, Form::kPlain, w.keys, width, w.queries, 1.0f, scores,
                    at_line(vq, w.first_query, w.column), at_line(gk, w.first_key, w.column));
    }
  });
}

}  // namespace ymir
