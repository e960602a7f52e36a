// The files of a simulation as texts (docs/simulate.md): one row a job, a span of a GPU, a round, a
// merge; and over policies and seeds. Numbers as short as they read back exactly. Pure.
#pragma once

#include <string>
#include <vector>

#include "ymir/sim/metrics/record.h"
#include "ymir/sim/metrics/summary.h"

namespace ymir {

std::string jobs_csv(const RunRecord& record);
// gpu,node,from_s,to_s,job,kind; kind: switch, normal, temporal, spatial, profile, redone.
std::string timeline_csv(const RunRecord& record);
std::string rounds_csv(const RunRecord& record);
// One row a merge; true_weight: true TranWt at its GPUs, empty where no truth is known.
std::string pairs_csv(const RunRecord& record, const PairTruth* truth);
// `config`: JSON, echoed with its hash.
std::string summary_json(const SimulationSummary& summary, const std::string& config);

// Completion times of each job under each policy, of one seed. The policies had the same jobs.
std::string compare_csv(const std::vector<const RunRecord*>& records);
std::string seeds_csv(const std::vector<SimulationSummary>& summaries);

}  // namespace ymir
