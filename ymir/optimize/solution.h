// What the solver answers: the chosen candidates, what is proved about them, and the prices that
// prove it. Values only; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "ymir/optimize/problem.h"

namespace ymir {

// A set of an odd number of jobs in which at most (size - 1) / 2 pairs can be; `price` is what
// this costs, in scaled utility.
struct OddSet {
  std::vector<JobIndex> jobs;  // ascending
  std::int64_t price = 0;
};

struct Choice {
  JobIndex first = kNoJob, second = kNoJob;  // second == kNoJob: alone; order as in add_pair
  Option option;
};

enum class Proof {
  kOptimal,   // value == bound: no plan is worth more
  kGap,       // the effort was spent, or the allowed gap reached: value <= optimum <= bound
  kDeadline,  // stopped from outside: a feasible plan and a valid bound, nothing more
};

// Dual feasible prices in scaled utility (utility * scale): for every candidate
//   utility * scale <= sum of the jobs' prices + row prices * charges + prices of the odd sets that
//   hold both jobs,
// so root_bound = sum row_price * capacity + sum job_price + sum price * (size - 1) / 2 is no less
// than scale * the value of any plan. It proves optimality by itself when
// root_bound < scale * (value + 1); what lies between was closed by enumeration.
struct Certificate {
  std::int64_t scale = 1;
  std::int64_t root_bound = 0;
  std::vector<std::int64_t> row_price;  // in the order of RoundProblem::rows(), per unit charged
  std::vector<std::int64_t> job_price;
  std::vector<OddSet> odd_sets;
};

// Work done, in counts that are equal on every machine.
struct Effort {
  int matchings = 0;
  int pricing_passes = 0;
  int active_edges = 0;
  int core_runs = 0;
  std::int64_t searches = 0;      // alternating trees grown
  std::int64_t states = 0;        // of the dynamic programme
  std::int64_t core_columns = 0;  // candidates in its last run
  std::int64_t root_gap = 0;      // root_bound - scale * value of the greedy plan
  bool warm = false;              // started from the round before
};

struct Solution {
  std::vector<Choice> chosen;  // ordered by the (smaller) key of their jobs
  std::int64_t value = 0;      // value <= optimum <= bound
  std::int64_t bound = 0;
  Proof proof = Proof::kGap;
  bool canonical = false;  // the plan is the one the tie order defines: a function of the problem
  Certificate certificate;
  Effort effort;
};

}  // namespace ymir
