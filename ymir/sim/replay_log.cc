#include "ymir/sim/replay_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ymir/sim/metrics/statistics.h"
#include "ymir/sim/recorded_run.h"

namespace ymir {

namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// What a log says of one job.
struct Recorded {
  JobSpec spec{};
  Time submitted{};
  DataFacts facts{};
  // By GPUs, alone: of the wall between evaluations, saving and evaluating included; and of the
  // optimizer step itself, for where there is no evaluation.
  std::map<int, std::vector<double>> paces{}, step_seconds{};
  std::vector<double> starts{};  // seconds
  std::int64_t steps = 0;        // the furthest it came
  std::optional<Time> started{}, finished{};
  std::optional<JobFinished> result{};
  std::map<JobId, double> gains{};  // by source
};

class Reading {
 public:
  void operator()(const Event& event) {
    at_ = event.at;
    std::visit([this](const auto& body) { take(body); }, event.body);
  }

  std::map<JobId, std::string> names() const {
    std::map<JobId, std::string> given;
    for (const auto& [id, job] : jobs) given[id] = job.spec.name;
    return unique_names(std::move(given));
  }

  std::map<JobId, Recorded> jobs{};
  std::vector<ScenarioAction> actions{};
  std::vector<int> nodes{};
  int node_slots = 0;     // of the nodes of a place that is several
  bool profiles = false;  // jobs were profiled
  std::string policy = "ymir";
  Seconds round{120};

 private:
  template <class T>
  void take(const T&) {}
  void take(const DaemonStarted& e) {
    policy = e.policy.empty() ? policy : e.policy;
    round = e.round;
  }
  void take(const PlaceReady& e) {
    const auto known = node_of_.find(e.node);
    if (known == node_of_.end()) {
      node_of_[e.node] = static_cast<int>(nodes.size());
      nodes.push_back(e.num_slots);
      node_slots = std::max(node_slots, e.node_slots);
    } else if (const auto lost = lost_.find(known->second); lost != lost_.end()) {
      actions[lost->second].until = at_;
      lost_.erase(lost);
    }
    place_[e.place] = node_of_[e.node];
  }
  void take(const PlaceLost& e) {
    if (e.why == "daemon_restarted") return;  // nothing happened to it
    lost_[place_[e.place]] = actions.size();
    actions.push_back({.kind = ScenarioAction::Kind::kLose, .at = at_, .node = place_[e.place]});
  }
  void take(const JobSubmitted& e) { jobs[e.job] = {.spec = *e.spec, .submitted = at_}; }
  void take(const DataChecked& e) { jobs[e.job].facts = e.facts; }
  void take(const JobHeld& e) { act(ScenarioAction::Kind::kHold, e.job); }
  void take(const JobReleased& e) { act(ScenarioAction::Kind::kRelease, e.job); }
  void take(const JobFinished& e) {
    Recorded& job = jobs[e.job];
    job.finished = at_;
    job.result = e;
    job.steps = std::max(job.steps, e.step);
    if (e.outcome == Outcome::kCancelled) act(ScenarioAction::Kind::kCancel, e.job);
  }
  void take(const RunRequested& e) {
    profiles = profiles || e.profile;
    for (const JobId job : e.jobs)
      if (!e.profile && !jobs[job].started) jobs[job].started = at_;
    runs_[e.run] = e.jobs;
    if (e.jobs.size() != 1) return;
    paces_[e.jobs.front()] = {
        .run = e.run, .gpus = e.what.gpus, .step = e.from_steps.front(), .since = at_};
  }
  void take(const EpochEvaluated& e) {
    const auto found = paces_.find(e.job);
    if (found == paces_.end() || found->second.run != e.run) return;
    Pace& pace = found->second;
    const double seconds = (at_ - pace.since).count();
    const auto steps = static_cast<double>(e.evaluation.step - pace.step);
    if (seconds > 0 && steps > 0) jobs[e.job].paces[pace.gpus].push_back(seconds / steps);
    pace.step = e.evaluation.step;
    pace.since = at_;
  }
  void take(const RunStarted& e) {
    for (const JobId job : runs_[e.run]) {
      jobs[job].starts.push_back(e.milliseconds / 1000);
      if (const auto pace = paces_.find(job); pace != paces_.end()) pace->second.since = at_;
    }
  }
  void take(const RunLost& e) {
    if (e.fault && !runs_[e.run].empty()) act(ScenarioAction::Kind::kKill, runs_[e.run].front());
  }
  void take(const StepTimed& e) {
    if (!e.timing.key.joint && e.timing.median.count() > 0)
      jobs[e.job].step_seconds[e.timing.key.gpus].push_back(e.timing.median.count());
  }
  void take(const ProfileFinished& e) {
    for (const StepTiming& timing : e.profile.step_times)
      if (!timing.key.joint && timing.median.count() > 0)
        jobs[e.job].step_seconds[timing.key.gpus].push_back(timing.median.count());
  }
  void take(const CheckpointCommitted& e) {
    jobs[e.job].steps = std::max(jobs[e.job].steps, e.step);
  }
  void take(const TransferSettled& e) {
    if (e.mode == Mode::kTemporal && !e.censored && e.actual > 0)
      jobs[e.job].gains[e.partner] = e.actual - 1;
  }
  void act(ScenarioAction::Kind kind, JobId job) {
    actions.push_back({.kind = kind, .at = at_, .job = job});
  }

  struct Pace {  // of a job in the run it trains in alone, at its newest evaluation
    RunId run{};
    int gpus = 1;
    std::int64_t step = 0;
    Time since{};
  };
  Time at_{};
  std::map<JobId, Pace> paces_{};
  std::map<std::string, int> node_of_{};
  std::map<PlaceId, int> place_{};
  std::map<int, std::size_t> lost_{};  // node -> its action
  std::map<RunId, std::vector<JobId>> runs_{};
};

ScenarioJob job_of(const Recorded& recorded, std::string name, Time begin) {
  ScenarioJob job{.name = std::move(name),
                  .at = from_seconds((recorded.submitted - begin).count()),
                  .spec = recorded.spec};
  JobTruth& truth = job.truth;
  const bool reached = recorded.result && recorded.result->target_reached;
  double gain = 0;  // the log knows the steps after the source; alone it were more
  for (const auto& [source, each] : recorded.gains) gain = each;
  truth.steps = std::max<std::int64_t>(
      1, std::llround(static_cast<double>(recorded.steps) * (reached ? 1 + gain : 1)));
  truth.steps_per_epoch = std::max<std::int64_t>(1, recorded.facts.steps_per_epoch);
  truth.max_steps = reached ? 4 * truth.steps : truth.steps;
  if (!reached && !recorded.spec.target.metric.empty())
    truth.steps = 4 * truth.max_steps;  // its target lies beyond its end
  std::map<int, std::vector<double>> paces = recorded.paces;
  paces.insert(recorded.step_seconds.begin(), recorded.step_seconds.end());  // where there is none
  for (const auto& [gpus, seconds] : paces) truth.table.rows.push_back({gpus, 1, median(seconds)});
  truth.table.source = "a recorded log";
  if (!recorded.starts.empty()) truth.start_time = Seconds(median(recorded.starts));
  truth.family = job.name;
  job.spec.model = recorded.facts.backbone.empty() ? recorded.spec.model : recorded.facts.backbone;
  job.spec.target = {"accuracy", truth.target_metric};
  job.spec.stop = {.max_epochs = 0, .max_steps = truth.max_steps};
  return job;
}

bool ran(const Recorded& job) {
  return job.steps > 0 && !(job.paces.empty() && job.step_seconds.empty());
}

}  // namespace

Result<Scenario> scenario_of_log(const std::vector<Event>& log) {
  Reading reading;
  for (const Event& event : log) reading(event);
  const auto wrong = [](const char* what) {
    return Error{ErrorCode::kInvalidArgument, std::string("the log ") + what};
  };
  if (reading.nodes.empty()) return wrong("names no place");
  Scenario scenario{.name = "replayed", .policy = reading.policy};
  scenario.cluster.nodes = reading.nodes;
  if (reading.node_slots > 0 && reading.nodes.size() == 1) {
    scenario.cluster.nodes.assign(
        static_cast<std::size_t>(reading.nodes.front() / reading.node_slots), reading.node_slots);
    scenario.cluster.one_place = true;
  }
  scenario.controller.profiling.enabled = reading.profiles;
  scenario.controller.round = reading.round;
  std::map<JobId, JobId> renamed;
  const Time begin = log.front().at;
  const std::map<JobId, std::string> names = reading.names();
  for (const auto& [id, recorded] : reading.jobs) {
    if (!ran(recorded)) continue;
    scenario.jobs.push_back(job_of(recorded, names.at(id), begin));
    renamed[id] = JobId{scenario.jobs.size()};
  }
  if (scenario.jobs.empty()) return wrong("holds no job that ran");
  for (const auto& [id, recorded] : reading.jobs)
    for (const auto& [source, gain] : recorded.gains)
      if (renamed.contains(id) && renamed.contains(source))
        scenario.temporal[{renamed.at(source), renamed.at(id)}] = gain;
  for (ScenarioAction action : reading.actions) {
    if (action.kind != ScenarioAction::Kind::kLose) {
      const auto job = renamed.find(action.job);
      if (job == renamed.end()) continue;
      action.job = job->second;
    }
    action.at = from_seconds((action.at - begin).count());
    if (action.until != kNever) action.until = from_seconds((action.until - begin).count());
    scenario.actions.push_back(action);
  }
  scenario.beliefs.start_time = scenario.cluster.start_time;
  return scenario;
}

ReplayReport compare_replay(const std::vector<Event>& log, const Scenario& scenario,
                            const ScenarioRun& run) {
  Reading reading;
  for (const Event& event : log) reading(event);
  ReplayReport report;
  std::size_t next = 0;
  for (const auto& [id, recorded] : reading.jobs) {
    if (!ran(recorded)) continue;
    const JobView& job = run.state.jobs.at(JobId{++next});
    if (!recorded.finished || !recorded.started || !job.finished || !job.first_started) continue;
    report.jobs.push_back({.name = scenario.jobs[next - 1].name,
                           .recorded_start_s = (*recorded.started - recorded.submitted).count(),
                           .simulated_start_s = (*job.first_started - job.submitted).count(),
                           .recorded_s = (*recorded.finished - recorded.submitted).count(),
                           .simulated_s = (*job.finished - job.submitted).count()});
  }
  const auto count = static_cast<double>(std::max<std::size_t>(report.jobs.size(), 1));
  for (const ReplayedJob& job : report.jobs) {
    report.recorded_avg_s += job.recorded_s / count;
    report.simulated_avg_s += job.simulated_s / count;
    if (job.recorded_s > 0)
      report.worst = std::max(report.worst, std::abs(job.simulated_s / job.recorded_s - 1));
  }
  std::vector<double> times;
  for (const ReplayedJob& job : report.jobs) times.push_back(job.recorded_s);
  if (!times.empty()) report.recorded_p99_s = quantile(times, 0.99);
  times.clear();
  for (const ReplayedJob& job : report.jobs) times.push_back(job.simulated_s);
  if (!times.empty()) report.simulated_p99_s = quantile(times, 0.99);
  double agree = 0, pairs = 0;
  for (std::size_t i = 0; i < report.jobs.size(); ++i)
    for (std::size_t j = i + 1; j < report.jobs.size(); ++j) {
      const double recorded = report.jobs[i].recorded_s - report.jobs[j].recorded_s;
      const double simulated = report.jobs[i].simulated_s - report.jobs[j].simulated_s;
      pairs += 1;
      agree += recorded * simulated > 0 ? 1 : recorded * simulated < 0 ? -1 : 0;
    }
  if (pairs > 0) report.order = agree / pairs;
  return report;
}

}  // namespace ymir
