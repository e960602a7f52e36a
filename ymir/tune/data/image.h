// Image: 8-bit pixels, decoded from PNG or JPEG and resized as PIL does. Pure, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

inline constexpr int kMaxImageSide = 16384;
inline constexpr std::size_t kMaxImagePixels = std::size_t{1} << 26;

struct Image {
  int width = 0, height = 0;
  int channels = 0;                    // 1 grey, 3 red green blue
  std::vector<std::uint8_t> pixels{};  // row by row, channels together
};

// PNG (8 or 16 bits, palettes; an alpha channel is dropped) and JPEG. kCorruption with the reason
// when the file is damaged, kExhausted when it is larger than the limits.
Result<Image> decode_image(std::string_view bytes);

// PIL's bilinear filter, anti-aliased when it shrinks: within one grey level of it.
Image resize_bilinear(const Image& image, int width, int height);

// Grey becomes three equal channels; colour becomes PIL's luma (L = 0.299 R + 0.587 G + 0.114 B).
Image with_channels(const Image& image, int channels);

}  // namespace ymir
