// Beliefs: what the controller asks of an estimator, as functions. The service binds the real
// Estimator; a simulation with an oracle, and tests, bind their own.
#pragma once

#include <functional>
#include <vector>

#include "ymir/core/forecast.h"
#include "ymir/core/snapshot.h"
#include "ymir/estimate/estimator.h"

namespace ymir {

struct Beliefs {
  // Called for each event in the order of the log, after it was applied to the snapshot.
  std::function<void(const Event&, const Snapshot&)> observe{};
  std::function<Forecast(const Snapshot&)> forecast{};
  // Of the running transfers alone: asked after each evaluation of one.
  std::function<std::vector<TransferOutlook>(const Snapshot&)> outlooks{};
  // Transfers that ended and have no TransferSettled yet.
  std::function<std::vector<TransferSettled>(const Snapshot&)> settle{};
  // Sources worth probing for a job, most promising first.
  std::function<std::vector<Estimator::ProbeWish>(const Snapshot&, JobId)> probes_wanted{};
  // Links of the forecast that are given from now on, for studies; empty: it can't be told any.
  std::function<void(KnownLinks)> know{};
};

// `estimator` outlives the result.
Beliefs bind(Estimator& estimator);

}  // namespace ymir
