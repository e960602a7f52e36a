// Backbone: an Encoder whose tensors are views of a mapped image. Read-only, shared by all runs of
// the process; a stray write crashes.
#pragma once

#include <memory>

#include "ymir/tune/model/backbone_image.h"
#include "ymir/tune/model/encoder_torch.h"

namespace ymir {

struct Backbone {
  ModelFiles files{};
  BackboneImage image;
  Encoder encoder{};    // products in f32
  Encoder encoder16{};  // the same with bf16 copies of the matrices; empty unless asked for
};

// The image must outlive the encoder: both stay together in the Backbone. On another device than
// the CPU the weights are copies there.
Result<std::unique_ptr<Backbone>> open_backbone(const ModelFiles& files, const std::string& cache,
                                                bool with_bf16, at::Device device = at::kCPU);

// "cpu" or "cuda" (the first one). kInvalidArgument: no such device here, and why.
Result<at::Device> find_device(const std::string& name);

}  // namespace ymir
