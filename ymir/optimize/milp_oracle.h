// General MILP solvers as oracles and peers: the round problem as a plain integer programme, solved
// by another program (GLPK's glpsol, CBC's cbc, HiGHS through its Python module). Tests and
// benchmarks only; nothing of it is linked into the product.
#pragma once

#include <cstdint>
#include <string>

#include "ymir/optimize/problem.h"

namespace ymir {

enum class Milp { kGlpk, kCbc, kHighs };

struct MilpAnswer {
  bool solved = false;     // proved optimal at gap 0 (absolute gap below one quantum)
  std::int64_t value = 0;  // of the solution given, added up in integers
  double cpu_seconds = 0;  // user + system of the solve, without reading the model
};

// Is the program there? HiGHS: the Python interpreter named by YMIR_HIGHS_PYTHON has highspy.
bool have_milp(Milp solver);
const char* milp_name(Milp solver);
// One binary column per candidate, in the order of alone_candidates() and pair_candidates().
void write_mps(const RoundProblem& problem, const std::string& path);
// `folder` is for files of the run and must exist. The limit is in CPU seconds, so that it means
// the same on a busy machine, and covers reading the model.
MilpAnswer solve_milp(Milp solver, const RoundProblem& problem, const std::string& folder,
                      int cpu_limit_s);

}  // namespace ymir
