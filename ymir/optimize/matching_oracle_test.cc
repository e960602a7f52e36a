// LEMON behind a plain function. Compiled as C++17: its headers use std::allocator::construct,
// which C++20 has dropped.
#include "ymir/optimize/matching_oracle.h"

#if __has_include(<lemon/matching.h>)
#define YMIR_HAVE_LEMON 1
#include <lemon/matching.h>
#include <lemon/smart_graph.h>
#endif

namespace ymir {

#ifdef YMIR_HAVE_LEMON

bool have_matching_oracle() { return true; }

std::int64_t oracle_matching_weight(int num_vertices, const std::vector<WeightedEdge>& edges) {
  lemon::SmartGraph graph;
  for (int v = 0; v < num_vertices; ++v) graph.addNode();
  lemon::SmartGraph::EdgeMap<long long> weight(graph);
  for (const WeightedEdge& e : edges) {
    // Edges that bring nothing are left out: the oracle need not treat them as we do.
    if (e.weight > 0)
      weight[graph.addEdge(graph.nodeFromId(e.u), graph.nodeFromId(e.v))] = e.weight;
  }
  lemon::MaxWeightedMatching<lemon::SmartGraph, lemon::SmartGraph::EdgeMap<long long>> matching(
      graph, weight);
  matching.run();
  return matching.matchingWeight();
}

#else

bool have_matching_oracle() { return false; }
std::int64_t oracle_matching_weight(int, const std::vector<WeightedEdge>&) { return 0; }

#endif

}  // namespace ymir
