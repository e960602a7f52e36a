// optimize_bench: the optimiser on the fixed seed lists, and general MILP solvers on the same
// instances in the same run.
//
// Without arguments the speed table, ours only. Else one of
// - `--peers [SECONDS [LEAST_JOBS [MOST_SEEDS]]]`: beside GLPK, CBC and HiGHS (YMIR_HIGHS_PYTHON)
// - `--growth`: jobs against time, for the plot
// - `--warm`: warm starts
// - `--rows`: several GPU types, tenant and block rows
// - `--anytime`: what parts of the usual effort give
// - `--stop`: how fast a stop is obeyed
//
// Times are CPU times of the thread, cold solves, one thread; the machine may be shared.
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>
#include <ctime>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "ymir/base/hash.h"
#include "ymir/base/rng.h"
#include "ymir/optimize/check.h"
#include "ymir/optimize/generate.h"
#include "ymir/optimize/milp_oracle.h"
#include "ymir/optimize/planner.h"

namespace ymir {
namespace {

struct Case {
  int jobs = 0, gpus = 0;
  double pairs = 0, gamma = 1;
  std::uint64_t first_seed = 1, last_seed = 1;
  int peer_seeds = 0;  // how many of them the MILP solvers get too
};

double cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
}

struct Spread {
  std::vector<double> sorted;
  explicit Spread(std::vector<double> values) : sorted(std::move(values)) {
    std::sort(sorted.begin(), sorted.end());
  }
  double at(double part) const {
    const auto index = static_cast<std::size_t>(part * static_cast<double>(sorted.size()));
    return sorted[std::min(index, sorted.size() - 1)];
  }
  double mean() const {
    return std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  }
};

// A short hash of everything the solver sees: the same on another machine means the same instance.
std::string instance_hash(const RoundProblem& problem) {
  Sha256 sha;
  const auto put = [&](const auto& values) {
    sha.update({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  };
  put(problem.alone_candidates());
  put(problem.pairs());
  put(problem.pair_candidates());
  return sha.hex().substr(0, 12);
}

// The best of `repeats` solves: what is measured is the program, not its neighbours.
double solve_ms(const RoundProblem& problem, Solution& solution, int repeats) {
  double best = 1e99;
  for (int k = 0; k < repeats; ++k) {
    Planner planner;
    planner.solve(problem);  // grows its memory
    planner.forget();
    const double start = cpu_ms();
    solution = planner.solve(problem, {.warm_from_jobs = 1 << 30});
    best = std::min(best, cpu_ms() - start);
  }
  return best;
}

void speed_row(const Case& c) {
  std::vector<double> solve, build;
  int open = 0, at_root = 0;
  double worst = 0;
  std::string hash;
  std::size_t candidates = 0;
  RoundProblem problem;
  for (std::uint64_t seed = c.first_seed; seed <= c.last_seed; ++seed) {
    const Generator generator({c.jobs, c.gpus, c.pairs, seed, c.gamma});
    generator.build(problem);
    const double start = cpu_ms();
    generator.build(problem);
    build.push_back(cpu_ms() - start);
    Solution solution;
    solve.push_back(solve_ms(problem, solution, 1));
    if (seed == c.first_seed) {
      hash = instance_hash(problem);
      candidates = problem.alone_candidates().size() + problem.pair_candidates().size();
    }
    const Result<> sound = check_solution(problem, solution);
    YMIR_CHECK(sound, sound ? "" : sound.error().message);
    at_root += solution.certificate.root_bound < solution.certificate.scale * (solution.value + 1);
    if (solution.proof == Proof::kOptimal) continue;
    ++open;
    worst = std::max(worst, static_cast<double>(solution.bound - solution.value) /
                                static_cast<double>(solution.value));
  }
  const Spread s(solve), b(build);
  fmt::print(
      "| {}/{}/{:g}% g{:g} | {} ({}) | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {} ({:.0e}) | {}% "
      "| {:.1f} |\n",
      c.jobs, c.gpus, 100 * c.pairs, c.gamma, candidates, hash, solve.size(), s.mean(), s.at(0.5),
      s.at(0.99), s.at(1), open, worst, 100 * at_root / static_cast<int>(solve.size()), b.at(0.5));
  std::fflush(stdout);
}

void peers_row(const Case& c, int limit) {
  const std::string folder =
      std::filesystem::temp_directory_path() / fmt::format("ymir-bench-{}", getpid());
  std::filesystem::create_directories(folder);
  std::vector<double> ours;
  std::vector<std::vector<double>> theirs(3);
  std::vector<int> given_up(3, 0), different(3, 0);
  RoundProblem problem;
  for (int k = 0; k < c.peer_seeds; ++k) {
    Generator({c.jobs, c.gpus, c.pairs, c.first_seed + static_cast<std::uint64_t>(k), c.gamma})
        .build(problem);
    Solution solution;
    ours.push_back(solve_ms(problem, solution, 1));
    for (int m = 0; m < 3; ++m) {
      const auto solver = static_cast<Milp>(m);
      if (!have_milp(solver)) continue;
      const MilpAnswer answer = solve_milp(solver, problem, folder, limit);
      theirs[m].push_back(1e3 * answer.cpu_seconds);
      given_up[m] += !answer.solved;
      different[m] +=
          answer.solved && solution.proof == Proof::kOptimal && answer.value != solution.value;
    }
  }
  std::filesystem::remove_all(folder);
  const double median = Spread(ours).at(0.5);
  double fastest = 1e99;
  std::string line = fmt::format("| {}/{}/{:g}% g{:g} | {} | {:.2f}", c.jobs, c.gpus, 100 * c.pairs,
                                 c.gamma, c.peer_seeds, median);
  for (int m = 0; m < 3; ++m) {
    if (theirs[m].empty()) {
      line += " | -";
      continue;
    }
    const double peer = Spread(theirs[m]).at(0.5);
    fastest = std::min(fastest, peer);
    line += fmt::format(" | {}{:.0f}", given_up[m] > 0 ? "> " : "", peer);
    if (different[m] > 0) line += " DIFFERENT VALUE";
  }
  fmt::print("{} | {:.0f}x |\n", line, fastest / median);
  std::fflush(stdout);
}

void growth() {
  fmt::print("jobs,gpus,pairs,solve_ms,build_ms\n");
  for (const int jobs : {100, 200, 400, 800, 1600, 3200, 6400, 12800}) {
    std::vector<double> solve, build;
    RoundProblem problem;
    for (std::uint64_t seed = 1; seed <= (jobs > 3000 ? 2u : 5u); ++seed) {
      // As many pairs per job in every row: growth is then that of the method, not of the input.
      const Generator generator({jobs, jobs, std::min(0.15, 20.0 / jobs), seed, 1});
      const double start = cpu_ms();
      generator.build(problem);
      build.push_back(cpu_ms() - start);
      Solution solution;
      solve.push_back(solve_ms(problem, solution, 1));
    }
    fmt::print("{},{},{},{:.2f},{:.2f}\n", jobs, jobs, problem.pairs().size(),
               Spread(solve).at(0.5), Spread(build).at(0.5));
    std::fflush(stdout);
  }
}

// A round like `base` with other utilities: each job's drifts, some jobs are replaced.
void evolve(const RoundProblem& base, Rng& rng, double drift, double replaced,
            std::vector<double>& factor, std::vector<std::uint64_t>& keys, RoundProblem& problem) {
  problem.reset(base.types());
  std::vector<Option> options;
  const auto scaled = [&](std::span<const KeptOption> candidates, double by) {
    options.clear();
    for (const KeptOption& c : candidates) {
      options.push_back(base.option(c));
      options.back().utility = static_cast<std::int32_t>(options.back().utility * by) + 1;
    }
  };
  for (JobIndex j = 0; j < base.num_jobs(); ++j) {
    factor[j] *= 1 + drift * (2 * rng.uniform() - 1);
    if (rng.chance(replaced)) {
      keys[j] += 1'000'000;
      factor[j] = rng.uniform(0.5, 2);
    }
    scaled(base.alone(j), factor[j]);
    problem.add_job(keys[j], options);
  }
  for (const PairEdge& pair : base.pairs()) {
    scaled(base.together(pair), (factor[pair.first] + factor[pair.second]) / 2);
    problem.add_pair(pair.first, pair.second, options);
  }
}

void warm_row(const Case& c) {
  RoundProblem base, problem;
  Generator({c.jobs, c.gpus, c.pairs, 1, 1}).build(base);
  std::string line = fmt::format("| {}/{}/{:g}%", c.jobs, c.gpus, 100 * c.pairs);
  for (const auto& [drift, replaced] :
       {std::pair{0.0, 0.0}, {0.0, 0.01}, {0.0, 0.1}, {0.03, 0.0}}) {
    Rng rng(5);
    std::vector<double> factor(base.num_jobs(), 1), hot, cold;
    std::vector<std::uint64_t> keys(base.num_jobs());
    std::iota(keys.begin(), keys.end(), 1);
    Planner warm, fresh;
    for (int round = 0; round < 6; ++round) {
      evolve(base, rng, drift, replaced, factor, keys, problem);
      const double start = cpu_ms();
      const Solution a = warm.solve(problem, {.warm_from_jobs = 0});
      const double middle = cpu_ms();
      const Solution b = fresh.solve(problem, {.warm_from_jobs = 1 << 30});
      YMIR_CHECK(a.value == b.value, "warm and cold differ");
      if (round == 0) continue;
      hot.push_back(middle - start);
      cold.push_back(cpu_ms() - middle);
    }
    line += fmt::format(" | {:.2f} / {:.2f}", Spread(hot).at(0.5), Spread(cold).at(0.5));
  }
  fmt::print("{} |\n", line);
  std::fflush(stdout);
}

struct Rows {
  int jobs = 0, first_gpus = 0, second_gpus = 0;
  double pairs = 0;
  int tenants = 0;
  bool blocks = false;
};

// The generated round on two types (the second 15-40% better, by candidate), with tenants who own
// the jobs in turn and may use 1 / (tenants + 2) of the GPUs, on nodes of 8 with some GPUs taken.
RoundProblem with_rows(const Rows& rows, std::uint64_t seed) {
  RoundProblem base, problem;
  Generator({rows.jobs, rows.first_gpus + rows.second_gpus, rows.pairs, seed, 1}).build(base);
  std::vector<Capacity> types = {{rows.first_gpus, {}}};
  if (rows.second_gpus > 0) types.push_back({rows.second_gpus, {}});
  for (Capacity& type : types) {
    const int g = type.gpus;
    if (rows.blocks) type.blocks = {g, g * 45 / 100, g / 5, g / 12};
  }
  const int quota = (rows.first_gpus + rows.second_gpus) / (rows.tenants + 2);
  problem.reset(types, std::vector<int>(rows.tenants, quota));
  std::vector<Option> options;
  const auto on_types = [&](std::span<const KeptOption> candidates, std::uint64_t identity) {
    options.clear();
    for (const KeptOption& c : candidates) {
      Option option = base.option(c);
      options.push_back(option);
      if (rows.second_gpus == 0) continue;
      const std::uint64_t percent = 115 + mix_bits(identity, option.gpus) % 26;
      option.utility = static_cast<std::int32_t>(option.utility * percent / 100);
      option.type = 1;
      options.push_back(option);
    }
  };
  for (JobIndex j = 0; j < base.num_jobs(); ++j) {
    std::vector<RowShare> shares;
    if (rows.tenants > 0) shares.push_back({j % rows.tenants, 16});
    on_types(base.alone(j), base.key(j));
    problem.add_job(base.key(j), options, shares);
  }
  for (const PairEdge& pair : base.pairs()) {
    on_types(base.together(pair), mix_bits(base.key(pair.first), base.key(pair.second)));
    problem.add_pair(pair.first, pair.second, options);
  }
  return problem;
}

void rows_row(const Rows& rows) {
  std::vector<double> times;
  int open = 0, matchings = 0;
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const RoundProblem problem = with_rows(rows, seed);
    Solution solution;
    times.push_back(solve_ms(problem, solution, 1));
    YMIR_CHECK(check_solution(problem, solution), "not sound");
    matchings += solution.effort.matchings;
    open += solution.proof != Proof::kOptimal;
    worst = std::max(worst, static_cast<double>(solution.bound - solution.value) /
                                static_cast<double>(solution.value));
  }
  const Spread spread(times);
  fmt::print("| {} | {}+{} | {:g}% | {} | {} | {:.2f} | {:.2f} | {:.2f} | {} | {} ({:.0e}) |\n",
             rows.jobs, rows.first_gpus, rows.second_gpus, 100 * rows.pairs, rows.tenants,
             rows.blocks ? "yes" : "no", spread.mean(), spread.at(0.5), spread.at(1),
             matchings / 20, open, worst);
  std::fflush(stdout);
}

// What is lost when the matchings and states of the whole solve are cut to a part.
void anytime_row(const Case& c) {
  RoundProblem problem;
  Generator({c.jobs, c.gpus, c.pairs, c.first_seed, c.gamma}).build(problem);
  const Limits cold{.warm_from_jobs = 1 << 30};
  const Solution whole = Planner().solve(problem, cold);
  std::string line = fmt::format("| {}/{}/{:g}% g{:g} | {}", c.jobs, c.gpus, 100 * c.pairs, c.gamma,
                                 whole.effort.matchings);
  for (const int percent : {10, 25, 50, 75}) {
    Limits part = cold;
    part.max_matchings = std::max(1, whole.effort.matchings * percent / 100);
    part.max_states = whole.effort.states * percent / 100;
    const Solution solution = Planner().solve(problem, part);
    YMIR_CHECK(check_solution(problem, solution), "plan of little effort is not sound");
    const auto best = static_cast<double>(whole.value);
    line += fmt::format(" | {:.1e} ({:.1e})", 1 - static_cast<double>(solution.value) / best,
                        static_cast<double>(solution.bound) / best - 1);
  }
  fmt::print("{} |\n", line);
  std::fflush(stdout);
}

// How much the solver still computes after it was asked to stop.
void stops() {
  RoundProblem problem;
  Generator({10'000, 10'000, 0.02, 1, 1}).build(problem);
  Planner planner;
  std::vector<double> late;
  clockid_t solver_clock{};
  pthread_getcpuclockid(pthread_self(), &solver_clock);
  const auto solver_ms = [&] {
    timespec t{};
    clock_gettime(solver_clock, &t);
    return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
  };
  for (int k = 1; k <= 40; ++k) {
    std::stop_source source;
    const double begin = solver_ms();
    double asked = 0;
    std::atomic<bool> done = false;
    std::thread stopper([&] {
      while (!done && solver_ms() < begin + 5 * k) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
      asked = solver_ms();
      source.request_stop();
    });
    const Solution solution =
        planner.solve(problem, {.warm_from_jobs = 1 << 30}, source.get_token());
    const double ended = solver_ms();
    done = true;
    stopper.join();
    if (solution.proof != Proof::kDeadline) continue;
    YMIR_CHECK(check_solution(problem, solution), "stopped plan is not sound");
    late.push_back(ended - asked);
  }
  if (late.empty()) return;
  const Spread spread(late);
  fmt::print("{} stops at 10,000 jobs: answered after median {:.2f} ms, max {:.2f} ms (CPU)\n",
             late.size(), spread.at(0.5), spread.at(1));
}

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = {
      {50, 32, 0.1, 1, 1, 7, 7},          {200, 240, 0.02, 1, 1, 7, 7},
      {240, 240, 0.05, 1, 1001, 1300, 5}, {240, 240, 0.05, 0, 1001, 1300, 0},
      {500, 240, 0.05, 1, 1001, 1300, 5}, {500, 240, 0.05, 0, 1001, 1300, 0},
      {500, 240, 0.1, 1, 1, 7, 3},        {1000, 240, 0.1, 1, 1, 7, 3},
      {1000, 1000, 0.1, 1, 1, 7, 3},      {3000, 1000, 0.02, 1, 1, 3, 1},
      {3000, 1000, 0.1, 1, 1, 3, 1},      {10'000, 1000, 0.02, 1, 1, 2, 0},
      {10'000, 10'000, 0.02, 1, 1, 2, 1}, {10'000, 10'000, 0.02, 0, 1, 2, 0},
  };
  return cases;
}

void speed() {
  fmt::print(
      "| jobs/GPUs/pairs gamma | candidates (hash) of the first seed | seeds | mean ms | median "
      "| p99 | max | open (worst gap) | closed at root | build ms |\n");
  fmt::print("|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Case& c : all_cases()) speed_row(c);
}

void peers(int limit, int least_jobs, int most_seeds) {
  fmt::print(
      "| jobs/GPUs/pairs | seeds | ours ms | GLPK ms | CBC ms | HiGHS ms | fastest MILP / ours "
      "|\n");
  fmt::print("|---|---|---|---|---|---|---|\n");
  for (Case c : all_cases()) {
    c.peer_seeds = std::min(c.peer_seeds, most_seeds);
    if (c.peer_seeds > 0 && c.jobs >= least_jobs) peers_row(c, limit);
  }
}

void several_rows() {
  fmt::print(
      "| jobs | GPUs | pairs | tenant rows | block rows | mean ms | median | max | matchings | "
      "open (worst gap) |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Rows& rows : {Rows{240, 120, 120, 0.05},
                           {240, 160, 80, 0.05},
                           {500, 120, 120, 0.05},
                           {500, 200, 40, 0.05},
                           {1000, 120, 120, 0.05},
                           {1000, 500, 500, 0.02},
                           {500, 240, 0, 0.05, 1},
                           {500, 240, 0, 0.05, 3},
                           {500, 240, 0, 0.05, 0, true},
                           {240, 120, 120, 0.05, 2, true}}) {
    rows_row(rows);
  }
}

void anytime() {
  fmt::print(
      "| jobs/GPUs/pairs | matchings | 10% | 25% | 50% | 75% |\n|---|---|---|---|---|---|\n");
  for (const Case& c : {Case{500, 240, 0.05, 1, 1001},
                        {1000, 1000, 0.1},
                        {3000, 1000, 0.1},
                        {10'000, 500, 0.02},
                        {10'000, 1000, 0.02},
                        {10'000, 10'000, 0.02},
                        {10'000, 10'000, 0.02, 1, 2},
                        {10'000, 10'000, 0.02, 0}}) {
    anytime_row(c);
  }
}

void warm() {
  fmt::print(
      "| jobs/GPUs/pairs | nothing changed | 1% replaced | 10% replaced | utilities drift 3% "
      "|\n|---|---|---|---|---|\n");
  for (const Case& c :
       {Case{200, 240, 0.1}, {500, 240, 0.1}, {1000, 1000, 0.1}, {10'000, 10'000, 0.02}}) {
    warm_row(c);
  }
}

int run(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  const auto number = [&](int k, int otherwise) {
    return count > k ? std::atoi(words[k]) : otherwise;
  };
  if (what.empty()) {
    speed();
  } else if (what == "--peers") {
    peers(number(2, 60), number(3, 0), number(4, 1000));
  } else if (what == "--growth") {
    growth();
  } else if (what == "--warm") {
    warm();
  } else if (what == "--rows") {
    several_rows();
  } else if (what == "--anytime") {
    anytime();
  } else if (what == "--stop") {
    stops();
  } else {
    fmt::print(stderr,
               "optimize_bench [--peers [SECONDS [LEAST_JOBS [MOST_SEEDS]]] | --growth | --warm | "
               "--rows | --anytime | --stop]\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace ymir

int main(int count, char** words) { return ymir::run(count, words); }
