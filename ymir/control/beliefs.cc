#include "ymir/control/beliefs.h"

namespace ymir {

Beliefs bind(Estimator& estimator) {
  return Beliefs{
      .observe = [&estimator](const Event& event,
                              const Snapshot& after) { estimator.observe(event, after); },
      .forecast = [&estimator](const Snapshot& now) { return estimator.forecast(now); },
      .outlooks = [&estimator](const Snapshot& now) { return estimator.outlooks(now); },
      .settle = [&estimator](const Snapshot& now) { return estimator.settle(now); },
      .probes_wanted = [&estimator](const Snapshot& now,
                                    JobId target) { return estimator.probes_wanted(now, target); },
      .know = [&estimator](KnownLinks links) { estimator.know(std::move(links)); }};
}

}  // namespace ymir
