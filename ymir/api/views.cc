#include "ymir/api/views.h"

#include <fmt/format.h>

#include <algorithm>

#include "ymir/api/card_text.h"
#include "ymir/api/job_file.h"
#include "ymir/base/json.h"
#include "ymir/core/codec.h"

namespace ymir {
namespace {

Json interval(const Interval& x) { return {{"p10", x.p10}, {"p50", x.p50}, {"p90", x.p90}}; }

Json id_or_null(JobId id) { return id ? Json(to_string(id)) : Json(nullptr); }

Json time_or_null(const std::optional<Time>& time) {
  return time ? Json(to_seconds(*time)) : Json(nullptr);
}

Json metric_of(const JobView& job) {
  const std::string name = judged_metric(job.spec);
  Json metric{{"name", name}, {"value", nullptr}, {"best", nullptr}, {"target", nullptr}};
  if (!job.spec.target.metric.empty()) metric["target"] = job.spec.target.value;
  std::optional<double> best;
  for (const Evaluation& evaluation : job.evaluations) {
    const auto it = evaluation.metrics.find(name);
    if (it == evaluation.metrics.end()) continue;
    metric["value"] = it->second;
    const bool better = !best || (larger_is_better(name) ? it->second > *best : it->second < *best);
    if (better) best = it->second;
  }
  if (best) metric["best"] = *best;
  if (job.result) {
    const auto it = job.result->metrics.find(name);
    if (it != job.result->metrics.end()) metric["value"] = it->second;
  }
  return metric;
}

Json progress_of(const JobView& job, const StepReports& progress) {
  Json shown{{"step", job.steps_done},
             {"total_steps", job.facts.total_steps},
             {"loss", nullptr},
             {"lr", nullptr},
             {"epoch", nullptr}};
  if (!job.losses.empty()) shown["loss"] = job.losses.back().loss;
  if (const auto it = progress.find(job.id); it != progress.end() && job.run == it->second.run) {
    const StepReport& step = it->second;
    shown["step"] = step.step;
    if (step.total_steps > 0) shown["total_steps"] = step.total_steps;
    shown["loss"] = step.loss;
    shown["lr"] = step.lr;
  } else if (job.result && job.result->step > 0) {
    shown["step"] = job.result->step;
  }
  if (job.facts.steps_per_epoch > 0)
    shown["epoch"] = shown["step"].get<double>() / static_cast<double>(job.facts.steps_per_epoch);
  return shown;
}

const RunView* run_of(const Snapshot& now, const JobView& job) {
  const auto it = now.runs.find(job.run);
  return job.run && it != now.runs.end() ? &it->second : nullptr;
}

const PlannedAssignment* planned(const Snapshot& now, JobId job) {
  if (!now.wish) return nullptr;
  for (const PlannedAssignment& line : now.wish->plan.assignments)
    if (line.what.job == job || (line.what.mode == Mode::kSpatial && line.what.partner == job))
      return &line;
  return nullptr;
}

// Seconds until the job ends, as the plan that started its run believed; null when nobody knows.
Json eta_of(const Snapshot& now, const JobView& job) {
  const RunView* run = run_of(now, job);
  const PlannedAssignment* line = planned(now, job.id);
  if (run == nullptr || line == nullptr || run->profile || !run->started ||
      line->card.seconds.p50 <= 0 || line->what != run->what)
    return nullptr;
  const double gone = (now.now - *run->started).count();
  const auto left = [&](double seconds) { return std::max(seconds - gone, 0.0); };
  return interval(
      {left(line->card.seconds.p10), left(line->card.seconds.p50), left(line->card.seconds.p90)});
}

Json transfer_json(const Transfer& transfer) {
  static constexpr const char* kVerdicts[] = {"open", "kept", "split"};
  Json shown{{"partner", to_string(transfer.partner)},
             {"mode", to_string(transfer.mode)},
             {"run", to_string(transfer.run)},
             {"strength", transfer.strength},
             {"from_step", transfer.from_step},
             {"predicted", interval(transfer.card.speedup)},
             {"helps", transfer.card.helps},
             {"similarity", transfer.card.similarity},
             {"source", transfer.card.source},
             {"verdict", kVerdicts[static_cast<int>(transfer.verdict)]},
             {"why", transfer.why},
             {"actual", nullptr},
             {"censored", false},
             {"baseline", ""},
             {"extra_s", 0.0}};
  if (transfer.settled) {
    shown["actual"] = transfer.settled->actual;
    shown["actual_range"] = interval(transfer.settled->range);
    shown["censored"] = transfer.settled->censored;
    shown["baseline"] = transfer.settled->baseline;
    shown["extra_s"] = transfer.settled->extra.count();
  }
  return shown;
}

Json result_json(const JobFinished& result) {
  static constexpr const char* kOutcomes[] = {"succeeded", "failed", "cancelled"};
  return {{"outcome", kOutcomes[static_cast<int>(result.outcome)]},
          {"reason", result.reason},
          {"code", result.code},
          {"text", result.text},
          {"target_reached", result.target_reached},
          {"step", result.step},
          {"metrics", result.metrics},
          {"adapter", result.adapter},
          {"adapter_hash", result.adapter_hash}};
}

Json summary(const Snapshot& now, const StepReports& progress, const JobView& job) {
  const Pairing pairing = pairing_of(now, job);
  Json shown{{"id", to_string(job.id)},
             {"object", "job"},
             {"name", job.spec.name},
             {"owner", job.spec.owner},
             {"tags", job.spec.tags},
             {"state", to_string(job.state)},
             {"held", job.held},
             {"priority", job.spec.priority},
             {"version", job.version},
             {"mode", pairing.mode},
             {"partner", id_or_null(pairing.partner)},
             {"submitted_at", to_seconds(job.submitted)},
             {"started_at", time_or_null(job.first_started)},
             {"finished_at", time_or_null(job.finished)},
             {"now", to_seconds(now.now)},
             {"progress", progress_of(job, progress)},
             {"metric", metric_of(job)},
             {"eta", eta_of(now, job)},
             {"waiting_for", job.waiting_for},
             {"waited_s", job.waited.count()},
             {"busy_s", job.busy.count()},
             {"faults", job.faults},
             {"run", nullptr},
             {"place", nullptr},
             {"slots", Json::array()}};
  if (job.held && !job.ended() && !job.run) shown["waiting_for"] = "held";
  if (const RunView* run = run_of(now, job)) {
    shown["run"] = to_string(run->run);
    shown["place"] = to_string(run->place);
    shown["slots"] = run->slots;
    shown["stopping"] = run->stopping;
  }
  if (job.result) shown["result"] = result_json(*job.result);
  shown["transfers"] = Json::array();
  for (const Transfer& transfer : job.transfers)
    shown["transfers"].push_back(transfer_json(transfer));
  return shown;
}

Json facts_json(const DataFacts& facts) {
  return {{"train_rows", facts.train_rows},   {"validation_rows", facts.validation_rows},
          {"num_labels", facts.num_labels},   {"mean_tokens", facts.mean_tokens},
          {"max_length", facts.max_length},   {"steps_per_epoch", facts.steps_per_epoch},
          {"total_steps", facts.total_steps}, {"data_hash", facts.data_hash},
          {"backbone", facts.backbone}};
}

Json card_json(const Card& card) {
  return {{"speedup", interval(card.speedup)},
          {"helps", card.helps},
          {"solo_seconds", interval(card.solo_seconds)},
          {"seconds", interval(card.seconds)},
          {"transfer_weight", card.transfer_weight},
          {"similarity", card.similarity},
          {"similarity_name", card.similarity_name},
          {"source", card.source},
          {"explores", card.explores}};
}

Json event_json(const Event& event) {
  const auto body = parse_json(encode_body(event.body), {.max_bytes = 64u << 20});
  return {{"seq", event.seq},
          {"at", to_seconds(event.at)},
          {"actor", event.actor},
          {"kind", kind_of(event.body)},
          {"v", version_of(event.body)},
          {"body", body ? *body : Json(nullptr)}};
}

}  // namespace

Pairing pairing_of(const Snapshot& now, const JobView& job) {
  if (const RunView* run = run_of(now, job)) {
    if (run->profile) return {"profile", {}};
    if (run->what.mode == Mode::kSpatial)
      return {"spatial",
              run->what.job == job.id ? run->what.partner.value_or(JobId{}) : run->what.job};
    if (run->what.mode == Mode::kTemporal && run->what.job == job.id)
      return {"temporal", run->what.partner.value_or(JobId{})};
  }
  if (!job.transfers.empty() && job.transfers.back().verdict != Transfer::Verdict::kSplit)
    return {to_string(job.transfers.back().mode), job.transfers.back().partner};
  return {};
}

std::string job_list_view(const Snapshot& now, const StepReports& progress,
                          const JobFilter& filter) {
  Json data = Json::array();
  bool more = false;
  for (auto it = now.jobs.rbegin(); it != now.jobs.rend(); ++it) {
    const JobView& job = it->second;
    if (filter.before && job.id >= filter.before) continue;
    if (!filter.owner.empty() && job.spec.owner != filter.owner) continue;
    if (!filter.state.empty() && to_string(job.state) != filter.state) continue;
    if (data.size() == filter.limit) {
      more = true;
      break;
    }
    data.push_back(summary(now, progress, job));
  }
  return canonical({{"object", "list"}, {"data", data}, {"has_more", more}, {"seq", now.seq}});
}

std::string job_view(const Snapshot& now, const StepReports& progress, const JobView& job) {
  Json shown = summary(now, progress, job);
  if (const auto spec = parse_json(encode(job.spec))) shown["spec"] = *spec;
  shown["job_file"] = write_job_file(job.spec);
  shown["facts"] = facts_json(job.facts);
  shown["evaluations"] = Json::array();
  for (const Evaluation& e : job.evaluations)
    shown["evaluations"].push_back({{"step", e.step},
                                    {"epoch", e.epoch},
                                    {"samples", e.samples},
                                    {"metrics", e.metrics},
                                    {"train_loss", e.train_loss},
                                    {"train_time_s", e.train_time.count()}});
  shown["checkpoint"] = nullptr;
  if (job.checkpoint)
    shown["checkpoint"] = {{"step", job.checkpoint->step}, {"path", job.checkpoint->path}};
  shown["barred"] = Json::array();
  for (const JobId other : job.barred) shown["barred"].push_back(to_string(other));
  shown["probes"] = Json::array();
  for (const Probe& probe : job.probes)
    shown["probes"].push_back({{"source", to_string(probe.source)},
                               {"strength", probe.strength},
                               {"value", probe.value},
                               {"rows", probe.rows}});
  return canonical(shown);
}

namespace {

// What was tried, oldest first, then what the newest plan wants, unless that is the last of them.
Json cards_of(const Snapshot& now, const JobView& job) {
  Json cards = Json::array();
  for (const Transfer& transfer : job.transfers) {
    const Assignment what{.mode = transfer.mode,
                          .job = job.id,
                          .partner = transfer.partner,
                          .gpus = 1,
                          .strength = transfer.strength};
    cards.push_back(
        describe_card(job, what, transfer.card, transfer.settled ? &*transfer.settled : nullptr));
  }
  const PlannedAssignment* line = planned(now, job.id);
  const bool told = line != nullptr && line->what.partner && !job.transfers.empty() &&
                    job.transfers.back().partner == *line->what.partner;
  if (line != nullptr && !told)
    cards.push_back(describe_card(job, line->what, line->card, nullptr));
  return cards;
}

}  // namespace

std::string explain_view(const Snapshot& now, const JobView& job, const std::string& lost_why) {
  const Pairing pairing = pairing_of(now, job);
  Json shown{{"id", to_string(job.id)},
             {"name", job.spec.name},
             {"state", to_string(job.state)},
             {"mode", pairing.mode},
             {"partner", id_or_null(pairing.partner)},
             {"held", job.held},
             {"waiting_for", job.waiting_for},
             {"lost_runs", job.lost_in_a_row},
             {"lost_why", lost_why},
             {"plan", nullptr},
             {"choice", nullptr}};
  if (now.wish) {
    const Plan& plan = now.wish->plan;
    shown["plan"] = {{"round", now.wish->round},
                     {"value", plan.value},
                     {"bound", plan.bound},
                     {"proof", plan.proof},
                     {"gpu_price", plan.gpu_price}};
  }
  if (const PlannedAssignment* line = planned(now, job.id)) {
    shown["choice"] = {{"mode", to_string(line->what.mode)},
                       {"job", to_string(line->what.job)},
                       {"partner", id_or_null(line->what.partner.value_or(JobId{}))},
                       {"gpus", line->what.gpus},
                       {"strength", line->what.strength},
                       {"utility", line->utility},
                       {"regret", line->regret},
                       {"card", card_json(line->card)}};
  }
  shown["transfers"] = Json::array();
  for (const Transfer& transfer : job.transfers)
    shown["transfers"].push_back(transfer_json(transfer));
  shown["cards"] = cards_of(now, job);
  return canonical(shown);
}

std::string nodes_view(const Snapshot& now) {
  Json data = Json::array();
  for (const auto& [id, place] : now.places)
    data.push_back({{"id", to_string(id)},
                    {"node", place.node},
                    {"hardware", place.hardware},
                    {"num_slots", place.num_slots},
                    {"taken", place.taken}});
  return canonical({{"object", "list"}, {"data", data}, {"has_more", false}});
}

std::string event_view(const Event& event) { return canonical(event_json(event)); }

std::string event_list_view(const std::vector<Event>& events, std::uint64_t next, bool has_more) {
  Json data = Json::array();
  for (const Event& event : events) data.push_back(event_json(event));
  return canonical({{"object", "list"}, {"data", data}, {"has_more", has_more}, {"next", next}});
}

bool mentions(const Event& event, JobId job) {
  return std::visit(
      [&](const auto& body) {
        bool found = false;
        if constexpr (requires { body.job; }) found = found || body.job == job;
        if constexpr (requires { body.partner; }) found = found || body.partner == job;
        if constexpr (requires { body.jobs; })
          found = found || std::find(body.jobs.begin(), body.jobs.end(), job) != body.jobs.end();
        if constexpr (requires {
                        body.from;
                        body.to;
                      })
          found = found || body.from == job || body.to == job;
        return found;
      },
      event.body);
}

void JobsOfRuns::see(const Event& event) {
  constexpr std::size_t kMostRuns = 10'000;
  if (const auto* asked = std::get_if<RunRequested>(&event.body)) jobs_[asked->run] = asked->jobs;
  if (jobs_.size() > kMostRuns) jobs_.erase(jobs_.begin());
}

bool JobsOfRuns::concern(const Event& event, JobId job) const {
  if (mentions(event, job)) return true;
  if (!jobs_of(event.body).empty()) return false;
  const auto run = jobs_.find(run_of(event.body));
  return run != jobs_.end() && std::ranges::find(run->second, job) != run->second.end();
}

}  // namespace ymir
