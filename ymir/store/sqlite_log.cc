#include "ymir/store/sqlite_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ymir/core/codec.h"

namespace ymir {
namespace {

constexpr std::int64_t kSchema = 1;                // PRAGMA user_version
constexpr std::int64_t kApplication = 0x594D4952;  // "YMIR": PRAGMA application_id
constexpr std::size_t kPage = 1000;                // rows read at a time

constexpr const char* kTables = R"(
  CREATE TABLE event(
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, era INTEGER NOT NULL, kind TEXT NOT NULL,
    v INTEGER NOT NULL, job TEXT NOT NULL, run TEXT NOT NULL, actor TEXT NOT NULL,
    body TEXT NOT NULL, hash TEXT NOT NULL) STRICT;
  CREATE INDEX event_job ON event(job, seq);
  CREATE TRIGGER event_update BEFORE UPDATE ON event
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
  CREATE TRIGGER event_delete BEFORE DELETE ON event
    BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
  CREATE TRIGGER event_insert BEFORE INSERT ON event
    WHEN NEW.seq <> 1 + (SELECT COALESCE(MAX(seq), 0) FROM event)
    BEGIN SELECT RAISE(ABORT, 'events have no gaps'); END;
)";

}  // namespace

Result<std::unique_ptr<SqliteLog>> SqliteLog::open(const std::string& path, bool writer) {
  std::optional<FileLock> lock;
  if (writer) {
    auto taken = FileLock::try_acquire(path + ".lock");
    if (!taken) return annotate(std::move(taken).error(), "another program writes this log");
    lock.emplace(*std::move(taken));
  }
  YMIR_TRY_ASSIGN(sqlite::Database database,
                  sqlite::Database::open(path, writer ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                                      : SQLITE_OPEN_READONLY));
  std::unique_ptr<SqliteLog> log(new SqliteLog(path, std::move(database)));
  if (lock) log->lock_.emplace(*std::move(lock));
  if (writer) YMIR_TRY(log->prepare_file());
  YMIR_TRY(log->find_head());
  if (!writer) log->failed_ = Error{ErrorCode::kPermission, path + ": opened for reading"};
  return log;
}

Result<> SqliteLog::prepare_file() {
  YMIR_TRY(database_.run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"));
  YMIR_TRY_ASSIGN(const std::int64_t schema, database_.integer("PRAGMA user_version"));
  YMIR_TRY_ASSIGN(const std::int64_t tables,
                  database_.integer("SELECT COUNT(*) FROM sqlite_schema"));
  if (schema != 0 || tables != 0) return Ok{};  // find_head() judges it
  YMIR_TRY(database_.run(
      fmt::format("BEGIN IMMEDIATE; PRAGMA application_id={}; PRAGMA user_version={}; {} COMMIT;",
                  kApplication, kSchema, kTables)));
  const auto slash = path_.rfind('/');
  return sync_folder(slash == std::string::npos ? "." : slash == 0 ? "/" : path_.substr(0, slash));
}

Result<> SqliteLog::find_head() {
  YMIR_TRY_ASSIGN(const std::int64_t application, database_.integer("PRAGMA application_id"));
  YMIR_TRY_ASSIGN(const std::int64_t schema, database_.integer("PRAGMA user_version"));
  if (application != kApplication)
    return Error{ErrorCode::kCorruption, path_ + ": is not an event log of ymir"};
  if (schema != kSchema)
    return Error{ErrorCode::kNotFound, fmt::format("{}: schema version {}, this program knows {}",
                                                   path_, schema, kSchema)};
  YMIR_TRY_ASSIGN(sqlite::Statement newest,
                  database_.prepare("SELECT seq, era, hash FROM event ORDER BY seq DESC LIMIT 1"));
  YMIR_TRY_ASSIGN(const bool any, newest.step());
  if (!any) return Ok{};
  last_seq_ = static_cast<std::uint64_t>(newest.integer(0));
  era_ = static_cast<std::uint64_t>(newest.integer(1));
  head_ = newest.text(2);
  return Ok{};
}

Result<> SqliteLog::append(std::span<const Event> batch) {
  if (failed_) return *failed_;
  if (batch.empty()) return Ok{};
  for (std::size_t i = 0; i < batch.size(); ++i)
    if (batch[i].seq != last_seq_ + 1 + i)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("event {} appended after event {}", batch[i].seq, last_seq_ + i)};
  std::uint64_t era = era_;
  std::string head = head_;
  if (Result<> done = insert(batch, era, head); !done) {
    failed_ = annotate(std::move(done).error(), "event log failed");
    (void)database_.run("ROLLBACK");
    return *failed_;
  }
  last_seq_ = batch.back().seq;
  era_ = era;
  head_ = std::move(head);
  return Ok{};
}

Result<> SqliteLog::insert(std::span<const Event> batch, std::uint64_t& era, std::string& head) {
  YMIR_TRY(database_.run("BEGIN IMMEDIATE"));
  {
    YMIR_TRY_ASSIGN(sqlite::Statement row,
                    database_.prepare("INSERT INTO event VALUES(?,?,?,?,?,?,?,?,?,?)"));
    for (const Event& event : batch) {
      if (const auto* started = std::get_if<DaemonStarted>(&event.body)) era = started->era;
      LogRow r = to_row(event, era);
      head = r.hash = hash_of(r, head);
      row.bind(1, static_cast<std::int64_t>(r.seq));
      row.bind(2, r.at);
      row.bind(3, static_cast<std::int64_t>(r.era));
      row.bind(4, r.kind);
      row.bind(5, std::int64_t{r.version});
      row.bind(6, r.job);
      row.bind(7, r.run);
      row.bind(8, r.actor);
      row.bind(9, r.body);
      row.bind(10, r.hash);
      YMIR_TRY(row.step());
      row.reset();
    }
  }
  return database_.run("COMMIT");
}

Result<std::vector<LogRow>> SqliteLog::read_rows(std::uint64_t from, std::size_t limit) const {
  YMIR_TRY_ASSIGN(sqlite::Statement query,
                  database_.prepare("SELECT seq, at, era, kind, v, job, run, actor, body, hash "
                                    "FROM event WHERE seq >= ? ORDER BY seq LIMIT ?"));
  query.bind(1, static_cast<std::int64_t>(from));
  query.bind(2, static_cast<std::int64_t>(std::min<std::size_t>(limit, 1u << 30)));
  std::vector<LogRow> rows;
  for (;;) {
    YMIR_TRY_ASSIGN(const bool more, query.step());
    if (!more) return rows;
    rows.push_back(LogRow{.seq = static_cast<std::uint64_t>(query.integer(0)),
                          .at = query.integer(1),
                          .era = static_cast<std::uint64_t>(query.integer(2)),
                          .kind = query.text(3),
                          .version = static_cast<int>(query.integer(4)),
                          .job = query.text(5),
                          .run = query.text(6),
                          .actor = query.text(7),
                          .body = query.text(8),
                          .hash = query.text(9)});
  }
}

Result<std::vector<Event>> SqliteLog::read(std::uint64_t from, std::size_t limit) const {
  YMIR_TRY_ASSIGN(const std::vector<LogRow> rows, read_rows(from, limit));
  std::vector<Event> events;
  events.reserve(rows.size());
  for (const LogRow& row : rows) {
    YMIR_TRY_ASSIGN(Event event, to_event(row));
    events.push_back(std::move(event));
  }
  return events;
}

Result<> SqliteLog::verify() const {
  YMIR_TRY_ASSIGN(sqlite::Statement check, database_.prepare("PRAGMA quick_check(1)"));
  YMIR_TRY_ASSIGN(const bool answered, check.step());
  if (!answered || check.text(0) != "ok")
    return Error{ErrorCode::kCorruption, path_ + ": " + check.text(0)};
  YMIR_TRY_ASSIGN(sqlite::Statement kinds,
                  database_.prepare("SELECT kind, v, MIN(seq) FROM event GROUP BY kind, v"));
  for (;;) {
    YMIR_TRY_ASSIGN(const bool more, kinds.step());
    if (!more) break;
    const auto body = decode_body(kinds.text(0), static_cast<int>(kinds.integer(1)), "{}");
    if (!body) return annotate(body.error(), fmt::format("{}: event {}", path_, kinds.integer(2)));
  }
  std::string head;
  for (std::uint64_t next = 1;;) {
    YMIR_TRY_ASSIGN(const std::vector<LogRow> rows, read_rows(next, kPage));
    for (const LogRow& row : rows) {
      if (row.seq != next)
        return Error{ErrorCode::kCorruption, fmt::format("{}: event {} is missing", path_, next)};
      head = hash_of(row, head);
      if (row.hash != head)
        return Error{
            ErrorCode::kCorruption,
            fmt::format("{}: event {} does not have the hash written with it", path_, next)};
      ++next;
    }
    if (rows.size() < kPage) return Ok{};
  }
}

}  // namespace ymir
