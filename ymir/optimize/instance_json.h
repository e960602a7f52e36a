// Round problems and their answers as JSON, in the form of the `ymir optimize` command.
//
//   {"capacity": [240],
//    "blocks":   [[240, 120, 60, 30]],                                   (optional, by type)
//    "jobs":  [{"id": "j1", "options": [{"utility": 120, "gpus": 1, "type": 0}]}],
//    "pairs": [{"a": "j1", "b": "j2", "options": [{..., "mode": "temporal_ab"}]}],
//    "rows":  [{"name": "tenantA", "capacity": 16, "use": {"j1": 1.0, "j2": 0.5}}]}
//
// "type" defaults to 0 and "mode" to "normal". Shares in "use" are multiples of 1/16; a pair
// charges the mean of its members' shares. Tie keys are hashes of the ids. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/optimize/problem.h"
#include "ymir/optimize/solution.h"

namespace ymir {

struct NamedRound {
  RoundProblem problem;
  std::vector<std::string> ids;        // by JobIndex
  std::vector<std::string> row_names;  // of the extra rows
};

inline constexpr std::size_t kMaxInstanceBytes = std::size_t{1} << 29;

// Names what is wrong and where; the problem of the result satisfies validate().
Result<NamedRound> parse_instance(std::string_view json, std::size_t max_bytes = kMaxInstanceBytes);
// One job or pair a line. What dominance dropped is not written.
std::string write_instance(const NamedRound& round);

// "value", "bound", "proof", "chosen", "gpu_price", "job_price", "row_price", "certificate",
// "effort", "solve_ms"; prices are in utility. Candidates in the order of the instance.
std::string write_solution(const NamedRound& round, const Solution& solution,
                           std::int64_t microseconds);
// The certificate alone, in scaled integers.
std::string write_certificate(const NamedRound& round, const Certificate& certificate);

struct ParsedSolution {
  Solution solution;
  bool has_certificate = false;
};
// What write_solution() wrote, or another program that keeps to the contract (without certificate).
Result<ParsedSolution> parse_solution(const NamedRound& round, std::string_view json);

std::string_view mode_name(std::uint8_t mode);  // "normal", "temporal_ab", "temporal_ba", "spatial"
std::string_view proof_name(Proof proof);       // "optimal", "gap", "deadline"

}  // namespace ymir
