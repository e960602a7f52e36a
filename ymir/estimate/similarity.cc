#include "ymir/estimate/similarity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ymir/base/text.h"

namespace ymir {
namespace {

constexpr double kLeastSplitHalf = 0.95;  // cosine of the vectors of the two halves of the rows
constexpr double kEpsilon = 1e-8;
constexpr double kAlpha = 0.15, kTrivial = 0.01;  // of `asym`: weight and size of the empty task

Result<> comparable(const TaskEvidence& source, const TaskEvidence& target) {
  for (const TaskEvidence* side : {&source, &target}) {
    if (!side->vector || side->vector->fisher.empty()) {
      return Error{ErrorCode::kNotFound, fmt::format("no task vector: {}", to_string(side->job))};
    }
    if (side->vector->split_half < kLeastSplitHalf) {
      return Error{ErrorCode::kConflict,
                   fmt::format("task vector is unreliable: {} split-half {:.3f}",
                               to_string(side->job), side->vector->split_half)};
    }
  }
  if (source.vector->key != target.vector->key ||
      source.vector->fisher.size() != target.vector->fisher.size()) {
    return Error{ErrorCode::kConflict, fmt::format("task vectors of other settings: {} and {}",
                                                   to_string(source.job), to_string(target.job))};
  }
  return Ok{};
}

Result<double> probe(const TaskEvidence& source, const TaskEvidence& target, double strength) {
  const Probe* nearest = nullptr;
  for (const Probe& each : target.probes) {
    if (each.source != source.job || !std::isfinite(each.value)) continue;
    if (!nearest || std::abs(each.strength - strength) < std::abs(nearest->strength - strength)) {
      nearest = &each;
    }
  }
  if (!nearest) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("no probe of {} on {}", to_string(source.job), to_string(target.job))};
  }
  return nearest->value;
}

Result<double> cosine(const TaskEvidence& source, const TaskEvidence& target, double) {
  YMIR_TRY(comparable(source, target));
  return fisher_cosine(source.vector->fisher, target.vector->fisher);
}

// Unscaled vectors, so that the size of the source's says how complex it is.
Result<double> asym(const TaskEvidence& source, const TaskEvidence& target, double) {
  YMIR_TRY(comparable(source, target));
  auto scaled = [](const TaskVector& v, double scale) {
    std::vector<float> out;
    for (const float x : v.fisher)
      out.push_back(static_cast<float>(scale * static_cast<double>(x)));
    return out;
  };
  const std::vector<float> a = scaled(*source.vector, source.vector->scale);
  const std::vector<float> b = scaled(*target.vector, target.vector->scale);
  const std::vector<float> trivial(
      a.size(), static_cast<float>(kTrivial * (source.vector->scale + target.vector->scale) / 2));
  return -((1 - fisher_cosine(a, b)) - kAlpha * (1 - fisher_cosine(a, trivial)));
}

Result<double> zero(const TaskEvidence&, const TaskEvidence&, double) { return 0.0; }

struct Measure {
  std::string_view name;
  Result<double> (*function)(const TaskEvidence&, const TaskEvidence&, double);
};
constexpr std::array<Measure, 4> kMeasures{
    {{"probe", probe}, {"cosine", cosine}, {"asym", asym}, {"zero", zero}}};

}  // namespace

TaskEvidence evidence_of(const JobView& job) {
  return {job.id, job.profile ? &job.profile->vector : nullptr, job.probes};
}

std::vector<std::string> similarity_names() {
  std::vector<std::string> names;
  for (const Measure& measure : kMeasures) names.emplace_back(measure.name);
  return names;
}

Result<double> similarity(std::string_view name, const TaskEvidence& source,
                          const TaskEvidence& target, double strength) {
  const auto found = std::ranges::find(kMeasures, name, &Measure::name);
  if (found == kMeasures.end()) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("no such similarity: {} (known: {})",
                                                          name, join(similarity_names(), " "))};
  }
  return found->function(source, target, strength);
}

double fisher_cosine(std::span<const float> a, std::span<const float> b) {
  YMIR_CHECK(a.size() == b.size(), "task vectors of different size");
  double uu = 0, ww = 0, uw = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    const double u = x / (x + y + kEpsilon), w = y / (x + y + kEpsilon);
    uu += u * u;
    ww += w * w;
    uw += u * w;
  }
  return uu > 0 && ww > 0 ? uw / std::sqrt(uu * ww) : 0;
}

}  // namespace ymir
