#include "ymir/sim/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/core/codec.h"

namespace ymir {

namespace {

// Quantile by linear interpolation between order statistics, rank (n - 1) p.
double quantile(std::vector<double> values, double p) {
  if (values.empty()) return std::nan("");
  std::ranges::sort(values);
  const double rank = static_cast<double>(values.size() - 1) * p;
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (rank - static_cast<double>(below));
}
double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? std::nan("") : sum / static_cast<double>(values.size());
}

bool finished(const JobView& job) {
  return job.state == JobState::kSucceeded && job.result && job.result->target_reached;
}

// Mean number of active jobs over a span, from submissions and ends.
class ActiveJobs {
 public:
  explicit ActiveJobs(const Snapshot& state) {
    for (const auto& [id, job] : state.jobs) {
      change_[to_seconds(job.submitted)] += 1;
      if (job.finished) change_[to_seconds(*job.finished)] -= 1;
    }
    double at = 0, area = 0, active = 0;
    for (const auto& [time, delta] : change_) {
      area += active * (time - at);
      at = time;
      active += delta;
      points_[time] = {area, active};
    }
  }
  double mean(double from, double to) const {
    return to > from ? (area_until(to) - area_until(from)) / (to - from) : 1;
  }

 private:
  double area_until(double time) const {
    auto after = points_.upper_bound(time);
    if (after == points_.begin()) return 0;
    const auto& [at, point] = *std::prev(after);
    return point.first + point.second * (time - at);
  }
  std::map<double, double> change_;
  std::map<double, std::pair<double, double>> points_;  // area before, active after
};

// Finish-time fairness (policies.md 4.1, `share`): JCT / run time alone on the fair share.
std::vector<double> fairness(const Scenario& scenario, const Snapshot& state) {
  const JobModel model = model_of(scenario);
  const ActiveJobs active(state);
  double gpus = 0;
  for (const int slots : scenario.cluster.nodes) gpus += slots;
  std::vector<double> rho;
  for (const auto& [id, job] : state.jobs) {
    if (!finished(job)) continue;
    const double from = to_seconds(job.submitted), to = to_seconds(*job.finished);
    const double share = gpus / std::max(active.mean(from, to), 1.0);
    const double least = job.spec.min_gpus, most = job.spec.max_gpus;
    const double clipped = std::clamp(share, least, most);
    const auto low = static_cast<int>(std::floor(clipped));
    const double speed_low = 1 / model.step_time(id, low).count();
    const double speed_high = 1 / model.step_time(id, low + 1).count();
    double speed = speed_low + (speed_high - speed_low) * (clipped - low);
    if (share < least) speed *= share / least;  // time slicing
    rho.push_back((to - from) / (static_cast<double>(model.job(id).steps) / speed));
  }
  return rho;
}

// What the GPUs did: by run, from its request to its end.
struct GpuTime {
  double useful = 0, switching = 0, profile = 0;
};
GpuTime gpu_time(const std::vector<Event>& log) {
  struct Open {
    Time requested{};
    std::optional<Time> started{};
    double slots = 0;
    bool profile = false;
  };
  std::map<RunId, Open> open;
  GpuTime sum;
  const auto close = [&](RunId id, Time at) {
    const auto run = open.find(id);
    if (run == open.end()) return;
    const Open& o = run->second;
    sum.switching += (o.started.value_or(at) - o.requested).count() * o.slots;
    const double trained = o.started ? (at - *o.started).count() * o.slots : 0;
    (o.profile ? sum.profile : sum.useful) += trained;
    open.erase(run);
  };
  for (const Event& event : log) {
    if (const auto* e = std::get_if<RunRequested>(&event.body))
      open[e->run] = {event.at, {}, static_cast<double>(e->slots.size()), e->profile};
    if (const auto* e = std::get_if<RunStarted>(&event.body))
      if (const auto run = open.find(e->run); run != open.end()) run->second.started = event.at;
    if (const auto* e = std::get_if<RunStopped>(&event.body)) close(e->run, event.at);
    if (const auto* e = std::get_if<RunLost>(&event.body)) close(e->run, event.at);
  }
  return sum;
}

// The pair does worse together than one after the other, whatever was believed.
bool false_merge(const JobModel& model, JobId job, const Transfer& transfer) {
  if (transfer.mode == Mode::kTemporal) return model.temporal_gain(transfer.partner, job) < 0;
  const JobId first = std::min(job, transfer.partner), second = std::max(job, transfer.partner);
  const SpatialTruth truth = model.spatial(first, second);
  const double a = static_cast<double>(model.job(first).steps) * model.step_time(first, 1).count();
  const double b =
      static_cast<double>(model.job(second).steps) * model.step_time(second, 1).count();
  const double step = model.joint_step_time(first, second, 1).count();
  const double ka = static_cast<double>(model.job(first).steps) / (1 + truth.gain_first);
  const double kb = static_cast<double>(model.job(second).steps) / (1 + truth.gain_second);
  return a + b + std::min(a, b) < (ka + kb) * step;
}

std::map<JobId, std::string> last_modes(const std::vector<Event>& log) {
  std::map<JobId, std::string> modes;
  for (const Event& event : log)
    if (const auto* e = std::get_if<RunRequested>(&event.body); e && !e->profile)
      for (const JobId job : e->jobs) modes[job] = to_string(e->what.mode);
  return modes;
}

std::string csv_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

std::string jobs_csv(const Workload& workload, const ScenarioRun& run) {
  std::string csv =
      "job,backbone,dataset,submission_s,first_start_s,completion_s,jct_s,queueing_s,gpu_seconds,"
      "restarts,requested_gpus,mode,partner,predicted_gain,actual_gain,rolled_back,outcome\n";
  const std::map<JobId, std::string> modes = last_modes(run.log);
  for (const auto& [id, job] : run.state.jobs) {
    const WorkloadJob& given = workload.jobs[id.value - 1];
    const auto mode = modes.find(id);
    const Transfer* transfer = job.transfers.empty() ? nullptr : &job.transfers.back();
    const bool split = std::ranges::any_of(job.transfers, [](const Transfer& each) {
      return each.verdict == Transfer::Verdict::kSplit;
    });
    const double submitted = to_seconds(job.submitted);
    const double ended = job.finished ? to_seconds(*job.finished) : std::nan("");
    csv += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", given.name, given.backbone,
        given.task, csv_number(submitted),
        job.first_started ? csv_number(to_seconds(*job.first_started)) : "", csv_number(ended),
        csv_number(ended - submitted), csv_number(job.waited.count()), csv_number(job.busy.count()),
        std::max(0, job.starts - 1), given.gpus, mode == modes.end() ? "" : mode->second,
        transfer ? workload.jobs[transfer->partner.value - 1].name : "",
        transfer ? csv_number(transfer->card.speedup.p50 - 1) : "",
        transfer && transfer->settled && !transfer->settled->censored
            ? csv_number(transfer->settled->actual - 1)
            : "",
        transfer ? (split ? "1" : "0") : "", finished(job) ? "finished" : "censored");
  }
  return csv;
}

// From the data check to the start of the profile, summed over the jobs.
double profile_wait(const std::vector<Event>& log) {
  double waited = 0;
  std::map<JobId, Time> checked;
  for (const Event& event : log) {
    if (const auto* e = std::get_if<DataChecked>(&event.body)) checked[e->job] = event.at;
    if (const auto* e = std::get_if<RunRequested>(&event.body); e && e->profile)
      if (const auto since = checked.find(e->jobs.front()); since != checked.end()) {
        waited += (event.at - since->second).count();
        checked.erase(since);
      }
  }
  return waited;
}

// What the GPUs and the rounds came to.
void add_cluster(const Scenario& scenario, const ScenarioRun& run, SimulationSummary& summary) {
  double gpus = 0;
  for (const int slots : scenario.cluster.nodes) gpus += slots;
  const GpuTime time = gpu_time(run.log);
  summary.gpu_seconds = {
      {"useful", time.useful},
      {"switch", time.switching},
      {"profile", time.profile},
      {"idle", gpus * summary.makespan_s - time.useful - time.switching - time.profile}};
  for (const Event& event : run.log)
    if (const auto* e = std::get_if<PlanAdopted>(&event.body)) {
      ++summary.rounds;
      summary.unproved_rounds += e->plan.proof == "optimal" ? 0 : 1;
    }
  if (!run.solve_ms.empty()) {
    summary.solver_ms_mean = mean(run.solve_ms);
    summary.solver_ms_p99 = quantile(run.solve_ms, 0.99);
    summary.solver_ms_max = quantile(run.solve_ms, 1);
  }
  summary.profile_wait_s = profile_wait(run.log);
}

SimulationSummary summarise(const Scenario& scenario, const ScenarioRun& run) {
  SimulationSummary summary{.policy = scenario.policy};
  const JobModel model = model_of(scenario);
  std::vector<double> jct, queueing;
  double first = 1e300, last = 0;
  std::map<std::string, double> modes;
  for (const auto& [id, mode] : last_modes(run.log)) modes[mode] += 1;
  for (const auto& [id, job] : run.state.jobs) {
    first = std::min(first, to_seconds(job.submitted));
    if (job.finished) last = std::max(last, to_seconds(*job.finished));
    (finished(job) ? summary.finished : summary.censored) += 1;
    if (!finished(job)) continue;
    jct.push_back((*job.finished - job.submitted).count());
    queueing.push_back(job.waited.count());
    for (const Transfer& transfer : job.transfers) {
      summary.rollbacks += transfer.verdict == Transfer::Verdict::kSplit ? 1 : 0;
      summary.false_merges += false_merge(model, id, transfer) ? 1 : 0;
      if (transfer.settled) summary.extra_jct_s += transfer.settled->extra.count();
    }
  }
  for (const char* mode : {"normal", "temporal", "spatial"})
    summary.mode_share[mode] =
        modes[mode] / static_cast<double>(std::max<std::size_t>(run.state.jobs.size(), 1));
  summary.avg_jct_s = mean(jct);
  summary.p50_jct_s = quantile(jct, 0.5);
  summary.p99_jct_s = quantile(jct, 0.99);
  summary.max_jct_s = quantile(jct, 1);
  summary.avg_queueing_s = mean(queueing);
  summary.longest_wait_s = quantile(queueing, 1);
  summary.makespan_s = std::max(0.0, last - first);
  const std::vector<double> rho = fairness(scenario, run.state);
  summary.rho_max = quantile(rho, 1);
  summary.rho_unfair_share =
      static_cast<double>(std::ranges::count_if(rho, [](double r) { return r > 1; })) /
      static_cast<double>(std::max<std::size_t>(rho.size(), 1));
  add_cluster(scenario, run, summary);
  return summary;
}

Json json_number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

std::string summary_json(const SimulationSummary& s, const std::string& config) {
  const Json json{
      {"policy", s.policy},
      {"finished", s.finished},
      {"censored", s.censored},
      {"avg_jct_s", json_number(s.avg_jct_s)},
      {"p50_jct_s", json_number(s.p50_jct_s)},
      {"p99_jct_s", json_number(s.p99_jct_s)},
      {"max_jct_s", json_number(s.max_jct_s)},
      {"makespan_s", s.makespan_s},
      {"avg_queueing_s", json_number(s.avg_queueing_s)},
      {"longest_wait_s", json_number(s.longest_wait_s)},
      {"rho", "share"},
      {"rho_max", json_number(s.rho_max)},
      {"rho_unfair_share", s.rho_unfair_share},
      {"mode_share", s.mode_share},
      {"rollbacks", s.rollbacks},
      {"false_merges", s.false_merges},
      {"gpu_seconds", s.gpu_seconds},
      {"solver_ms",
       {{"mean", s.solver_ms_mean}, {"p99", s.solver_ms_p99}, {"max", s.solver_ms_max}}},
      {"profile_wait_s", s.profile_wait_s},
      {"extra_jct_s", s.extra_jct_s},
      {"missed_merges", Json()},  // needs the truth of pairs that were never tried
      {"missed_gain_s", Json()},
      {"rounds", s.rounds},
      {"unproved_rounds", s.unproved_rounds},
      {"wall_s", s.wall_s},
      {"config", parse_json(config) ? *parse_json(config) : Json()},
      {"config_hash", sha256(config)}};
  return json.dump(2) + "\n";
}

std::string config_of(const Workload& workload, const SimulateOptions& options,
                      const std::string& policy, const Scenario& scenario) {
  return canonical(Json{{"policy", policy},
                        {"nodes", scenario.cluster.nodes.size()},
                        {"gpus_per_node", scenario.cluster.nodes.front()},
                        {"interval_s", options.interval.count()},
                        {"seed", options.seed},
                        {"noise", options.noise},
                        {"settings", options.settings},
                        {"workload", sha256(to_text(workload))}});
}

}  // namespace

Result<> SimulateOptions::validate() const {
  const auto wrong = [](const std::string& what) {
    return Error{ErrorCode::kInvalidArgument, what};
  };
  if (policies.empty()) return wrong("no policy");
  for (const std::string& policy : policies) YMIR_TRY(make_policy(policy, settings));
  if (nodes < 0 || nodes > 100'000) return wrong("nodes must be in 1..100000");
  if (gpus_per_node < 0 || gpus_per_node > 1024) return wrong("gpus per node must be in 1..1024");
  if (!(interval.count() >= 1 && interval.count() <= 86'400))
    return wrong("interval must be in 1..86400 s");
  if (!(noise >= 0 && noise < 0.2)) return wrong("noise must be in [0, 0.2)");
  if (out.empty()) return wrong("no folder for the results");
  return Ok{};
}

Scenario scenario_of(const Workload& workload, const SimulateOptions& options,
                     const std::string& policy) {
  Scenario scenario{.name = "workload", .policy = policy, .settings = options.settings};
  const int nodes = options.nodes > 0 ? options.nodes : workload.nodes;
  const int slots = options.gpus_per_node > 0 ? options.gpus_per_node : workload.gpus_per_node;
  scenario.cluster.nodes.assign(static_cast<std::size_t>(nodes), slots);
  scenario.cluster.seed = options.seed;
  scenario.cluster.start_time = Seconds(15);
  scenario.controller.round = options.interval;
  scenario.controller.round_on_events = false;  // as every cluster simulator: at the rounds only
  const bool elastic = policy.starts_with("ymir");
  std::map<std::string, std::vector<JobId>> by_task;
  for (const WorkloadJob& given : workload.jobs) {
    ScenarioJob job{.name = given.name, .at = from_seconds(given.at)};
    job.truth = truth_of(given);
    job.truth.noise = options.noise;
    job.spec.name = given.name;
    job.spec.model = given.backbone;
    job.spec.method.targets = {"query", "value"};
    job.spec.target = {"accuracy", job.truth.target_metric};
    job.spec.stop = {.max_epochs = 0, .max_steps = given.max_steps};
    job.spec.min_gpus = elastic ? given.min_gpus : std::min(given.gpus, slots);
    job.spec.max_gpus = elastic ? std::min(given.max_gpus, slots) : job.spec.min_gpus;
    job.spec.sharing.allow = given.share;
    job.spec.sharing.trust_domain = "all";
    job.spec.sharing.max_wait_for_partner = Seconds(1200);
    scenario.jobs.push_back(std::move(job));
    by_task[given.backbone + "/" + given.task].push_back(JobId{scenario.jobs.size()});
  }
  for (const auto& [pair, gain] : workload.temporal) {
    const std::size_t arrow = pair.find('>');
    if (arrow == std::string::npos) continue;
    for (const JobId source : by_task[pair.substr(0, arrow)])
      for (const JobId target : by_task[pair.substr(arrow + 1)])
        if (source != target) scenario.temporal[{source, target}] = gain;
  }
  for (const auto& [pair, v] : workload.spatial) {
    const std::size_t plus = pair.find('+');
    if (plus == std::string::npos) continue;
    for (const JobId a : by_task[pair.substr(0, plus)])
      for (const JobId b : by_task[pair.substr(plus + 1)])
        if (a < b)
          scenario.spatial[{a, b}] = {v[0], v[1], v[2]};
        else
          scenario.spatial[{b, a}] = {v[1], v[0], v[2]};
  }
  scenario.beliefs.start_time = scenario.cluster.start_time;
  return scenario;
}

Result<std::vector<SimulationSummary>> simulate(
    const Workload& workload, const SimulateOptions& options, const MakeBeliefs& estimator,
    const std::function<void(const SimulationSummary&)>& told) {
  YMIR_TRY(options.validate());
  std::vector<SimulationSummary> summaries;
  for (const std::string& policy : options.policies) {
    Scenario scenario = scenario_of(workload, options, policy);
    scenario.real_estimator = static_cast<bool>(estimator) && policy != "ymir:oracle";
    const auto begin = std::chrono::steady_clock::now();
    YMIR_TRY_ASSIGN(const ScenarioRun run, run_scenario(scenario, estimator));
    SimulationSummary summary = summarise(scenario, run);
    summary.wall_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const std::string folder = options.out + "/" + policy;
    YMIR_TRY(make_folders(folder));
    std::string events;
    for (const Event& event : run.log) events += encode_line(event) + "\n";
    YMIR_TRY(write_file(folder + "/events.jsonl", events));
    YMIR_TRY(write_file(folder + "/jobs.csv", jobs_csv(workload, run)));
    YMIR_TRY(write_file(folder + "/summary.json",
                        summary_json(summary, config_of(workload, options, policy, scenario))));
    if (told) told(summary);
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

}  // namespace ymir
