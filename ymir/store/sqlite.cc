#include "ymir/store/sqlite.h"

#include <utility>

namespace ymir::sqlite {
namespace {

Error failed(sqlite3* db, const std::string& what) {
  const int code = db == nullptr ? SQLITE_NOMEM : sqlite3_errcode(db);
  const ErrorCode kind = code == SQLITE_FULL                               ? ErrorCode::kExhausted
                         : code == SQLITE_CORRUPT || code == SQLITE_NOTADB ? ErrorCode::kCorruption
                         : code == SQLITE_CONSTRAINT                       ? ErrorCode::kConflict
                         : code == SQLITE_CANTOPEN                         ? ErrorCode::kNotFound
                         : code == SQLITE_READONLY || code == SQLITE_PERM  ? ErrorCode::kPermission
                                                                          : ErrorCode::kUnavailable;
  return {kind, what + ": " + (db == nullptr ? "out of memory" : sqlite3_errmsg(db))};
}

}  // namespace

void Statement::bind(int index, std::int64_t value) {
  const int rc = sqlite3_bind_int64(statement_.get(), index, value);
  YMIR_CHECK(rc == SQLITE_OK, "bind");
}
void Statement::bind(int index, std::string_view value) {
  const int rc = sqlite3_bind_text64(statement_.get(), index, value.data(), value.size(),
                                     SQLITE_TRANSIENT, SQLITE_UTF8);
  YMIR_CHECK(rc == SQLITE_OK, "bind");
}

Result<bool> Statement::step() {
  const int rc = sqlite3_step(statement_.get());
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) return false;
  return failed(sqlite3_db_handle(statement_.get()), "step");
}
void Statement::reset() { sqlite3_reset(statement_.get()); }

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}
std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
}

Result<Database> Database::open(const std::string& path, int flags) {
  sqlite3* db = nullptr;
  const int rc = sqlite3_open_v2(path.c_str(), &db, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(db, path);
  if (rc != SQLITE_OK) return failed(db, path);
  sqlite3_extended_result_codes(db, 0);
  sqlite3_busy_timeout(db, 5000);
  return database;
}

Result<> Database::run(const std::string& sql) {
  if (sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return failed(db_.get(), path_);
  return Ok{};
}

Result<Statement> Database::prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
    return failed(db_.get(), path_);
  return Statement(statement);
}

Result<std::int64_t> Database::integer(const std::string& sql) {
  YMIR_TRY_ASSIGN(Statement statement, prepare(sql));
  YMIR_TRY_ASSIGN(const bool row, statement.step());
  if (!row) return Error{ErrorCode::kCorruption, path_ + ": no answer to: " + sql};
  return statement.integer(0);
}

}  // namespace ymir::sqlite
