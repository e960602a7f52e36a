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
};
at::Tensor attention(const AttentionShape& shape, const RowLayout& queries, const RowLayout& keys,
                     const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     kernels::Dropout dropout, const RandomKeys& random, int layer,
                     AttentionTape* tape);
void attention_backward(const AttentionShape& shape, const RowLayout& queries,
                        const RowLayout& keys, const at::Tensor& q, const at::Tensor& k,
                        const at::Tensor& v, const AttentionTape& tape, const at::Tensor& dcontext,
                        at::Tensor dq, at::Tensor dk, at::Tensor dv);

}  // namespace ymir
