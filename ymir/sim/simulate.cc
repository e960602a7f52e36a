#include "ymir/sim/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <set>
#include <thread>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/core/codec.h"
#include "ymir/sim/artifact/artifact.h"
#include "ymir/sim/metrics/check_run.h"
#include "ymir/sim/report/tables.h"
#include "ymir/sim/run_files.h"

namespace ymir {

namespace {

using Settings = std::map<std::string, std::string>;

Error wrong(const std::string& what) { return {ErrorCode::kInvalidArgument, what}; }

const artifact::Policy* find_artifact(const std::string& name) {
  const auto& all = artifact::policies();
  const auto found = std::ranges::find(all, name, &artifact::Policy::name);
  return found == all.end() ? nullptr : &*found;
}

std::string family_of(const std::string& policy) {
  return policy.substr(0, policy.find_first_of("@:"));
}

// What of --set is meant for a policy: "srtf.hysteresis" for srtf and its variants, a word without
// a policy's name before it for all.
Settings settings_for(const std::string& policy, const SimulateOptions& options) {
  Settings mine;
  for (const auto& [key, value] : options.settings) {
    const std::string owner = key.substr(0, key.find('.'));
    const bool named = std::ranges::any_of(options.policies, [&](const std::string& other) {
      return family_of(other) == owner && owner != key;
    });
    if (!named || owner == family_of(policy)) mine[key] = value;
  }
  return mine;
}

// Everything that one run needs, read by all threads.
struct Shared {
  const SimulationInput& input;
  const SimulateOptions& options;
  const MakeBeliefs& estimator;
  int nodes = 0, gpus_per_node = 0;
  std::string workload_hash{};
};

// Of a policy of the controller.
Settings constants_of(const std::string& policy, const Settings& settings) {
  const auto made = make_policy(policy, policy_settings(settings));
  return made ? (*made)->constants() : Settings{};
}

std::string config_of(const Shared& shared, const std::string& policy, std::uint64_t seed,
                      const Settings& constants) {
  const SimulateOptions& o = shared.options;
  return canonical(Json{{"policy", policy},
                        {"nodes", shared.nodes},
                        {"gpus_per_node", shared.gpus_per_node},
                        {"interval_s", o.interval.count()},
                        {"seed", seed},
                        {"noise", o.noise},
                        {"theta", o.theta},
                        {"rho", o.rho},
                        {"beliefs", shared.estimator ? "estimator" : "oracle"},
                        {"settings", settings_for(policy, o)},
                        {"constants", constants},
                        {"workload", shared.workload_hash}});
}

// The rows of a public simulator's events.jsonl: who held what from when on.
std::string events_of(const artifact::Run& run) {
  std::string text;
  for (const artifact::Change& change : run.changes)
    text += canonical(Json{{"at_s", change.at_s},
                           {"job", run.jobs[static_cast<std::size_t>(change.job)].name},
                           {"nodes", change.nodes}}) +
            "\n";
  for (const artifact::JobResult& job : run.jobs)
    text += canonical(Json{{"at_s", job.completion_s},
                           {"job", job.name},
                           {"outcome", job.finished ? "finished" : "censored"},
                           {"promotions", job.promotions},
                           {"target_num_gpus", job.last_gpus}}) +
            "\n";
  return text;
}

// What the metrics may know of each job alone, in the order of `record`.
SoloTruth solo_truth(const Workload& workload, const RunRecord& record, Seconds start) {
  std::map<std::string_view, const WorkloadJob*> by_name;
  for (const WorkloadJob& job : workload.jobs) by_name[job.name] = &job;
  std::vector<const WorkloadJob*> jobs;
  SoloTruth truth{.start_s = start.count()};
  for (const JobRecord& job : record.jobs) {
    const auto found = by_name.find(job.name);
    jobs.push_back(found == by_name.end() ? nullptr : found->second);
    truth.min_gpus.push_back(jobs.back() ? jobs.back()->min_gpus : 1);
    truth.max_gpus.push_back(jobs.back() ? jobs.back()->max_gpus : 1);
  }
  truth.seconds = [jobs](std::size_t i, int gpus) {
    return jobs[i] ? solo_seconds(*jobs[i], gpus) : std::nan("");
  };
  return truth;
}

Result<FinishedRun> run_artifact(const Shared& shared, const artifact::Policy& policy,
                                 std::uint64_t seed) {
  const artifact::Options options{.nodes = shared.nodes,
                                  .gpus_per_node = shared.gpus_per_node,
                                  .interval_s = shared.options.interval.count(),
                                  .seed = seed,
                                  .profiles = shared.options.profiles,
                                  .settings = settings_for(policy.name, shared.options)};
  YMIR_TRY_ASSIGN(const artifact::Run run, policy.run(*shared.input.trace, options));
  FinishedRun done;
  done.record = record_of(run, *shared.input.trace, shared.nodes, shared.gpus_per_node);
  done.record.policy = policy.name;
  done.record.seed = seed;
  done.record.trace = shared.input.name;
  done.events = events_of(run);
  done.config = config_of(shared, policy.name, seed, run.constants);
  done.pairs = pairs_csv(done.record, nullptr);
  SummaryTruth truth{.theta = shared.options.theta, .rho = shared.options.rho};
  SoloTruth solo;
  if (shared.input.workload) {
    solo = solo_truth(*shared.input.workload, done.record, Seconds(0));
    truth.solo = &solo;
  } else {
    done.record.notes.push_back("what jobs take alone is not known: no fairness, no slowdown");
  }
  done.record.notes.push_back(
      "the switch time of a public simulator is part of `useful`; R8 is left out, because its job "
      "model is its own");
  done.summary = summarise(done.record, truth);
  done.summary.broken = check_run(done.record);
  return done;
}

Result<FinishedRun> run_controller(const Shared& shared, const std::string& policy,
                                   std::uint64_t seed, const std::function<void()>& job_ended) {
  const Workload& workload = *shared.input.workload;
  SimulateOptions options = shared.options;
  options.settings = settings_for(policy, shared.options);
  options.seeds = {seed};
  if (options.interval.count() <= 0) options.interval = Seconds(120);
  Scenario scenario = scenario_of(workload, options, policy);
  scenario.real_estimator = static_cast<bool>(shared.estimator) && policy != "ymir:oracle";
  FinishedRun done;
  LogRecord record;
  scenario.keep_log = false;
  scenario.watch = [&](const Event& event) {
    record.see(event);
    done.events += encode_line(event) + "\n";
    if (std::holds_alternative<JobFinished>(event.body)) job_ended();
  };
  YMIR_TRY_ASSIGN(ScenarioRun run, run_scenario(scenario, shared.estimator));
  done.record = record.end(run.state, workload);
  done.record.policy = policy;
  done.record.seed = seed;
  done.record.trace = shared.input.name;
  done.record.nodes = shared.nodes;
  done.record.gpus_per_node = shared.gpus_per_node;
  done.record.solve_ms = std::move(run.solve_ms);
  const JobModel model = model_of(scenario);
  const PairTruth pairs(workload, model);
  const SoloTruth solo = solo_truth(workload, done.record, scenario.cluster.start_time);
  done.summary = summarise(
      done.record, {.solo = &solo, .pairs = &pairs, .theta = options.theta, .rho = options.rho});
  done.pairs = pairs_csv(done.record, &pairs);
  done.config = config_of(shared, policy, seed, constants_of(policy, options.settings));
  if (policy == "ymir:no-early-loader" || policy == "ymir:no-pipeline-switch")
    done.summary.notes.push_back(
        "assumed, not measured: what data loaders and the hand-over of a GPU cost (world.loader_s, "
        "world.handover_s)");
  const bool cut_off = run.state.now >= scenario.cluster.horizon;
  done.summary.broken = check_run(
      done.record,
      {.least_seconds =
           [&](std::size_t i) { return pairs.least_seconds(static_cast<int>(i), options.noise); },
       .until_horizon = cut_off});
  if (cut_off) done.summary.notes.push_back("cut off at the horizon: jobs were left over");
  return done;
}

// All runs, on threads that share nothing but the inputs and a counter.
class Runs {
 public:
  Runs(const Shared& shared, const SimulationTold& told) : shared_(shared), told_(told) {
    for (const std::string& policy : shared.options.policies)
      for (const std::uint64_t seed : shared.options.seeds) tasks_.emplace_back(policy, seed);
    done_.resize(tasks_.size());
  }

  Result<> run() {
    {
      std::vector<std::jthread> threads;
      const auto many =
          std::min<std::size_t>(static_cast<std::size_t>(shared_.options.threads), tasks_.size());
      for (std::size_t i = 1; i < many; ++i) threads.emplace_back([this] { work(); });
      work();
    }
    for (const auto& done : done_)
      if (!done)
        return wrong("a run was not held");
      else if (!*done)
        return done->error();
    return Ok{};
  }
  std::vector<FinishedRun> take() && {
    std::vector<FinishedRun> all;
    for (auto& done : done_) all.push_back(std::move(**done));
    return all;
  }

 private:
  void work() {
    for (std::size_t i = next_++; i < tasks_.size() && !failed_; i = next_++) {
      Result<FinishedRun> done = one(tasks_[i].first, tasks_[i].second);
      const bool first = tasks_[i].second == shared_.options.seeds.front();
      if (done && !shared_.options.out.empty())
        if (Result<> written = write_run(shared_.options.out, *done, first); !written)
          done = std::move(written).error();
      failed_ = failed_ || !done;
      const std::scoped_lock lock(mutex_);
      if (done) {
        done->events.clear();
        if (!first) done->record.holds.clear();  // only the first seed is drawn
        if (told_.summary) told_.summary(done->summary);
      }
      done_[i] = std::move(done);
      ++finished_;
      tell();
    }
  }
  Result<FinishedRun> one(const std::string& policy, std::uint64_t seed) {
    const auto begin = std::chrono::steady_clock::now();
    const artifact::Policy* from = find_artifact(policy);
    const std::function<void()> job_ended = [this] { ended(); };
    Result<FinishedRun> done = from ? run_artifact(shared_, *from, seed)
                                    : run_controller(shared_, policy, seed, job_ended);
    if (!done) return annotate(std::move(done).error(), policy);
    done->summary.wall_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return done;
  }
  void ended() {
    const std::scoped_lock lock(mutex_);
    ++jobs_ended_;
    if (jobs_ended_ % 16 == 0) tell();
  }
  void tell() const {
    if (!told_.progress) return;
    const double jobs = static_cast<double>(
        shared_.input.workload ? shared_.input.workload->jobs.size() : std::size_t{1});
    const double all = static_cast<double>(tasks_.size());
    const double by_jobs = static_cast<double>(jobs_ended_) / jobs / all;
    const double by_runs = static_cast<double>(finished_) / all;
    told_.progress(
        {finished_, static_cast<int>(tasks_.size()), std::min(1.0, std::max(by_jobs, by_runs))});
  }

  const Shared& shared_;
  const SimulationTold& told_;
  std::vector<std::pair<std::string, std::uint64_t>> tasks_;
  std::vector<std::optional<Result<FinishedRun>>> done_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // of what follows, and of the callbacks
  std::int64_t jobs_ended_ = 0;
  int finished_ = 0;
};

// Every policy is known, its trace is the right one, and what it needs is there.
Result<> check_policies(const SimulationInput& input, const SimulateOptions& options) {
  for (const std::string& policy : options.policies) {
    const artifact::Policy* from = find_artifact(policy);
    if (from == nullptr) {
      const auto made = make_policy(policy, policy_settings(settings_for(policy, options)));
      YMIR_TRY(errors_of(settings_for(policy, options), 0));
      YMIR_TRY(WorldCosts::from(options.settings));
      if (!made) {
        Error error = made.error();
        if (error.code == ErrorCode::kNotFound)
          for (const artifact::Policy& known : artifact::policies())
            error.message +=
                (&known == &artifact::policies().front() ? "; of public simulators: " : ", ") +
                known.name;
        return error;
      }
      if (!input.workload)
        return wrong(policy +
                     " needs to know what is true of the jobs; the trace alone does not say");
      continue;
    }
    if (!input.trace || input.trace->format != from->format)
      return wrong(fmt::format("{} reads traces of the format {}", policy, from->format));
  }
  return Ok{};
}

std::string baseline_of(const SimulateOptions& options) {
  if (!options.baseline.empty()) return options.baseline;
  for (const std::string& policy : options.policies)
    if (!policy.starts_with("ymir")) return policy;
  return options.policies.front();
}

// The options and the input with one value of what is swept.
SimulateOptions swept(const SimulateOptions& options, double value) {
  SimulateOptions one = options;
  one.out.clear();
  const std::string text = fmt::format("{}", value);
  if (options.sweep_key == "error")
    for (const char* link : {"error.gain", "error.steps", "error.step_time"})
      one.settings[link] = text;
  else if (options.sweep_key != "density")
    one.settings[options.sweep_key] = text;
  return one;
}
SimulationInput swept(const SimulationInput& input, const SimulateOptions& options, double value) {
  SimulationInput one = input;
  if (options.sweep_key == "density" && one.workload)
    draw_gains({.seed = one.workload->seed, .useful_pairs = value}, *one.workload);
  return one;
}

Result<> check_sweep(const SimulationInput& input, const SimulateOptions& options,
                     bool real_estimator) {
  if (options.sweep_key == "error" && real_estimator)
    return wrong("a sweep of error needs --oracle: an estimator makes its own errors");
  if (options.sweep_key == "density" && !input.workload)
    return wrong("a sweep of density needs a workload, not a trace");
  for (const double value : options.sweep_values)
    YMIR_TRY(check_policies(input, swept(options, value)));
  return Ok{};
}

Result<std::vector<SweepPoint>> run_sweep(const Shared& shared) {
  std::vector<SweepPoint> points;
  for (const double value : shared.options.sweep_values) {
    const SimulateOptions options = swept(shared.options, value);
    const SimulationInput input = swept(shared.input, shared.options, value);
    const Shared one{.input = input,
                     .options = options,
                     .estimator = shared.estimator,
                     .nodes = shared.nodes,
                     .gpus_per_node = shared.gpus_per_node};
    const SimulationTold nobody;
    Runs runs(one, nobody);
    YMIR_TRY(runs.run());
    const std::vector<FinishedRun> all = std::move(runs).take();
    for (const std::string& policy : options.policies) {
      SweepPoint point{.value = value, .policy = policy};
      double seeds = 0;
      for (const FinishedRun& run : all)
        if (run.record.policy == policy) {
          point.avg_jct_s += run.summary.avg_jct_s;
          point.p99_jct_s += run.summary.p99_jct_s;
          seeds += 1;
        }
      point.avg_jct_s /= seeds;
      point.p99_jct_s /= seeds;
      points.push_back(std::move(point));
    }
  }
  return points;
}

// Runs that differ by their seed alone and came out alike say nothing of chance.
bool seeds_do_nothing(const std::vector<SimulationSummary>& summaries) {
  std::map<std::string_view, double> first;
  bool several = false;
  for (const SimulationSummary& s : summaries) {
    const auto [at, fresh] = first.try_emplace(s.policy, s.avg_jct_s);
    several |= !fresh;
    if (at->second != s.avg_jct_s) return false;
  }
  return several;
}

}  // namespace

Result<> SimulateOptions::validate() const {
  if (policies.empty()) return wrong("no policy");
  std::set<std::string> once;
  for (const std::string& policy : policies)
    if (!once.insert(policy).second) return wrong("named twice: policy " + policy);
  if (nodes < 0 || nodes > 100'000) return wrong("nodes must be in 1..100000");
  if (gpus_per_node < 0 || gpus_per_node > 1024) return wrong("gpus per node must be in 1..1024");
  if (interval.count() != 0 && !(interval.count() >= 1 && interval.count() <= 86'400))
    return wrong("interval must be in 1..86400 s");
  if (seeds.empty() || seeds.size() > 1000) return wrong("needs 1..1000 seeds");
  if (threads < 1 || threads > 256) return wrong("threads must be in 1..256");
  if (!(noise >= 0 && noise < 0.2)) return wrong("noise must be in [0, 0.2)");
  if (!(theta >= 1 && theta <= 100)) return wrong("theta must be in 1..100");
  if (std::ranges::find(fairness_formulas(), rho) == fairness_formulas().end())
    return wrong(fmt::format("unknown formula of rho: {} (known: {})", rho,
                             join(fairness_formulas(), ", ")));
  if (!baseline.empty() && std::ranges::find(policies, baseline) == policies.end())
    return wrong("the baseline is none of the policies: " + baseline);
  if (sweep_values.empty() != sweep_key.empty() || sweep_values.size() > 100)
    return wrong("a sweep takes KEY=V1,V2,... of at most 100 numbers");
  if (out.empty()) return wrong("no folder for the results");
  return Ok{};
}

Result<std::vector<SimulationSummary>> simulate(const SimulationInput& input,
                                                const SimulateOptions& options,
                                                const MakeBeliefs& estimator,
                                                const SimulationTold& told) {
  YMIR_TRY(options.validate());
  YMIR_TRY(check_policies(input, options));
  YMIR_TRY(check_sweep(input, options, static_cast<bool>(estimator)));
  Shared shared{.input = input, .options = options, .estimator = estimator};
  shared.nodes = options.nodes > 0 ? options.nodes : input.workload ? input.workload->nodes : 0;
  shared.gpus_per_node = options.gpus_per_node > 0 ? options.gpus_per_node
                         : input.workload          ? input.workload->gpus_per_node
                                                   : 0;
  if (shared.nodes < 1 || shared.gpus_per_node < 1)
    return wrong("give --nodes and --gpus-per-node");
  if (input.workload) shared.workload_hash = sha256(to_text(*input.workload));
  Runs runs(shared, told);
  YMIR_TRY(runs.run());
  const std::vector<FinishedRun> all = std::move(runs).take();
  std::vector<SimulationSummary> summaries;
  for (const FinishedRun& done : all) summaries.push_back(done.summary);
  std::vector<std::string> warnings = input.warnings;
  if (seeds_do_nothing(summaries))
    warnings.push_back(
        "the seeds changed nothing: of one workload they draw only the errors of beliefs and "
        "evaluations (error.LINK, noise), and none were asked for; no interval says anything here");
  YMIR_TRY_ASSIGN(std::vector<SweepPoint> sweep, run_sweep(shared));
  YMIR_TRY(write_comparison({.name = input.name,
                             .baseline = baseline_of(options),
                             .config = all.front().config,
                             .load = input.workload ? offered_load(*input.workload) : 0,
                             .sweep_key = options.sweep_key,
                             .sweep = std::move(sweep),
                             .warnings = std::move(warnings)},
                            all, options.out));
  return summaries;
}

Result<std::vector<SimulationSummary>> simulate(const Workload& workload,
                                                const SimulateOptions& options,
                                                const MakeBeliefs& estimator) {
  return simulate(SimulationInput{.workload = workload}, options, estimator);
}

}  // namespace ymir
