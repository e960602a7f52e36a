#include "ymir/tune/checkpoint/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <ranges>
#include <tuple>
#include <utility>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/tune/checkpoint/half.h"

namespace ymir {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::uint64_t kMaxHeader = 100'000'000;
constexpr std::size_t kMaxDimensions = 16;
constexpr std::size_t kDataAlignment = 64;

struct Type {
  DType dtype;
  std::string_view name;
  std::size_t size;
};
constexpr std::array<Type, 10> kTypes = {{{DType::kF64, "F64", 8},
                                          {DType::kF32, "F32", 4},
                                          {DType::kF16, "F16", 2},
                                          {DType::kBF16, "BF16", 2},
                                          {DType::kI64, "I64", 8},
                                          {DType::kI32, "I32", 4},
                                          {DType::kI16, "I16", 2},
                                          {DType::kI8, "I8", 1},
                                          {DType::kU8, "U8", 1},
                                          {DType::kBool, "BOOL", 1}}};

Error bad(std::string message) { return {ErrorCode::kCorruption, std::move(message)}; }

// A tensor's place, relative to the first byte after the header.
struct Place {
  std::uint64_t begin = 0, end = 0;
  std::string name{};
};

std::optional<std::uint64_t> as_size(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::uint64_t>();
}

// Elements of the shape times the element's size, or nothing when it does not fit 63 bits.
std::optional<std::uint64_t> byte_count(const Shape& shape, std::size_t element) {
  std::uint64_t total = element;
  for (const std::int64_t dimension : shape)
    if (__builtin_mul_overflow(total, static_cast<std::uint64_t>(dimension), &total) ||
        total > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return std::nullopt;
  return total;
}

Result<Shape> parse_shape(const Json& entry) {
  const auto found = entry.find("shape");
  if (found == entry.end() || !found->is_array() || found->size() > kMaxDimensions)
    return bad(fmt::format("its shape is not a list of at most {} numbers", kMaxDimensions));
  Shape shape;
  for (const Json& dimension : *found) {
    const auto size = as_size(dimension);
    if (!size || *size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return bad("its shape holds something that is not a size");
    shape.push_back(static_cast<std::int64_t>(*size));
  }
  return shape;
}

Result<TensorView> parse_entry(const Json& entry, std::span<const std::byte> data, Place& place) {
  if (!entry.is_object()) return bad("is not an object");
  const auto dtype = entry.find("dtype");
  if (dtype == entry.end() || !dtype->is_string()) return bad("has no dtype");
  const auto& type_name = dtype->get_ref<const std::string&>();
  const auto* type = std::ranges::find(kTypes, type_name, &Type::name);
  if (type == kTypes.end())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("dtype {} is not supported (known: {})", type_name,
                             fmt::join(kTypes | std::views::transform(&Type::name), ", "))};
  YMIR_TRY_ASSIGN(Shape shape, parse_shape(entry));
  const auto offsets = entry.find("data_offsets");
  if (offsets == entry.end() || !offsets->is_array() || offsets->size() != 2)
    return bad("has no pair of data_offsets");
  const auto begin = as_size((*offsets)[0]), end = as_size((*offsets)[1]);
  if (!begin || !end || *begin > *end)
    return bad("its data_offsets are not two sizes in ascending order");
  if (*end > data.size())
    return bad(fmt::format("ends at byte {} of {} bytes of data", *end, data.size()));
  if (const auto bytes = byte_count(shape, type->size); !bytes || *bytes != *end - *begin)
    return bad(
        fmt::format("{} {} does not take {} bytes", type_name, shape_text(shape), *end - *begin));
  place.begin = *begin;
  place.end = *end;
  return TensorView{type->dtype, std::move(shape), data.subspan(*begin, *end - *begin)};
}

Result<Metadata> parse_metadata(const Json& entry) {
  if (!entry.is_object()) return bad("__metadata__ is not an object");
  Metadata metadata;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) return bad(fmt::format("__metadata__.{} is not a text", key));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

// The tensors must cover the data exactly: each begins where the one before it ends.
Result<> check_cover(std::vector<Place> places, std::size_t data_size) {
  std::ranges::sort(places, {}, [](const Place& p) { return std::tuple(p.begin, p.end); });
  std::uint64_t covered = 0;
  for (const Place& place : places) {
    if (place.begin < covered)
      return bad(fmt::format("tensor {} overlaps the one before it", place.name));
    if (place.begin > covered)
      return bad(fmt::format("{} bytes before tensor {} belong to none", place.begin - covered,
                             place.name));
    covered = place.end;
  }
  if (covered != data_size)
    return bad(fmt::format("{} bytes at the end belong to no tensor", data_size - covered));
  return Ok{};
}

template <class Element, class Convert>
std::vector<float> convert_all(const TensorView& tensor, Convert convert) {
  std::vector<float> values(tensor.count());
  for (std::size_t i = 0; i < values.size(); ++i) {
    Element element{};
    std::memcpy(&element, tensor.bytes.data() + i * sizeof(Element), sizeof(Element));
    values[i] = convert(element);
  }
  return values;
}

}  // namespace

std::size_t size_of(DType dtype) { return kTypes[static_cast<std::size_t>(dtype)].size; }
std::string_view dtype_name(DType dtype) { return kTypes[static_cast<std::size_t>(dtype)].name; }
std::string shape_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

bool TensorView::aligned() const {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % size_of(dtype) == 0;
}

bool TensorView::operator==(const TensorView& other) const {
  return dtype == other.dtype && shape == other.shape && std::ranges::equal(bytes, other.bytes);
}

TensorView view_of(std::span<const float> values, Shape shape) {
  YMIR_CHECK(byte_count(shape, sizeof(float)) == values.size_bytes(),
             shape_text(shape) + " is not the shape of the values");
  return {DType::kF32, std::move(shape), std::as_bytes(values)};
}

Result<std::vector<float>> to_f32(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::kF32:
      return convert_all<float>(tensor, [](float x) { return x; });
    case DType::kF64:
      return convert_all<double>(tensor, [](double x) { return static_cast<float>(x); });
    case DType::kF16:
      return convert_all<std::uint16_t>(tensor, f16_value);
    case DType::kBF16:
      return convert_all<std::uint16_t>(tensor, bf16_value);
    default:
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} holds no floating-point numbers", dtype_name(tensor.dtype))};
  }
}

Result<Safetensors> parse_safetensors(std::span<const std::byte> file) {
  std::uint64_t header_size = 0;
  if (file.size() < sizeof header_size)
    return bad(fmt::format("{} bytes are too few for a safetensors file", file.size()));
  std::memcpy(&header_size, file.data(), sizeof header_size);
  if (header_size > kMaxHeader)
    return bad(fmt::format("header of {} bytes, at most {}", header_size, kMaxHeader));
  if (header_size > file.size() - sizeof header_size)
    return bad(fmt::format("header of {} bytes in a file of {}", header_size, file.size()));
  const auto data = file.subspan(sizeof header_size + header_size);
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + sizeof header_size,
                              header_size);
  auto header = parse_json(text, {.max_bytes = kMaxHeader, .max_depth = 4});
  if (!header) return bad("header: " + header.error().message);
  if (!header->is_object()) return bad("header is not an object");

  Safetensors content;
  std::vector<Place> places;
  for (const auto& [name, entry] : header->items()) {
    if (name == "__metadata__") {
      YMIR_TRY_ASSIGN(content.metadata, parse_metadata(entry));
      continue;
    }
    Place place{.name = name};
    auto view = parse_entry(entry, data, place);
    if (!view) return annotate(std::move(view).error(), "tensor " + name);
    content.tensors.emplace(name, *std::move(view));
    places.push_back(std::move(place));
  }
  YMIR_TRY(check_cover(std::move(places), data.size()));
  return content;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  SafetensorsFile result;
  YMIR_TRY_ASSIGN(result.file_, MappedFile::open(path));
  auto content = parse_safetensors(result.file_.bytes());
  if (!content) return annotate(std::move(content).error(), path);
  result.content_ = *std::move(content);
  return result;
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto found = content_.tensors.find(name);
  return found == content_.tensors.end() ? nullptr : &found->second;
}

namespace {

// The length and the text of a header, padded so that the data are aligned.
std::string file_start(const Json& header) {
  std::string text = canonical(header);
  std::uint64_t size = text.size() + sizeof size;
  text.append((kDataAlignment - size % kDataAlignment) % kDataAlignment, ' ');
  size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<FlatTensorWriter> FlatTensorWriter::create(const std::string& path, const std::string& name,
                                                  DType dtype, std::int64_t count,
                                                  Metadata metadata) {
  metadata.emplace("format", "pt");
  const std::uint64_t bytes = static_cast<std::uint64_t>(count) * size_of(dtype);
  Json header;
  header["__metadata__"] = metadata;
  header[name] = {
      {"dtype", dtype_name(dtype)}, {"shape", Shape{count}}, {"data_offsets", {0, bytes}}};
  YMIR_TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
  YMIR_TRY(file.write(file_start(header)));
  return FlatTensorWriter(std::move(file), bytes);
}

Result<> FlatTensorWriter::append(std::span<const std::byte> bytes) {
  written_ += bytes.size();
  YMIR_CHECK(written_ <= bytes_, "more bytes than the tensor has");
  return file_.write(as_text(bytes));
}

Result<> FlatTensorWriter::append_zeros(std::size_t bytes) {
  return append(std::vector<std::byte>(bytes));
}

Result<> FlatTensorWriter::commit() {
  YMIR_CHECK(written_ == bytes_, "fewer bytes than the tensor has");
  return file_.commit();
}

Result<> write_safetensors(const std::string& path, const TensorMap& tensors, Metadata metadata) {
  metadata.emplace("format", "pt");
  std::vector<const TensorMap::value_type*> order;
  for (const auto& item : tensors) {
    YMIR_CHECK(
        byte_count(item.second.shape, size_of(item.second.dtype)) == item.second.bytes.size(),
        item.first + ": bytes and shape differ");
    order.push_back(&item);
  }
  // Wide elements first keeps every tensor aligned to its own element size.
  std::ranges::stable_sort(order, std::greater{},
                           [](const auto* item) { return size_of(item->second.dtype); });
  Json header;
  header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const auto* item : order) {
    const TensorView& tensor = item->second;
    header[item->first] = {{"dtype", dtype_name(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  YMIR_TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
  YMIR_TRY(file.write(file_start(header)));
  for (const auto* item : order) YMIR_TRY(file.write(as_text(item->second.bytes)));
  return file.commit();
}

}  // namespace ymir
