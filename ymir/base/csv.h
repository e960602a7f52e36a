// CsvRows: a table of names and numbers (a trace, a profile), row by row, each fault with its
// place: "file:12: column `duration`: must be a number in 0..10000000000: -3 (...)".
//
// Fields may be quoted (RFC 4180); a line may end in CR LF; empty lines are skipped. Bounded: rows,
// 256 columns, 64 KiB a line. Faults are collected, so that one reading names them all: the first
// 20 are kept, all are counted. A getter that meets a fault notes it and returns 0 or "".
//
//   CsvRows rows(file, text);
//   const auto at = rows.columns({"name", "time"});   // of the header; order and extras are free
//   while (rows.next()) { job.time = rows.number(at[1], 0, 1e9); if (rows.good()) keep(job); }
//   YMIR_TRY(rows.ok());
//
// One thread. `text` outlives the object.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

class CsvRows {
 public:
  CsvRows(std::string file, std::string_view text, char separator = ',',
          std::size_t max_rows = 1'000'000);
  template <std::same_as<std::string> Temporary>
  CsvRows(std::string, Temporary&&, char = ',', std::size_t = 0) = delete;  // see `text`

  // Reads the header and returns where these columns are. A missing or doubled one is a fault, and
  // then there are no rows. Columns that nobody asked for are in unused().
  std::vector<std::size_t> columns(const std::vector<std::string>& names);
  const std::vector<std::string>& unused() const { return unused_; }

  bool first_line_begins_with(std::string_view text) const { return rest_.starts_with(text); }

  // Moves to the next row; false at the end. A row of another width than the header, or that
  // cannot be cut into fields, is a fault and is skipped.
  bool next();
  bool good() const { return row_good_; }  // no fault in this row so far

  int line() const { return row_line_; }
  std::size_t width() const { return fields_.size(); }
  std::string_view text(std::size_t column) const { return fields_[column]; }
  // Not empty, at most 256 bytes of UTF-8 without control characters.
  std::string name(std::size_t column);
  // Blanks around numbers are allowed.
  double number(std::size_t column, double least, double most);
  std::int64_t whole(std::size_t column, std::int64_t least, std::int64_t most);

  // Notes a fault of this row; `fix` says what to do about it.
  void fault(std::size_t column, const std::string& what, const std::string& fix = "");
  void fault_at(int line, const std::string& what);  // line 0: of the whole file

  const std::vector<std::string>& faults() const { return faults_; }  // the first 20
  std::size_t num_faults() const { return num_faults_; }
  // The first fault, and how many more there are.
  Result<> ok() const;

 private:
  bool cut(std::string_view line);
  std::string column_name(std::size_t column) const;

  std::string file_;
  std::string_view rest_;
  char separator_;
  std::size_t max_rows_, rows_ = 0;
  int line_ = 0, row_line_ = 0;
  bool row_good_ = true, stopped_ = false, has_header_ = false;
  std::vector<std::string> header_{}, unused_{}, fields_{};
  std::vector<std::string> faults_{};
  std::size_t num_faults_ = 0;
};

// Tells `each` the rows of a file, and where `columns` are in them; ok() of it all.
Result<> read_csv(const std::string& file, const std::vector<std::string>& columns,
                  const std::function<void(CsvRows& row, const std::vector<std::size_t>& at)>& each,
                  std::size_t max_bytes = 64u << 20);

// A field as RFC 4180 wants it: quoted when a comma, a quote or a line break is in it.
std::string csv_field(const std::string& text);

}  // namespace ymir
