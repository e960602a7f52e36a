// check_log: reads a log as a stranger would and verifies everything that must hold (`ymir replay
// LOG --check`). It keeps its own account of jobs, slots and charges beside the fold, so that a
// fault in the fold shows.
//
// Verified: sqlite's check, seqs without a gap, times that do not fall, the chain of hashes, kinds
// and versions known, each event allowed where it stands, ranks of states that do not fall, each
// job ends once, no slot taken twice, no adopted plan holds an ended job, nothing is charged to a
// job after its end, a flow is on record before a run learns from a partner, and that each newest
// checkpoint that is still on disk has the hash that the log names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/store/event_log.h"

namespace ymir {

struct LogFault {
  std::uint64_t seq = 0;  // of the event where it shows
  std::string text{};
};

struct LogReport {
  std::uint64_t events = 0, jobs = 0, ended = 0, runs = 0, rounds = 0, flows = 0;
  std::uint64_t checkpoints_verified = 0, checkpoints_gone = 0;
  std::string head{};              // hash of the newest row
  std::vector<LogFault> faults{};  // at most kMaxFaults
  bool sound() const { return faults.empty(); }
};
inline constexpr std::size_t kMaxFaults = 100;

// Of a file; an error when it cannot be opened or is not a log.
Result<LogReport> check_log(const std::string& path);
// Of an open log: everything but the file itself and the stored hashes.
Result<LogReport> check_log(const EventLog& log);

}  // namespace ymir
