// Draft: the round on its way through the passes of the pipeline: all offers, and the plan as far
// as it is made. A value of one decide(); no pass keeps anything.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ymir/schedule/pipeline.h"
#include "ymir/schedule/policy.h"

namespace ymir {

// One candidate of the forecast that this round may choose.
struct Offer {
  const Candidate* candidate = nullptr;
  // The jobs it serves: one or two, ascending. A finished source is not served, it is only read.
  JobId first{}, second{};
  // Served now: they get steps this round. B of A->B waits for A and is not among them.
  InlineVector<JobId, 2> progressing{};
  bool goes_on = false;    // exactly what runs now: nothing has to be stopped or started
  bool pair_runs = false;  // this pair runs, perhaps on another number of GPUs
  std::int64_t utility = 0;
  std::string dropped{};  // why it is off the table: "transfer_weight 0.91 < 1.1"; empty: on offer

  const Assignment& what() const { return candidate->what; }
  bool serves(JobId job) const { return first == job || second == job; }
  bool shared() const { return what().partner.has_value(); }
  // Another job must end before the target may start.
  bool pending() const { return shared() && what().mode == Mode::kTemporal && second; }
};

struct Draft {
  const Round& round;
  const PipelineOptions& options;
  std::vector<Offer> offers{};
  double quantum = 1;                                 // utility of 1.0 as an integer
  std::vector<std::size_t> chosen{};                  // indices into offers, by job
  std::map<std::size_t, std::int64_t> regret{};       // of each chosen one
  std::map<JobId, std::int64_t> regret_of_waiting{};  // of forcing each idle job's best offer
  std::map<JobId, std::string> waits{};               // known before the solve: profiling, no size
  Plan plan{};

  const Snapshot& cluster() const { return round.cluster; }
  const JobView& job(JobId id) const { return round.cluster.jobs.at(id); }
};

}  // namespace ymir
