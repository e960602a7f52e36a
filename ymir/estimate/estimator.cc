#include "ymir/estimate/estimator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ymir/estimate/candidates.h"
#include "ymir/estimate/outlook.h"
#include "ymir/estimate/similarity.h"

namespace ymir {
namespace {

Error invalid(const char* field, const char* rule, double value) {
  return {ErrorCode::kInvalidArgument, fmt::format("estimator.{} {}: {}", field, rule, value)};
}

}  // namespace

Result<> EstimatorOptions::validate() const {
  for (const auto& [name, value] : {std::pair{"exploration_share", exploration_share},
                                    {"admit_above", admit_above},
                                    {"explore_above", explore_above},
                                    {"explore_delay", explore_delay}}) {
    if (!(value >= 0 && value <= 1)) return invalid(name, "must be in 0..1", value);
  }
  for (const double strength : strengths) {
    if (!(strength > 0 && strength <= 1))
      return invalid("strengths", "must be in (0, 1]", strength);
  }
  if (!(default_strength > 0 && default_strength <= 1)) {
    return invalid("default_strength", "must be in (0, 1]", default_strength);
  }
  if (!std::isfinite(explore_similarity)) {
    return invalid("explore_similarity", "must be finite", explore_similarity);
  }
  if (max_probe_sources < 0) return invalid("max_probe_sources", "must be >= 0", max_probe_sources);
  if (std::ranges::count(similarity_names(), similarity) == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("estimator.similarity: no such similarity: {}", similarity)};
  }
  return Ok{};
}

Estimator::Estimator(EstimatorOptions options, std::shared_ptr<CurveHints> hints)
    : options_(std::move(options)), knowledge_(std::move(hints)) {}

Result<Estimator> Estimator::create(EstimatorOptions options, std::shared_ptr<CurveHints> hints) {
  YMIR_TRY(options.validate());
  return Estimator(std::move(options), std::move(hints));
}

void Estimator::observe(const Event& event, const Snapshot& after) {
  knowledge_.observe(event, after);
}

Forecast Estimator::forecast(const Snapshot& now) const {
  Forecast forecast;
  add_candidates(now, knowledge_, options_, known_, forecast);
  forecast.outlooks = outlooks(now);
  return forecast;
}

std::vector<TransferOutlook> Estimator::outlooks(const Snapshot& now) const {
  return ymir::outlooks(now, knowledge_);
}

std::vector<TransferSettled> Estimator::settle(const Snapshot& now) const {
  return settlements(now, knowledge_);
}

// Promising, before any probe: close task vectors where both have one; the same kind of task; a
// source that has seen more rows. Finished sources first, they can be used at once.
std::vector<Estimator::ProbeWish> Estimator::probes_wanted(const Snapshot& now,
                                                           JobId target) const {
  const auto found = now.jobs.find(target);
  if (!options_.transfer || options_.similarity != "probe" || found == now.jobs.end()) return {};
  const JobView& job = found->second;
  if (!job.active() || job.merged || job.has_progress() || !has_target(job.spec)) return {};

  struct Ranked {
    JobId source{};
    double promise = 0;
  };
  std::vector<Ranked> ranked;
  for (const auto& [id, source] : now.jobs) {
    if (id == target || (source.state != JobState::kSucceeded && !source.active())) continue;
    if (!cannot_share(source, job, Mode::kTemporal).empty() || source.adapter().empty()) continue;
    const bool probed = std::ranges::any_of(
        job.probes, [&, s = id](const Probe& probe) { return probe.source == s; });
    if (probed) continue;
    Ranked r{id, 0};
    const Result<double> cosine =
        similarity("cosine", evidence_of(source), evidence_of(job), options_.default_strength);
    if (cosine) r.promise += 4 * *cosine;
    if (source.state == JobState::kSucceeded) r.promise += 2;
    if (source.spec.kind == job.spec.kind) r.promise += 1;
    r.promise +=
        0.2 * std::log(static_cast<double>(std::max<std::int64_t>(source.facts.train_rows, 1)));
    ranked.push_back(r);
  }
  std::ranges::stable_sort(ranked,
                           [](const Ranked& a, const Ranked& b) { return a.promise > b.promise; });
  std::vector<ProbeWish> wishes;
  for (const Ranked& r : ranked) {
    if (static_cast<int>(wishes.size()) == options_.max_probe_sources) break;
    wishes.push_back({r.source, options_.default_strength});
  }
  return wishes;
}

}  // namespace ymir
