// Parameters: the trainable tensors of one owner (an adapter, a head) in one flat f32 block, so
// that an optimizer step, a norm, a copy and a split are single passes. Tensors begin at a multiple
// of 64 bytes unless they are parts of one; the gaps stay 0.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/checkpoint/safetensors.h"

namespace ymir {

struct ParameterInfo {
  std::string name{};  // as PEFT writes it: "...attention.self.query.lora_A.weight"
  Shape shape{};
  std::int64_t offset = 0, count = 0;
  bool decay = true;  // weight decay; never on biases
};

class ParameterLayout {
 public:
  // Returns the position, for view(). `adjacent`: no gap after the tensor before.
  std::size_t add(std::string name, Shape shape, bool decay = true, bool adjacent = false);
  const std::vector<ParameterInfo>& infos() const { return infos_; }
  std::int64_t size() const { return size_; }  // of the flat block
  at::Tensor zeros() const;
  at::Tensor view(const at::Tensor& flat, std::size_t position) const;
  // Names with `prefix` before them, views of `flat`, which must outlive the map.
  void collect(const at::Tensor& flat, const std::string& prefix, TensorMap& into) const;
  // Fills a new flat block from named tensors. kCorruption: one is missing or has another shape.
  Result<at::Tensor> restore(const TensorMap& tensors, const std::string& prefix) const;

 private:
  std::vector<ParameterInfo> infos_;
  std::int64_t size_ = 0;
};

}  // namespace ymir
