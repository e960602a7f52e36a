// Planner: solves a RoundProblem to a proved optimum.
//
// The relaxation (prices on the rows, a maximum-weight matching of the jobs) is solved exactly;
// what gap is left is closed by a dynamic programme over the few candidates that could be in a
// better plan. The steps are those of Planner::solve, in its order.
//
// Same problem, same answer: on every machine, for any order of jobs and options, and whether the
// planner has solved other rounds before or not (as long as the effort suffices; the plan is then
// marked canonical). Ties go to the plan whose candidates have the least sum of hashed identities.
// Effort is counted, never timed. Integer arithmetic only. One thread; memory is kept between
// calls.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>

#include "ymir/base/result.h"
#include "ymir/optimize/problem.h"
#include "ymir/optimize/solution.h"

namespace ymir {

struct Limits {
  double relative_gap = 0;            // accept value >= (1 - relative_gap) * bound; 0: exact
  std::int64_t max_states = 400'000;  // of one run of the dynamic programme
  int max_matchings = 500;
  int warm_from_jobs = 2000;  // rounds with fewer jobs are solved afresh: it is faster
  Result<> validate() const;
};

class Planner {
 public:
  Planner();
  ~Planner();
  Planner(Planner&&) noexcept;
  Planner& operator=(Planner&&) noexcept;

  // `problem` must satisfy validate(). The stop token is for a guard on the wall clock: it is asked
  // about once a millisecond (a single sort of the dynamic programme can last some tens) and yields
  // Proof::kDeadline with a feasible plan.
  Solution solve(const RoundProblem& problem, const Limits& limits = {}, std::stop_token stop = {});
  // Drops what is kept from earlier rounds for a warm start.
  void forget();

 private:
  class Solver;
  std::unique_ptr<Solver> solver_;
};

}  // namespace ymir
