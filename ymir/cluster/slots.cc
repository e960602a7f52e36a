#include "ymir/cluster/slots.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "ymir/base/file.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

int read_number(const std::string& path) {
  const auto text = read_file(path, 4096);
  return text ? static_cast<int>(parse_int(trim(*text)).value_or(0)) : 0;
}

}  // namespace

std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<std::tuple<int, int, int>> cores;  // package, physical core, number
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) {
        const auto topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
        cores.emplace_back(read_number(topology + "physical_package_id"),
                           read_number(topology + "core_id"), cpu);
      }
  std::sort(cores.begin(), cores.end());
  std::vector<int> numbers;
  for (const auto& core : cores) numbers.push_back(std::get<2>(core));
  if (numbers.empty()) numbers.push_back(0);
  return numbers;
}

int default_slots(int num_cores) {
  if (num_cores <= 3) return std::clamp(num_cores, 1, 2);
  return num_cores / 2;
}

Result<std::vector<Slot>> make_slots(const std::vector<int>& cores, int num_slots) {
  const int num_cores = static_cast<int>(cores.size());
  YMIR_CHECK(num_cores > 0, "a node without cores");
  if (num_slots == 0) num_slots = default_slots(num_cores);
  if (num_slots < 0 || num_slots > 1024)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("slots: must be between 1 and 1024: {}", num_slots)};
  const int each = std::max(1, num_cores / num_slots);
  std::vector<Slot> slots;
  for (int slot = 0; slot < num_slots; ++slot) {
    Slot made;
    for (int i = 0; i < each; ++i)
      made.cores.push_back(cores[static_cast<std::size_t>((slot * each + i) % num_cores)]);
    slots.push_back(std::move(made));
  }
  return slots;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string boot_id() {
  const auto text = read_file("/proc/sys/kernel/random/boot_id", 4096);
  return text ? std::string(trim(*text)) : "";
}

}  // namespace ymir
