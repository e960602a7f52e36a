// Slots of a CPU node: disjoint sets of cores, whole physical ones where the number allows, and
// what the node is called. Any thread.
#pragma once

#include <string>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

struct Slot {
  std::vector<int> cores{};  // CPU numbers, as sched_setaffinity takes them
};

// The cores this process may use, neighbours (threads of one physical core) side by side.
std::vector<int> usable_cores();

// 2 on 2-3 cores, 1 on one, else cores / 2.
int default_slots(int num_cores);

// N slots of floor(cores / N) cores each; more slots than cores share them in turn. 0 = default.
Result<std::vector<Slot>> make_slots(const std::vector<int>& cores, int num_slots);

std::string host_name();
std::string boot_id();

}  // namespace ymir
