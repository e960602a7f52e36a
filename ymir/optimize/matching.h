// Matching: maximum-weight matching in a general graph, exact, in integers, warm-startable.
//
// Primal-dual: vertex duals y >= 0 and odd-set duals z >= 0 with y_u + y_v + sum of z over the odd
// sets that hold both >= weight. run() grows one alternating tree at a time from an exposed vertex
// with y > 0 until it meets another exposed vertex or a dual reaches 0, so a search stays local and
// a run after small changes costs little.
//
// After every run: matched edges are tight, exposed vertices have y = 0, a set with z > 0 is full
// (it holds (size - 1) / 2 matched pairs); so the weight of the matching equals sum y + sum z *
// (size - 1) / 2, and both are optimal. Weights must be even: that keeps every dual an integer and
// every z even. Edges of weight <= 0 are never matched. One thread; memory is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "ymir/optimize/solution.h"

namespace ymir {

class Matching {
 public:
  void reset(int num_vertices);  // no edges, no duals
  int add_vertex();              // returns its number; odd sets are dissolved
  int add_edge(int u, int v);    // weight 0; returns its number, counted from 0
  void set_weight(int edge, std::int64_t even_weight);
  // A hint from an earlier solve, y >= 0, before the first run: it starts from all duals set so.
  void set_dual(int v, std::int64_t y) {
    y_[v] = y;
    cold_ = false;
  }
  // Optimum for the present weights, starting from the duals and the matching left by the last
  // run. `stopped` is asked between searches; when it says yes, false is returned and the matching
  // is valid but not optimal.
  bool run(const std::function<bool()>& stopped = {});

  int num_vertices() const { return n_; }
  int num_edges() const { return static_cast<int>(edges_.size()); }
  int edge_u(int edge) const { return edges_[edge].u; }
  int edge_v(int edge) const { return edges_[edge].v; }
  std::int64_t weight(int edge) const { return weight_[edge]; }
  int partner_edge(int v) const { return mate_[v]; }  // -1: exposed
  int partner(int v) const { return mate_[v] < 0 ? -1 : other(mate_[v], v); }
  std::int64_t dual(int v) const { return y_[v]; }
  std::int64_t dual_value() const;
  // Sum of z over the odd sets that hold both.
  std::int64_t set_price(int u, int v) const;
  bool same_set(int u, int v) const { return top_[u] == top_[v]; }
  // The sets with z > 0 around v, innermost first, as ids; price and members by id.
  int parent_set(int node) const { return parent_[node]; }
  std::int64_t price_of_set(int set) const { return z_[set]; }
  std::vector<OddSet> odd_sets() const;
  // Puts the odd sets into the duals (still feasible), so that duals alone can be stored.
  void dissolve();
  std::int64_t searches() const { return searches_; }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  enum Label : std::int8_t { kFree, kEven, kOdd };
  enum EventKind : std::int32_t { kDualZero, kEdgeTight, kSetEmpty };
  struct Edge {
    std::int32_t u = 0, v = 0;
  };
  struct Arc {
    std::int32_t to = 0, edge = 0;
  };
  struct Event {
    std::int64_t time = 0;
    EventKind kind = kDualZero;
    std::int32_t id = 0;
  };
  struct Cycle {  // edges[k] joins children[k] and children[k + 1]; children[0] holds the base
    std::vector<std::int32_t> children, edges;
    std::int32_t base = -1;
  };

  int other(int edge, int v) const { return edges_[edge].u ^ edges_[edge].v ^ v; }
  int base(int node) const { return node < n_ ? node : cycles_[node - n_].base; }
  bool in_use(int node) const { return node < n_ || !cycles_[node - n_].children.empty(); }
  template <class F>
  void each_vertex(int node, const F& visit) const;
  std::int64_t y_now(int v) const;
  std::int64_t slack(int edge) const;
  void clear_sets();
  void build_arcs();
  void start_cold();
  void repair();
  void lower_exposed();
  void unmatch(int v);
  void push(std::int64_t time, EventKind kind, int id);
  void search(int root);
  bool handle(const Event& event);
  bool edge_became_tight(int edge);
  void settle(int node);
  void make_even(int node, int entry_edge);
  void make_odd(int node, int entry_edge, int entry_vertex);
  void grow(int edge, int v);
  void scan_duals(int node);
  void scan_arcs(int node);
  void look_at(const Arc& arc, int even_vertex);
  int even_above(int even_node) const;
  int odd_above(int even_node) const;
  int common_ancestor(int a, int b);
  int new_set();
  void shrink(int edge);
  void expand(int set);
  void rebase(int node, int v);
  void augment(int even_vertex, int edge);

  int n_ = 0;
  bool cold_ = true, arcs_dirty_ = true;
  std::vector<Edge> edges_;
  std::vector<std::int64_t> weight_;
  std::vector<std::int32_t> arc_begin_;
  std::vector<Arc> arcs_;
  std::vector<std::int64_t> y_;
  std::vector<std::int32_t> mate_, top_;
  // By node: vertices, then sets.
  std::vector<std::int32_t> parent_, entry_edge_, entry_vertex_, mark_;
  std::vector<std::int8_t> label_;
  std::vector<std::int64_t> z_, since_;  // since_: time up to which the duals are written
  std::vector<Cycle> cycles_;
  std::vector<std::int32_t> free_sets_;
  // The search going on.
  std::vector<Event> heap_;
  std::vector<std::int32_t> touched_, fresh_;
  std::int64_t now_ = 0, horizon_ = 0;  // events later than a known end of the search are dropped
  int mark_id_ = 0;
  std::int64_t searches_ = 0;
};

}  // namespace ymir
