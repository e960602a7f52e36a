// Rows of the log as they lie in the file: what the chain of hashes covers, and what a check reads
// even when a program cannot understand it. Private to ymir/store/.
#pragma once

#include <cstdint>
#include <string>

#include "ymir/base/result.h"
#include "ymir/core/event.h"

namespace ymir {

struct LogRow {
  std::uint64_t seq = 0;
  std::int64_t at = 0;  // microseconds
  std::uint64_t era = 0;
  std::string kind{};
  int version = 0;
  std::string job{};  // the first one that the event is about; may be empty
  std::string run{};
  std::string actor{};
  std::string body{};  // canonical JSON
  std::string hash{};  // sha256(hash of the row before, all of the above)
};

// `era` is the one of the newest DaemonStarted, this event included. The hash is left empty.
LogRow to_row(const Event& event, std::uint64_t era);
Result<Event> to_event(const LogRow& row);
std::string hash_of(const LogRow& row, const std::string& previous);

}  // namespace ymir
