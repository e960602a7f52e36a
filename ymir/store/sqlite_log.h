// EventLog in an SQLite file. Private to ymir/store/: others use open_log().
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ymir/base/file.h"
#include "ymir/store/event_log.h"
#include "ymir/store/rows.h"
#include "ymir/store/sqlite.h"

namespace ymir {

class SqliteLog final : public EventLog {
 public:
  // Neither checks the chain of hashes: verify() does.
  static Result<std::unique_ptr<SqliteLog>> open(const std::string& path, bool writer);

  Result<> append(std::span<const Event> batch) override;
  Result<std::vector<Event>> read(std::uint64_t from, std::size_t limit) const override;
  std::uint64_t last_seq() const override { return last_seq_; }
  std::string head_hash() const override { return head_; }

  Result<std::vector<LogRow>> read_rows(std::uint64_t from, std::size_t limit) const;
  // SQLite's own check of the file, then seqs, chain and kinds.
  Result<> verify() const;

 private:
  SqliteLog(std::string path, sqlite::Database database)
      : path_(std::move(path)), database_(std::move(database)) {}
  Result<> prepare_file();
  Result<> find_head();
  Result<> insert(std::span<const Event> batch, std::uint64_t& era, std::string& head);

  std::string path_;
  std::optional<FileLock> lock_{};
  mutable sqlite::Database database_;
  std::optional<Error> failed_{};  // the append that failed: no other may follow
  std::uint64_t last_seq_ = 0, era_ = 0;
  std::string head_{};
};

}  // namespace ymir
