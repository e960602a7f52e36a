// The weight of a maximum-weight matching by another program (LEMON), for tests only.
#pragma once

#include <cstdint>
#include <vector>

namespace ymir {

struct WeightedEdge {
  int u = 0, v = 0;
  std::int64_t weight = 0;
};

bool have_matching_oracle();
std::int64_t oracle_matching_weight(int num_vertices, const std::vector<WeightedEdge>& edges);

}  // namespace ymir
