// Placements as the measured tables name them: the number of GPUs on each node a job uses, in the
// order of the nodes, without zeros. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ymir {

// As few nodes as can be: 10 GPUs on nodes of 4 are {4, 4, 2}.
std::vector<int> packed_placement(int gpus, int gpus_per_node);
// The digits of the lexicographically smallest rotation: "1213" for {2, 1, 3, 1}. Empty when a
// count is over 9.
std::string placement_key(std::span<const int> placement);

}  // namespace ymir
