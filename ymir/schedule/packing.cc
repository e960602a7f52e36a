#include "ymir/schedule/packing.h"

#include <algorithm>
#include <numeric>

namespace ymir {

namespace {

std::map<PlaceId, int> all_slots(const Snapshot& cluster) {
  std::map<PlaceId, int> free;
  for (const auto& [id, place] : cluster.places) free[id] = place.num_slots;
  return free;
}

// Puts the loads that have no room yet on nodes, largest first, each on the fullest that holds it.
void fill(std::span<const Load> loads, std::map<PlaceId, int> free, std::vector<bool>& room) {
  std::vector<std::size_t> order(loads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return loads[i].gpus; });
  for (const std::size_t i : order) {
    if (room[i]) continue;
    auto best = free.end();
    for (auto it = free.begin(); it != free.end(); ++it)
      if (it->second >= loads[i].gpus && (best == free.end() || it->second < best->second))
        best = it;
    if (best == free.end()) continue;
    best->second -= loads[i].gpus;
    room[i] = true;
  }
}

bool all(const std::vector<bool>& room) {
  return std::ranges::all_of(room, [](bool fits) { return fits; });
}

}  // namespace

std::vector<bool> pack(const Snapshot& cluster, std::span<const Load> loads) {
  std::map<PlaceId, int> free = all_slots(cluster);
  std::vector<bool> staying(loads.size());
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const auto place = free.find(loads[i].held);
    if (place == free.end() || place->second < loads[i].gpus) continue;
    place->second -= loads[i].gpus;
    staying[i] = true;
  }
  fill(loads, std::move(free), staying);
  if (all(staying)) return staying;
  std::vector<bool> moving(loads.size());
  fill(loads, all_slots(cluster), moving);
  return all(moving) ? moving : staying;
}

int largest_node(const Snapshot& cluster) {
  int slots = 0;
  for (const auto& [id, place] : cluster.places) slots = std::max(slots, place.num_slots);
  return slots;
}

}  // namespace ymir
