// Plan: what a round wants. A wish, not a fact: control/reconcile.cc carries it out as GPUs come
// free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ymir/base/interval.h"
#include "ymir/base/short_text.h"
#include "ymir/core/job.h"

namespace ymir {

// One line of a plan: these jobs run together like this on that many GPUs.
//   normal    job alone
//   temporal  job starts from `strength` x the adapter of partner. A partner that has not finished
//             runs first, in normal mode, on these GPUs; job follows when it ends
//   spatial   job and partner train together; job is the one with the smaller id
struct Assignment {
  Mode mode = Mode::kNormal;
  JobId job{};
  std::optional<JobId> partner{};
  int gpus = 0;
  double strength = 1;
  bool operator==(const Assignment&) const = default;
};

// Why an assignment was chosen: what was believed, written into the log with the plan.
struct Card {
  Interval speedup{1, 1, 1};   // of the target, against its own solo run; 1 in normal mode
  double helps = 0;            // probability that speedup > 1
  Interval solo_seconds{};     // predicted time to target alone, from now
  Interval seconds{};          // predicted in this assignment, from its start
  double transfer_weight = 1;  // TranWt, p50
  double similarity = 0;
  ShortText<15> similarity_name{};
  ShortText<15> source{};  // exact measured interpolated model fallback prior
  bool explores = false;   // taken out of the exploration budget
};

struct PlannedAssignment {
  Assignment what{};
  Card card{};
  std::int64_t utility = 0;
  std::int64_t regret = 0;  // lower bound on what the best other choice for this job would lose
};

struct Plan {
  std::vector<PlannedAssignment> assignments{};  // ordered by job
  std::int64_t value = 0, bound = 0;             // value <= optimum <= bound
  std::string proof = "optimal";                 // optimal gap deadline
  std::vector<double> gpu_price{};               // per GPU type, in utility
  struct Waiting {
    JobId job{};
    std::string reason{};  // code and its values: "no_capacity price=12.4"
  };
  std::vector<Waiting> waiting{};  // every active job that is in no assignment
  // What the policy wants to find again in its next round, in the wish: its own numbers of a job.
  struct Memory {
    JobId job{};
    std::vector<double> values{};
  };
  std::vector<Memory> memory{};  // ordered by job; few policies need any
  bool spread = false;           // place on the emptiest nodes instead of the fewest
};

}  // namespace ymir
