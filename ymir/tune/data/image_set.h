// Image data sets: pictures with the name of their class and their place, from IDX files (plain or
// gzip), CIFAR's binary files, tables of pixels, and folders with a folder a class. Faults are
// collected with file and row; the caller decides. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/data/data_faults.h"
#include "ymir/tune/data/image.h"

namespace ymir {

struct LabelledImage {
  Image image{};
  std::string label{};
  std::string file{};
  std::int64_t row = 0;  // from 1; 0: the file is the picture
  std::string place() const;
};

struct ImageTable {
  std::vector<LabelledImage> rows{};
  FaultList faults{};  // rows with one are not in `rows`
  FaultList notes{};
};

struct ImageReadOptions {
  // auto idx cifar10 cifar100 pixels folder; auto: a directory is a folder, *-ubyte(.gz) idx, *.bin
  // cifar10, *.csv pixels.
  std::string format = "auto";
  std::string labels{};  // idx: the file of the labels; empty: found by the usual name
  int width = 0,
      height = 0;  // pixels: the size, rows of width * height values and a label; 0: square
  // pixels: the brightest; 0: the least of 1, 16, 255 and 65535 that no value of the file exceeds.
  int max_value = 255;
  Result<> validate() const;
};

// Fails when the file can't be read or is no such file at all.
Result<ImageTable> read_images(const std::string& path, const ImageReadOptions& options);
// The same with each image given away as it is read, instead of kept in `rows`: of a folder only
// one lies in memory at a time.
Result<ImageTable> read_images(const std::string& path, const ImageReadOptions& options,
                               const std::function<void(LabelledImage)>& use);
// Where the labels of an IDX file of images lie by the usual names; empty for any other name.
std::string labels_file_of(const std::string& path);

// By the bytes of the files; `name` is used in messages.
Result<ImageTable> read_idx(std::string_view images, std::string_view labels,
                            const std::string& name);
// Records of one label byte (CIFAR-100: a coarse and a fine one) and 3,072 pixels, planes apart.
Result<ImageTable> read_cifar(std::string_view bytes, const std::string& name, bool hundred);
// Lines of whole numbers: the pixels row by row, then the label. Lines that begin with # are
// remarks.
Result<ImageTable> read_pixel_table(std::string_view bytes, const std::string& name,
                                    const ImageReadOptions& options);
// The content of gzip data, at most `max_bytes`; data that is no gzip as it is.
Result<std::string> gunzip(std::string_view bytes, std::size_t max_bytes = std::size_t{1} << 30);

}  // namespace ymir
