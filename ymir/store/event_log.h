// EventLog: the one place where what happened is kept. Rows are appended in batches, each batch one
// transaction, durable when append() returns; rows are never changed. Each row carries
// sha256(hash of the row before, row), so that one flipped byte is found and located.
//
// A failed append is final: what the disk holds is unknown, so every later append fails too, and
// the program must end and replay. One thread appends; readers open their own read-only log.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/core/event.h"
#include "ymir/core/snapshot.h"

namespace ymir {

class EventLog {
 public:
  virtual ~EventLog() = default;

  // The seqs must go on from last_seq() without a gap (else kInvalidArgument, nothing is written).
  virtual Result<> append(std::span<const Event> batch) = 0;
  // The same; a log in memory keeps the events themselves. `batch` is empty afterwards.
  virtual Result<> take(std::vector<Event>& batch) {
    YMIR_TRY(append(batch));
    batch.clear();
    return Ok{};
  }

  // At most `limit` events with seq >= from, in order.
  virtual Result<std::vector<Event>> read(std::uint64_t from, std::size_t limit) const = 0;

  virtual std::uint64_t last_seq() const = 0;
  virtual std::string head_hash() const = 0;  // of the newest row; empty when there is none
};

// In memory, for simulations and tests: nothing survives.
std::unique_ptr<EventLog> make_memory_log();

// In SQLite (WAL, synchronous=FULL), created when absent. Takes a lock on `path`.lock for its life:
// a second writer is refused (kConflict). Checks the file, the chain of hashes and that each kind
// and version is known (else kCorruption, or kNotFound that names it).
Result<std::unique_ptr<EventLog>> open_log(const std::string& path);

// The same file for reading, beside a writer; append() is refused. read() sees what was committed.
Result<std::unique_ptr<EventLog>> open_log_for_reading(const std::string& path);

// All events of the file, in order.
Result<std::vector<Event>> read_log(const std::string& path);

// Passes on to `inner`, but the `nth` append (from 1) fails with `error` and all after it too.
std::unique_ptr<EventLog> make_faulty_log(std::unique_ptr<EventLog> inner, std::uint64_t nth,
                                          Error error);

// Folds the whole log; `each`, if given, sees every event after it was applied. kCorruption when an
// event is not allowed where it stands.
Result<Snapshot> replay(const EventLog& log,
                        const std::function<void(const Event&, const Snapshot&)>& each = {});

}  // namespace ymir
