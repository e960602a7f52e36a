// Packing: which lines of a plan find room when each must stand on one node.
//
// Sizes that are powers of two up to the node pack whenever their sum fits;
// other sizes or unequal nodes may leave somebody out. Pure, any thread.
#pragma once

#include <span>
#include <vector>

#include "ymir/core/snapshot.h"

namespace ymir {

struct Load {
  int gpus = 0;
  PlaceId held{};  // where it runs with that many GPUs now; 0: nowhere
};

// For each load whether it finds room. Loads that run stay where they are, as long as everybody
// fits so; else moving them is tried. Among those left out when neither works, earlier loads of
// one size go first.
std::vector<bool> pack(const Snapshot& cluster, std::span<const Load> loads);

// Slots of the largest node: no run can be larger.
int largest_node(const Snapshot& cluster);

}  // namespace ymir
