// Events as lines for people.
#include <fmt/format.h>

#include "apps/ymir/service.h"
#include "ymir/base/text.h"

namespace ymir::cli {
namespace {

std::string slots_of(const std::vector<int>& slots) {
  std::vector<std::string> names;
  for (const int slot : slots) names.push_back(std::to_string(slot));
  return (slots.size() == 1 ? "slot " : "slots ") + join(names, ", ");
}

std::string jobs_of(const std::vector<JobId>& jobs) {
  std::vector<std::string> names;
  for (const JobId job : jobs) names.push_back(to_string(job));
  return join(names, " + ");
}

std::string metrics_of(const std::map<std::string, double>& metrics) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : metrics) parts.push_back(fmt::format("{} {:.4g}", name, value));
  return join(parts, ", ");
}

std::string plan_text(const PlanAdopted& adopted) {
  std::vector<std::string> parts;
  for (const PlannedAssignment& line : adopted.plan.assignments) {
    const Assignment& what = line.what;
    if (what.mode == Mode::kNormal || !what.partner)
      parts.push_back(to_string(what.job));
    else if (what.mode == Mode::kTemporal)
      parts.push_back(fmt::format("{}->{}", to_string(*what.partner), to_string(what.job)));
    else
      parts.push_back(fmt::format("{}+{}", to_string(what.job), to_string(*what.partner)));
  }
  return fmt::format(
      "round {}: {}{}", adopted.round, parts.empty() ? "nothing" : join(parts, ", "),
      adopted.plan.waiting.empty() ? "" : fmt::format("; {} wait", adopted.plan.waiting.size()));
}

struct Describer {
  std::string operator()(const DaemonStarted& e) const {
    return fmt::format("daemon {} started (policy {}, round {})", e.version, e.policy,
                       format_duration(e.round.count()));
  }
  std::string operator()(const PlaceReady& e) const {
    return fmt::format("{} joined with {} slots ({})", e.node, e.num_slots, e.hardware);
  }
  std::string operator()(const PlaceLost& e) const {
    return fmt::format("place {} lost: {}", e.place.value, e.why);
  }
  std::string operator()(const JobSubmitted& e) const {
    return fmt::format("{} submitted: {}", to_string(e.job), e.spec->name);
  }
  std::string operator()(const DataCheckStarted& e) const {
    return to_string(e.job) + " has its data checked";
  }
  std::string operator()(const DataChecked& e) const {
    return fmt::format("{} data good: {} rows, at most {} steps", to_string(e.job),
                       e.facts.train_rows, e.facts.total_steps);
  }
  std::string operator()(const DataRefused& e) const {
    return fmt::format("{} data refused: {}", to_string(e.job),
                       e.faults.empty() ? "no reason given" : e.faults.front());
  }
  std::string operator()(const JobHeld& e) const { return to_string(e.job) + " held"; }
  std::string operator()(const JobReleased& e) const { return to_string(e.job) + " released"; }
  std::string operator()(const JobFinished& e) const {
    static constexpr const char* kOutcomes[] = {"succeeded", "failed", "cancelled"};
    std::string text =
        fmt::format("{} {} ({})", to_string(e.job), kOutcomes[static_cast<int>(e.outcome)],
                    e.code.empty() ? e.reason : e.code);
    if (e.step > 0) text += fmt::format(" at step {}", e.step);
    if (!e.metrics.empty()) text += ": " + metrics_of(e.metrics);
    if (!e.text.empty()) text += ": " + e.text;
    return text;
  }
  std::string operator()(const ProfileFinished& e) const {
    return fmt::format("{} profiled in {}", to_string(e.job),
                       format_duration(e.profile.seconds.count()));
  }
  std::string operator()(const ProfileFailed& e) const {
    return fmt::format("{} has no profile: {}", to_string(e.job), e.why);
  }
  std::string operator()(const StepTimed&) const { return ""; }
  std::string operator()(const TransferSettled& e) const {
    return fmt::format("{} {} {}: predicted {:.2f}x, actual {}{:.2f}x", to_string(e.job),
                       e.mode == Mode::kSpatial ? "with" : "after", to_string(e.partner),
                       e.predicted.p50, e.censored ? "at most " : "", e.actual);
  }
  std::string operator()(const PlanAdopted& e) const { return plan_text(e); }
  std::string operator()(const RoundSkipped& e) const {
    return fmt::format("round {} skipped: {}", e.round, e.why);
  }
  std::string operator()(const RunRequested& e) const {
    std::string how = e.profile ? "profile" : to_string(e.what.mode);
    if (!e.profile && e.what.mode == Mode::kTemporal && e.what.partner &&
        e.jobs == std::vector<JobId>{e.what.job})
      how += fmt::format(" from {:.2g} x {}", e.what.strength, to_string(*e.what.partner));
    return fmt::format("{} to start: {} on {} ({})", jobs_of(e.jobs), how, slots_of(e.slots),
                       to_string(e.run));
  }
  std::string operator()(const RunStarted& e) const {
    static constexpr const char* kHow[] = {"cold", "warm", "swap"};
    return fmt::format("{} runs ({}, {:.0f} ms)", to_string(e.run), kHow[static_cast<int>(e.how)],
                       e.milliseconds);
  }
  std::string operator()(const EpochEvaluated& e) const {
    return fmt::format("{} step {} (epoch {:.2g}): {}", to_string(e.job), e.evaluation.step,
                       e.evaluation.epoch, metrics_of(e.evaluation.metrics));
  }
  std::string operator()(const CheckpointCommitted& e) const {
    return fmt::format("{} checkpoint at step {}", to_string(e.job), e.step);
  }
  std::string operator()(const RunKept& e) const {
    return fmt::format("{} keeps its partner ({})", to_string(e.job), e.why);
  }
  std::string operator()(const RunSplit& e) const {
    return fmt::format("{} split from {}: {}{}", to_string(e.job), to_string(e.partner), e.why,
                       e.restart ? "; goes back to its own checkpoint" : "");
  }
  std::string operator()(const RunStopped& e) const {
    return fmt::format("{} stopped ({})", to_string(e.run), e.why);
  }
  std::string operator()(const RunLost& e) const {
    return fmt::format("{} lost: {}{}", to_string(e.run), e.why,
                       e.fault ? " (the job's own fault)" : "");
  }
  std::string operator()(const FlowAuthorised& e) const {
    return fmt::format("{} may read from {} ({})", to_string(e.to), to_string(e.from), e.kind);
  }
};

}  // namespace

std::string describe(const Event& event) { return std::visit(Describer{}, event.body); }

}  // namespace ymir::cli
