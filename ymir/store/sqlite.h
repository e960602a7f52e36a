// Owners of SQLite's handles, with errors as Results. Private to ymir/store/. One thread at a time.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ymir/base/result.h"

namespace ymir::sqlite {

// A prepared statement. Bind from 1, step until false, read columns from 0; reset to use again.
class Statement {
 public:
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  void bind(int index, std::int64_t value);
  void bind(int index, std::string_view value);  // copied
  Result<bool> step();                           // true: a row is there
  void reset();
  std::int64_t integer(int column) const;
  std::string text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  static Result<Database> open(const std::string& path, int flags);
  Result<> run(const std::string& sql);  // one or several statements, no rows wanted
  Result<Statement> prepare(const std::string& sql);
  Result<std::int64_t> integer(const std::string& sql);  // of a query with one number

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  Database(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}
  std::unique_ptr<sqlite3, Close> db_;
  std::string path_;
};

}  // namespace ymir::sqlite
