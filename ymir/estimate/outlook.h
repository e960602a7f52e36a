// Outlook: what is believed of transfers that run, and what became of those that ended. The
// baseline is always the job's own expectation of how it would do alone. Pure, any thread.
#pragma once

#include <vector>

#include "ymir/core/forecast.h"
#include "ymir/core/snapshot.h"
#include "ymir/estimate/knowledge.h"
#include "ymir/estimate/transfer_curve.h"

namespace ymir {

// What the claim "faster than alone" is measured against.
struct Baseline {
  std::string name{};       // measured (another job on the same data ran alone), predicted, prior
  Interval steps{1, 1, 1};  // alone, from the very beginning
};
Baseline baseline_of(const Snapshot& now, const JobView& job, const SoloBelief& alone);

// Belief about the job's merge `transfer`, from the card it started with and what was seen since.
MergedBelief merged_belief(const SoloBelief& alone, const JobView& job, const Transfer& transfer);

// One for each member of a running pair or temporal target whose merge is not taken back.
std::vector<TransferOutlook> outlooks(const Snapshot& now, const Knowledge& knowledge);

// Transfers that ended and have no TransferSettled. Censoring: met both ways gives
// a number; split, or not met with the partner, an upper bound; a job that was cancelled or failed
// says nothing and is left out.
std::vector<TransferSettled> settlements(const Snapshot& now, const Knowledge& knowledge);

}  // namespace ymir
