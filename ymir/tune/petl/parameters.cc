#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <cstring>

#include "ymir/tune/petl/parameters_torch.h"

namespace ymir {

std::size_t ParameterLayout::add(std::string name, Shape shape, bool decay, bool adjacent) {
  constexpr std::int64_t kAlignment = 16;  // floats
  const std::int64_t begin = adjacent ? infos_.back().offset + infos_.back().count : size_;
  ParameterInfo info{std::move(name), std::move(shape), begin, 1, decay};
  for (const std::int64_t size : info.shape) info.count *= size;
  size_ = (info.offset + info.count + kAlignment - 1) / kAlignment * kAlignment;
  infos_.push_back(std::move(info));
  return infos_.size() - 1;
}

at::Tensor ParameterLayout::zeros() const { return at::zeros({size_}, at::kFloat); }

at::Tensor ParameterLayout::view(const at::Tensor& flat, std::size_t position) const {
  const ParameterInfo& info = infos_[position];
  return flat.narrow(0, info.offset, info.count).view(info.shape);
}

void ParameterLayout::collect(const at::Tensor& flat, const std::string& prefix,
                              TensorMap& into) const {
  const float* data = flat.const_data_ptr<float>();
  for (const ParameterInfo& info : infos_)
    into.emplace(prefix + info.name,
                 view_of({data + info.offset, static_cast<std::size_t>(info.count)}, info.shape));
}

Result<at::Tensor> ParameterLayout::restore(const TensorMap& tensors,
                                            const std::string& prefix) const {
  at::Tensor flat = zeros();
  float* data = flat.mutable_data_ptr<float>();
  for (const ParameterInfo& info : infos_) {
    const auto found = tensors.find(prefix + info.name);
    if (found == tensors.end())
      return Error{ErrorCode::kCorruption, "tensor is missing: " + prefix + info.name};
    const TensorView& view = found->second;
    if (view.dtype != DType::kF32 || view.shape != info.shape)
      return Error{
          ErrorCode::kCorruption,
          fmt::format("{} is {}{}, expected F32{}", prefix + info.name, dtype_name(view.dtype),
                      shape_text(view.shape), shape_text(info.shape))};
    std::memcpy(data + info.offset, view.bytes.data(), view.bytes.size());
  }
  return flat;
}

}  // namespace ymir
