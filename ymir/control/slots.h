// Slots: where a run that the plan wants goes. Pure, any thread.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ymir/core/snapshot.h"

namespace ymir {

// Free slots for `gpus`, all on one place; none when no place has so many. Those of the job's last
// run when they are free; else on the place with the fewest free that suffice, and there on the
// fewest nodes: the fullest node that holds all, or whole nodes and the fullest that holds the
// rest. With `spread` the emptiest places and nodes instead.
std::optional<std::pair<PlaceId, std::vector<int>>> find_slots(const Snapshot& now,
                                                               const JobView& job, int gpus,
                                                               bool spread);

}  // namespace ymir
