// The stack of transformer blocks behind every family (BERT, RoBERTa, DistilBERT, LLaMA, ViT),
// ragged, with its hand-written backward. What differs between families is data: EncoderShape
// (encoder_weights_torch.h). Logits and gradients equal those of transformers (tests/reference).
//
// A block is a struct of linear sites and norms. What is trained: slots at the sites and beside
// them (LoRA, bottleneck, prefix), and whichever weights `Trained` names; nothing else has a
// gradient. Shapes: N tokens of R rows in all, H wide. With Lines::kPooled the result is one
// vector a row, the first token's or (causal) the last one's: in the last block only that line is
// computed beyond keys and values.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "ymir/tune/model/attention_torch.h"
#include "ymir/tune/model/encoder_weights_torch.h"
#include "ymir/tune/petl/slots_torch.h"

namespace ymir {

// One line of slots per layer; an empty slot is a plain frozen map.
struct LayerSlots {
  std::array<LoraSlot, kNumSites> lora{};
  BottleneckSlot after_attention{}, after_ffn{};
  PrefixSlot prefix{};
};
using SlotTable = std::vector<LayerSlots>;

// Whose slots the rows of a batch pass: one job's all rows, or several jobs' each so many of them,
// in order (grouped LoRA). Everything frozen is computed for all rows at once.
struct JobRows {
  std::int64_t rows = 0;
  const SlotTable* slots = nullptr;
};
struct RowShares {
  std::vector<JobRows> parts{};
  RowShares(const SlotTable& all) : parts{{-1, &all}} {}  // NOLINT: one job is the usual case
  explicit RowShares(std::vector<JobRows> several) : parts(std::move(several)) {}
  const SlotTable& first() const { return *parts.front().slots; }
};

// What a job trains, at its places in the model: views of a flat block of values, or of gradients.
struct Trained {
  SlotTable slots{};
  Encoder weights{};  // only what is trained is defined; `layers` may be empty
};
// The encoder with the trained weights in their places (no copy of anything).
Encoder with_weights(const Encoder& encoder, const Encoder& weights);

struct EncoderInput {
  RowLayout layout{};
  std::vector<std::int32_t> ids{};    // [N], < vocabulary
  std::vector<std::int32_t> types{};  // [N] or empty: all 0
  at::Tensor pixels{};                // images instead of ids: f32 [R, channels, size, size]
  // When known: what reaches layer `first_layer` [N, H]. The layers below are not run.
  at::Tensor hidden{};
  int first_layer = 0;
};

enum class Lines { kPooled, kAll };
struct EncoderOptions {
  Lines lines = Lines::kPooled;
  bool keep_tape = false;            // a backward will follow
  bool keep_inputs = false;          // of every site, for an observer
  bool recompute = false;            // the tape keeps each layer's input only
  int only_layers = -1;              // run so many and return what reaches the next; -1: all
  const Encoder* trained = nullptr;  // weights that will get gradients; null: none
  kernels::Dropout hidden{};         // no keys: none is applied
  kernels::Dropout attention{};
  const RandomKeys* keys = nullptr;
};

struct LayerTape {
  at::Tensor input{};        // with recompute, all there is until the backward
  at::Tensor x{}, picked{};  // what the projections read: all lines, and those of the queries
  at::Tensor q{}, k{}, v{}, context{}, middle{}, slope{}, hidden{};
  AttentionTape attention{};
  NormTape attention_norm{}, ffn_norm{};
  at::Tensor keep_out{};  // norm-first: dropout of the second part
  float scale_out = 1;
  std::vector<std::array<LoraTape, kNumSites>> lora{};  // one per share of the rows
  BottleneckTape after_attention{}, after_ffn{};
};
// The angles of every position that occurs, and each token's line in that table.
struct RotaryPlan {
  RotaryTable table{};
  std::vector<std::int32_t> positions{};
};
struct EncoderTape {
  RowLayout layout{};  // tokens
  RowLayout keys{};    // tokens and prefixes
  RotaryPlan rotary{};
  EncoderOptions options{};  // with recompute, whose keys outlive the tape
  Lines lines = Lines::kPooled;
  std::vector<LayerTape> layers{};  // below the lowest trained layer: empty
  NormTape embedding_norm{}, final_norm{};
  at::Tensor embedding_keep{};
  float embedding_scale = 1;
  int lowest = 0;
  bool embeddings = false;  // are trained
};

// Sees each site's input and output gradient in the backward: lines are tokens, or one line a row
// when `picked`.
using SiteObserver = std::function<void(int layer, Site site, bool picked, const at::Tensor& x,
                                        const at::Tensor& dy)>;

// [R, H], or with Lines::kAll [N, H]. `encoder`: with the trained weights in place.
at::Tensor encode(const Encoder& encoder, const RowShares& slots, const EncoderInput& input,
                  const EncoderOptions& options, EncoderTape* tape);
// Adds to `gradients` (may be null); `observer` may be empty.
void encode_backward(const Encoder& encoder, const SlotTable& slots, const EncoderInput& input,
                     EncoderTape& tape, const at::Tensor& dresult, Trained* gradients,
                     const SiteObserver& observer);
// The same for several jobs with LoRA alone: each share's gradients go to a table of its own.
void encode_backward(const Encoder& encoder, const RowShares& slots, const EncoderInput& input,
                     EncoderTape& tape, const at::Tensor& dresult,
                     std::span<SlotTable* const> gradients);
// With recompute: fills a layer's tape again from its input.
void run_layer_again(const Encoder& encoder, const RowShares& slots, EncoderTape& tape, int number);
// The layout of the rows of one share, the first of which is row `first` of `lines`.
RowLayout rows_of(const RowLayout& lines, const RowShares& shares, std::size_t share,
                  std::size_t first);
// The lowest layer with a slot or a trained weight, 0 when embeddings are trained; the number of
// layers when nothing is.
int lowest_trained(const RowShares& slots, const Encoder* trained, int layers);

// Line numbers of the rows' pooled vectors among their tokens.
std::vector<std::int64_t> pooled_lines(const EncoderShape& shape, const RowLayout& layout);

}  // namespace ymir
