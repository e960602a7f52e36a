// The first byte picks the kind, the rest is the file: pictures of the size they say, or an error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ymir/tune/data/image_set.h"

namespace {

void check(const ymir::Image& image) {
  const auto pixels =
      static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height);
  YMIR_CHECK(image.pixels.size() == pixels * static_cast<std::size_t>(image.channels),
             "pixels missing");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 5 == 0) {
    if (const auto image = ymir::decode_image(bytes)) {
      check(*image);
      check(ymir::resize_bilinear(ymir::with_channels(*image, 3), 5, 7));
    }
    return 0;
  }
  if (data[0] % 5 == 4) {
    const auto unpacked = ymir::gunzip(bytes, 1 << 16);
    YMIR_CHECK(!unpacked || unpacked->size() <= 1 << 16 || *unpacked == bytes, "more than allowed");
    return 0;
  }
  const std::size_t half = bytes.size() / 2;
  const auto table = data[0] % 5 == 1
                         ? ymir::read_idx(bytes.substr(0, half), bytes.substr(half), "f")
                     : data[0] % 5 == 2 ? ymir::read_cifar(bytes, "f", (data[0] & 0x80) != 0)
                                        : ymir::read_pixel_table(bytes, "f", {});
  if (!table) return 0;
  for (const auto& row : table->rows) check(row.image);
  return 0;
}
