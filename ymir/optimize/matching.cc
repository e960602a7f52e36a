#include "ymir/optimize/matching.h"

#include <algorithm>

#include "ymir/base/result.h"

namespace ymir {
namespace {

int wrap(int k, int length) { return k < 0 ? k + length : k >= length ? k - length : k; }

}  // namespace

void Matching::reset(int num_vertices) {
  n_ = num_vertices;
  cold_ = arcs_dirty_ = true;
  edges_.clear();
  weight_.clear();
  y_.assign(n_, 0);
  mate_.assign(n_, -1);
  top_.resize(n_);
  clear_sets();
}

int Matching::add_vertex() {
  dissolve();
  y_.push_back(0);
  mate_.push_back(-1);
  top_.push_back(n_);
  ++n_;
  arcs_dirty_ = true;
  clear_sets();
  return n_ - 1;
}

int Matching::add_edge(int u, int v) {
  YMIR_CHECK(u != v && u >= 0 && v >= 0 && u < n_ && v < n_, "bad edge");
  edges_.push_back({u, v});
  weight_.push_back(0);
  arcs_dirty_ = true;
  return num_edges() - 1;
}

void Matching::set_weight(int edge, std::int64_t even_weight) {
  YMIR_CHECK((even_weight & 1) == 0, "odd weight");
  weight_[edge] = even_weight;
}

template <class F>
void Matching::each_vertex(int node, const F& visit) const {
  if (node < n_) {
    visit(node);
  } else {
    for (const int child : cycles_[node - n_].children) each_vertex(child, visit);
  }
}

std::int64_t Matching::y_now(int v) const {
  const int node = top_[v];
  if (label_[node] == kEven) return y_[v] - (now_ - since_[node]);
  if (label_[node] == kOdd) return y_[v] + (now_ - since_[node]);
  return y_[v];
}

// Only for edges between different outermost sets.
std::int64_t Matching::slack(int edge) const {
  return y_now(edges_[edge].u) + y_now(edges_[edge].v) - weight_[edge];
}

void Matching::build_arcs() {
  arc_begin_.assign(n_ + 1, 0);
  for (const Edge& e : edges_) {
    ++arc_begin_[e.u];
    ++arc_begin_[e.v];
  }
  std::int32_t sum = 0;
  for (int v = 0; v <= n_; ++v) {
    sum += arc_begin_[v];
    arc_begin_[v] = sum;
  }
  arcs_.resize(2 * edges_.size());
  for (int k = num_edges() - 1; k >= 0; --k) {
    arcs_[--arc_begin_[edges_[k].u]] = {edges_[k].v, k};
    arcs_[--arc_begin_[edges_[k].v]] = {edges_[k].u, k};
  }
  arcs_dirty_ = false;
}

bool Matching::run(const std::function<bool()>& stopped) {
  if (arcs_dirty_) build_arcs();
  if (cold_) {
    start_cold();
  } else {
    repair();
  }
  cold_ = false;
  lower_exposed();
  for (int v = 0; v < n_; ++v) {
    // A search leaves another vertex exposed only with y = 0, so one pass is enough.
    const int node = top_[v];
    if (base(node) != v || mate_[v] >= 0 || y_[v] == 0) continue;
    if (stopped && (searches_ & 15) == 0 && stopped()) return false;
    search(v);
  }
  return true;
}

void Matching::start_cold() {
  for (int v = 0; v < n_; ++v) {
    for (int k = arc_begin_[v]; k < arc_begin_[v + 1]; ++k) {
      y_[v] = std::max(y_[v], weight_[arcs_[k].edge] / 2);
    }
  }
}

void Matching::unmatch(int v) {
  if (mate_[v] < 0) return;
  const int u = partner(v);
  mate_[u] = mate_[v] = -1;
}

// Makes the duals feasible and the matched edges tight for weights that have changed.
void Matching::repair() {
  dissolve();
  for (int v = 0; v < n_; ++v) {
    const int e = mate_[v];
    if (e < 0 || edges_[e].u != v) continue;
    const int u = edges_[e].v;
    if (weight_[e] <= 0) {
      unmatch(v);
      continue;
    }
    const std::int64_t change = weight_[e] - y_[u] - y_[v];
    const std::int64_t half = change / 2;
    y_[v] = std::clamp<std::int64_t>(y_[v] + half, 0, weight_[e]);
    y_[u] = weight_[e] - y_[v];
  }
  for (int e = 0; e < num_edges(); ++e) {
    const auto [u, v] = edges_[e];
    const std::int64_t missing = weight_[e] - y_[u] - y_[v];
    if (missing <= 0) continue;
    const int raised = mate_[u] < 0 ? u : mate_[v] < 0 ? v : u;
    unmatch(raised);
    y_[raised] += missing;
  }
}

// Lowers the duals of exposed vertices as far as they go and matches edges that become tight.
void Matching::lower_exposed() {
  for (int v = 0; v < n_; ++v) {
    if (mate_[v] >= 0 || y_[v] == 0) continue;
    std::int64_t room = y_[v];
    int found = -1;
    for (int k = arc_begin_[v]; k < arc_begin_[v + 1]; ++k) {
      const Arc& arc = arcs_[k];
      const std::int64_t gap = y_[v] + y_[arc.to] - weight_[arc.edge];
      if (gap > room) continue;
      if (gap < room) {
        room = gap;
        found = -1;
      }
      if (found < 0 && mate_[arc.to] < 0) found = arc.edge;
    }
    y_[v] -= room;
    if (found >= 0 && weight_[found] > 0) mate_[v] = mate_[other(found, v)] = found;
  }
}

void Matching::dissolve() {
  for (int k = 0; k < static_cast<int>(cycles_.size()); ++k) {
    const int set = n_ + k;
    if (!in_use(set)) continue;
    if (const std::int64_t half = z_[set] / 2; half > 0) {
      each_vertex(set, [&](int v) { y_[v] += half; });
    }
  }
  clear_sets();
}

void Matching::clear_sets() {
  free_sets_.clear();
  for (int k = static_cast<int>(cycles_.size()) - 1; k >= 0; --k) {
    cycles_[k].children.clear();
    cycles_[k].edges.clear();
    free_sets_.push_back(k);
  }
  const std::size_t nodes = n_ + cycles_.size();
  parent_.assign(nodes, -1);
  label_.assign(nodes, kFree);
  entry_edge_.assign(nodes, -1);
  entry_vertex_.assign(nodes, -1);
  z_.assign(nodes, 0);
  since_.assign(nodes, 0);
  mark_.assign(nodes, 0);
  mark_id_ = 0;
  for (int v = 0; v < n_; ++v) top_[v] = v;
}

// ------------------------------------------------------------------------------- one search

void Matching::push(std::int64_t time, EventKind kind, int id) {
  if (time > horizon_) return;
  heap_.push_back({time, kind, id});
  std::push_heap(heap_.begin(), heap_.end(),
                 [](const Event& a, const Event& b) { return a.time > b.time; });
}

void Matching::search(int root) {
  ++searches_;
  heap_.clear();
  touched_.clear();
  now_ = 0;
  horizon_ = kNever;
  make_even(top_[root], -1);
  for (bool ended = false; !ended;) {
    YMIR_CHECK(!heap_.empty(), "a search always ends");
    std::pop_heap(heap_.begin(), heap_.end(),
                  [](const Event& a, const Event& b) { return a.time > b.time; });
    const Event event = heap_.back();
    heap_.pop_back();
    now_ = event.time;
    ended = handle(event);
  }
  for (const int node : touched_) {
    if (parent_[node] != -1 || label_[node] == kFree) continue;
    settle(node);
    label_[node] = kFree;
  }
}

// True when the search has ended. Events may be out of date: each checks that it still holds.
bool Matching::handle(const Event& event) {
  switch (event.kind) {
    case kDualZero:
      if (label_[top_[event.id]] != kEven || y_now(event.id) != 0) return false;
      augment(event.id, -1);
      return true;
    case kSetEmpty:
      if (parent_[event.id] == -1 && label_[event.id] == kOdd &&
          z_[event.id] == 2 * (now_ - since_[event.id])) {
        expand(event.id);
      }
      return false;
    case kEdgeTight:
      return edge_became_tight(event.id);
  }
  return false;
}

bool Matching::edge_became_tight(int edge) {
  int u = edges_[edge].u, v = edges_[edge].v;
  if (top_[u] == top_[v]) return false;
  if (label_[top_[u]] != kEven) std::swap(u, v);
  const int far = top_[v];
  if (label_[top_[u]] != kEven || label_[far] == kOdd) return false;
  if (const std::int64_t left = slack(edge); left != 0) {  // the far end was odd for a while
    push(now_ + (label_[far] == kEven ? left / 2 : left), kEdgeTight, edge);
    return false;
  }
  if (label_[far] == kEven) {
    shrink(edge);
    return false;
  }
  if (mate_[base(far)] >= 0) {
    grow(edge, v);
    return false;
  }
  rebase(far, v);
  mate_[v] = edge;
  augment(u, edge);
  return true;
}

// Writes the lazy part of the duals of an outermost node.
void Matching::settle(int node) {
  const std::int64_t passed = now_ - since_[node];
  since_[node] = now_;
  if (label_[node] == kFree || passed == 0) return;
  const std::int64_t sign = label_[node] == kEven ? 1 : -1;
  each_vertex(node, [&](int v) { y_[v] -= sign * passed; });
  if (node >= n_) z_[node] += sign * 2 * passed;
}

void Matching::look_at(const Arc& arc, int even_vertex) {
  const int far = top_[arc.to];
  if (far == top_[even_vertex] || label_[far] == kOdd || weight_[arc.edge] <= 0) return;
  const std::int64_t left = slack(arc.edge);
  if (label_[far] == kEven) {
    push(now_ + left / 2, kEdgeTight, arc.edge);
    return;
  }
  push(now_ + left, kEdgeTight, arc.edge);
  if (mate_[base(far)] < 0) horizon_ = std::min(horizon_, now_ + left);
}

void Matching::scan_duals(int node) {
  each_vertex(node, [&](int v) {
    const std::int64_t end = now_ + y_now(v);
    horizon_ = std::min(horizon_, end);
    push(end, kDualZero, v);
  });
}

void Matching::scan_arcs(int node) {
  each_vertex(node, [&](int v) {
    for (int k = arc_begin_[v]; k < arc_begin_[v + 1]; ++k) look_at(arcs_[k], v);
  });
}

void Matching::make_even(int node, int entry_edge) {
  label_[node] = kEven;
  since_[node] = now_;
  entry_edge_[node] = entry_edge;
  touched_.push_back(node);
  scan_duals(node);
  scan_arcs(node);
}

void Matching::make_odd(int node, int entry_edge, int entry_vertex) {
  label_[node] = kOdd;
  since_[node] = now_;
  entry_edge_[node] = entry_edge;
  entry_vertex_[node] = entry_vertex;
  touched_.push_back(node);
  if (node >= n_) push(now_ + z_[node] / 2, kSetEmpty, node);
}

void Matching::grow(int edge, int v) {
  const int node = top_[v];
  make_odd(node, edge, v);
  const int matched = mate_[base(node)];
  make_even(top_[other(matched, base(node))], matched);
}

int Matching::odd_above(int even_node) const {
  return top_[other(entry_edge_[even_node], base(even_node))];
}

int Matching::even_above(int even_node) const {
  if (entry_edge_[even_node] < 0) return -1;
  const int odd = odd_above(even_node);
  return top_[other(entry_edge_[odd], entry_vertex_[odd])];
}

// Climbs from both ends in turn; the cost is the length of the cycle, not the depth of the tree.
int Matching::common_ancestor(int a, int b) {
  ++mark_id_;
  while (true) {
    if (a >= 0) {
      if (mark_[a] == mark_id_) return a;
      mark_[a] = mark_id_;
      a = even_above(a);
    }
    std::swap(a, b);
  }
}

int Matching::new_set() {
  if (free_sets_.empty()) {
    free_sets_.push_back(static_cast<std::int32_t>(cycles_.size()));
    cycles_.emplace_back();
    parent_.push_back(-1);
    label_.push_back(kFree);
    entry_edge_.push_back(-1);
    entry_vertex_.push_back(-1);
    mark_.push_back(0);
    z_.push_back(0);
    since_.push_back(0);
  }
  const int set = n_ + free_sets_.back();
  free_sets_.pop_back();
  return set;
}

// Two even nodes of the tree are joined by a tight edge: the cycle becomes one even node.
void Matching::shrink(int edge) {
  const int a = top_[edges_[edge].u], b = top_[edges_[edge].v];
  const int ancestor = common_ancestor(a, b);
  const int set = new_set();
  Cycle& cycle = cycles_[set - n_];
  for (int even = a; even != ancestor; even = even_above(even)) {
    const int odd = odd_above(even);
    cycle.children.insert(cycle.children.end(), {even, odd});
    cycle.edges.insert(cycle.edges.end(), {entry_edge_[even], entry_edge_[odd]});
  }
  cycle.children.push_back(ancestor);
  std::reverse(cycle.children.begin(), cycle.children.end());
  std::reverse(cycle.edges.begin(), cycle.edges.end());
  cycle.edges.push_back(edge);
  for (int even = b; even != ancestor; even = even_above(even)) {
    const int odd = odd_above(even);
    cycle.children.insert(cycle.children.end(), {even, odd});
    cycle.edges.insert(cycle.edges.end(), {entry_edge_[even], entry_edge_[odd]});
  }
  cycle.base = base(ancestor);

  for (const int child : cycle.children) settle(child);
  parent_[set] = -1;
  label_[set] = kEven;
  since_[set] = now_;
  entry_edge_[set] = entry_edge_[ancestor];
  z_[set] = 0;
  touched_.push_back(set);
  for (const int child : cycle.children) {
    parent_[child] = set;
    each_vertex(child, [&](int v) { top_[v] = set; });
  }
  // Odd children have become even: their vertices now shrink, and their edges are news.
  for (const int child : cycle.children) {
    if (label_[child] == kOdd) scan_duals(child);
  }
  for (const int child : cycle.children) {
    if (label_[child] == kOdd) scan_arcs(child);
    label_[child] = kFree;
  }
}

// The price of an odd set has reached 0: its cycle joins the tree in pieces.
void Matching::expand(int set) {
  settle(set);
  Cycle cycle;
  std::swap(cycle, cycles_[set - n_]);
  const int length = static_cast<int>(cycle.children.size());
  int entry = entry_edge_[set], vertex = entry_vertex_[set];
  label_[set] = kFree;
  parent_[set] = -2;
  free_sets_.push_back(set - n_);
  for (const int child : cycle.children) {
    parent_[child] = -1;
    label_[child] = kFree;
    since_[child] = now_;
    each_vertex(child, [&](int v) { top_[v] = child; });
  }
  // From the child the tree enters by to the base, the way round that has an even length.
  int k = 0;
  while (cycle.children[k] != top_[vertex]) ++k;
  const int step = k % 2 == 1 ? 1 : -1;
  const auto edge_after = [&](int at) {
    return cycle.edges[step == 1 ? at : wrap(at - 1, length)];
  };
  fresh_.clear();
  while (k != 0) {
    make_odd(cycle.children[k], entry, vertex);
    const int matched = edge_after(k);
    k = wrap(k + step, length);
    const int even = cycle.children[k];
    label_[even] = kEven;
    entry_edge_[even] = matched;
    touched_.push_back(even);
    fresh_.push_back(even);
    entry = edge_after(k);
    k = wrap(k + step, length);
    const Edge& e = edges_[entry];
    vertex = top_[e.u] == cycle.children[k] ? e.u : e.v;
  }
  make_odd(cycle.children[0], entry, vertex);
  for (const int even : fresh_) {
    scan_duals(even);
    scan_arcs(even);
  }
  // Children that fell out of the tree are free again: even vertices around may reach them.
  for (const int child : cycle.children) {
    if (label_[child] != kFree) continue;
    each_vertex(child, [&](int v) {
      for (int a = arc_begin_[v]; a < arc_begin_[v + 1]; ++a) {
        const int u = arcs_[a].to;
        if (label_[top_[u]] == kEven) look_at({v, arcs_[a].edge}, u);
      }
    });
  }
  cycle.children.clear();
  cycle.edges.clear();
  std::swap(cycle, cycles_[set - n_]);  // hands the memory back
}

// Makes v the base of the node and re-pairs the cycles inside, so that v can be matched outside.
void Matching::rebase(int node, int v) {
  if (node < n_) return;
  int child = v;
  while (parent_[child] != node) child = parent_[child];
  rebase(child, v);
  const int length = static_cast<int>(cycles_[node - n_].children.size());
  int at = 0;
  while (cycles_[node - n_].children[at] != child) ++at;
  const int step = at % 2 == 1 ? 1 : -1;
  const auto inside = [&](int vertex, int piece) {
    int x = vertex;
    while (parent_[x] != node) x = parent_[x];
    return x == piece;
  };
  for (int k = at; k != 0;) {
    const Cycle& cycle = cycles_[node - n_];
    const int one = wrap(k + step, length), two = wrap(one + step, length);
    const int edge = cycle.edges[step == 1 ? one : two];
    int u = edges_[edge].u, w = edges_[edge].v;
    if (!inside(u, cycle.children[one])) std::swap(u, w);
    rebase(cycle.children[one], u);
    rebase(cycle.children[two], w);
    mate_[u] = mate_[w] = edge;
    k = two;
  }
  Cycle& cycle = cycles_[node - n_];
  std::rotate(cycle.children.begin(), cycle.children.begin() + at, cycle.children.end());
  std::rotate(cycle.edges.begin(), cycle.edges.begin() + at, cycle.edges.end());
  cycle.base = v;
}

// Matches an even vertex by `edge` (-1: leaves it exposed) and flips the path up to the root.
void Matching::augment(int even_vertex, int edge) {
  while (true) {
    const int even = top_[even_vertex];
    const int entry = entry_edge_[even];
    const int old_base = base(even);
    rebase(even, even_vertex);
    mate_[even_vertex] = edge;
    if (entry < 0) return;
    const int odd = top_[other(entry, old_base)];
    const int up = entry_edge_[odd], vertex = entry_vertex_[odd];
    rebase(odd, vertex);
    mate_[vertex] = up;
    even_vertex = other(up, vertex);
    edge = up;
  }
}

// ---------------------------------------------------------------------------------- results

std::int64_t Matching::dual_value() const {
  std::int64_t sum = 0;
  for (int v = 0; v < n_; ++v) sum += y_[v];
  for (int set = n_; set < n_ + static_cast<int>(cycles_.size()); ++set) {
    if (!in_use(set) || z_[set] == 0) continue;
    std::int64_t size = 0;
    each_vertex(set, [&](int) { ++size; });
    sum += z_[set] * ((size - 1) / 2);
  }
  return sum;
}

std::int64_t Matching::set_price(int u, int v) const {
  if (top_[u] != top_[v]) return 0;
  std::int64_t sum = 0;
  for (int a = parent_[u]; a >= 0; a = parent_[a]) {
    if (z_[a] == 0) continue;
    int b = parent_[v];
    while (b >= 0 && b != a) b = parent_[b];
    if (b == a) sum += z_[a];
  }
  return sum;
}

std::vector<OddSet> Matching::odd_sets() const {
  std::vector<OddSet> sets;
  for (int set = n_; set < n_ + static_cast<int>(cycles_.size()); ++set) {
    if (!in_use(set) || z_[set] == 0) continue;
    OddSet odd{{}, z_[set]};
    each_vertex(set, [&](int v) { odd.jobs.push_back(v); });
    std::sort(odd.jobs.begin(), odd.jobs.end());
    sets.push_back(std::move(odd));
  }
  return sets;
}

}  // namespace ymir
