// Capacity of a round as the solver counts it. Private to the passes.
#pragma once

#include "ymir/optimize/problem.h"
#include "ymir/schedule/draft.h"

namespace ymir {

// Sizes that are powers of two pack exactly: on equal nodes of such a size with one row of all
// GPUs, on other nodes when the solver is told how many blocks of each power of two they hold. For
// other sizes the sum is only necessary, and the pass `place` takes out what finds no node.
Capacity capacity_of(const Draft& draft);

}  // namespace ymir
