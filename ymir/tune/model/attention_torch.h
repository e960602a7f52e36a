// Attention of a layer and its hand-written backward. Rules of tensors and threads: ops_torch.h.
#pragma once

#include "ymir/tune/model/ops_torch.h"

namespace ymir {

// Self-attention over ragged rows. A row has as many queries and keys as the two layouts say; its
// queries are the last of its tokens, unless all keys are seen anyway. All tensors may be column
// slices of a wider matrix. Grouped queries: heads / kv_heads heads share keys and values.
struct AttentionShape {
  int heads = 0, kv_heads = 0;
  std::int64_t width = 0;  // of a head
  bool causal = false;
};
struct AttentionTape {
  at::Tensor probabilities{};  // rows x heads blocks of [queries, keys]; dropped ones are negative
  float scale = 1;             // of what dropout keeps
  at::Tensor folded{};         // attention_of_one: q W_k of each head  [R, heads, H]
};
at::Tensor attention(const AttentionShape& shape, const RowLayout& queries, const RowLayout& keys,
                     const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     kernels::Dropout dropout, const RandomKeys& random, int layer,
                     AttentionTape* tape);
void attention_backward(const AttentionShape& shape, const RowLayout& queries,
                        const RowLayout& keys, const at::Tensor& q, const at::Tensor& k,
                        const at::Tensor& v, const AttentionTape& tape, const at::Tensor& dcontext,
                        at::Tensor dq, at::Tensor dk, at::Tensor dv);

// One query a row, whose keys and values are not made: with K = x W_k^T and V = x W_v^T, each
// head's q K^T is (q W_k) x^T, and p V is (p x) W_v^T. Of T lines x of width H that takes
// O(H^2 + T H heads) in place of O(T H^2) a row. The bias of keys moves all scores of a query
// alike and is left out. Equal to attention() within rounding, which is the form to take where
// has_own_products() is false.
struct SeenLines {
  at::Tensor x{};                         // [N, H]
  Linear key{}, value{};                  // frozen, not rotated
  at::Tensor more_keys{}, more_values{};  // [N, kv width], what adapters add; undefined: nothing
};
at::Tensor attention_of_one(const AttentionShape& shape, const RowLayout& keys, const at::Tensor& q,
                            const SeenLines& seen, kernels::Dropout dropout,
                            const RandomKeys& random, int layer, AttentionTape* tape);
struct SeenGradients {
  at::Tensor q{};                         // [R, heads width]
  at::Tensor more_keys{}, more_values{};  // undefined where there are none
  at::Tensor x{};                         // [N, H]; undefined: not wanted
};
SeenGradients attention_of_one_backward(const AttentionShape& shape, const RowLayout& keys,
                                        const at::Tensor& q, const SeenLines& seen,
                                        const AttentionTape& tape, const at::Tensor& dcontext,
                                        bool wants_x);

}  // namespace ymir
