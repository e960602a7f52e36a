#include "ymir/schedule/sizes.h"

#include <fmt/format.h>

#include <algorithm>

namespace ymir {

std::vector<int> sizes_of(const JobSpec& spec, int largest) {
  const int most = std::min(spec.max_gpus, largest);
  std::vector<int> sizes;
  if (!spec.sizes.empty()) {
    for (const int size : spec.sizes)
      if (size >= std::max(spec.min_gpus, 1) && size <= most) sizes.push_back(size);
    std::ranges::sort(sizes);
    sizes.erase(std::ranges::unique(sizes).begin(), sizes.end());
    return sizes;
  }
  const int least = std::max(spec.min_gpus, 1);
  if (least <= most) sizes.push_back(least);
  for (int size = 1; size <= most; size *= 2)
    if (size > least) sizes.push_back(size);
  return sizes;
}

bool has_size(const JobSpec& spec, int gpus, int largest) {
  const int least = std::max(spec.min_gpus, 1);
  if (gpus < least || gpus > std::min(spec.max_gpus, largest)) return false;
  if (!spec.sizes.empty()) return std::ranges::count(spec.sizes, gpus) > 0;
  return gpus == least || (gpus & (gpus - 1)) == 0;
}

bool fits_a_node(const JobSpec& spec, int largest) {
  const int most = std::min(spec.max_gpus, largest), least = std::max(spec.min_gpus, 1);
  if (spec.sizes.empty()) return least <= most;
  return std::ranges::any_of(spec.sizes, [&](int size) { return size >= least && size <= most; });
}

std::string does_not_fit(const JobSpec& spec, int largest) {
  const int least =
      spec.sizes.empty() ? spec.min_gpus : std::max(spec.min_gpus, spec.sizes.front());
  return fmt::format("does_not_fit_a_node gpus={} largest={}", least, largest);
}

}  // namespace ymir
