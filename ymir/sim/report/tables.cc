#include "ymir/sim/report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "ymir/base/csv.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"

namespace ymir {
namespace {

// Empty where there is no number.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }
std::string number(const std::optional<double>& value) { return value ? number(*value) : ""; }
std::string seconds(Micro time) { return fmt::format("{}", static_cast<double>(time) / 1e6); }
Json json_number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

const std::string& name_of(const RunRecord& record, int job) {
  return record.jobs[static_cast<std::size_t>(job)].name;
}

}  // namespace

std::string jobs_csv(const RunRecord& record) {
  std::string csv =
      "job,backbone,dataset,submission_s,first_start_s,completion_s,jct_s,queueing_s,gpu_seconds,"
      "restarts,requested_gpus,mode,partner,predicted_gain,actual_gain,rolled_back,outcome\n";
  for (const JobRecord& job : record.jobs)
    csv += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(job.name),
        csv_field(job.backbone), csv_field(job.dataset), number(job.submission_s),
        number(job.first_start_s), number(job.completion_s), number(job.jct_s()),
        number(job.queueing_s), number(job.gpu_seconds), job.restarts, job.requested_gpus, job.mode,
        csv_field(job.partner), number(job.predicted_gain), number(job.actual_gain),
        job.merged ? (job.rolled_back ? "1" : "0") : "", job.finished ? "finished" : "censored");
  return csv;
}

std::string timeline_csv(const RunRecord& record) {
  std::string csv = "gpu,node,from_s,to_s,job,kind\n";
  for (const Hold& hold : record.holds) {
    std::string who = hold.jobs.empty() ? "" : name_of(record, hold.jobs.front());
    for (std::size_t i = 1; i < hold.jobs.size(); ++i) who += "+" + name_of(record, hold.jobs[i]);
    const std::string kind = hold.profile ? "profile" : to_string(hold.mode);
    const Micro lost = hold.to - hold.redone;
    for (const int gpu : hold.gpus) {
      const auto span = [&](Micro from, Micro to, const std::string& what) {
        if (to > from)
          csv += fmt::format("{},{},{},{},{},{}\n", gpu, gpu / record.gpus_per_node, seconds(from),
                             seconds(to), csv_field(who), what);
      };
      span(hold.from, hold.ready, "switch");
      span(hold.ready, lost, kind);
      span(lost, hold.to, "redone");
    }
  }
  return csv;
}

std::string rounds_csv(const RunRecord& record) {
  std::string csv = "round,at_s,jobs,assignments,changes,value,bound,proof,ms\n";
  for (std::size_t i = 0; i < record.rounds.size(); ++i) {
    const RoundRecord& round = record.rounds[i];
    csv += fmt::format("{},{},{},{},{},{},{},{},{}\n", round.round, number(round.at_s),
                       round.active, round.wanted, round.changes, round.value, round.bound,
                       round.proof, i < record.solve_ms.size() ? number(record.solve_ms[i]) : "");
  }
  return csv;
}

std::string pairs_csv(const RunRecord& record, const PairTruth* truth) {
  std::string csv =
      "job,partner,mode,decided_s,started_s,gpus,believed_weight,true_weight,predicted_gain,"
      "actual_gain,verdict,split_s,extra_s,why\n";
  for (const Merge& merge : record.merges)
    csv += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(name_of(record, merge.job)),
        csv_field(name_of(record, merge.partner)), to_string(merge.mode), seconds(merge.decided),
        seconds(merge.from), merge.gpus, number(merge.transfer_weight),
        truth ? number(truth->weight_of(record, merge)) : "", number(merge.predicted_gain),
        number(merge.actual_gain), merge.verdict, merge.split ? seconds(*merge.split) : "",
        number(merge.extra_s), csv_field(merge.why));
  return csv;
}

namespace {

Json confusion_json(const Confusion& c) {
  return {{"right_yes", c.right_yes},
          {"wrong_yes", c.wrong_yes},
          {"wrong_no", c.wrong_no},
          {"right_no", c.right_no}};
}

}  // namespace

std::string summary_json(const SimulationSummary& s, const std::string& config) {
  Json rho = Json::object();
  for (const auto& [name, value] : s.rho_all)
    rho[name] = {{"max", json_number(value.max)},
                 {"p99", json_number(value.p99)},
                 {"mean", json_number(value.mean)},
                 {"unfair_share", json_number(value.unfair_share)}};
  const auto parsed = parse_json(config);
  const Json json{
      {"policy", s.policy},
      {"seed", s.seed},
      {"jobs", s.jobs},
      {"finished", s.finished},
      {"censored", s.censored},
      {"avg_jct_s", json_number(s.avg_jct_s)},
      {"avg_jct_with_censored_s", json_number(s.avg_jct_with_censored_s)},
      {"p50_jct_s", json_number(s.p50_jct_s)},
      {"p99_jct_s", json_number(s.p99_jct_s)},
      {"max_jct_s", json_number(s.max_jct_s)},
      {"makespan_s", s.makespan_s},
      {"avg_queueing_s", json_number(s.avg_queueing_s)},
      {"avg_first_wait_s", json_number(s.avg_first_wait_s)},
      {"longest_wait_s", json_number(s.longest_wait_s)},
      {"avg_slowdown", json_number(s.avg_slowdown)},
      {"max_slowdown", json_number(s.max_slowdown)},
      {"restarts_per_job", s.restarts_per_job},
      {"rho", s.rho},
      {"rho_max", json_number(s.rho_max)},
      {"rho_unfair_share", json_number(s.rho_unfair_share)},
      {"rho_all", rho},
      {"mode_share", s.mode_share},
      {"mode_gpu_share", s.mode_gpu_share},
      {"merges", s.merges},
      {"rollbacks", s.rollbacks},
      {"false_merges", s.false_merges},
      {"missed_merges", s.missed_merges},
      {"missed_gain_s", s.missed_gain_s},
      {"extra_jct_s", s.extra_jct_s},
      {"gain",
       {{"measured", s.gains_measured},
        {"mape", json_number(s.gain_mape)},
        {"sign_accuracy", json_number(s.gain_sign_accuracy)}}},
      {"predicted_to_help", confusion_json(s.helps)},
      {"kept", confusion_json(s.kept)},
      {"gpu_seconds", s.gpu_seconds},
      {"gpu_use", json_number(s.gpu_use)},
      {"solver_ms",
       {{"mean", s.solver_ms_mean}, {"p99", s.solver_ms_p99}, {"max", s.solver_ms_max}}},
      {"profile_wait_s", s.profile_wait_s},
      {"rounds", s.rounds},
      {"unproved_rounds", s.unproved_rounds},
      {"wall_s", s.wall_s},
      {"invariants_broken", s.broken},
      {"notes", s.notes},
      {"config", parsed ? *parsed : Json()},
      {"config_hash", sha256(config)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string compare_csv(const std::vector<const RunRecord*>& records) {
  std::string csv = "job,submission_s";
  std::vector<std::map<std::string_view, const JobRecord*>> by_name;
  for (const RunRecord* record : records) {
    csv += "," + csv_field(record->policy);
    auto& names = by_name.emplace_back();
    for (const JobRecord& job : record->jobs) names[job.name] = &job;
  }
  csv += "\n";
  if (records.empty()) return csv;
  for (const JobRecord& job : records.front()->jobs) {
    csv += csv_field(job.name) + "," + number(job.submission_s);
    for (const auto& names : by_name) {
      const auto found = names.find(job.name);
      csv += "," + (found == names.end() ? "" : number(found->second->jct_s()));
    }
    csv += "\n";
  }
  return csv;
}

std::string seeds_csv(const std::vector<SimulationSummary>& summaries) {
  std::string csv =
      "policy,seed,finished,censored,avg_jct_s,p50_jct_s,p99_jct_s,max_jct_s,makespan_s,"
      "avg_queueing_s,longest_wait_s,rho_max,rho_unfair_share,restarts_per_job,gpu_use,rollbacks,"
      "false_merges,missed_merges,extra_jct_s\n";
  for (const SimulationSummary& s : summaries)
    csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                       csv_field(s.policy), s.seed, s.finished, s.censored, number(s.avg_jct_s),
                       number(s.p50_jct_s), number(s.p99_jct_s), number(s.max_jct_s),
                       number(s.makespan_s), number(s.avg_queueing_s), number(s.longest_wait_s),
                       number(s.rho_max), number(s.rho_unfair_share), number(s.restarts_per_job),
                       number(s.gpu_use), s.rollbacks, s.false_merges, s.missed_merges,
                       number(s.extra_jct_s));
  return csv;
}

}  // namespace ymir
