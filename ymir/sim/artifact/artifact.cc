#include "ymir/sim/artifact/artifact.h"

namespace ymir::artifact {

const std::vector<Policy>& policies() {
  static const std::vector<Policy> kAll = [] {
    std::vector<Policy> all;
    for (const auto& group : {pollux_policies(), titan_policies(), events_policies()})
      all.insert(all.end(), group.begin(), group.end());
    return all;
  }();
  return kAll;
}

}  // namespace ymir::artifact
