#include "ymir/store/event_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "ymir/store/rows.h"
#include "ymir/store/sqlite_log.h"

namespace ymir {
namespace {

class MemoryLog final : public EventLog {
 public:
  Result<> append(std::span<const Event> batch) override {
    for (std::size_t i = 0; i < batch.size(); ++i)
      if (batch[i].seq != events_.size() + 1 + i)
        return Error{ErrorCode::kInvalidArgument, fmt::format("event {} appended after event {}",
                                                              batch[i].seq, events_.size() + i)};
    events_.insert(events_.end(), batch.begin(), batch.end());
    return Ok{};
  }
  Result<std::vector<Event>> read(std::uint64_t from, std::size_t limit) const override {
    const std::size_t first = std::min<std::uint64_t>(from == 0 ? 0 : from - 1, events_.size());
    const std::size_t count = std::min(limit, events_.size() - first);
    const auto begin = events_.begin() + static_cast<std::ptrdiff_t>(first);
    return std::vector<Event>(begin, begin + static_cast<std::ptrdiff_t>(count));
  }
  std::uint64_t last_seq() const override { return events_.size(); }
  // Computed when asked: a simulation of millions of events rarely does.
  std::string head_hash() const override {
    std::string head;
    std::uint64_t era = 0;
    for (const Event& event : events_) {
      if (const auto* started = std::get_if<DaemonStarted>(&event.body)) era = started->era;
      head = hash_of(to_row(event, era), head);
    }
    return head;
  }

 private:
  std::vector<Event> events_{};
};

class FaultyLog final : public EventLog {
 public:
  FaultyLog(std::unique_ptr<EventLog> inner, std::uint64_t nth, Error error)
      : inner_(std::move(inner)), left_(nth), error_(std::move(error)) {}
  Result<> append(std::span<const Event> batch) override {
    if (left_ > 0) --left_;
    if (left_ == 0) return error_;
    return inner_->append(batch);
  }
  Result<std::vector<Event>> read(std::uint64_t from, std::size_t limit) const override {
    return inner_->read(from, limit);
  }
  std::uint64_t last_seq() const override { return inner_->last_seq(); }
  std::string head_hash() const override { return inner_->head_hash(); }

 private:
  std::unique_ptr<EventLog> inner_;
  std::uint64_t left_;
  Error error_;
};

}  // namespace

std::unique_ptr<EventLog> make_memory_log() { return std::make_unique<MemoryLog>(); }

Result<std::unique_ptr<EventLog>> open_log(const std::string& path) {
  YMIR_TRY_ASSIGN(std::unique_ptr<SqliteLog> log, SqliteLog::open(path, true));
  YMIR_TRY(log->verify());
  return std::unique_ptr<EventLog>(std::move(log));
}

Result<std::unique_ptr<EventLog>> open_log_for_reading(const std::string& path) {
  YMIR_TRY_ASSIGN(std::unique_ptr<SqliteLog> log, SqliteLog::open(path, false));
  return std::unique_ptr<EventLog>(std::move(log));
}

Result<std::vector<Event>> read_log(const std::string& path) {
  constexpr std::size_t kPage = 1000;
  YMIR_TRY_ASSIGN(const std::unique_ptr<EventLog> log, open_log_for_reading(path));
  std::vector<Event> all;
  while (true) {
    YMIR_TRY_ASSIGN(std::vector<Event> page, log->read(all.size() + 1, kPage));
    std::ranges::move(page, std::back_inserter(all));
    if (page.size() < kPage) return all;
  }
}

std::unique_ptr<EventLog> make_faulty_log(std::unique_ptr<EventLog> inner, std::uint64_t nth,
                                          Error error) {
  return std::make_unique<FaultyLog>(std::move(inner), nth, std::move(error));
}

Result<Snapshot> replay(const EventLog& log,
                        const std::function<void(const Event&, const Snapshot&)>& each) {
  constexpr std::size_t kPage = 1000;
  Snapshot state;
  for (;;) {
    YMIR_TRY_ASSIGN(const std::vector<Event> events, log.read(state.seq + 1, kPage));
    for (const Event& event : events) {
      if (event.seq != state.seq + 1)
        return Error{ErrorCode::kCorruption, fmt::format("event {} is missing", state.seq + 1)};
      if (const Result<> allowed = state.allows(event.body); !allowed)
        return Error{ErrorCode::kCorruption,
                     fmt::format("event {}: {}", event.seq, allowed.error().message)};
      state.apply(event);
      if (each) each(event, state);
    }
    if (events.size() < kPage) return state;
  }
}

}  // namespace ymir
