// Tables of docs/benchmarks/scheduling.md: workloads under several policies in one engine with one
// truth. Each line is one workload and policy; the last lines give means over workloads.
//
//   schedule_tables --policies ymir:no-transfer,optimus --interval 60 --profiles DIR titan FILE...
//   schedule_tables --policies ymir,srtf,tiresias --jobs 240 --gpus 32 --load 1 --seeds 10 generate
//
// Ratios are geometric means over the workloads of policy / base, with 95% intervals.
//
// Options: --tasks T --solo S (of `ymir workload generate`), --rows means (the means alone),
// --label L (one line),
// --nodes N --gpus-per-node G, --set KEY=VALUE (of policies; error.LINK=SPEC of beliefs;
// truth.KEY of the workload), --base POLICY (ratios to it), --threads T (over policies and seeds),
// --tail K (the K longest completion times of each run: waits, starts and time on each size).
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
  int nodes = 8, width = 4, jobs = 240, seeds = 1, threads = 1, tail = 0;
  double interval = 120, load = 1;
  std::string base{};
  std::string tasks = "paper27", solo = "trace";
  bool means_only = false;
  std::string label{};  // of a line in place of all tables
};

struct Row {
  std::string workload{}, policy{};
  double avg = 0, p50 = 0, p99 = 0, most = 0, cpu_s = 0;
  int finished = 0, censored = 0, merged = 0, split = 0, starts = 0;
  std::int64_t rounds = 0;
  std::map<std::string, double> modes{};  // share of the jobs
  double false_merges = 0, redone_s = 0;
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
  const RunRecord record = record_of(run.log, run.state, workload);
  if (arguments.tail > 0) row.tail = tail_of(record, workload, arguments.tail);
  if (row.merged > 0) {
    const JobModel model = model_of(scenario);
    const PairTruth pairs(workload, model);
    const SimulationSummary summary = summarise(record, {.pairs = &pairs});
    row.modes = summary.mode_share;
    row.false_merges = static_cast<double>(summary.false_merges);
    row.redone_s = summary.gpu_seconds.at("redone");
  }
  return row;
}

std::string line(const Row& row) {
  return fmt::format(
      "| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {}/{} | {}/{} | {:.2f} | {} | {:.2f} |\n",
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
    } else if (word == "--label") {
      arguments.label = value;
    } else if (word == "--rows") {
      arguments.means_only = value == "means";
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
          {"--tail", &arguments.tail},   {"--threads", &arguments.threads}};
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
      YMIR_TRY_ASSIGN(Workload workload,
                      generate_workload({.num_jobs = arguments.jobs,
                                         .num_gpus = arguments.nodes * arguments.width,
                                         .gpus_per_node = arguments.width,
                                         .load = arguments.load,
                                         .seed = static_cast<std::uint64_t>(seed),
                                         .tasks = arguments.tasks,
                                         .profiles = arguments.profiles,
                                         .solo = arguments.solo}));
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

// Means over the workloads, and the ratios of each policy to the base (above 1: the base is
// better).
void print_means(const std::vector<Row>& rows, const Arguments& arguments) {
  std::map<std::string, std::vector<const Row*>> of;  // in the order of the workloads
  for (const Row& row : rows) of[row.policy].push_back(&row);
  const auto& base = of[arguments.base.empty() ? arguments.policies.front() : arguments.base];
  fmt::print(
      "\n| policy | avg JCT s, p99 s | avg ratio | p99 ratio | CPU s |\n|---|---|---|---|---|\n");
  for (const std::string& policy : arguments.policies) {
    std::vector<double> avg, p99, cpu, avg_ratio, p99_ratio;
    for (std::size_t i = 0; i < of[policy].size(); ++i) {
      const Row& row = *of[policy][i];
      avg.push_back(row.avg);
      p99.push_back(row.p99);
      cpu.push_back(row.cpu_s);
      if (i >= base.size()) continue;
      avg_ratio.push_back(row.avg / base[i]->avg);
      p99_ratio.push_back(row.p99 / base[i]->p99);
    }
    fmt::print("| {} | {:.0f}, {:.0f} | {} | {} | {:.2f} |\n", policy, mean(avg), mean(p99),
               ratio_of(avg_ratio), ratio_of(p99_ratio), mean(cpu));
  }
}

// One line for a page's table: the base's average and p99, each other policy's ratios to it.
void print_line(const std::vector<Row>& rows, const std::string& pairs,
                const Arguments& arguments) {
  std::map<std::string, std::vector<const Row*>> of;
  for (const Row& row : rows) of[row.policy].push_back(&row);
  std::vector<double> avg, p99;
  const auto& base = of[arguments.policies.front()];
  for (const Row* row : base) {
    avg.push_back(row->avg);
    p99.push_back(row->p99);
  }
  fmt::print("| {} | {:.0f}, {:.0f} |", arguments.label, mean(avg), mean(p99));
  for (std::size_t k = 1; k < arguments.policies.size(); ++k) {
    std::vector<double> avg_ratio, p99_ratio;
    const auto& other = of[arguments.policies[k]];
    for (std::size_t i = 0; i < base.size(); ++i) {
      avg_ratio.push_back(other[i]->avg / base[i]->avg);
      p99_ratio.push_back(other[i]->p99 / base[i]->p99);
    }
    fmt::print(" {}, {:.2f} |", ratio_of(avg_ratio), geometric_mean(p99_ratio));
  }
  double merged = 0, split = 0, wrong = 0, redone = 0;
  std::map<std::string, double> modes;
  for (const Row* row : base) {
    merged += row->merged;
    split += row->split;
    wrong += row->false_merges;
    redone += row->redone_s;
    for (const auto& [mode, share] : row->modes)
      modes[mode] += share / static_cast<double>(base.size());
  }
  fmt::print(" {} | {:.0f}, {:.0f}, {:.0f} | {:.0f}, {:.0f}, {:.0f}, {:.0f} |\n", pairs,
             100 * modes["normal"], 100 * modes["temporal"], 100 * modes["spatial"], merged, wrong,
             split, redone / 3600);
}

// What transfer did, over all workloads, of the policies that merged.
void print_transfers(const std::vector<Row>& rows, const Arguments& arguments) {
  fmt::print(
      "\n| policy | normal, temporal, spatial | merges | false | split | GPU time redone s "
      "|\n|---|---|---|---|---|---|\n");
  for (const std::string& policy : arguments.policies) {
    Row sum;
    int runs = 0;
    for (const Row& row : rows) {
      if (row.policy != policy || row.merged == 0) continue;
      ++runs;
      for (const auto& [mode, share] : row.modes) sum.modes[mode] += share;
      sum.merged += row.merged;
      sum.split += row.split;
      sum.false_merges += row.false_merges;
      sum.redone_s += row.redone_s;
    }
    if (runs == 0) continue;
    fmt::print("| {} | {:.2f}, {:.2f}, {:.2f} | {} | {:.0f} | {} | {:.0f} |\n", policy,
               sum.modes["normal"] / runs, sum.modes["temporal"] / runs,
               sum.modes["spatial"] / runs, sum.merged, sum.false_merges, sum.split, sum.redone_s);
  }
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
  if (!arguments.label.empty()) {
    print_line(rows, pairs_that_help(*made), arguments);
    return 0;
  }
  if (!arguments.means_only)
    fmt::print(
        "| workload | policy | avg JCT s | p50 | p99 | max | finished/censored | merges/splits | "
        "starts a job | rounds | CPU s |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Row& row : rows)
    if (!arguments.means_only) fmt::print("{}{}", line(row), row.tail);
  if (arguments.format == "generate")
    fmt::print("Pairs that help, %: A->B, both of a joint pair: {}\n", pairs_that_help(*made));
  print_means(rows, arguments);
  print_transfers(rows, arguments);
  fmt::print("\n{} runs in {:.1f} s of wall time on {} threads\n", rows.size(), wall.count(),
             arguments.threads);
  return 0;
}

}  // namespace
}  // namespace ymir

int main(int count, char** words) { return ymir::main_of(count, words); }
