// CsvTable: a measured table as published: one header row, then rows of as many plain fields.
//
// For tables that programs wrote: commas only, no quoting (a quote is a fault, told as such), CRLF
// and empty lines accepted, a byte order mark refused. Bounded. Every fault names file:line.
// Columns are taken whole and by name, so the order of columns is free and further columns do no
// harm. Immutable after parsing: any thread. (Files that people write, with quotes, are for
// tune/data.)
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

struct CsvLimits {
  std::size_t bytes = 64u << 20;
  std::size_t rows = 1'000'000;
  std::size_t columns = 256;
};

class CsvTable {
 public:
  // `file` is what messages call it.
  static Result<CsvTable> parse(std::string text, std::string file, const CsvLimits& limits = {});
  static Result<CsvTable> read(const std::string& file, const CsvLimits& limits = {});

  std::size_t rows() const { return lines_.size(); }
  const std::vector<std::string>& header() const { return header_; }
  const std::string& file() const { return file_; }
  std::string_view cell(std::size_t row, std::size_t column) const;

  // One value a row, blanks around it removed. Numbers are finite and within [least, most];
  // kNotFound without the column.
  Result<std::vector<std::string>> texts(std::string_view column) const;
  Result<std::vector<double>> numbers(std::string_view column, double least = -HUGE_VAL,
                                      double most = HUGE_VAL) const;
  Result<std::vector<std::int64_t>> integers(std::string_view column,
                                             std::int64_t least = INT64_MIN,
                                             std::int64_t most = INT64_MAX) const;

  // "profiles/bert/placements.csv:17: batch is not positive: 0"
  Error fault(std::size_t row, const std::string& what) const;

 private:
  struct Cell {
    std::uint32_t begin = 0, end = 0;
  };
  Result<> add_line(std::size_t begin, std::size_t end, int line, const CsvLimits& limits);
  Result<std::size_t> column_index(std::string_view column) const;
  template <class T>
  Result<std::vector<T>> within(std::string_view column, Result<std::vector<T>> numbers, T least,
                                T most) const;
  template <class T, class Parse>
  Result<std::vector<T>> values(std::string_view column, const char* kind, Parse convert) const;

  std::string text_, file_;
  std::vector<std::string> header_;
  std::vector<Cell> cells_;  // row by row
  std::vector<int> lines_;   // of each row in the file
};

}  // namespace ymir
