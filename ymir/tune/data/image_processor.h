// ImageProcessor: how a model's preprocessor_config.json turns 8-bit pixels into what the model
// reads: (value * rescale - mean) / deviation, a channel at a time. Immutable; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/model_config.h"

namespace ymir {

struct ImageProcessor {
  int size = 0, channels = 0;
  std::vector<float> factor{}, offset{};  // a channel: value * factor + offset

  std::size_t values() const {
    return static_cast<std::size_t>(size) * static_cast<std::size_t>(size) *
           static_cast<std::size_t>(channels);
  }
  // `pixels`: row by row, channels together; `out`: values() numbers, planes apart.
  void apply(std::span<const std::uint8_t> pixels, float* out) const;
};

// An empty text stands for an absent file: ViT's own defaults. Refused by name: cropping, another
// size than the model's, filters other than bilinear, settings of another form.
Result<ImageProcessor> parse_image_processor(std::string_view preprocessor_json,
                                             const ModelConfig& model);
Result<ImageProcessor> read_image_processor(const std::string& folder, const ModelConfig& model);

}  // namespace ymir
