#include "ymir/api/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "ymir/api/views.h"
#include "ymir/base/json.h"

namespace ymir {
namespace {

struct Run {
  RunRequested requested{};
  double start = 0, end = 0;
  bool open = true;
  std::string why{};
  std::vector<std::int64_t> to_steps{};
};

struct Mark {
  bool split = false;
  double t = 0;
  RunId run{};
  JobId job{}, partner{};
  std::string why{};
  bool restart = false;
};

using Points = std::vector<std::pair<double, double>>;

// A course that goes back to an earlier step begins a new piece: the old one was given up.
void add_point(std::vector<Points>& pieces, double step, double value) {
  if (!std::isfinite(value)) return;
  if (pieces.empty() || (!pieces.back().empty() && step <= pieces.back().back().first))
    pieces.emplace_back();
  pieces.back().emplace_back(step, value);
}

struct Curves {
  std::vector<Points> evaluations{}, losses{};
};

// Goes through the log once and keeps what a picture needs.
class Collector {
 public:
  explicit Collector(const ReportInput& input) : input_(input) {
    if (!input.events.empty()) begin_ = input.events.front().at;
    for (const Event& event : input.events) {
      now_ = (event.at - begin_).count();
      std::visit([this](const auto& body) { take(body); }, event.body);
    }
    for (auto& [id, run] : runs)
      if (run.open) run.end = now_;
  }

  double seconds(Time at) const { return (at - begin_).count(); }

  std::map<RunId, Run> runs{};
  std::vector<Mark> marks{};
  std::map<JobId, Curves> curves{};
  std::map<std::pair<PlaceId, int>, int> slots{};  // -> row
  std::vector<std::string> slot_names{};
  int num_rounds = 0;
  double solve_ms = 0;
  double end() const { return now_; }

 private:
  template <class Body>
  void take(const Body&) {}
  void take(const PlaceReady& e) {
    for (int slot = 0; slot < e.num_slots; ++slot)
      row_of(e.place, slot, fmt::format("{} · {}", e.node, slot));
  }
  void take(const RunRequested& e) {
    Run& run = runs[e.run];
    run.requested = e;
    run.start = run.end = now_;
    for (const int slot : e.slots) row_of(e.place, slot, fmt::format("slot {}", slot));
  }
  void take(const RunStarted& e) {
    if (const auto it = runs.find(e.run); it != runs.end()) it->second.start = now_;
  }
  void take(const RunStopped& e) {
    close(e.run, e.why);
    if (const auto it = runs.find(e.run); it != runs.end()) it->second.to_steps = e.steps;
  }
  void take(const RunLost& e) { close(e.run, "lost: " + e.why); }
  // A job that ends closes its run, unless a partner goes on in it.
  void take(const JobFinished& e) {
    const auto it = runs.find(e.run);
    if (it == runs.end()) return;
    Run& run = it->second;
    run.to_steps.assign(run.requested.jobs.size(), e.step);
    close(e.run, e.reason.empty() ? "finished" : e.reason);
  }
  void take(const RunSplit& e) {
    marks.push_back({true, now_, e.run, e.job, e.partner, e.why, e.restart});
  }
  void take(const RunKept& e) { marks.push_back({false, now_, e.run, e.job, {}, e.why, false}); }
  void take(const EpochEvaluated& e) {
    Curves& course = curves[e.job];
    for (const LossPoint& point : e.losses)
      add_point(course.losses, static_cast<double>(point.step), point.loss);
    if (const auto metric = metric_name(e.job); !metric.empty())
      if (const auto it = e.evaluation.metrics.find(metric); it != e.evaluation.metrics.end())
        add_point(course.evaluations, static_cast<double>(e.evaluation.step), it->second);
  }
  void take(const ProfileFinished& e) {
    for (const LossPoint& point : e.profile.losses)
      add_point(curves[e.job].losses, static_cast<double>(point.step), point.loss);
  }
  void take(const PlanAdopted& e) {
    ++num_rounds;
    for (const auto& [pass, ms] : e.pass_ms) solve_ms += ms;
  }

  void close(RunId id, const std::string& why) {
    const auto it = runs.find(id);
    if (it == runs.end() || !it->second.open) return;
    it->second.open = false;
    it->second.end = now_;
    it->second.why = why;
  }
  // A place that comes back after a restart of the daemon has the rows of its node again.
  void row_of(PlaceId place, int slot, const std::string& name) {
    if (slots.count({place, slot}) != 0) return;
    const auto known = std::find(slot_names.begin(), slot_names.end(), name);
    slots[{place, slot}] = static_cast<int>(known - slot_names.begin());
    if (known == slot_names.end()) slot_names.push_back(name);
  }
  std::string metric_name(JobId id) const {
    const auto it = input_.state.jobs.find(id);
    if (it == input_.state.jobs.end()) return "";
    const JobSpec& spec = it->second.spec;
    if (!spec.target.metric.empty()) return spec.target.metric;
    return spec.metrics.empty() ? "" : spec.metrics.front();
  }

  const ReportInput& input_;
  Time begin_{};
  double now_ = 0;
};

std::string mode_of(const Run& run) {
  if (run.requested.profile) return "profile";
  const Assignment& what = run.requested.what;
  // The source of a temporal pair runs first, alone.
  if (what.mode == Mode::kTemporal && run.requested.jobs != std::vector<JobId>{what.job})
    return "normal";
  if (what.mode == Mode::kSpatial && run.requested.jobs.size() < 2) return "normal";
  return to_string(what.mode);
}

Json runs_json(const Collector& log) {
  Json list = Json::array();
  std::map<JobId, std::int64_t> first_step;  // of the job's first training run
  for (const auto& [id, run] : log.runs) {
    const RunRequested& asked = run.requested;
    Json slots = Json::array(), jobs = Json::array();
    for (const int slot : asked.slots) slots.push_back(log.slots.at({asked.place, slot}));
    for (const JobId job : asked.jobs) jobs.push_back(to_string(job));
    if (jobs.empty() || slots.empty()) continue;
    const std::int64_t from = asked.from_steps.empty() ? 0 : asked.from_steps.front();
    if (!asked.profile) first_step.emplace(asked.jobs.front(), from);
    list.push_back(
        {{"run", to_string(id)},
         {"jobs", jobs},
         {"mode", mode_of(run)},
         {"profile", asked.profile},
         {"partner", asked.what.partner ? Json(to_string(*asked.what.partner)) : Json(nullptr)},
         {"strength", asked.what.strength},
         {"slots", slots},
         {"start", run.start},
         {"end", run.end},
         {"open", run.open},
         {"why", run.why},
         {"from_step", from},
         {"first_step", asked.profile ? from : first_step[asked.jobs.front()]}});
  }
  return list;
}

Json pieces_json(const std::vector<Points>& pieces) {
  // A curve of thousands of points is drawn from hundreds.
  constexpr std::size_t kMaxPoints = 600;
  Json list = Json::array();
  for (const Points& piece : pieces) {
    const std::size_t stride = (piece.size() + kMaxPoints - 1) / kMaxPoints;
    Json points = Json::array();
    for (std::size_t i = 0; i < piece.size(); ++i)
      if (i % stride == 0 || i + 1 == piece.size())
        points.push_back({piece[i].first, piece[i].second});
    list.push_back(std::move(points));
  }
  return list;
}

// Stretches of steps that a job made together with a partner.
Json bands_json(const Collector& log, const JobView& job) {
  Json bands = Json::array();
  for (const auto& [id, run] : log.runs) {
    const auto& jobs = run.requested.jobs;
    const auto at = std::find(jobs.begin(), jobs.end(), job.id);
    const std::string mode = mode_of(run);
    if (at == jobs.end() || mode == "normal" || mode == "profile") continue;
    const auto index = static_cast<std::size_t>(at - jobs.begin());
    const auto& from = run.requested.from_steps;
    const std::int64_t first = index < from.size() ? from[index] : 0;
    const std::int64_t last = index < run.to_steps.size() ? run.to_steps[index] : job.steps_done;
    const JobId partner = mode == "spatial" ? jobs[1 - std::min<std::size_t>(index, 1)]
                                            : run.requested.what.partner.value_or(JobId{});
    bands.push_back({{"from", first},
                     {"to", std::max(first, last)},
                     {"mode", mode},
                     {"partner", to_string(partner)}});
  }
  return bands;
}

// The view that programs read has the job's texts, metric, transfers and result already.
Json job_json(const Collector& log, const ReportInput& input, const JobView& job, int index) {
  const auto view = parse_json(job_view(input.state, {}, job), {.max_bytes = 64u << 20});
  Json shown{{"id", to_string(job.id)}, {"name", job.spec.name}, {"index", index}};
  if (view)
    for (const char* key : {"state", "transfers"}) shown[key] = (*view)[key];
  shown["submitted"] = log.seconds(job.submitted);
  shown["finished"] = job.finished ? Json(log.seconds(*job.finished)) : Json(nullptr);
  shown["waited_s"] = job.waited.count();
  shown["busy_s"] = job.busy.count();
  shown["reason"] = job.result ? job.result->reason : "";
  shown["code"] = job.result ? job.result->code : "";
  shown["step"] = job.result && job.result->step > 0 ? job.result->step : job.steps_done;
  shown["target_reached"] = job.result && job.result->target_reached;
  shown["target"] = nullptr;
  if (!job.spec.target.metric.empty()) shown["target"] = {{"value", job.spec.target.value}};
  shown["metric"] = view ? (*view)["metric"]["name"] : Json("");
  shown["value"] = view ? (*view)["metric"]["value"] : Json(nullptr);
  const auto it = log.curves.find(job.id);
  const Curves course = it == log.curves.end() ? Curves{} : it->second;
  shown["evals"] = pieces_json(course.evaluations);
  shown["losses"] = pieces_json(course.losses);
  shown["bands"] = bands_json(log, job);
  return shown;
}

Json summary_json(const Collector& log, const ReportInput& input) {
  int succeeded = 0, failed = 0, with_target = 0, reached = 0, merges = 0, kept = 0, split = 0;
  for (const auto& [id, job] : input.state.jobs) {
    succeeded += job.state == JobState::kSucceeded;
    failed += job.state == JobState::kFailed;
    with_target += !job.spec.target.metric.empty();
    reached += job.result && job.result->target_reached;
    for (const Transfer& transfer : job.transfers) {
      ++merges;
      kept += transfer.verdict == Transfer::Verdict::kKept;
      split += transfer.verdict == Transfer::Verdict::kSplit;
    }
  }
  double busy = 0, profile = 0;
  for (const auto& [id, run] : log.runs) {
    const double slot_time =
        (run.end - run.start) * static_cast<double>(run.requested.slots.size());
    busy += slot_time;
    if (run.requested.profile) profile += slot_time;
  }
  const double whole = std::max(
      log.end() * static_cast<double>(std::max<std::size_t>(log.slot_names.size(), 1)), 1e-9);
  const ReportComparison::Sums sums = sums_of(input.state);
  return {{"jobs", input.state.jobs.size()},
          {"succeeded", succeeded},
          {"failed", failed},
          {"with_target", with_target},
          {"targets_reached", reached},
          {"makespan_s", sums.makespan},
          {"mean_completion_s", sums.mean},
          {"worst_completion_s", sums.worst},
          {"busy", std::min(busy / whole, 1.0)},
          {"profile_share", std::min(profile / whole, 1.0)},
          {"merges", merges},
          {"kept", kept},
          {"split", split},
          {"rounds", log.num_rounds},
          {"round_ms", log.num_rounds > 0 ? Json(log.solve_ms / log.num_rounds) : Json(nullptr)}};
}

Json comparison_json(const ReportComparison& comparison) {
  const auto sums = [](const ReportComparison::Sums& s) {
    return Json{{"makespan_s", s.makespan}, {"mean_s", s.mean}, {"worst_s", s.worst}};
  };
  Json jobs = Json::array();
  for (const auto& job : comparison.jobs)
    jobs.push_back({{"name", job.name},
                    {"shared_s", job.shared},
                    {"sequential_s", job.sequential},
                    {"shared_steps", job.shared_steps},
                    {"sequential_steps", job.sequential_steps},
                    {"learnt", job.learnt}});
  return {{"baseline", comparison.baseline},
          {"shared", sums(comparison.shared)},
          {"sequential", sums(comparison.sequential)},
          {"jobs", jobs}};
}

Json marks_json(const Collector& log, bool split) {
  Json list = Json::array();
  for (const Mark& mark : log.marks) {
    if (mark.split != split) continue;
    list.push_back({{"kind", split ? "split" : "kept"},
                    {"t", mark.t},
                    {"run", to_string(mark.run)},
                    {"job", to_string(mark.job)},
                    {"partner", to_string(mark.partner)},
                    {"why", mark.why},
                    {"restart", mark.restart}});
  }
  return list;
}

}  // namespace

std::string report_data(const ReportInput& input) {
  const Collector log(input);
  Json jobs = Json::array(), slots = Json::array();
  int index = 0;
  for (const auto& [id, job] : input.state.jobs) jobs.push_back(job_json(log, input, job, index++));
  for (const std::string& name : log.slot_names) slots.push_back({{"name", name}});
  return canonical(
      {{"title", input.title},
       {"generated", format_time(input.generated)},
       {"version", YMIR_VERSION},
       {"events", input.events.size()},
       {"end", log.end()},
       {"summary", summary_json(log, input)},
       {"slots", slots},
       {"jobs", jobs},
       {"runs", runs_json(log)},
       {"splits", marks_json(log, true)},
       {"keeps", marks_json(log, false)},
       {"comparison", input.comparison ? comparison_json(*input.comparison) : Json(nullptr)}});
}

}  // namespace ymir
