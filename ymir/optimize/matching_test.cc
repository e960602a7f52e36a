#include "ymir/optimize/matching.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ymir/base/rng.h"
#include "ymir/optimize/matching_oracle.h"
#include "ymir/optimize/test_instances.h"

namespace ymir {
namespace {

std::int64_t weight_of(const Matching& matching) {
  std::int64_t sum = 0;
  for (int v = 0; v < matching.num_vertices(); ++v) {
    const int e = matching.partner_edge(v);
    if (e >= 0 && matching.edge_u(e) == v) sum += matching.weight(e);
  }
  return sum;
}

// Empty when every invariant of the header holds.
std::string broken_invariant(const Matching& matching) {
  for (int e = 0; e < matching.num_edges(); ++e) {
    const int u = matching.edge_u(e), v = matching.edge_v(e);
    const std::int64_t slack =
        matching.dual(u) + matching.dual(v) + matching.set_price(u, v) - matching.weight(e);
    if (slack < 0) return "edge undercut";
    if (matching.partner_edge(u) == e && matching.partner_edge(v) != e) return "one-sided pair";
    if (matching.partner_edge(u) == e && slack != 0) return "matched edge not tight";
    if (matching.partner_edge(u) == e && matching.weight(e) <= 0) return "worthless edge matched";
  }
  for (int v = 0; v < matching.num_vertices(); ++v) {
    if (matching.dual(v) < 0) return "negative dual";
    if (matching.partner_edge(v) < 0 && matching.dual(v) != 0) return "exposed with a price";
  }
  for (const OddSet& set : matching.odd_sets()) {
    if (set.price <= 0 || set.price % 2 != 0 || set.jobs.size() % 2 == 0) return "bad odd set";
    std::size_t inside = 0;
    for (const int v : set.jobs) {
      inside += std::binary_search(set.jobs.begin(), set.jobs.end(), matching.partner(v));
    }
    if (inside != set.jobs.size() - 1) return "odd set not full";
  }
  return weight_of(matching) == matching.dual_value() ? "" : "weight and bound differ";
}

struct Graph {
  int n = 0;
  std::vector<WeightedEdge> edges;
};

Graph random_graph(Rng& rng) {
  Graph graph{static_cast<int>(rng.between(2, 30)), {}};
  const std::int64_t most = std::int64_t{2} * (rng.chance(0.4) ? 3 : rng.chance(0.5) ? 40 : 100000);
  const std::int64_t count = rng.between(1, graph.n * 3);
  for (std::int64_t k = 0; k < count; ++k) {
    const int u = static_cast<int>(rng.between(0, graph.n - 1));
    const int v = static_cast<int>(rng.between(0, graph.n - 1));
    if (u != v) graph.edges.push_back({u, v, 2 * rng.between(-1, most / 2)});
  }
  return graph;
}

void load(Matching& matching, const Graph& graph) {
  matching.reset(graph.n);
  for (const WeightedEdge& e : graph.edges)
    matching.set_weight(matching.add_edge(e.u, e.v), e.weight);
}

// One arbitrary change of the graph, made in both places.
void change(Rng& rng, Graph& graph, Matching& matching) {
  switch (rng.below(4)) {
    case 0:  // all weights drift
      for (std::size_t k = 0; k < graph.edges.size(); ++k) {
        graph.edges[k].weight += 2 * rng.between(-3, 3);
        matching.set_weight(static_cast<int>(k), graph.edges[k].weight);
      }
      break;
    case 1: {  // an edge appears
      const int u = static_cast<int>(rng.between(0, graph.n - 1));
      const int v = (u + 1 + static_cast<int>(rng.between(0, graph.n - 2))) % graph.n;
      graph.edges.push_back({u, v, 2 * rng.between(0, 50)});
      matching.set_weight(matching.add_edge(u, v), graph.edges.back().weight);
      break;
    }
    case 2: {  // a vertex appears, with edges
      const int v = graph.n++;
      EXPECT_EQ(matching.add_vertex(), v);
      for (int k = 0; k < 3; ++k) {
        const int u = static_cast<int>(rng.between(0, v - 1));
        graph.edges.push_back({u, v, 2 * rng.between(0, 100)});
        matching.set_weight(matching.add_edge(u, v), graph.edges.back().weight);
      }
      break;
    }
    default: {  // a vertex goes: its edges are worth nothing from now on
      const int gone = static_cast<int>(rng.between(0, graph.n - 1));
      for (std::size_t k = 0; k < graph.edges.size(); ++k) {
        WeightedEdge& e = graph.edges[k];
        if (e.u != gone && e.v != gone && !rng.chance(0.05)) continue;
        e.weight = 0;
        matching.set_weight(static_cast<int>(k), 0);
      }
    }
  }
}

TEST(Matching, KeepsItsInvariantsAndEqualsTheOracleColdAndAfterEveryChange) {
  if (!have_matching_oracle()) GTEST_SKIP() << "LEMON is not installed (liblemon-dev)";
  Rng rng(7);
  int graphs = 0;

  for (int k = 0; k < rounds(1500, 25000); ++k) {
    Graph graph = random_graph(rng);
    Matching matching;
    load(matching, graph);
    for (int step = 0; step < 4; ++step) {
      if (step > 0) change(rng, graph, matching);
      ASSERT_TRUE(matching.run());
      ASSERT_EQ(broken_invariant(matching), "") << "graph " << k << " step " << step;
      ASSERT_EQ(weight_of(matching), oracle_matching_weight(graph.n, graph.edges)) << "graph " << k;
      ++graphs;
    }
  }

  RecordProperty("graphs", graphs);
}

TEST(Matching, NeedsNoOracleToProveItselfOnLargerGraphs) {
  Rng rng(11);

  for (int k = 0; k < rounds(20, 400); ++k) {
    Graph graph{300, {}};
    for (int e = 0; e < 1200; ++e) {
      const int u = static_cast<int>(rng.between(0, 299)),
                v = static_cast<int>(rng.between(0, 299));
      if (u != v) graph.edges.push_back({u, v, 2 * rng.between(1, 1000)});
    }
    Matching matching;
    load(matching, graph);
    for (int step = 0; step < 5; ++step) {
      if (step > 0) change(rng, graph, matching);
      ASSERT_TRUE(matching.run());
      ASSERT_EQ(broken_invariant(matching), "") << "graph " << k << " step " << step;
    }
  }
}

TEST(Matching, StartsFromDualsOfAnEarlierSolve) {
  Rng rng(3);
  Graph graph = random_graph(rng);
  Matching first, second;
  load(first, graph);
  ASSERT_TRUE(first.run());
  const std::int64_t best = weight_of(first);

  first.dissolve();
  load(second, graph);
  for (int v = 0; v < graph.n; ++v) second.set_dual(v, first.dual(v));
  ASSERT_TRUE(second.run());

  EXPECT_EQ(weight_of(second), best);
  EXPECT_EQ(broken_invariant(second), "");
}

TEST(Matching, LeavesAValidMatchingWhenStopped) {
  Rng rng(5);
  Graph graph = random_graph(rng);
  Matching matching;
  load(matching, graph);

  const bool finished = matching.run([] { return true; });

  for (int v = 0; v < graph.n; ++v) {
    const int u = matching.partner(v);
    EXPECT_TRUE(u < 0 || matching.partner(u) == v);
  }
  EXPECT_TRUE(matching.run());
  EXPECT_EQ(broken_invariant(matching), "") << finished;
}

TEST(Matching, AnOddCycleOfEqualPairsGetsAPriceOfItsOwn) {
  Matching matching;
  matching.reset(5);
  for (int v = 0; v < 5; ++v) matching.set_weight(matching.add_edge(v, (v + 1) % 5), 10);

  ASSERT_TRUE(matching.run());

  EXPECT_EQ(weight_of(matching), 20);
  EXPECT_EQ(broken_invariant(matching), "");
  EXPECT_EQ(matching.dual_value(), 20);
}

TEST(MatchingDeathTest, RefusesAnOddWeight) {
  Matching matching;
  matching.reset(2);
  const int edge = matching.add_edge(0, 1);

  EXPECT_DEATH(matching.set_weight(edge, 3), "odd weight");
}

}  // namespace
}  // namespace ymir
