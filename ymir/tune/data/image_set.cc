#include "ymir/tune/data/image_set.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "ymir/base/file.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxImageFile = std::size_t{1} << 28;

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// The sizes at the head of an IDX file of bytes.
struct IdxHeader {
  std::vector<std::size_t> sizes{};
  std::string_view data{};
};

Result<IdxHeader> read_idx_header(std::string_view bytes, std::size_t dimensions,
                                  const std::string& what) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (bytes.size() < 4 || byte(0) != 0 || byte(1) != 0)
    return refused(fmt::format("{} is no IDX file (it begins with two zero bytes)", what));
  if (byte(2) != 0x08)
    return refused(fmt::format("{}: values of kind 0x{:02X}, known: 0x08 (bytes)", what, byte(2)));
  if (byte(3) != dimensions)
    return refused(fmt::format("{} has {} dimensions, expected {}", what, byte(3), dimensions));
  IdxHeader header;
  std::size_t total = 1, at = 4;
  if (bytes.size() < 4 + 4 * dimensions) return refused(fmt::format("{} ends in its header", what));
  for (std::size_t i = 0; i < dimensions; ++i, at += 4) {
    const std::size_t size = std::size_t{byte(at)} << 24 | std::size_t{byte(at + 1)} << 16 |
                             std::size_t{byte(at + 2)} << 8 | byte(at + 3);
    header.sizes.push_back(size);
    if (size == 0 || total > (std::size_t{1} << 40) / size)
      return refused(fmt::format("{}: a size of {} in the header", what, size));
    total *= size;
  }
  header.data = bytes.substr(at);
  if (header.data.size() != total)
    return refused(fmt::format("{} holds {} bytes of data, its header says {}", what,
                               header.data.size(), total));
  return header;
}

Result<ImageTable> read_idx_files(const std::string& path, const ImageReadOptions& options) {
  const std::string other = options.labels.empty() ? labels_file_of(path) : options.labels;
  if (other.empty())
    return refused(path +
                   ": where are the labels? (their file is usually named ...labels-idx1-ubyte)");
  YMIR_TRY_ASSIGN(const std::string packed_images, read_file(path));
  YMIR_TRY_ASSIGN(const std::string packed_labels, read_file(other));
  auto images = gunzip(packed_images);
  if (!images) return annotate(std::move(images).error(), path);
  auto labels = gunzip(packed_labels);
  if (!labels) return annotate(std::move(labels).error(), other);
  return read_idx(*images, *labels, path);
}

using Use = std::function<void(LabelledImage)>;

// How many images the folder held.
std::size_t read_class_folder(const fs::path& folder, const Use& use, ImageTable& table) {
  std::size_t count = 0;
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_regular_file(error)) files.push_back(entry.path());
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    const std::string name = file.string();
    std::string ending = to_lower(file.extension().string());
    if (ending != ".png" && ending != ".jpg" && ending != ".jpeg") {
      table.notes.add({"no image", name, 0, 0, "is no .png, .jpg or .jpeg file and is left out"});
      continue;
    }
    auto bytes = read_file(name, kMaxImageFile);
    auto image = bytes ? decode_image(*bytes) : Result<Image>(std::move(bytes).error());
    if (image) {
      ++count;
      use({*std::move(image), folder.filename().string(), name});
    } else {
      table.faults.add({"image that can't be read", name, 0, 0, image.error().message});
    }
  }
  return count;
}

Result<ImageTable> read_folder(const std::string& path, const Use& use) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.is_directory(error) && !entry.path().filename().string().starts_with('.'))
      folders.push_back(entry.path());
  if (error) return Error{ErrorCode::kNotFound, path + ": " + error.message()};
  std::ranges::sort(folders);
  if (folders.size() < 2)
    return refused(
        fmt::format("{} holds {} folders; each class needs one, and there are at least two", path,
                    folders.size()));
  ImageTable table;
  for (const fs::path& folder : folders) {
    if (read_class_folder(folder, use, table) == 0)
      table.faults.add({"class without images", folder.string(), 0, 0, "holds no image"});
  }
  return table;
}

// The usual end of the scale that the values of a table of pixels lie on; their last is the label.
int brightest(std::string_view bytes) {
  std::int64_t most = 0;
  for (const std::string_view text : split(bytes, '\n')) {
    if (text.starts_with('#')) continue;
    const auto fields = split(text, ',');
    for (std::size_t i = 0; i + 1 < fields.size(); ++i)
      most = std::max(most, parse_int(trim(fields[i])).value_or(0));
  }
  for (const int end : {1, 16, 255})
    if (most <= end) return end;
  return 65535;
}

std::string format_of_images(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return "folder";
  const std::string name = to_lower(fs::path(path).filename().string());
  if (name.ends_with("-ubyte") || name.ends_with("-ubyte.gz")) return "idx";
  if (name.ends_with(".bin")) return "cifar10";
  return name.ends_with(".csv") ? "pixels" : "";
}

}  // namespace

std::string labels_file_of(const std::string& path) {
  const std::size_t name = path.rfind('/') == path.npos ? 0 : path.rfind('/') + 1;
  std::string out = path;
  const auto swap = [&](std::string_view from, std::string_view to) {
    const auto at = out.rfind(from);
    if (at != std::string::npos && at >= name) out.replace(at, from.size(), to);
  };
  swap("images", "labels");
  swap("idx3", "idx1");
  return out == path ? "" : out;
}

std::string LabelledImage::place() const {
  return row == 0 ? file : fmt::format("{}:{}", file, row);
}

Result<> ImageReadOptions::validate() const {
  static const std::vector<std::string> known = {"auto",     "idx",    "cifar10",
                                                 "cifar100", "pixels", "folder"};
  if (std::ranges::find(known, format) == known.end())
    return refused(fmt::format("format \"{}\" is not one of {}", fit(printable(format), 40),
                               join(known, ", ")));
  if (width < 0 || height < 0 || width > kMaxImageSide || height > kMaxImageSide ||
      (width == 0) != (height == 0))
    return refused("width and height are both 0 or both sizes");
  if (max_value < 0 || max_value > 65535) return refused("max_value is not in 0..65535");
  return Ok{};
}

Result<std::string> gunzip(std::string_view bytes, std::size_t max_bytes) {
  if (!bytes.starts_with("\x1F\x8B")) return std::string(bytes);
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK)
    return Error{ErrorCode::kInternal, "zlib can't start"};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int state = Z_OK;
  while (state == Z_OK && out.size() <= max_bytes) {
    const std::size_t before = out.size();
    out.resize(before + (std::size_t{1} << 20));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = 1u << 20;
    state = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (state == Z_OK && stream.avail_in == 0 && out.size() == before) state = Z_BUF_ERROR;
  }
  inflateEnd(&stream);
  if (out.size() > max_bytes)
    return Error{ErrorCode::kExhausted, fmt::format("unpacks to more than {} bytes", max_bytes)};
  if (state != Z_STREAM_END) return Error{ErrorCode::kCorruption, "damaged gzip data"};
  return out;
}

Result<ImageTable> read_idx(std::string_view images, std::string_view labels,
                            const std::string& name) {
  YMIR_TRY_ASSIGN(const IdxHeader pictures, read_idx_header(images, 3, name));
  YMIR_TRY_ASSIGN(const IdxHeader classes,
                  read_idx_header(labels, 1, "the file of labels of " + name));
  const std::size_t rows = pictures.sizes[0], height = pictures.sizes[1], width = pictures.sizes[2];
  if (classes.sizes[0] != rows)
    return refused(
        fmt::format("{} holds {} images, its labels are {}", name, rows, classes.sizes[0]));
  if (height > static_cast<std::size_t>(kMaxImageSide) ||
      width > static_cast<std::size_t>(kMaxImageSide))
    return refused(fmt::format("{}: images of {} x {}", name, width, height));
  ImageTable table;
  table.rows.reserve(rows);
  const std::size_t size = width * height;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::string_view data = pictures.data.substr(i * size, size);
    Image image{
        .width = static_cast<int>(width), .height = static_cast<int>(height), .channels = 1};
    image.pixels.assign(data.begin(), data.end());
    table.rows.push_back({std::move(image),
                          std::to_string(static_cast<unsigned char>(classes.data[i])), name,
                          static_cast<std::int64_t>(i) + 1});
  }
  return table;
}

Result<ImageTable> read_cifar(std::string_view bytes, const std::string& name, bool hundred) {
  constexpr std::size_t kSide = 32, kPlane = kSide * kSide;
  const std::size_t num_labels = hundred ? 2 : 1, record = num_labels + 3 * kPlane;
  if (bytes.empty() || bytes.size() % record != 0)
    return refused(fmt::format("{} has {} bytes, no multiple of CIFAR-{}'s records of {}", name,
                               bytes.size(), hundred ? 100 : 10, record));
  ImageTable table;
  for (std::size_t i = 0; i * record < bytes.size(); ++i) {
    const std::string_view data = bytes.substr(i * record, record);
    const auto row = static_cast<std::int64_t>(i) + 1;
    const auto label = static_cast<unsigned char>(data[num_labels - 1]);
    if (label >= (hundred ? 100 : 10)) {
      table.faults.add({"label out of range", name, row, 0,
                        fmt::format("label {} (CIFAR-{} has {})", label, hundred ? 100 : 10,
                                    hundred ? "0 to 99" : "0 to 9")});
      continue;
    }
    Image image{.width = kSide, .height = kSide, .channels = 3};
    image.pixels.resize(3 * kPlane);
    for (std::size_t p = 0; p < kPlane; ++p)
      for (std::size_t c = 0; c < 3; ++c)
        image.pixels[p * 3 + c] = static_cast<std::uint8_t>(data[num_labels + c * kPlane + p]);
    table.rows.push_back({std::move(image), std::to_string(label), name, row});
  }
  return table;
}

Result<ImageTable> read_pixel_table(std::string_view bytes, const std::string& name,
                                    const ImageReadOptions& options) {
  YMIR_TRY(options.validate());
  ImageTable table;
  const int max_value = options.max_value > 0 ? options.max_value : brightest(bytes);
  if (options.max_value == 0 && max_value != 255)
    table.notes.add({"brightness", name, 0, 0,
                     fmt::format("{}: pixels are taken to reach from 0 to {}", name, max_value)});
  std::size_t num_pixels =
      static_cast<std::size_t>(options.width) * static_cast<std::size_t>(options.height);
  int width = options.width, height = options.height;
  std::int64_t line = 0;
  for (std::string_view text : split(bytes, '\n')) {
    ++line;
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (trim(text).empty() || text.starts_with('#')) continue;  // a remark
    const auto fields = split(text, ',');
    if (num_pixels == 0) {
      width = height =
          static_cast<int>(std::lround(std::sqrt(static_cast<double>(fields.size() - 1))));
      num_pixels = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
      if (num_pixels + 1 != fields.size() || width < 1)
        return refused(
            fmt::format("{}: {} values before the label make no square; say width and height", name,
                        fields.size() - 1));
    }
    if (fields.size() != num_pixels + 1) {
      table.faults.add(
          {"wrong number of fields", name, line, 0,
           fmt::format("{} fields, expected {} pixels and a label", fields.size(), num_pixels)});
      continue;
    }
    Image image{.width = width, .height = height, .channels = 1};
    for (std::size_t i = 0; i < num_pixels; ++i) {
      const auto value = parse_int(trim(fields[i]));
      if (!value || *value < 0 || *value > max_value) {
        table.faults.add(
            {"no pixel", name, line, fields[i].data() - text.data() + 1,
             fmt::format("\"{}\" is no whole number from 0 to {}", fit(fields[i], 40), max_value)});
        break;
      }
      image.pixels.push_back(static_cast<std::uint8_t>((*value * 255 + max_value / 2) / max_value));
    }
    if (image.pixels.size() == num_pixels)
      table.rows.push_back({std::move(image), std::string(trim(fields.back())), name, line});
  }
  if (table.rows.empty() && table.faults.empty())
    table.faults.add({"no rows", name, 0, 0, "holds no rows"});
  return table;
}

Result<ImageTable> read_images(const std::string& path, const ImageReadOptions& options) {
  std::vector<LabelledImage> rows;
  YMIR_TRY_ASSIGN(ImageTable table, read_images(path, options, [&rows](LabelledImage row) {
                    rows.push_back(std::move(row));
                  }));
  table.rows = std::move(rows);
  return table;
}

Result<ImageTable> read_images(const std::string& path, const ImageReadOptions& options,
                               const Use& use) {
  YMIR_TRY(options.validate());
  const std::string format = options.format == "auto" ? format_of_images(path) : options.format;
  if (to_lower(path).ends_with(".zip"))
    return refused(path +
                   " is an archive; unpack it and name the folder that holds one for each class");
  if (format.empty())
    return refused(path + ": say its format (idx, cifar10, cifar100, pixels, folder)");
  if (format == "folder") return read_folder(path, use);
  const auto read = [&]() -> Result<ImageTable> {
    if (format == "idx") return read_idx_files(path, options);
    YMIR_TRY_ASSIGN(const std::string bytes, read_file(path));
    if (format == "pixels") return read_pixel_table(bytes, path, options);
    return read_cifar(bytes, path, format == "cifar100");
  };
  YMIR_TRY_ASSIGN(ImageTable table, read());
  for (LabelledImage& row : std::exchange(table.rows, {})) use(std::move(row));
  return table;
}

}  // namespace ymir
