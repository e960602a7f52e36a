#include "ymir/tune/data/image.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

// After <cstdio>: the header needs size_t and FILE.
#include <jpeglib.h>

namespace ymir {
namespace {

Error corrupt(std::string message) { return {ErrorCode::kCorruption, std::move(message)}; }

Result<> check_size(std::int64_t width, std::int64_t height) {
  if (width < 1 || height < 1) return corrupt("the image has no pixels");
  if (width > kMaxImageSide || height > kMaxImageSide ||
      static_cast<std::size_t>(width * height) > kMaxImagePixels)
    return Error{
        ErrorCode::kExhausted,
        fmt::format("the image has {} x {} pixels, at most {} a side and {} in all are read", width,
                    height, kMaxImageSide, kMaxImagePixels)};
  return Ok{};
}

// libpng's simplified interface: no jumps, 8 bits, background and gamma handled by it.
Result<Image> decode_png(std::string_view bytes) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&header, bytes.data(), bytes.size()) == 0)
    return corrupt(fmt::format("damaged PNG: {}", header.message));
  if (auto size = check_size(header.width, header.height); !size) {
    png_image_free(&header);
    return std::move(size).error();
  }
  const bool color = (header.format & PNG_FORMAT_FLAG_COLOR) != 0;
  const bool alpha = (header.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  header.format = (color ? PNG_FORMAT_FLAG_COLOR : 0u) | (alpha ? PNG_FORMAT_FLAG_ALPHA : 0u);
  const int channels = color ? 3 : 1;
  const std::size_t stride = static_cast<std::size_t>(channels) + (alpha ? 1 : 0);
  std::vector<std::uint8_t> raw(PNG_IMAGE_SIZE(header));
  if (png_image_finish_read(&header, nullptr, raw.data(), 0, nullptr) == 0)
    return corrupt(fmt::format("damaged PNG: {}", header.message));
  Image image{.width = static_cast<int>(header.width),
              .height = static_cast<int>(header.height),
              .channels = channels};
  if (!alpha) {
    image.pixels = std::move(raw);
    return image;
  }
  for (std::size_t at = 0; at < raw.size(); at += stride)
    image.pixels.insert(image.pixels.end(), raw.begin() + static_cast<std::ptrdiff_t>(at),
                        raw.begin() + static_cast<std::ptrdiff_t>(at) + channels);
  return image;
}

struct JpegFault {
  jpeg_error_mgr manager{};
  std::jmp_buf back{};
  char message[JMSG_LENGTH_MAX] = "";
};

void jpeg_fault(j_common_ptr info) {
  auto* fault = reinterpret_cast<JpegFault*>(info->err);
  info->err->format_message(info, fault->message);
  std::longjmp(fault->back, 1);
}

// A warning (a truncated file) is a fault as well.
void jpeg_message(j_common_ptr info, int level) {
  if (level < 0) jpeg_fault(info);
}

// Between setjmp and a jump no object with a destructor may be made here: all live outside.
bool read_jpeg(std::string_view bytes, JpegFault& fault, jpeg_decompress_struct& info, Image& image,
               Result<>& size) {
  if (setjmp(fault.back) != 0) return false;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  size = check_size(info.image_width, info.image_height);
  if (!size) return true;
  info.out_color_space = info.jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&info);
  image.width = static_cast<int>(info.output_width);
  image.height = static_cast<int>(info.output_height);
  image.channels = info.output_components;
  const std::size_t stride = std::size_t{info.output_width} * static_cast<unsigned>(image.channels);
  image.pixels.resize(stride * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = image.pixels.data() + stride * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

Result<Image> decode_jpeg(std::string_view bytes) {
  Image image;
  Result<> size = Ok{};
  JpegFault fault;
  jpeg_decompress_struct info{};
  info.err = jpeg_std_error(&fault.manager);
  fault.manager.error_exit = jpeg_fault;
  fault.manager.emit_message = jpeg_message;
  const bool good = read_jpeg(bytes, fault, info, image, size);
  jpeg_destroy_decompress(&info);
  if (!good) return corrupt(fmt::format("damaged JPEG: {}", fault.message));
  if (!size) return std::move(size).error();
  return image;
}

// What one output pixel of a line is made of: input pixels from `first`, weighted in fixed point.
struct Taps {
  int first = 0;
  std::vector<std::int32_t> weights{};
};
constexpr int kWeightBits = 22;  // 32, less 8 of the pixel and 2 spare

std::vector<Taps> make_taps(int in, int out) {
  const double scale = static_cast<double>(in) / out;
  const double support = std::max(scale, 1.0);  // of a triangle that widens when it shrinks
  std::vector<Taps> taps(static_cast<std::size_t>(out));
  for (int i = 0; i < out; ++i) {
    const double center = (i + 0.5) * scale;
    const int begin = std::max(static_cast<int>(center - support + 0.5), 0);
    const int end = std::min(static_cast<int>(center + support + 0.5), in);
    std::vector<double> weights;
    double sum = 0;
    for (int x = begin; x < end; ++x) {
      weights.push_back(std::max(1 - std::fabs((x - center + 0.5) / support), 0.0));
      sum += weights.back();
    }
    Taps& tap = taps[static_cast<std::size_t>(i)];
    tap.first = begin;
    for (const double weight : weights)
      tap.weights.push_back(static_cast<std::int32_t>(
          std::lround(weight / (sum == 0 ? 1 : sum) * (1 << kWeightBits))));
  }
  return taps;
}

// Weighs pixels that lie `step` bytes apart, from `base` on.
std::uint8_t weigh(const std::vector<std::uint8_t>& pixels, std::size_t base, std::size_t step,
                   const Taps& taps) {
  std::int64_t sum = 1 << (kWeightBits - 1);
  std::size_t at = base + static_cast<std::size_t>(taps.first) * step;
  for (const std::int32_t weight : taps.weights) {
    sum += std::int64_t{weight} * pixels[at];
    at += step;
  }
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>(sum >> kWeightBits, 0, 255));
}

Image resize_width(const Image& image, int width) {
  const auto taps = make_taps(image.width, width);
  const auto channels = static_cast<std::size_t>(image.channels);
  Image out{.width = width, .height = image.height, .channels = image.channels};
  out.pixels.reserve(static_cast<std::size_t>(width * image.height) * channels);
  const std::size_t stride = static_cast<std::size_t>(image.width) * channels;
  for (std::size_t y = 0; y < static_cast<std::size_t>(image.height); ++y)
    for (const Taps& tap : taps)
      for (std::size_t c = 0; c < channels; ++c)
        out.pixels.push_back(weigh(image.pixels, y * stride + c, channels, tap));
  return out;
}

Image resize_height(const Image& image, int height) {
  const std::size_t stride =
      static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.channels);
  Image out{.width = image.width, .height = height, .channels = image.channels};
  out.pixels.reserve(stride * static_cast<std::size_t>(height));
  for (const Taps& tap : make_taps(image.height, height))
    for (std::size_t x = 0; x < stride; ++x)
      out.pixels.push_back(weigh(image.pixels, x, stride, tap));
  return out;
}

}  // namespace

Result<Image> decode_image(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1A\n")) return decode_png(bytes);
  if (bytes.starts_with("\xFF\xD8\xFF")) return decode_jpeg(bytes);
  return corrupt("neither a PNG nor a JPEG image");
}

Image resize_bilinear(const Image& image, int width, int height) {
  YMIR_CHECK(width >= 1 && height >= 1 && image.width >= 1 && image.height >= 1, "no pixels");
  Image out = image.width == width ? image : resize_width(image, width);
  return out.height == height ? out : resize_height(out, height);
}

Image with_channels(const Image& image, int channels) {
  YMIR_CHECK(channels == 1 || channels == 3, "images have 1 or 3 channels");
  if (image.channels == channels) return image;
  Image out{.width = image.width, .height = image.height, .channels = channels};
  const std::size_t pixels = image.pixels.size() / static_cast<std::size_t>(image.channels);
  out.pixels.reserve(pixels * static_cast<std::size_t>(channels));
  for (std::size_t i = 0; i < pixels; ++i) {
    if (channels == 3) {
      out.pixels.insert(out.pixels.end(), 3, image.pixels[i]);
      continue;
    }
    const std::uint8_t* p = image.pixels.data() + i * 3;
    const std::uint32_t luma = p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 0x8000u;
    out.pixels.push_back(static_cast<std::uint8_t>(luma >> 16));
  }
  return out;
}

}  // namespace ymir
