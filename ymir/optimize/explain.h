// Reasons in numbers: what a candidate would cost, from the prices of a solution.
//
// Every price is proved by the certificate, so a lower bound on a loss needs no solve; the exact
// figure is one solve_forcing() away. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ymir/base/result.h"
#include "ymir/optimize/planner.h"
#include "ymir/optimize/problem.h"
#include "ymir/optimize/solution.h"

namespace ymir {

// Why a candidate is worth it or not, in scaled utility: its reduced cost is
// rows + jobs + sets - own, never negative.
struct PriceTag {
  std::int64_t own = 0;   // its utility
  std::int64_t rows = 0;  // what its GPUs (and quotas) are worth to others
  std::int64_t jobs = 0;  // what its jobs are worth elsewhere
  std::int64_t sets = 0;  // what pairing inside odd sets costs
  std::int64_t reduced_cost() const { return rows + jobs + sets - own; }
};
PriceTag price_tag(const RoundProblem& problem, const Solution& solution, const Choice& choice);

// At least this much utility is lost, against solution.value, by any plan that holds the choice.
// 0 for what was chosen.
std::int64_t regret(const RoundProblem& problem, const Solution& solution, const Choice& choice);

// The best plan that holds the choice (which need not have been offered). Refuses one that does
// not fit. The certificate is that of the rest: without the jobs of the choice, and what it charges
// taken from the rows.
Result<Solution> solve_forcing(const RoundProblem& problem, const Choice& choice,
                               const Limits& limits = {});

// One sentence for people. Utilities are divided by `quantum` (what one unit of utility was
// multiplied by before the solve).
std::string explain(const RoundProblem& problem, const Solution& solution, const Choice& choice,
                    std::string_view first_name, std::string_view second_name = "",
                    double quantum = 1);

}  // namespace ymir
