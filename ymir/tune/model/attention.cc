// Attention of each (row, head) on its own, at the row's exact length: nothing is padded or
// grouped, so a row can't see its batch mates. Causal rows compute whole blocks of scores and take
// softmax over what a query may see; the rest is 0.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/model/gemm.h"
#include "ymir/tune/model/plain_torch.h"

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

// The same by our own kernel. A second factor that it can't read in place is put into its form.
void own_product(Form form_a, Form form_b, const kernels::Product& p, View a, View b, View c) {
  const kernels::Strided first = form_a == Form::kPlain ? kernels::Strided{a.data, a.stride, 1}
                                                        : kernels::Strided{a.data, 1, a.stride};
  if (form_b == Form::kPlain && p.n % 16 == 0)
    return kernels::multiply(p, first, {b.data, kernels::kPanel, b.stride}, c.data, c.stride);
  thread_local std::vector<float> packed;
  const auto size = static_cast<std::size_t>(kernels::packed_size(p.k, p.n));
  if (packed.size() < size) packed.resize(size);
  const kernels::Strided second = form_b == Form::kPlain ? kernels::Strided{b.data, b.stride, 1}
                                                         : kernels::Strided{b.data, 1, b.stride};
  kernels::pack(second, p.k, p.n, 0, (p.n + kernels::kPanel - 1) / kernels::kPanel, packed.data());
  kernels::multiply(p, first, {packed.data(), kernels::kPanel * p.k, kernels::kPanel}, c.data,
                    c.stride);
}

// c [m, n] = op(a) op(b) + beta c, row-major, beta 0 or 1. The library is column-major: it sees c^T
// = b^T a^T.
void small_product(Form form_a, Form form_b, std::int64_t m, std::int64_t n, std::int64_t k,
                   float beta, View a, View b, View c, const float* soon = nullptr) {
  if (kernels::has_gemm()) {
    kernels::Product p{m, n, k, 1, beta != 0};
    p.soon = soon;
    return own_product(form_a, form_b, p, a, b, c);
  }
  const char ta = form_a == Form::kPlain ? 'N' : 'T', tb = form_b == Form::kPlain ? 'N' : 'T';
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), inner = static_cast<int>(k);
  const int lda = static_cast<int>(a.stride), ldb = static_cast<int>(b.stride),
            ldc = static_cast<int>(c.stride);
  const float one = 1;
  sgemm_(&tb, &ta, &columns, &rows, &inner, &one, b.data, &ldb, a.data, &lda, &beta, c.data, &ldc);
}

// Where each row's block of probabilities begins.
std::vector<std::int64_t> block_starts(const RowLayout& queries, const RowLayout& keys, int heads) {
  std::vector<std::int64_t> starts{0};
  for (std::int64_t row = 0; row < keys.rows(); ++row)
    starts.push_back(starts.back() + heads * queries.length(row) * keys.length(row));
  return starts;
}

std::int64_t kv_column(const AttentionShape& shape, int head) {
  return head / (shape.heads / shape.kv_heads) * shape.width;
}

struct Work {  // one (row, head)
  std::int64_t first_key = 0, keys = 0, first_query = 0, queries = 0, block = 0;
  std::int64_t column = 0, kv_column = 0;
  std::size_t row = 0;
  int head = 0;
  // Keys that a query sees.
  std::int64_t seen(bool causal, std::int64_t query) const {
    return causal ? keys - queries + query + 1 : keys;
  }
};
Work work_of(const AttentionShape& shape, const RowLayout& queries, const RowLayout& keys,
             const std::vector<std::int64_t>& starts, std::int64_t row, int head) {
  Work w;
  w.row = static_cast<std::size_t>(row);
  w.head = head;
  w.first_key = keys.offsets[w.row];
  w.keys = keys.length(row);
  w.first_query = queries.offsets[w.row];
  w.queries = queries.length(row);
  w.column = head * shape.width;
  w.kv_column = kv_column(shape, head);
  w.block = starts[w.row] + head * w.queries * w.keys;
  return w;
}

// softmax(scale * scores) of every line over the keys it sees.
void softmax_block(const Work& w, bool causal, float scale, float* p) {
  for (std::int64_t line = 0; line < w.queries; ++line) {
    float* scores = p + line * w.keys;
    const std::int64_t seen = w.seen(causal, line);
    kernels::softmax_row(scores, seen, scale);
    for (std::int64_t key = seen; key < w.keys; ++key) scores[key] = 0;
  }
}

// Probabilities that are dropped become negative in p and 0 in `used`; the others are scaled there.
void drop(const kernels::DropoutKey& key, kernels::Dropout dropout, std::int64_t count, float* p,
          float* used) {
  thread_local std::vector<std::uint8_t> keep;
  keep.resize(static_cast<std::size_t>(count));
  kernels::dropout_mask(key, dropout, count, keep.data());
  kernels::sign_mask(p, keep.data(), count);
  kernels::drop_signed(p, dropout.scale, count, used);
}

}  // namespace

at::Tensor attention(const AttentionShape& shape, const RowLayout& queries, const RowLayout& keys,
                     const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     kernels::Dropout dropout, const RandomKeys& random, int layer,
                     AttentionTape* tape) {
  if (is_plain(q))
    return plain::attention(shape, queries, keys, q, k, v, dropout, random, layer, tape);
  const std::int64_t width = shape.width;
  const auto starts = block_starts(queries, keys, shape.heads);
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  at::Tensor context = at::empty({q.size(0), shape.heads * width}, at::kFloat);
  at::Tensor probabilities;
  if (tape != nullptr) {
    probabilities = at::empty({starts.back()}, at::kFloat);
    *tape = {probabilities, dropout.scale};
  }
  float* kept = tape != nullptr ? probabilities.mutable_data_ptr<float>() : nullptr;
  const View vq = view(q), vk = view(k), vv = view(v), out = view(context);
  at::parallel_for(0, keys.rows() * shape.heads, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> scratch;
    for (std::int64_t i = begin; i < end; ++i) {
      const Work w =
          work_of(shape, queries, keys, starts, i / shape.heads, static_cast<int>(i % shape.heads));
      const std::int64_t size = w.queries * w.keys;
      if (scratch.size() < static_cast<std::size_t>(size))
        scratch.resize(static_cast<std::size_t>(size));
      float* p = kept != nullptr ? kept + w.block : scratch.data();
      small_product(Form::kPlain, Form::kTransposed, w.queries, w.keys, width, 0,
                    at_line(vq, w.first_query, w.column), at_line(vk, w.first_key, w.kv_column),
                    {p, w.keys});
      softmax_block(w, shape.causal, scale, p);
      float* used = p;
      if (dropout) {
        drop(random.key(w.row, random_site(Purpose::kAttention, layer, w.head)), dropout, size, p,
             scratch.data());
        used = scratch.data();
      }
      small_product(Form::kPlain, Form::kPlain, w.queries, width, w.keys, 0, {used, w.keys},
                    at_line(vv, w.first_key, w.kv_column), at_line(out, w.first_query, w.column),
                    kept != nullptr ? p + size : nullptr);
    }
  });
  return context;
}

void attention_backward(const AttentionShape& shape, const RowLayout& queries,
                        const RowLayout& keys, const at::Tensor& q, const at::Tensor& k,
                        const at::Tensor& v, const AttentionTape& tape, const at::Tensor& dcontext,
                        at::Tensor dq, at::Tensor dk, at::Tensor dv) {
  if (is_plain(q))
    return plain::attention_backward(shape, queries, keys, q, k, v, tape, dcontext, std::move(dq),
                                     std::move(dk), std::move(dv));
  const std::int64_t width = shape.width;
  const int group = shape.heads / shape.kv_heads;
  const auto starts = block_starts(queries, keys, shape.heads);
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  const float* kept = tape.probabilities.const_data_ptr<float>();
  const View vq = view(q), vk = view(k), vv = view(v), g = view(dcontext);
  const View gq = view(dq), gk = view(dk), gv = view(dv);
  const auto one_head = [&](const Work& w, float beta, std::vector<float>& dropped,
                            std::vector<float>& ds) {
    const std::int64_t size = w.queries * w.keys;
    if (ds.size() < static_cast<std::size_t>(size)) ds.resize(static_cast<std::size_t>(size));
    const float* p = kept + w.block;
    const View dout = at_line(g, w.first_query, w.column);
    const View scores{ds.data(), w.keys};
    float* used = const_cast<float*>(p);  // read only
    if (tape.scale != 1) {
      if (dropped.size() < static_cast<std::size_t>(size))
        dropped.resize(static_cast<std::size_t>(size));
      kernels::drop_signed(p, tape.scale, size, dropped.data());
      used = dropped.data();
    }
    small_product(Form::kTransposed, Form::kPlain, w.keys, width, w.queries, beta, {used, w.keys},
                  dout, at_line(gv, w.first_key, w.kv_column));
    small_product(Form::kPlain, Form::kTransposed, w.queries, w.keys, width, 0, dout,
                  at_line(vv, w.first_key, w.kv_column), scores, p + size);
    // What a query does not see has probability 0, and so has its score's gradient.
    for (std::int64_t line = 0; line < w.queries; ++line)
      kernels::softmax_backward_row(p + line * w.keys, tape.scale, scale, w.keys,
                                    ds.data() + line * w.keys);
    small_product(Form::kPlain, Form::kPlain, w.queries, width, w.keys, 0, scores,
                  at_line(vk, w.first_key, w.kv_column), at_line(gq, w.first_query, w.column));
    small_product(Form::kTransposed, Form::kPlain, w.keys, width, w.queries, beta, scores,
                  at_line(vq, w.first_query, w.column), at_line(gk, w.first_key, w.kv_column));
  };
  // Heads of a group add to the same keys, in order: one thread does them all.
  at::parallel_for(0, keys.rows() * shape.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> dropped, ds;
    for (std::int64_t i = begin; i < end; ++i)
      for (int member = 0; member < group; ++member)
        one_head(work_of(shape, queries, keys, starts, i / shape.kv_heads,
                         static_cast<int>(i % shape.kv_heads) * group + member),
                 member == 0 ? 0.0f : 1.0f, dropped, ds);
  });
}

namespace {

// Each head's columns of y [R, heads width] through its lines of W: [R, heads, H].
at::Tensor through_lines(const AttentionShape& shape, const at::Tensor& y, const Linear& w) {
  at::Tensor out = at::zeros({y.size(0), shape.heads, w.weight.size(1)}, at::kFloat);
  for (int head = 0; head < shape.heads; ++head)
    product_backward(y.narrow(1, head * shape.width, shape.width),
                     w.slice(kv_column(shape, head), shape.width), out.select(1, head));
  return out;
}

// y += each head's lines z [R, heads, H] through its part of W, as columns [R, heads width].
void add_through_columns(const AttentionShape& shape, const at::Tensor& z, const Linear& w,
                         const at::Tensor& y) {
  for (int head = 0; head < shape.heads; ++head)
    y.narrow(1, head * shape.width, shape.width)
        .add_(product(z.select(1, head), w.slice(kv_column(shape, head), shape.width)));
}

View row_of(const at::Tensor& t, std::int64_t row) {  // of [R, heads, H]
  return {const_cast<float*>(t.const_data_ptr<float>()) + row * t.stride(0), t.stride(1)};
}

float sum_of_products(const float* a, const float* b, std::int64_t count) {
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

at::Tensor attention_of_one(const AttentionShape& shape, const RowLayout& keys, const at::Tensor& q,
                            const SeenLines& seen, kernels::Dropout dropout,
                            const RandomKeys& random, int layer, AttentionTape* tape) {
  const RowLayout queries = one_line_a_row(keys.rows());
  const std::int64_t width = shape.width, wide = seen.x.size(1);
  const auto starts = block_starts(queries, keys, shape.heads);
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  const at::Tensor folded = through_lines(shape, q, seen.key);
  const at::Tensor mixed = at::empty_like(folded);  // lines of x, each by its probability
  const at::Tensor probabilities = at::empty({starts.back()}, at::kFloat);
  if (tape != nullptr) *tape = {probabilities, dropout.scale, folded};
  at::Tensor context = at::empty({q.size(0), shape.heads * width}, at::kFloat);
  float* all = probabilities.mutable_data_ptr<float>();
  const float* bias = seen.value.bias.defined() ? seen.value.bias.const_data_ptr<float>() : nullptr;
  const View vq = view(q), vx = view(seen.x), out = view(context);
  at::parallel_for(0, keys.rows(), 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> scratch;
    for (std::int64_t row = begin; row < end; ++row) {
      const Work first = work_of(shape, queries, keys, starts, row, 0);
      const std::int64_t size = shape.heads * first.keys;
      float* p = all + first.block;
      const View lines = at_line(vx, first.first_key, 0);
      small_product(Form::kPlain, Form::kTransposed, shape.heads, first.keys, wide, 0,
                    row_of(folded, row), lines, {p, first.keys});
      float* used = p;
      if (dropout) {
        scratch.resize(static_cast<std::size_t>(size));
        used = scratch.data();
      }
      for (int head = 0; head < shape.heads; ++head) {
        const Work w = work_of(shape, queries, keys, starts, row, head);
        float* scores = all + w.block;
        float* kept = used + head * w.keys;
        if (seen.more_keys.defined())
          small_product(Form::kPlain, Form::kTransposed, 1, w.keys, width, 1,
                        at_line(vq, row, w.column),
                        at_line(view(seen.more_keys), w.first_key, w.kv_column), {scores, w.keys});
        kernels::softmax_row(scores, w.keys, scale);
        if (dropout)
          drop(random.key(w.row, random_site(Purpose::kAttention, layer, head)), dropout, w.keys,
               scores, kept);
        float total = 0;
        for (std::int64_t key = 0; key < w.keys; ++key) total += kept[key];
        const View to = at_line(out, row, w.column);
        for (std::int64_t i = 0; i < width; ++i)
          to.data[i] = bias != nullptr ? total * bias[w.kv_column + i] : 0.0f;
        if (seen.more_values.defined())
          small_product(Form::kPlain, Form::kPlain, 1, width, w.keys, 1, {kept, w.keys},
                        at_line(view(seen.more_values), w.first_key, w.kv_column), to);
      }
      small_product(Form::kPlain, Form::kPlain, shape.heads, wide, first.keys, 0,
                    {used, first.keys}, lines, row_of(mixed, row));
    }
  });
  add_through_columns(shape, mixed, seen.value, context);
  return context;
}

SeenGradients attention_of_one_backward(const AttentionShape& shape, const RowLayout& keys,
                                        const at::Tensor& q, const SeenLines& seen,
                                        const AttentionTape& tape, const at::Tensor& dcontext,
                                        bool wants_x) {
  const RowLayout queries = one_line_a_row(keys.rows());
  const std::int64_t width = shape.width, wide = seen.x.size(1);
  const auto starts = block_starts(queries, keys, shape.heads);
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  SeenGradients g;
  g.q = at::zeros({q.size(0), shape.heads * width}, at::kFloat);
  if (seen.more_keys.defined()) g.more_keys = at::empty_like(seen.more_keys);
  if (seen.more_values.defined()) g.more_values = at::empty_like(seen.more_values);
  if (wants_x) g.x = at::empty_like(seen.x);
  const at::Tensor dmixed = through_lines(shape, dcontext, seen.value);
  const at::Tensor turned = at::empty_like(dmixed);  // lines of x, each by its score's gradient
  const float* all = tape.probabilities.const_data_ptr<float>();
  const float* bias = seen.value.bias.defined() ? seen.value.bias.const_data_ptr<float>() : nullptr;
  const View vq = view(q), vx = view(seen.x), dout = view(dcontext), gq = view(g.q);
  at::parallel_for(0, keys.rows(), 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> dropped, ds;
    for (std::int64_t row = begin; row < end; ++row) {
      const Work first = work_of(shape, queries, keys, starts, row, 0);
      const std::int64_t size = shape.heads * first.keys;
      const float* p = all + first.block;
      float* used = const_cast<float*>(p);  // read only
      if (tape.scale != 1) {
        dropped.resize(static_cast<std::size_t>(size));
        used = dropped.data();
        kernels::drop_signed(p, tape.scale, size, used);
      }
      ds.resize(static_cast<std::size_t>(size));
      const View scores{ds.data(), first.keys}, lines = at_line(vx, first.first_key, 0);
      small_product(Form::kPlain, Form::kTransposed, shape.heads, first.keys, wide, 0,
                    row_of(dmixed, row), lines, scores);
      for (int head = 0; head < shape.heads; ++head) {
        const Work w = work_of(shape, queries, keys, starts, row, head);
        const float beta = head % (shape.heads / shape.kv_heads) == 0 ? 0.0f : 1.0f;
        const View d = at_line(dout, row, w.column), score = at_line(scores, head, 0);
        const View kept{used + head * w.keys, w.keys};
        if (seen.more_values.defined()) {
          small_product(Form::kPlain, Form::kTransposed, 1, w.keys, width, 1, d,
                        at_line(view(seen.more_values), w.first_key, w.kv_column), score);
          small_product(Form::kTransposed, Form::kPlain, w.keys, width, 1, beta, kept, d,
                        at_line(view(g.more_values), w.first_key, w.kv_column));
        }
        // The same for every key, yet what was dropped did not see it.
        if (bias != nullptr && tape.scale != 1) {
          const float same = sum_of_products(d.data, bias + w.kv_column, width);
          for (std::int64_t key = 0; key < w.keys; ++key) score.data[key] += same;
        }
        kernels::softmax_backward_row(p + head * w.keys, tape.scale, scale, w.keys, score.data);
        if (seen.more_keys.defined()) {
          small_product(Form::kPlain, Form::kPlain, 1, width, w.keys, 0, score,
                        at_line(view(seen.more_keys), w.first_key, w.kv_column),
                        at_line(gq, row, w.column));
          small_product(Form::kTransposed, Form::kPlain, w.keys, width, 1, beta, score,
                        at_line(vq, row, w.column),
                        at_line(view(g.more_keys), w.first_key, w.kv_column));
        }
      }
      small_product(Form::kPlain, Form::kPlain, shape.heads, wide, first.keys, 0, scores, lines,
                    row_of(turned, row));
      if (!wants_x) continue;
      const View dx = at_line(view(g.x), first.first_key, 0);
      small_product(Form::kTransposed, Form::kPlain, first.keys, wide, shape.heads, 0,
                    {used, first.keys}, row_of(dmixed, row), dx);
      small_product(Form::kTransposed, Form::kPlain, first.keys, wide, shape.heads, 1, scores,
                    row_of(tape.folded, row), dx);
    }
  });
  add_through_columns(shape, turned, seen.key, g.q);
  return g;
}

}  // namespace ymir
