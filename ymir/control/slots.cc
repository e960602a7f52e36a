#include "ymir/control/slots.h"

#include <algorithm>

namespace ymir {

namespace {

bool is_free(const PlaceView& place, int slot) {
  return slot >= 0 && slot < place.num_slots && !place.taken.contains(slot);
}

// Free slots of each node of a place, ascending.
std::vector<std::vector<int>> free_by_node(const PlaceView& place) {
  const int width = place.node_slots > 0 ? place.node_slots : std::max(place.num_slots, 1);
  std::vector<std::vector<int>> free(static_cast<std::size_t>((place.num_slots - 1) / width + 1));
  auto taken = place.taken.begin();
  for (int slot = 0; slot < place.num_slots; ++slot) {
    if (taken != place.taken.end() && *taken == slot)
      ++taken;
    else
      free[static_cast<std::size_t>(slot / width)].push_back(slot);
  }
  return free;
}

// The next node to take from: one that holds all `gpus` with the least left over, else the one with
// most free; when spreading always the one with most free. First of equals.
std::size_t next_node(const std::vector<std::vector<int>>& free, int gpus, bool spread) {
  std::size_t best = 0;
  const auto holds_all = [&](std::size_t node) { return std::ssize(free[node]) >= gpus; };
  for (std::size_t node = 1; node < free.size(); ++node) {
    const bool fuller = free[node].size() < free[best].size();
    const bool emptier = free[node].size() > free[best].size();
    if (spread || !holds_all(best) ? emptier : holds_all(node) && fuller) best = node;
  }
  return best;
}

std::vector<int> slots_on(const PlaceView& place, int gpus, bool spread) {
  std::vector<std::vector<int>> free = free_by_node(place);
  std::vector<int> slots;
  while (gpus > 0) {
    std::vector<int>& node = free[next_node(free, gpus, spread)];
    const int part = std::min(gpus, static_cast<int>(node.size()));
    slots.insert(slots.end(), node.begin(), node.begin() + part);
    node.erase(node.begin(), node.begin() + part);
    gpus -= part;
  }
  std::ranges::sort(slots);
  return slots;
}

}  // namespace

std::optional<std::pair<PlaceId, std::vector<int>>> find_slots(const Snapshot& now,
                                                               const JobView& job, int gpus,
                                                               bool spread) {
  if (const auto last = now.places.find(job.last_place);
      last != now.places.end() && std::ssize(job.last_slots) == gpus &&
      std::ranges::all_of(job.last_slots, [&](int slot) { return is_free(last->second, slot); }))
    return std::pair{job.last_place, job.last_slots};
  const PlaceView* best = nullptr;
  int best_free = 0;
  for (const auto& [id, place] : now.places) {
    const int count = place.num_slots - static_cast<int>(place.taken.size());
    const bool better = best == nullptr || (spread ? count > best_free : count < best_free);
    if (count < gpus || !better) continue;
    best = &place;
    best_free = count;
    if (!spread && count == gpus) break;  // none is fuller and holds it
  }
  if (best == nullptr) return std::nullopt;
  return std::pair{best->place, slots_on(*best, gpus, spread)};
}

}  // namespace ymir
