// Stop-loss: takes a wrong pairing back [Ymir, sec. 4.3]. Pure: a function of the snapshot and of
// what the estimator believes of each running transfer.
//
// A pairing is judged at every evaluation: at the first ones only what is clearly wrong is taken
// back; after two epochs what is not better than going on alone, or what is likely to end too late
// (a temporal target then loses those two epochs and not more); later, since what leads early may
// lose late, again at each evaluation until the job ends.
#pragma once

#include <string>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/core/forecast.h"
#include "ymir/core/snapshot.h"

namespace ymir {

struct StopLossOptions {
  double epochs = kAllowedEpochs;  // judged after this many epochs of the target's own data
  double keep_above = 0.5;         // P(helps) below this at that point: split
  double late_above = 0.3;         // P(ends too late) above this at that point: split
  double early_below = 0.1;        // P(helps) below this at any evaluation: split
  // At any evaluation: a temporal target that is expected to end sooner from its own checkpoint
  // (TransferOutlook::restart_saves) is split when P(helps) is below this.
  double going_back_below = 0.35;
  // A split temporal target of which restart_saves is not known goes back to its own checkpoint
  // when it covered less than this part of what its solo run would have gained since.
  double restart_below = 0.5;
  Result<> validate() const;
};

struct Judgement {
  RunId run{};
  JobId job{};  // whose outlook decided
  JobId partner{};
  bool split = false;    // else: kept for now (said once, after `epochs`)
  bool restart = false;  // from the checkpoint of before the merge (temporal, when that is sooner)
  double helps = 0;
  std::string why{};
};

// One judgement for each running transfer that is split or kept for the first time; none for those
// that go on as they are.
std::vector<Judgement> judge(const Snapshot& now, const std::vector<TransferOutlook>& outlooks,
                             const StopLossOptions& options);

}  // namespace ymir
