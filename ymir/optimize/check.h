// Checks a solution against its problem without the solver: shares no code with it.
#pragma once

#include "ymir/base/result.h"
#include "ymir/optimize/problem.h"
#include "ymir/optimize/solution.h"

namespace ymir {

// Names the first fault: a job chosen twice, a candidate that was not offered, a row overdrawn, a
// value that is not the sum, a bound or proof that the certificate does not allow, a price that is
// negative or undercut. What the dynamic programme closed between the root bound and the value is
// proved by enumeration and cannot be read from prices.
Result<> check_solution(const RoundProblem& problem, const Solution& solution);

}  // namespace ymir
