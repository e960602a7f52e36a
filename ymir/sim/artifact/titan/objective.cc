#include "ymir/sim/artifact/titan/objective.h"

#include <cmath>
#include <cstddef>
#include <limits>

namespace ymir::artifact::titan {
namespace {

constexpr double kEqual = 1e-9;

struct Best {  // of the jobs from one on, within a budget
  double cost = std::numeric_limits<double>::infinity();
  int total = 0;
  int gpus = 0;  // of the first of them
};

bool better(const Best& a, const Best& b, Ties ties) {
  if (std::isinf(b.cost) || a.cost < b.cost - kEqual) return true;
  if (a.cost > b.cost + kEqual) return false;
  return ties == Ties::kFewest ? a.total < b.total : a.total > b.total;
}

}  // namespace

std::vector<int> cheapest(const std::vector<std::vector<Choice>>& choices, int budget, Ties ties) {
  const auto width = static_cast<std::size_t>(budget) + 1;
  const std::size_t num_jobs = choices.size();
  std::vector<Best> best((num_jobs + 1) * width);
  for (std::size_t b = 0; b < width; ++b) best[num_jobs * width + b].cost = 0;
  for (std::size_t job = num_jobs; job-- > 0;)
    for (std::size_t b = 0; b < width; ++b) {
      Best& here = best[job * width + b];
      for (const Choice& choice : choices[job]) {
        const auto gpus = static_cast<std::size_t>(choice.gpus);
        if (gpus > b) break;
        const Best& rest = best[(job + 1) * width + b - gpus];
        const Best candidate{rest.cost + choice.cost, rest.total + choice.gpus, choice.gpus};
        if (better(candidate, here, ties)) here = candidate;
      }
    }
  std::vector<int> counts;
  std::size_t left = width - 1;
  for (std::size_t job = 0; job < num_jobs; ++job) {
    counts.push_back(best[job * width + left].gpus);
    left -= static_cast<std::size_t>(counts.back());
  }
  return counts;
}

}  // namespace ymir::artifact::titan
