// The safetensors file format, without torch: named tensors as (dtype, shape, bytes).
//
// Reading is strict and bounded: header <= 100 MB, no duplicate names, no overlaps, no holes, all
// offsets inside the file, no overflow. Types outside DType (the 8-bit floats among them) are
// refused by name. Bytes are little-endian, row-major. Writing is atomic and durable, and the same
// tensors always give the same bytes. Reading is safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/file.h"
#include "ymir/base/mapped_file.h"
#include "ymir/base/result.h"

namespace ymir {

enum class DType { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU8, kBool };
std::size_t size_of(DType dtype);            // bytes of one element
std::string_view dtype_name(DType dtype);    // as in the file: "F32"
using Shape = std::vector<std::int64_t>;     // empty = a scalar
std::string shape_text(const Shape& shape);  // "[384, 8]"

// A tensor somewhere in memory that it does not own.
struct TensorView {
  DType dtype = DType::kF32;
  Shape shape{};
  std::span<const std::byte> bytes{};

  std::size_t count() const { return bytes.size() / size_of(dtype); }  // elements
  // Whether the elements may be read in place; if not (files need not align), copy them first.
  bool aligned() const;
  bool operator==(const TensorView& other) const;  // same type, shape and bytes
};
using TensorMap = std::map<std::string, TensorView, std::less<>>;
using Metadata = std::map<std::string, std::string>;

// A view of `values`, which must outlive it and hold as many elements as the shape says.
TensorView view_of(std::span<const float> values, Shape shape);
// The elements as f32: F64, F32, F16 and BF16 only (kInvalidArgument for the others).
Result<std::vector<float>> to_f32(const TensorView& tensor);

// Parses a whole file; the views point into `file`.
struct Safetensors {
  TensorMap tensors{};
  Metadata metadata{};
};
Result<Safetensors> parse_safetensors(std::span<const std::byte> file);

// A safetensors file, mapped. The views live as long as it does (moves included).
class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::string& path);

  const TensorMap& tensors() const { return content_.tensors; }
  const Metadata& metadata() const { return content_.metadata; }
  const TensorView* find(std::string_view name) const;  // nullptr when absent
  const MappedFile& file() const { return file_; }

 private:
  SafetensorsFile() = default;
  MappedFile file_;
  Safetensors content_;
};

// Writes a file with one flat tensor, piece by piece: for tensors larger than memory should hold.
// Atomic and durable as write_safetensors; the data begin at a multiple of 64.
class FlatTensorWriter {
 public:
  static Result<FlatTensorWriter> create(const std::string& path, const std::string& name,
                                         DType dtype, std::int64_t count, Metadata metadata = {});
  Result<> append(std::span<const std::byte> bytes);
  Result<> append_zeros(std::size_t bytes);
  std::uint64_t written() const { return written_; }
  Result<> commit();  // once; every element must have been written

 private:
  FlatTensorWriter(AtomicFile file, std::uint64_t bytes) : file_(std::move(file)), bytes_(bytes) {}
  AtomicFile file_;
  std::uint64_t bytes_ = 0, written_ = 0;
};

// Writes the tensors, the widest types first, then by name; the data begin at a multiple of 64.
// `metadata` gets {"format": "pt"} when it has no format.
Result<> write_safetensors(const std::string& path, const TensorMap& tensors,
                           Metadata metadata = {});

}  // namespace ymir
