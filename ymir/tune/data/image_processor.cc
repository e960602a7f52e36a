#include "ymir/tune/data/image_processor.h"

#include <fmt/format.h>

#include <cmath>

#include "ymir/base/file.h"
#include "ymir/base/json.h"

namespace ymir {
namespace {

constexpr std::size_t kMaxFile = 1u << 20;
constexpr int kBilinear = 2;  // PIL's number

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// A number for each channel; one number or none counts for all.
Result<std::vector<double>> by_channel(const Json& config, const char* key, int channels,
                                       double fallback) {
  const Json given = config.value(key, Json());
  std::vector<double> values(static_cast<std::size_t>(channels), fallback);
  if (given.is_null()) return values;
  const Json list = given.is_array() ? given : Json::array({given});
  if (list.size() != 1 && list.size() != values.size())
    return refused(
        fmt::format("{} holds {} numbers, the model has {} channels", key, list.size(), channels));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Json& value = list[list.size() == 1 ? 0 : i];
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      return refused(fmt::format("{} is not a list of numbers", key));
    values[i] = value.get<double>();
  }
  return values;
}

Result<> check_size(const Json& config, const ModelConfig& model) {
  const Json size = config.value("size", Json());
  if (size.is_null()) return Ok{};
  const auto fits = [&](const Json& side) { return side == Json(model.image_size); };
  const bool square = size.is_number() ? fits(size)
                                       : size.is_object() && fits(size.value("height", Json())) &&
                                             fits(size.value("width", Json()));
  if (!square)
    return refused(
        fmt::format("size {} is not the model's image_size {}", canonical(size), model.image_size));
  return Ok{};
}

Result<ImageProcessor> parse(const Json& config, const ModelConfig& model) {
  if (!config.is_object()) return refused("not an object");
  YMIR_TRY(check_size(config, model));
  YMIR_TRY_ASSIGN(const bool crops, flag_field(config, "do_center_crop", false));
  if (crops) return refused("do_center_crop is not supported");
  YMIR_TRY_ASSIGN(const bool resizes, flag_field(config, "do_resize", true));
  if (resizes && config.value("resample", Json(kBilinear)) != Json(kBilinear))
    return refused(fmt::format("resample {} is not supported (known: 2, bilinear)",
                               canonical(config.value("resample", Json()))));
  YMIR_TRY_ASSIGN(const bool rescales, flag_field(config, "do_rescale", true));
  YMIR_TRY_ASSIGN(const bool normalises, flag_field(config, "do_normalize", true));
  YMIR_TRY_ASSIGN(const auto scale, by_channel(config, "rescale_factor", 1, 1.0 / 255));
  YMIR_TRY_ASSIGN(const auto mean, by_channel(config, "image_mean", model.num_channels, 0.5));
  YMIR_TRY_ASSIGN(const auto deviation, by_channel(config, "image_std", model.num_channels, 0.5));
  ImageProcessor out{.size = model.image_size, .channels = model.num_channels};
  for (std::size_t c = 0; c < mean.size(); ++c) {
    if (!(deviation[c] > 0)) return refused("image_std holds a number that is not above 0");
    const double factor = rescales ? scale[0] : 1;
    out.factor.push_back(static_cast<float>(normalises ? factor / deviation[c] : factor));
    out.offset.push_back(static_cast<float>(normalises ? -mean[c] / deviation[c] : 0));
  }
  return out;
}

}  // namespace

void ImageProcessor::apply(std::span<const std::uint8_t> pixels, float* out) const {
  YMIR_CHECK(pixels.size() == values(), "pixels of the model's size");
  const auto wide = static_cast<std::size_t>(channels);
  const std::size_t plane = pixels.size() / wide;
  for (std::size_t c = 0; c < wide; ++c)
    for (std::size_t i = 0; i < plane; ++i)
      out[c * plane + i] = static_cast<float>(pixels[i * wide + c]) * factor[c] + offset[c];
}

Result<ImageProcessor> parse_image_processor(std::string_view preprocessor_json,
                                             const ModelConfig& model) {
  if (preprocessor_json.empty()) return parse(Json::object(), model);
  YMIR_TRY_ASSIGN(const Json config,
                  parse_json(preprocessor_json, {.max_bytes = kMaxFile, .max_depth = 8}));
  return parse(config, model);
}

Result<ImageProcessor> read_image_processor(const std::string& folder, const ModelConfig& model) {
  const std::string path = folder + "/preprocessor_config.json";
  auto text = read_file(path, kMaxFile);
  if (!text && text.error().code != ErrorCode::kNotFound) return std::move(text).error();
  auto read = parse_image_processor(text ? *text : "", model);
  if (!read) return annotate(std::move(read).error(), path);
  return read;
}

}  // namespace ymir
