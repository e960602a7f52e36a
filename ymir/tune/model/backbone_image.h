// Backbone image: a model's frozen weights in the form the encoder reads, derived once and mapped
// by every process of the node.
//
// Safetensors files <cache>/images/<key>.<f32|bf16|f16>.safetensors with one flat tensor each, in
// which every weight begins at a multiple of 64 bytes and query, key and value are one matrix [3H,
// H]. Matrices stay in the type of the model's own file (f32, bf16, f16), everything small is f32;
// <key>.copy16 holds the layers' matrices again in bf16 where they are not so already. Made under a
// file lock, a weight at a time, renamed into place, never changed after. The user's own files are
// read only while it is made.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/model/family.h"
#include "ymir/tune/model_files.h"

namespace ymir {

struct ImageEntry {
  std::string name{};  // canonical: "layer.0.qkv.weight"
  Shape shape{};
  DType dtype = DType::kF32;            // in which file it lies
  std::int64_t offset = 0;              // in elements of that file, a multiple of 64
  std::vector<std::string> sources{};   // file names without prefix, stacked in this order
  std::vector<std::int64_t> heights{};  // lines of each source, where there are several
};

// What a file of the family may have or lack.
struct ImageParts {
  bool pooler = false;  // BERT's
  bool output = false;  // an output layer of its own, untied (LLaMA)
};

// All weights of a model of this configuration in image order, as f32.
std::vector<ImageEntry> image_layout(const ModelConfig& config, const ImageParts& parts);

// Whether the folder's files hold the weights of its config.json, without reading the numbers:
// whole safetensors files, every tensor there, of the right shape and of a type that can be read,
// and none that belongs to no part of the encoder (heads and position ids do not matter). Names
// file and tensor.
Result<> check_weights(const ModelFiles& model);

class BackboneImage {
 public:
  // Makes what is missing, then maps it; what check_weights refuses is refused.
  static Result<BackboneImage> open(const ModelFiles& model, const std::string& cache,
                                    bool with_bf16);

  const std::vector<ImageEntry>& entries() const { return entries_; }
  const std::vector<ImageEntry>& copies16() const { return copies16_; }
  const void* data(const ImageEntry& entry) const;    // of entries()
  const void* copy16(const ImageEntry& entry) const;  // of copies16(): bf16
  bool has_bf16() const { return has_bf16_; }
  const std::string& path() const { return path_; }

 private:
  BackboneImage() = default;
  std::map<DType, SafetensorsFile> files_{};
  std::vector<SafetensorsFile> copy_{};  // one or none
  std::vector<ImageEntry> entries_{}, copies16_{};
  bool has_bf16_ = false;
  std::string path_{};
};

}  // namespace ymir
