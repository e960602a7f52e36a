#include "ymir/sim/artifact/pollux/pollux.h"

#include <algorithm>
#include <cmath>

namespace ymir::artifact::pollux {
namespace {

constexpr int kMostReplicas = 64;

// The artifact keeps the smallest application at its largest batch on one GPU.
bool is_fixed(const PolluxApplication& app) { return app.name == "ncf"; }

BatchLimits limits_of(const PolluxApplication& app) {
  return {app.init_batch, app.max_batch, app.min_local, app.max_local};
}

Allocation allocation_of(const Round& round, const std::vector<std::size_t>& order) {
  const auto nodes = static_cast<std::size_t>(round.cluster.nodes);
  Allocation allocation(order.size() * nodes, 0);
  for (std::size_t row = 0; row < order.size(); ++row)
    for (const int node : round.jobs[order[row]].nodes)
      ++allocation[row * nodes + static_cast<std::size_t>(node)];
  return allocation;
}

}  // namespace

// Speed-ups of the active jobs by (nodes, GPUs), worked out when first asked for.
struct Pollux::Rows {
  struct Row {
    GoodputModel model{};
    BatchLimits limits{};
    bool known = false;  // has a model
    double fair = 1;     // goodput at the fair share
    double restart = 1;  // what a change of the allocation leaves
    std::vector<double> speedup{};
  };
  std::vector<Row> rows{};
  std::size_t nodes = 0, most = 0;  // most GPUs of one job
  double nodes_per_gpu = 0;
  double p = -1;
  const Allocation* current = nullptr;

  double speedup(Row& row, std::size_t on, std::size_t gpus) const {
    if (gpus == 0) return 0;
    double& value = row.speedup[on * (most + 1) + gpus];
    if (value < 0)
      value =
          !row.known
              ? static_cast<double>(gpus)
              : row.model.best(static_cast<int>(on), static_cast<int>(gpus), row.limits).goodput /
                    row.fair;
    return value;
  }

  GeneticProblem::Worth worth(const Allocation& allocation) {
    double total = 0, mean = 0;
    std::vector<bool> active(nodes, false);
    for (std::size_t j = 0; j < rows.size(); ++j) {
      const std::uint8_t* row = &allocation[j * nodes];
      std::size_t on = 0, gpus = 0;
      for (std::size_t n = 0; n < nodes; ++n) {
        on += row[n] > 0;
        gpus += row[n];
        if (row[n] > 0) active[n] = true;
      }
      double value = speedup(rows[j], on, gpus);
      if (!std::equal(row, row + nodes, &(*current)[j * nodes])) value *= rows[j].restart;
      total += value;
      const double x = value * nodes_per_gpu;
      mean += p == 0    ? std::log(std::max(x, 1e-3))
              : p == -1 ? 1 / (x + 1e-3)
                        : std::pow(x + 1e-3, p);
    }
    mean /= static_cast<double>(rows.size());
    const auto num_active = static_cast<double>(std::count(active.begin(), active.end(), true));
    return {p == 0    ? std::exp(mean)
            : p == -1 ? 1 / mean
                      : std::pow(mean, 1 / p),
            num_active > 0 ? total / num_active * nodes_per_gpu : 0};
  }
};

Pollux::Belief& Pollux::belief(std::size_t job) {
  if (beliefs_.size() <= job) beliefs_.resize(job + 1);
  return beliefs_[job];
}

void Pollux::measured(std::size_t job, const Measured& measured) {
  Belief& of = belief(job);
  of.grad = measured.grad;
  const StepSample sample{measured.nodes, measured.replicas, measured.split.atomic,
                          measured.time.step_s - measured.time.sync_s, measured.time.step_s};
  const auto key = std::tuple(sample.nodes, sample.replicas, sample.atomic);
  if (!of.samples.emplace(key, sample).second) return;
  of.most_replicas = std::max(of.most_replicas, sample.replicas);
  std::vector<StepSample> samples;
  for (const auto& [place, seen] : of.samples) samples.push_back(seen);
  of.step = fit_step_model(samples);
}

PolluxSplit Pollux::split(std::size_t job, const Job& state) {
  const PolluxApplication& app = *state.app;
  const Belief& of = belief(job);
  const int replicas = state.replicas();
  if (is_fixed(app)) return app.split(app.max_batch, replicas, PolluxAlone::kAboveInitialBatch);
  if (!of.step)
    return app.split(std::max(app.init_batch, app.min_local * replicas), replicas,
                     PolluxAlone::kAboveInitialBatch);
  const GoodputModel model{*of.step, of.grad, app.init_batch};
  PolluxSplit best =
      model.best(static_cast<int>(state.placement.size()), replicas, limits_of(app)).split;
  best.atomic = std::min(best.atomic, app.max_batch / (replicas * (best.accumulation + 1)));
  return best;
}

int Pollux::cap(const Job& job, const Belief& of) const {
  if (is_fixed(*job.app)) return 1;
  return std::min(
      {std::max(2 * of.most_replicas, 1), kMostReplicas, job.app->max_batch / job.app->min_local});
}

// The last round's population with the rows of jobs that are still there; new ones wait.
std::vector<Allocation> Pollux::start(const Round& round,
                                      const std::vector<std::size_t>& order) const {
  if (last_population_.empty()) return {allocation_of(round, order)};
  const auto nodes = static_cast<std::ptrdiff_t>(round.cluster.nodes);
  std::vector<Allocation> population;
  for (const Allocation& old : last_population_) {
    Allocation genes(order.size() * static_cast<std::size_t>(nodes), 0);
    for (std::size_t row = 0; row < order.size(); ++row) {
      const auto was = std::ranges::find(last_order_, order[row]);
      if (was == last_order_.end()) continue;
      std::copy_n(old.begin() + (was - last_order_.begin()) * nodes, nodes,
                  genes.begin() + static_cast<std::ptrdiff_t>(row) * nodes);
    }
    population.push_back(std::move(genes));
  }
  return population;
}

Result<std::vector<NodeList>> Pollux::decide(const Round& round) {
  std::vector<std::size_t> order(round.active.begin(), round.active.end());
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return std::pair(round.jobs[i].attained_gpu_s, round.jobs[i].trace->submission_s);
  });
  const int gpus = round.cluster.gpus();
  GeneticProblem problem{.jobs = static_cast<int>(order.size()),
                         .nodes = round.cluster.nodes,
                         .gpus_per_node = static_cast<std::uint8_t>(round.cluster.gpus_per_node),
                         .current = allocation_of(round, order)};
  Rows rows{.nodes = static_cast<std::size_t>(round.cluster.nodes),
            .most = static_cast<std::size_t>(std::min(gpus, kMostReplicas)),
            .nodes_per_gpu = static_cast<double>(round.cluster.nodes) / gpus,
            .p = options_.p,
            .current = &problem.current};
  const int share = (gpus + problem.jobs - 1) / problem.jobs;
  for (const std::size_t i : order) {
    const Job& job = round.jobs[i];
    const Belief& of = belief(i);
    problem.caps.push_back(cap(job, of));
    Rows::Row row{.limits = limits_of(*job.app), .known = of.step.has_value()};
    row.speedup.assign((rows.nodes + 1) * (rows.most + 1), -1);
    if (of.step) {
      row.model = {*of.step, of.grad, job.app->init_batch};
      const int fair = std::min(share, job.app->max_batch / job.app->min_local);
      const int per_node = round.cluster.gpus_per_node;
      const int on = options_.fair_nodes_true_shape ? (fair + per_node - 1) / per_node : 1;
      row.fair = row.model.best(on, fair, row.limits).goodput;
    }
    const double age = round.now_s - job.trace->submission_s;
    const double lost = options_.restart_s * std::max(0, job.starts - 1);
    row.restart = std::max(age - lost, 0.0) / (age + options_.restart_s);
    rows.rows.push_back(std::move(row));
  }
  problem.worth = [&](const Allocation& allocation) { return rows.worth(allocation); };
  GeneticResult found = search(problem, start(round, order),
                               {.population = options_.population,
                                .generations = options_.generations,
                                .seed = options_.seed,
                                .round = round_++});
  last_order_ = order;
  last_population_ = std::move(found.population);
  std::vector<NodeList> nodes(round.jobs.size());
  for (std::size_t row = 0; row < order.size(); ++row)
    for (std::size_t n = 0; n < rows.nodes; ++n)
      nodes[order[row]].insert(nodes[order[row]].end(), found.best[row * rows.nodes + n],
                               static_cast<int>(n));
  return nodes;
}

}  // namespace ymir::artifact::pollux
