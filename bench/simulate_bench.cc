// What a simulation by the rules of a public simulator takes:
//
//   simulate_bench [--data DIR] [--repeat N] [FILTER]
//
// DIR holds traces/ and profiles/ (default: ../shared/data beside the sources). Prints, for each
// policy whose name contains FILTER and each trace, the median CPU time over N runs (default 5):
// machines are shared. The reading of the trace is not counted, that of the profiles is.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "ymir/base/text.h"
#include "ymir/sim/artifact/artifact.h"

namespace {

using ymir::artifact::Options;
using ymir::artifact::Policy;

struct Input {
  std::string format{}, trace{}, profiles{};
  int nodes = 0;
};

const std::vector<Input> kInputs = {
    {"titan", "titan/FM-1-roberta-base", "titan", 8},
    {"titan", "titan/FM-1-roberta-large", "titan", 8},
    {"titan", "titan/FM-1-vit", "titan", 8},
    {"titan", "titan/FM-1-vit-large", "titan", 8},
    {"titan", "titan/FM-2-vit", "titan", 8},
    {"tiresias", "tiresias/60_job", "", 4},
    {"tiresias", "tiresias/200_job", "", 4},
    {"pollux", "pollux/workloads/workload-1", "pollux", 16},
    {"pollux", "pollux/workloads/workload-6", "pollux", 16},
};

double cpu_ms() { return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Median CPU time of `repeat` runs, or what went wrong.
ymir::Result<double> measure(const Policy& policy, const ymir::Trace& trace, const Options& options,
                             int repeat) {
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    const double begin = cpu_ms();
    const auto run = policy.run(trace, options);
    if (!run) return run.error();
    times.push_back(cpu_ms() - begin);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::string data = YMIR_SOURCE_DIR "/../shared/data", filter;
  int repeat = 5;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--data" && i + 1 < argc) {
      data = argv[++i];
    } else if (word == "--repeat" && i + 1 < argc) {
      repeat = static_cast<int>(
          std::clamp<std::int64_t>(ymir::parse_int(argv[++i]).value_or(5), 1, 1000));
    } else {
      filter = word;
    }
  }
  if (!std::filesystem::exists(data)) {
    fmt::print(stderr, "no data: {}\n", data);
    return 2;
  }
  fmt::print("{:<24}{:<30}{:>8}{:>10}\n", "policy", "trace", "jobs", "CPU ms");
  for (const Input& input : kInputs) {
    const auto trace = ymir::read_trace(input.format, data + "/traces/" + input.trace + ".csv");
    if (!trace) {
      fmt::print(stderr, "{}\n", trace.error().message);
      return 2;
    }
    for (const Policy& policy : ymir::artifact::policies()) {
      if (policy.format != input.format || policy.name.find(filter) == std::string::npos) continue;
      const auto ms = measure(policy, *trace,
                              {.nodes = input.nodes,
                               .gpus_per_node = 4,
                               .profiles = data + "/profiles/" + input.profiles},
                              repeat);
      fmt::print("{:<24}{:<30}{:>8}{:>10}\n", policy.name, input.trace, trace->jobs.size(),
                 ms ? fmt::format("{:.2f}", *ms) : ms.error().message);
    }
  }
}
