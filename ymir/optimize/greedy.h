// Greedy: a good plan that fits, from the matching at hand.
//
// Where the matching overdraws a row, its pairs stay together (or run apart) and the row prices are
// raised by a common factor until what every pair and job likes best just fits. Then what is left
// goes to the changes that bring most utility per GPU: larger or smaller candidates of what is
// chosen, idle jobs, alone or in active pairs. Deterministic; ties go by the keys.
#pragma once

#include <vector>

#include "ymir/optimize/active_graph.h"
#include "ymir/optimize/prices.h"
#include "ymir/optimize/problem.h"

namespace ymir {

std::vector<Pick> greedy_plan(const RoundProblem& problem, const Prices& prices,
                              const ActiveGraph& graph);

}  // namespace ymir
