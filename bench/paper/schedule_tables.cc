// Tables of docs/benchmarks/scheduling.md: workloads under several policies in one engine with one
// truth. Each line is one workload and policy; the last lines give means over workloads.
//
//   schedule_tables --policies ymir:no-transfer,optimus --interval 60 --profiles DIR titan FILE...
//   schedule_tables --policies ymir,srtf,tiresias --jobs 240 --gpus 32 --load 1 --seeds 10 generate
//
// Ratios are geometric means over the workloads of policy / base, with 95% intervals.
//
// Options: --nodes N --gpus-per-node G, --set KEY=VALUE (of policies; error.LINK=SPEC of beliefs;
// truth.KEY of the workload), --tasks T --solo S --sizes S (of `ymir workload generate`), --base
// POLICY (ratios to it), --threads T (over policies and seeds), --tail K (the K longest completion
// times of each run: waits, starts and time on each size), --label L (one line of a page's table
// instead), --bound 1 (instead: how far each policy is above what no schedule can beat).
#include <sys/resource.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <iostream>
#include <mutex>
#include <thread>

#include "ymir/base/file.h"
#include "ymir/base/text.h"
#include "ymir/sim/metrics/bound.h"
#include "ymir/sim/metrics/pair_truth.h"
#include "ymir/sim/metrics/record.h"
#include "ymir/sim/metrics/statistics.h"
#include "ymir/sim/metrics/summary.h"
#include "ymir/sim/simulate.h"
#include "ymir/sim/trace/trace.h"
#include "ymir/sim/trace/workload_of.h"

namespace ymir {
namespace {

struct Arguments {
  std::vector<std::string> policies{"ymir:no-transfer", "optimus"};
  std::map<std::string, std::string> settings{};
  std::map<std::string, std::string> truth{};
  std::string format{}, profiles{};
  std::vector<std::string> files{};
  int nodes = 8, width = 4, jobs = 240, seeds = 1, threads = 1, tail = 0, bound = 0;
  double interval = 120, load = 1;
  std::string base{};
  std::string tasks = "paper27", solo = "trace", sizes{};
  std::string label{};  // of a line in place of all tables
};

struct Row {
  std::string workload{}, policy{};
  double avg = 0, p50 = 0, p99 = 0, most = 0, cpu_s = 0;
  int finished = 0, censored = 0, merged = 0, split = 0, starts = 0;
  std::int64_t rounds = 0;
  std::map<std::string, double> modes{};  // share of the jobs
  double false_merges = 0, redone_s = 0, lost_s = 0;
  std::string tail{};
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The jobs with the longest completion times: how long each waited and what it ran on.
std::string tail_of(const RunRecord& record, const Workload& workload, int count) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < record.jobs.size(); ++i)
    if (record.jobs[i].finished) order.push_back(i);
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t i) { return record.jobs[i].jct_s(); });
  std::string text;
  for (std::size_t k = 0; k < order.size() && k < static_cast<std::size_t>(count); ++k) {
    const std::size_t i = order[k];
    const WorkloadJob& job = workload.jobs[i];
    std::map<std::size_t, double> on;
    double switching = 0;
    for (const Hold& hold : record.holds) {
      if (std::ranges::count(hold.jobs, static_cast<int>(i)) == 0) continue;
      on[hold.gpus.size()] += static_cast<double>(hold.to - hold.ready) / 1e6;
      switching += static_cast<double>(hold.ready - hold.from) / 1e6;
    }
    text += fmt::format("#   {} at {:.0f} s: {:.0f} s, waited {:.0f}, starts {} of {:.0f} s;",
                        job.name, job.at, record.jobs[i].jct_s(), record.jobs[i].queueing_s,
                        record.jobs[i].restarts + 1, switching);
    for (const auto& [gpus, seconds] : on) text += fmt::format(" {}x{:.0f}s", gpus, seconds);
    text += "; alone:";
    for (int gpus = job.min_gpus; gpus <= job.max_gpus; gpus *= 2)
      text += fmt::format(" {}:{:.0f}", gpus, solo_seconds(job, gpus));
    text += "\n";
  }
  return text;
}

Result<Row> run(const std::string& name, const Workload& workload, const std::string& policy,
                const Arguments& arguments, std::uint64_t seed) {
  SimulateOptions options{.policies = {policy},
                          .nodes = arguments.nodes,
                          .gpus_per_node = arguments.width,
                          .interval = Seconds(arguments.interval),
                          .seeds = {seed},
                          .settings = arguments.settings,
                          .out = "-"};
  Scenario scenario = scenario_of(workload, options, policy);
  LogRecord log;
  scenario.keep_log = false;
  scenario.watch = [&log](const Event& event) { log.see(event); };
  const double begin = cpu_seconds();
  YMIR_TRY_ASSIGN(const ScenarioRun run, run_scenario(scenario));
  Row row{.workload = name, .policy = policy, .cpu_s = cpu_seconds() - begin};
  std::vector<double> jct;
  for (const auto& [id, job] : run.state.jobs) {
    row.starts += job.starts;
    for (const Transfer& transfer : job.transfers) {
      ++row.merged;
      row.split += transfer.verdict == Transfer::Verdict::kSplit ? 1 : 0;
    }
    if (job.result && job.result->target_reached)
      jct.push_back((*job.finished - job.submitted).count());
    else
      ++row.censored;
  }
  std::ranges::sort(jct);
  row.finished = static_cast<int>(jct.size());
  for (const double each : jct) row.avg += each / static_cast<double>(jct.size());
  row.p50 = quantile(jct, 0.5);
  row.p99 = quantile(jct, 0.99);
  row.most = quantile(jct, 1);
  row.rounds = static_cast<std::int64_t>(run.state.round);
  const RunRecord record = log.end(run.state, workload);
  if (arguments.tail > 0) row.tail = tail_of(record, workload, arguments.tail);
  if (row.merged > 0) {
    const JobModel model = model_of(scenario);
    const PairTruth pairs(workload, model);
    const SimulationSummary summary = summarise(record, {.pairs = &pairs});
    row.modes = summary.mode_share;
    row.false_merges = static_cast<double>(summary.false_merges);
    row.redone_s = summary.gpu_seconds.at("redone");
    row.lost_s = summary.extra_jct_s;
  }
  return row;
}

std::string line(const Row& row) {
  return fmt::format(
      "| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {}/{} | {}/{} | {:.2f} | {} | {:.3f} |\n",
      row.workload, row.policy, row.avg, row.p50, row.p99, row.most, row.finished, row.censored,
      row.merged, row.split,
      static_cast<double>(row.starts) / std::max(1, row.finished + row.censored), row.rounds,
      row.cpu_s);
}

Result<> parse(int count, char** words, Arguments& arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (!word.starts_with("--")) {
      if (arguments.format.empty())
        arguments.format = word;
      else
        arguments.files.push_back(word);
      continue;
    }
    if (i + 1 >= count) return Error{ErrorCode::kInvalidArgument, word + " needs a value"};
    const std::string value = words[++i];
    const auto number = parse_double(value);
    if (word == "--policies") {
      arguments.policies.clear();
      for (const std::string_view name : split(value, ',')) arguments.policies.emplace_back(name);
    } else if (word == "--set") {
      const std::size_t equals = value.find('=');
      if (equals == std::string::npos)
        return Error{ErrorCode::kInvalidArgument, "--set takes KEY=VALUE"};
      const std::string key = value.substr(0, equals);
      if (key.starts_with("truth."))
        arguments.truth[key.substr(6)] = value.substr(equals + 1);
      else
        arguments.settings[key] = value.substr(equals + 1);
    } else if (word == "--profiles") {
      arguments.profiles = value;
    } else if (word == "--tasks") {
      arguments.tasks = value;
    } else if (word == "--solo") {
      arguments.solo = value;
    } else if (word == "--sizes") {
      arguments.sizes = value;
    } else if (word == "--label") {
      arguments.label = value;
    } else if (word == "--base") {
      arguments.base = value;
    } else if (!number) {
      return Error{ErrorCode::kInvalidArgument, word + " " + value + ": not a number"};
    } else if (word == "--load") {
      arguments.load = *number;
    } else if (word == "--interval") {
      arguments.interval = *number;
    } else {
      const std::map<std::string, int*> whole{
          {"--nodes", &arguments.nodes}, {"--gpus-per-node", &arguments.width},
          {"--jobs", &arguments.jobs},   {"--seeds", &arguments.seeds},
          {"--tail", &arguments.tail},   {"--threads", &arguments.threads},
          {"--bound", &arguments.bound}};
      const auto found = whole.find(word);
      if (found == whole.end()) return Error{ErrorCode::kInvalidArgument, "unknown " + word};
      *found->second = static_cast<int>(*number);
    }
  }
  if (arguments.format.empty())
    return Error{ErrorCode::kInvalidArgument,
                 "titan FILE.. | pollux FILE.. | ymir FILE.. | generate"};
  return Ok{};
}

Result<std::vector<std::pair<std::string, Workload>>> workloads(const Arguments& arguments) {
  std::vector<std::pair<std::string, Workload>> made;
  if (arguments.format == "generate") {
    for (int seed = 1; seed <= arguments.seeds; ++seed) {
      WorkloadOptions options{.num_jobs = arguments.jobs,
                              .num_gpus = arguments.nodes * arguments.width,
                              .gpus_per_node = arguments.width,
                              .load = arguments.load,
                              .seed = static_cast<std::uint64_t>(seed),
                              .tasks = arguments.tasks,
                              .profiles = arguments.profiles,
                              .solo = arguments.solo};
      YMIR_TRY(read_sizes(arguments.sizes, options));
      YMIR_TRY_ASSIGN(Workload workload, generate_workload(options));
      made.emplace_back(fmt::format("seed {}", seed), std::move(workload));
    }
    return made;
  }
  for (const std::string& file : arguments.files) {
    const std::string name = file.substr(file.rfind('/') + 1);
    if (arguments.format == "ymir") {
      YMIR_TRY_ASSIGN(const std::string text, read_file(file));
      YMIR_TRY_ASSIGN(Workload workload, parse_workload(name, text));
      made.emplace_back(name, std::move(workload));
      continue;
    }
    YMIR_TRY_ASSIGN(const Trace trace, read_trace(arguments.format, file));
    YMIR_TRY_ASSIGN(Workload workload, workload_of(trace, arguments.profiles,
                                                   {.nodes = arguments.nodes,
                                                    .gpus_per_node = arguments.width,
                                                    .settings = arguments.truth}));
    made.emplace_back(name, std::move(workload));
  }
  return made;
}

// The ratio of a policy to the base, workload by workload: "mean [low, high]", the geometric mean
// with its 95% interval (Student's t on the logarithms).
std::string ratio_of(const std::vector<double>& ratios) {
  const double center = geometric_mean(ratios);
  if (ratios.size() < 2) return fmt::format("{:.2f}", center);
  std::vector<double> logs;
  for (const double ratio : ratios) logs.push_back(std::log(ratio));
  const double factor = std::exp(half_width_95(logs));
  return fmt::format("{:.2f} [{:.2f}, {:.2f}]", center, center / factor, center * factor);
}

// All runs of one policy, and its ratios to the base (above 1: the base is better).
struct Total {
  std::vector<double> avg{}, p99{}, cpu_s{}, avg_ratio{}, p99_ratio{};  // by workload
  int merged = 0, split = 0;
  double false_merges = 0, redone_s = 0, lost_s = 0;
  std::map<std::string, double> modes{};  // mean share of the jobs
};

std::map<std::string, Total> totals_of(const std::vector<Row>& rows, const std::string& base) {
  std::map<std::string, Total> totals;
  for (const Row& row : rows) {
    Total& total = totals[row.policy];
    total.avg.push_back(row.avg);
    total.p99.push_back(row.p99);
    total.cpu_s.push_back(row.cpu_s);
    total.merged += row.merged;
    total.split += row.split;
    total.false_merges += row.false_merges;
    total.redone_s += row.redone_s;
    total.lost_s += row.lost_s;
    for (const auto& [mode, share] : row.modes) total.modes[mode] += share;
  }
  const Total first = totals[base];  // workloads come in one order for all
  for (auto& [policy, total] : totals) {
    for (std::size_t i = 0; i < first.avg.size(); ++i) {
      total.avg_ratio.push_back(total.avg[i] / first.avg[i]);
      total.p99_ratio.push_back(total.p99[i] / first.p99[i]);
    }
    for (auto& [mode, share] : total.modes) share /= static_cast<double>(total.avg.size());
  }
  return totals;
}

// What transfer did, over all workloads.
std::string transfers_of(Total& total) {
  return fmt::format("{:.0f}, {:.0f}, {:.0f} | {}, {:.0f}, {}, {:.0f}, {:.0f}",
                     100 * total.modes["normal"], 100 * total.modes["temporal"],
                     100 * total.modes["spatial"], total.merged, total.false_merges, total.split,
                     total.redone_s / 3600, total.lost_s / 3600);
}

void print_means(std::map<std::string, Total>& totals, const Arguments& arguments) {
  fmt::print(
      "\n| policy | avg JCT s, p99 s | avg ratio | p99 ratio | jobs alone, A->B, joint % | merges, "
      "false, split; GPU h redone, h lost | CPU s |\n|---|---|---|---|---|---|---|\n");
  for (const std::string& policy : arguments.policies) {
    Total& total = totals[policy];
    fmt::print("| {} | {:.0f}, {:.0f} | {} | {} | {} | {:.3f} |\n", policy, mean(total.avg),
               mean(total.p99), ratio_of(total.avg_ratio), ratio_of(total.p99_ratio),
               total.merged > 0 ? transfers_of(total) : " | ", mean(total.cpu_s));
  }
}

// One line for a page's table: the base's average and p99, the ratios of the others, pairs.
void print_line(std::map<std::string, Total>& totals, const std::string& base,
                const std::string& pairs, const Arguments& arguments) {
  fmt::print("| {} | {:.0f}, {:.0f} |", arguments.label, mean(totals[base].avg),
             mean(totals[base].p99));
  for (const std::string& policy : arguments.policies)
    if (policy != base)
      fmt::print(" {}, {:.2f} |", ratio_of(totals[policy].avg_ratio),
                 geometric_mean(totals[policy].p99_ratio));
  fmt::print(" {} | {} |\n", pairs, transfers_of(totals[base]));
}

// The density of pairs: of the ordered pairs of different tasks, and of the unordered ones trained
// together, over all workloads.
std::string pairs_that_help(const std::vector<std::pair<std::string, Workload>>& made) {
  double temporal = 0, temporal_all = 0, spatial = 0, spatial_all = 0;
  for (const auto& [name, workload] : made) {
    for (const auto& [pair, gain] : workload.temporal) {
      const std::size_t middle = pair.find('>');
      if (pair.substr(0, middle) == pair.substr(middle + 1)) continue;
      ++temporal_all;
      temporal += gain > 0;
    }
    for (const auto& [pair, gains] : workload.spatial) {
      ++spatial_all;
      spatial += gains[0] > 0 && gains[1] > 0;
    }
  }
  return fmt::format("{:.0f}, {:.0f}", 100 * temporal / std::max(1.0, temporal_all),
                     100 * spatial / std::max(1.0, spatial_all));
}

// One line: the means of the bounds with all that jobs may share, with A->B only, and alone; then
// policy / bound of each policy, for the three: no scheduler is better than it by more.
void print_bounds(const std::vector<std::pair<std::string, Workload>>& made,
                  const std::vector<Row>& rows, const Arguments& arguments) {
  const std::vector<Sharing> kinds{Sharing::kAny, Sharing::kTemporal, Sharing::kNone};
  std::vector<std::vector<double>> bounds(kinds.size());
  const int gpus = arguments.nodes * arguments.width;
  for (const auto& [name, workload] : made) {
    const SimulateOptions options{
        .nodes = arguments.nodes, .gpus_per_node = arguments.width, .out = "-"};
    const JobModel model = model_of(scenario_of(workload, options, "ymir"));
    for (std::size_t k = 0; k < kinds.size(); ++k)
      bounds[k].push_back(least_total_jct(least_demands(workload, model, gpus, kinds[k]), gpus) /
                          static_cast<double>(workload.jobs.size()));
  }
  fmt::print("| {} | {:.0f}, {:.0f}, {:.0f} |", arguments.label, mean(bounds[0]), mean(bounds[1]),
             mean(bounds[2]));
  for (const std::string& policy : arguments.policies) {
    std::vector<std::vector<double>> ratios(kinds.size());
    for (const Row& row : rows)  // workloads come in one order for all
      if (row.policy == policy)
        for (std::size_t k = 0; k < kinds.size(); ++k)
          ratios[k].push_back(row.avg / bounds[k][ratios[k].size()]);
    fmt::print(" {}, {:.2f}, {:.2f} |", ratio_of(ratios[0]), geometric_mean(ratios[1]),
               geometric_mean(ratios[2]));
  }
  fmt::print("\n");
}

int main_of(int count, char** words) {
  Arguments arguments;
  if (const Result<> parsed = parse(count, words, arguments); !parsed) {
    std::cerr << parsed.error().message << "\n";
    return 2;
  }
  const auto made = workloads(arguments);
  if (!made) {
    std::cerr << made.error().message << "\n";
    return 2;
  }
  std::vector<std::pair<std::size_t, std::string>> work;
  for (std::size_t i = 0; i < made->size(); ++i)
    for (const std::string& policy : arguments.policies) work.emplace_back(i, policy);
  std::vector<Row> rows(work.size());
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  const auto begin = std::chrono::steady_clock::now();
  const auto worker = [&] {
    for (std::size_t i = next++; i < work.size(); i = next++) {
      const auto& [name, workload] = (*made)[work[i].first];
      const auto row = run(name, workload, work[i].second, arguments, workload.seed);
      const std::scoped_lock lock(mutex);
      if (row) {
        rows[i] = *row;
      } else {
        failed = true;
        std::cerr << name << " " << work[i].second << ": " << row.error().message << "\n";
      }
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 1; i < arguments.threads; ++i) threads.emplace_back(worker);
  worker();
  threads.clear();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  if (failed) return 1;
  if (arguments.bound > 0) {
    print_bounds(*made, rows, arguments);
    return 0;
  }
  const std::string base = arguments.base.empty() ? arguments.policies.front() : arguments.base;
  std::map<std::string, Total> totals = totals_of(rows, base);
  if (!arguments.label.empty()) {
    print_line(totals, base, pairs_that_help(*made), arguments);
    return 0;
  }
  fmt::print(
      "| workload | policy | avg JCT s | p50 | p99 | max | finished/censored | merges/splits | "
      "starts a job | rounds | CPU s |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Row& row : rows) fmt::print("{}{}", line(row), row.tail);
  if (arguments.format == "generate")
    fmt::print("\nPairs that help, %: A->B, both of a joint pair: {}\n", pairs_that_help(*made));
  print_means(totals, arguments);
  fmt::print("\n{} runs in {:.1f} s of wall time on {} threads\n", rows.size(), wall.count(),
             arguments.threads);
  return 0;
}

}  // namespace
}  // namespace ymir

int main(int count, char** words) { return ymir::main_of(count, words); }
