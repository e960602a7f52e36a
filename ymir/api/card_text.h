// The estimator's card of a decision, as text for people (`ymir explain`): every
// number with its interval and where it comes from. Pure, any thread.
#pragma once

#include <string>

#include "ymir/core/snapshot.h"

namespace ymir {

// Several lines, each ended. `settled` (of the same transfer) adds what it really gave.
std::string describe_card(const JobView& job, const Assignment& what, const Card& card,
                          const TransferSettled* settled);

}  // namespace ymir
