// Forecast: what the estimator believes this round, as numbers the scheduler can weigh.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ymir/base/inline_vector.h"
#include "ymir/base/interval.h"
#include "ymir/core/plan.h"

namespace ymir {

struct MemberForecast {
  JobId job{};
  Interval steps{};      // left until the job's own target (or its end)
  Interval finish_in{};  // seconds from the start of this assignment, switch included
};

struct Candidate {
  Assignment what{};
  InlineVector<MemberForecast, 2> members{};  // one, or two for a pair; the job first
  Interval transfer_weight{1, 1, 1};          // TranWt: sum of JCTs alone (SRTF) / in this mode
  double work_ratio = 1;                      // GPU-seconds alone / in this mode
  double expected_saving = 0;                 // seconds, stop-loss included; > 0 to be worth it
  Seconds switch_cost{};
  Card card{};
};

// What a transfer that does not help may cost its target. It takes two epochs to judge one.
inline constexpr double kAllowedShare = 0.1, kAllowedEpochs = 2;

// What is believed of a running transfer: read by schedule/stop_loss.
struct TransferOutlook {
  RunId run{};
  JobId job{};
  double helps = 0.5;                 // P(going on ends sooner than going back to go on alone)
  double epochs = 0;                  // of the job's own data seen in this run
  bool literal_rule_failed = false;   // the metric has not improved over evaluation 0 / two epochs
  std::string baseline{};             // measured, predicted or prior
  double observed = 0, expected = 0;  // metric now, and what solo would have now
  double deviation = 0;               // standard deviation of `expected`
  // Expected seconds saved by going back to the job's own checkpoint; < 0: going on is sooner.
  double restart_saves = 0;
  // P(it ends too late: later than without this transfer by more than kAllowedShare of its time
  // alone and by more than kAllowedEpochs of its steps).
  double late = 0;
  double allowed_epochs = kAllowedEpochs;  // after these, going back itself costs more than that
};

// A link of the estimate that would not give a number, and why.
struct Refused {
  JobId job{};
  JobId partner{};
  std::string why{};
};

struct Forecast {
  std::vector<Candidate> candidates{};
  std::vector<TransferOutlook> outlooks{};
  std::vector<Refused> refused{};
};

}  // namespace ymir
