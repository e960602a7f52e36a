#include "ymir/sim/artifact/pollux/genetic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace ymir::artifact::pollux {
namespace {

using Worth = GeneticProblem::Worth;

// Uniform 32-bit draws: number i of this round of this seed.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint32_t round) : seed_(seed), round_(round) {}
  std::uint32_t next() {
    if (used_ == 4) {
      block_ = philox(seed_, {static_cast<std::uint32_t>(count_),
                              static_cast<std::uint32_t>(count_ >> 32), round_, kPollux});
      ++count_;
      used_ = 0;
    }
    return block_[used_++];
  }
  bool chance(double p) { return next() < p * 0x1p32; }
  // In [0, n); the bias of n / 2^32 is of no account here.
  int below(int n) {
    return static_cast<int>(std::uint64_t{next()} * static_cast<std::uint64_t>(n) >> 32);
  }

 private:
  static constexpr std::uint32_t kPollux = 0x504f4c58;  // tells it from other policies' draws
  std::uint64_t seed_, count_ = 0;
  std::uint32_t round_;
  PhiloxBlock block_{};
  unsigned used_ = 4;
};

struct Member {
  Allocation genes{};
  Worth worth{};
  int rank = 0;
  double crowding = 0;
};

bool better(const Member& a, const Member& b) {
  return a.rank != b.rank ? a.rank < b.rank : a.crowding > b.crowding;
}

class Search {
 public:
  Search(const GeneticProblem& problem, const GeneticOptions& options)
      : problem_(problem),
        options_(options),
        draws_(options.seed, options.round),
        jobs_(static_cast<std::size_t>(problem.jobs)),
        nodes_(static_cast<std::size_t>(problem.nodes)),
        order_(nodes_) {
    std::iota(order_.begin(), order_.end(), 0);
  }

  GeneticResult run(std::vector<Allocation> start) {
    for (Allocation& genes : start) add(std::move(genes), members_);
    select();
    for (int generation = 0; generation < options_.generations; ++generation) {
      std::vector<Member> young;
      for (int pair = 0; pair < (options_.population + 1) / 2; ++pair) mate(young);
      std::move(young.begin(), young.end(), std::back_inserter(members_));
      select();
    }
    GeneticResult result;
    std::size_t best = 0;
    for (std::size_t i = 1; i < members_.size(); ++i) {
      const Worth &a = members_[i].worth, &b = members_[best].worth;
      if (a.fitness > b.fitness || (a.fitness == b.fitness && a.utility > b.utility)) best = i;
    }
    result.best = members_[best].genes;
    for (Member& member : members_) result.population.push_back(std::move(member.genes));
    return result;
  }

 private:
  // Repairs, refuses what was there before, and values.
  void add(Allocation genes, std::vector<Member>& to) {
    for (std::size_t i = nodes_; i > 1; --i)
      std::swap(order_[i - 1], order_[static_cast<std::size_t>(draws_.below(static_cast<int>(i)))]);
    repair(problem_, order_, genes);
    const std::string_view bytes(reinterpret_cast<const char*>(genes.data()), genes.size());
    if (!seen_.insert(std::hash<std::string_view>{}(bytes)).second) return;
    const Worth worth = problem_.worth(genes);
    to.push_back({.genes = std::move(genes), .worth = worth});
  }

  void mate(std::vector<Member>& young) {
    Allocation a = tournament().genes, b = tournament().genes;
    if (draws_.chance(options_.crossover)) {
      const auto cut = static_cast<std::ptrdiff_t>(nodes_) * draws_.below(problem_.jobs + 1);
      std::swap_ranges(a.begin() + cut, a.end(), b.begin() + cut);
    }
    for (Allocation* genes : {&a, &b}) {
      mutate(*genes);
      add(std::move(*genes), young);
    }
  }

  const Member& tournament() {
    const int size = static_cast<int>(members_.size());
    const Member& a = members_[static_cast<std::size_t>(draws_.below(size))];
    const Member& b = members_[static_cast<std::size_t>(draws_.below(size))];
    return better(b, a) ? b : a;
  }

  void mutate(Allocation& genes) {
    for (std::size_t j = 0; j < jobs_; ++j) {
      const auto row = static_cast<std::ptrdiff_t>(j * nodes_);
      const auto width = static_cast<std::ptrdiff_t>(nodes_);
      if (draws_.chance(0.1))
        std::copy_n(problem_.current.begin() + row, width, genes.begin() + row);
      if (draws_.chance(0.1))
        for (std::ptrdiff_t n = 0; n < width; ++n)
          if (draws_.chance(0.1)) genes[static_cast<std::size_t>(row + n)] = 0;
    }
    for (std::size_t n = 0; n < nodes_; ++n) {
      int used = 0, on_it = 0;
      for (std::size_t j = 0; j < jobs_; ++j) {
        used += genes[j * nodes_ + n];
        on_it += genes[j * nodes_ + n] > 0;
      }
      if (used >= problem_.gpus_per_node) continue;
      const double any = 1.0 / problem_.jobs, there = on_it > 0 ? 1.0 / on_it : 0;
      const double raised = any + there - any * there;
      for (std::size_t j = 0; j < jobs_; ++j) {
        std::uint8_t& gpus = genes[j * nodes_ + n];
        if (!draws_.chance(gpus > 0 ? raised : any)) continue;
        gpus = static_cast<std::uint8_t>(gpus + draws_.below(problem_.gpus_per_node - gpus + 1));
      }
    }
  }

  // Keeps the best `population` by front, and by distance to their neighbours in the last one.
  void select() {
    std::vector<Worth> worths;
    for (const Member& member : members_) worths.push_back(member.worth);
    const std::vector<int> ranks = front_ranks(worths);
    std::vector<std::vector<std::size_t>> fronts;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      members_[i].rank = ranks[i];
      fronts.resize(std::max(fronts.size(), static_cast<std::size_t>(ranks[i]) + 1));
      fronts[static_cast<std::size_t>(ranks[i])].push_back(i);
    }
    for (const auto& front : fronts) crowd(front);
    std::stable_sort(members_.begin(), members_.end(), better);
    const auto size = static_cast<std::size_t>(options_.population);
    if (members_.size() > size)
      members_.erase(members_.begin() + options_.population, members_.end());
    remember();
  }

  void crowd(std::vector<std::size_t> front) {
    for (const std::size_t i : front) members_[i].crowding = 0;
    for (double Worth::* objective : {&Worth::fitness, &Worth::utility}) {
      const auto of = [&](std::size_t i) { return members_[i].worth.*objective; };
      std::stable_sort(front.begin(), front.end(),
                       [&](std::size_t a, std::size_t b) { return of(a) < of(b); });
      const double range = of(front.back()) - of(front.front());
      members_[front.front()].crowding = members_[front.back()].crowding =
          std::numeric_limits<double>::infinity();
      for (std::size_t k = 1; k + 1 < front.size() && range > 0; ++k)
        members_[front[k]].crowding += (of(front[k + 1]) - of(front[k - 1])) / range;
    }
  }

  // Only the living count as seen: a lost allocation may come back.
  void remember() {
    seen_.clear();
    for (const Member& member : members_)
      seen_.insert(std::hash<std::string_view>{}(std::string_view(
          reinterpret_cast<const char*>(member.genes.data()), member.genes.size())));
  }

  const GeneticProblem& problem_;
  const GeneticOptions& options_;
  Draws draws_;
  std::size_t jobs_, nodes_;
  std::vector<int> order_;
  std::vector<Member> members_;
  std::unordered_set<std::size_t> seen_;
};

}  // namespace

std::vector<int> front_ranks(const std::vector<Worth>& worths) {
  std::vector<std::size_t> order(worths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Worth &x = worths[a], &y = worths[b];
    return x.fitness != y.fitness ? x.fitness > y.fitness : x.utility > y.utility;
  });
  // In this order a front's last member is the one that dominates the next point, if any does.
  std::vector<int> rank(worths.size(), 0);
  std::vector<Worth> last;
  for (const std::size_t i : order) {
    const Worth& worth = worths[i];
    const auto open = std::partition_point(last.begin(), last.end(), [&](const Worth& l) {
      return l.utility > worth.utility || (l.utility == worth.utility && l.fitness > worth.fitness);
    });
    rank[i] = static_cast<int>(open - last.begin());
    if (open == last.end())
      last.push_back(worth);
    else
      *open = worth;
  }
  return rank;
}

void repair(const GeneticProblem& problem, const std::vector<int>& order, Allocation& allocation) {
  const auto jobs = static_cast<std::size_t>(problem.jobs);
  const auto nodes = static_cast<std::size_t>(problem.nodes);
  std::vector<bool> spanned(nodes, false);
  for (std::size_t j = 0; j < jobs; ++j) {
    std::uint8_t* row = &allocation[j * nodes];
    if (nodes - static_cast<std::size_t>(std::count(row, row + nodes, 0)) < 2) continue;
    for (std::size_t n = 0; n < nodes; ++n) {
      if (row[n] == 0) continue;
      if (spanned[n]) row[n] = 0;
      spanned[n] = true;
    }
  }
  for (std::size_t j = 0; j < jobs; ++j) {
    std::uint8_t* row = &allocation[j * nodes];
    int left = problem.caps[j], places = problem.max_nodes;
    for (const int node : order) {
      std::uint8_t& gpus = row[node];
      if (gpus == 0) continue;
      gpus = places > 0 ? static_cast<std::uint8_t>(std::min<int>(gpus, left)) : std::uint8_t{0};
      left -= gpus;
      places -= gpus > 0;
    }
  }
  for (std::size_t n = 0; n < nodes; ++n) {
    int left = problem.gpus_per_node;
    for (std::size_t j = 0; j < jobs; ++j) {
      std::uint8_t& gpus = allocation[j * nodes + n];
      gpus = static_cast<std::uint8_t>(std::min<int>(gpus, left));
      left -= gpus;
    }
  }
}

GeneticResult search(const GeneticProblem& problem, std::vector<Allocation> start,
                     const GeneticOptions& options) {
  return Search(problem, options).run(std::move(start));
}

}  // namespace ymir::artifact::pollux
