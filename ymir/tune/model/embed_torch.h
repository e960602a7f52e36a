// What goes into the first block: embeddings of tokens or of image patches, rotary angles, and the
// gradients of the embeddings.
#pragma once

#include "ymir/tune/model/encoder_torch.h"

namespace ymir {

// [N, H]. `tape` null: nothing is kept.
at::Tensor embed(const Encoder& encoder, const EncoderInput& input, const EncoderOptions& options,
                 std::int64_t first_position, EncoderTape* tape);
// Adds the gradients of the embeddings' trained tensors.
void embed_backward(const Encoder& encoder, const EncoderInput& input, const EncoderTape& tape,
                    const at::Tensor& dx, Encoder& gradients);

// Positions count from `first` in each row. Rows longer than the trained length have angles of
// their own under dynamic scaling, as transformers computes them for that row alone.
RotaryPlan plan_rotary(const EncoderShape& shape, const RowLayout& layout, std::int64_t first);

}  // namespace ymir
