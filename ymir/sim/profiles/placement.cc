#include "ymir/sim/profiles/placement.h"

#include <algorithm>

namespace ymir {

std::vector<int> packed_placement(int gpus, int gpus_per_node) {
  std::vector<int> placement(static_cast<std::size_t>(gpus / gpus_per_node), gpus_per_node);
  if (gpus % gpus_per_node > 0) placement.push_back(gpus % gpus_per_node);
  return placement;
}

std::string placement_key(std::span<const int> placement) {
  std::string digits;
  for (const int count : placement) {
    if (count < 1 || count > 9) return {};
    digits += static_cast<char>('0' + count);
  }
  std::string smallest = digits;
  for (std::size_t i = 1; i < digits.size(); ++i)
    smallest = std::min(smallest, digits.substr(i) + digits.substr(0, i));
  return smallest;
}

}  // namespace ymir
