// Similarity: how much a source may help a target, by name. Larger = more help.
//
//   probe    evidence of the target's labels with the source's adapter minus without; directed;
//            the default wherever the source has an adapter
//   cosine   of normalised task vectors; not directed
//   asym     task-vector distance, less for complex sources; directed
//   zero     the control that every other must beat
//
// Task vectors with different keys are never compared, unreliable ones are refused. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/core/snapshot.h"

namespace ymir {

// All that is known of one job as source or target.
struct TaskEvidence {
  JobId job{};
  const TaskVector* vector = nullptr;  // may be missing
  std::span<const Probe> probes{};     // of this job as target
};
TaskEvidence evidence_of(const JobView& job);

// kInvalidArgument for an unknown name, kNotFound when an input is missing, kConflict when keys
// differ or a vector is unreliable. `strength`: of the probe; the nearest one is taken.
Result<double> similarity(std::string_view name, const TaskEvidence& source,
                          const TaskEvidence& target, double strength);
std::vector<std::string> similarity_names();

// cos(a/(a+b+e), b/(a+b+e)) of vectors of mean 1: clears the directions that every task has.
double fisher_cosine(std::span<const float> a, std::span<const float> b);

}  // namespace ymir
