#include "ymir/schedule/stop_loss.h"

#include <fmt/format.h>

#include <algorithm>

namespace ymir {

namespace {

// The merge of `job` in `run` that is not taken back, or null.
const Transfer* transfer_in(const JobView& job, RunId run) {
  for (const Transfer& transfer : job.transfers)
    if (transfer.run == run && transfer.verdict != Transfer::Verdict::kSplit) return &transfer;
  return nullptr;
}

// The job's quality where its own path stopped, before it took anything from a partner.
std::optional<double> own_quality(const JobView& job, const std::string& metric) {
  if (!job.profile) return std::nullopt;
  for (auto it = job.profile->evaluations.rbegin(); it != job.profile->evaluations.rend(); ++it)
    if (const auto found = it->metrics.find(metric); found != it->metrics.end())
      return found->second;
  return std::nullopt;
}

// A temporal target may go on from where it is or from its own checkpoint. Its solo curve ran from
// `own` (the checkpoint) to `expected` (now); when the merged run has covered less than the given
// part of that way, the source holds it back and its own checkpoint is the sooner start.
bool restart_is_sooner(const JobView& job, const TransferOutlook& outlook, double least_part) {
  if (!job.own_checkpoint) return false;
  if (outlook.restart_saves != 0) return outlook.restart_saves > 0;
  const std::string metric = judged_metric(job.spec);
  const std::optional<double> own = own_quality(job, metric);
  if (!own) return false;
  const double sign = larger_is_better(metric) ? 1 : -1;
  const double covered = sign * (outlook.observed - *own);
  const double solo = sign * (outlook.expected - *own);
  return covered < least_part * std::max(solo, 0.0) || covered < 0;
}

std::string describe(const TransferOutlook& outlook, std::string_view rule) {
  return fmt::format(
      "{} at epoch {:.2f}: P(sooner than going back) {:.2f}, P(too late) {:.2f}, metric {:.4g}, "
      "alone {:.4g} +- {:.2g} ({})",
      rule, outlook.epochs, outlook.helps, outlook.late, outlook.observed, outlook.expected,
      outlook.deviation, outlook.baseline.empty() ? "no baseline" : outlook.baseline);
}

constexpr std::string_view kTooLate = "likely to end too late";

// Which rule splits now; empty when none does. `temporal`: to go back loses the steps since the
// merge, so once more is lost than is allowed only what is expected to be sooner counts. A pair
// that trains together loses nothing by parting.
std::string_view failed_rule(const TransferOutlook& outlook, const StopLossOptions& options,
                             bool temporal, bool kept) {
  if (!(outlook.epochs > 0)) return {};
  if (outlook.helps < options.early_below) return "clearly worse";
  if (outlook.restart_saves > 0 && outlook.helps < options.going_back_below)
    return "its own checkpoint is sooner";
  if (outlook.epochs < options.epochs) return {};
  if (temporal && kept && outlook.epochs > outlook.allowed_epochs) return {};
  if (outlook.literal_rule_failed) return "no improvement in two epochs";
  if (outlook.helps < options.keep_above) return "worse than alone";
  if (outlook.late > options.late_above) return kTooLate;
  return {};
}

}  // namespace

Result<> StopLossOptions::validate() const {
  if (!(epochs > 0)) return Error{ErrorCode::kInvalidArgument, "stop_loss.epochs must be > 0"};
  for (const auto& [name, value] : {std::pair{"keep_above", keep_above},
                                    {"late_above", late_above},
                                    {"early_below", early_below},
                                    {"going_back_below", going_back_below},
                                    {"restart_below", restart_below}})
    if (!(value >= 0 && value <= 1))
      return Error{ErrorCode::kInvalidArgument, fmt::format("stop_loss.{} must be in 0..1", name)};
  if (early_below > keep_above)
    return Error{ErrorCode::kInvalidArgument, "stop_loss.early_below is above keep_above"};
  return Ok{};
}

std::vector<Judgement> judge(const Snapshot& now, const std::vector<TransferOutlook>& outlooks,
                             const StopLossOptions& options) {
  std::vector<Judgement> verdicts;
  std::set<RunId> split;  // either side failing splits the pair, once
  for (const bool splitting : {true, false}) {
    for (const TransferOutlook& outlook : outlooks) {
      const auto run = now.runs.find(outlook.run);
      if (run == now.runs.end() || run->second.stopping || split.contains(outlook.run)) continue;
      const RunView& view = run->second;
      if (view.what.mode == Mode::kNormal || !view.what.partner) continue;
      if (!std::ranges::count(view.jobs, outlook.job)) continue;
      const JobView& job = now.jobs.at(outlook.job);
      const Transfer* transfer = transfer_in(job, outlook.run);
      if (job.ended() || !transfer) continue;

      const bool temporal = view.what.mode == Mode::kTemporal;
      const bool kept = transfer->verdict == Transfer::Verdict::kKept;
      const std::string_view rule = failed_rule(outlook, options, temporal, kept);
      if (splitting != !rule.empty()) continue;
      if (rule.empty() && (kept || outlook.epochs < options.epochs)) continue;
      Judgement verdict{
          .run = outlook.run,
          .job = outlook.job,
          .partner = outlook.job == view.what.job ? *view.what.partner : view.what.job,
          .split = splitting,
          .helps = outlook.helps,
          .why = describe(outlook, splitting ? rule : "improves")};
      if (splitting) {
        split.insert(outlook.run);
        verdict.restart =
            temporal && (rule == kTooLate ? job.own_checkpoint.has_value()
                                          : restart_is_sooner(job, outlook, options.restart_below));
      }
      verdicts.push_back(std::move(verdict));
    }
  }
  return verdicts;
}

}  // namespace ymir
