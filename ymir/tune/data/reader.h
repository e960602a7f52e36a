// Readers: a file of rows -> text, optional second text, label, with the physical line of each row.
//
// Formats: CSV (RFC 4180: quoted fields, doubled quotes, newlines inside quotes; between the fields
// commas, semicolons or tabs, see csv_separator), TSV (no quoting: a `"` is text), JSONL, a JSON
// array of objects, and lines `label text` (or of text alone, where no label is needed). CR LF and
// LF end a line; a BOM is stripped and told. Bounded: a row of 1 MiB, 4,096 columns, a file of 1
// GiB. Faults name file, physical line and column (in characters); all are collected, the caller
// decides. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/data/data_faults.h"

namespace ymir {

enum class TextFormat { kCsv, kTsv, kJsonLines, kJson, kLines };

struct ReadOptions {
  std::string format =
      "auto";  // csv tsv jsonl json lines; auto = by the file's name; JSON by what is in it
  // What each of `text`, `text_pair`, `label` is called in the file: a column's name, or its number
  // from 0. Absent: `text` (or the only candidate) and `label`; for lines nothing is mapped.
  std::map<std::string, std::string> columns{};
  std::string header = "auto";  // auto yes no; auto: there is one when a mapped name stands in it
  std::string encoding = "utf-8";  // utf-8 latin-1
  bool need_label = true;
  bool drop_empty = false;  // rows with an empty field are left out, told as a note; else a fault
  // Rows with any number of labels: what stands between them (empty: a row has one label), or
  // columns of 0 and 1 whose names are the labels. A JSON list is a list of labels.
  std::string label_separator{};
  std::vector<std::string> label_columns{};
  bool many_labels() const { return !label_separator.empty() || !label_columns.empty(); }
  Result<> validate() const;
};

inline constexpr char kLabelJoint = '\x1F';

struct TextRow {
  std::int64_t line = 0;  // physical, from 1
  std::string text{};
  std::string pair{};   // empty without a second text
  std::string label{};  // as written, blanks trimmed; of many: joined by kLabelJoint
  std::int64_t label_line = 0, label_column = 0;  // where the label stands, for faults
};

struct TextTable {
  TextFormat format = TextFormat::kCsv;
  bool has_pair = false;
  std::vector<std::string> header{};  // column names, where the file has them
  std::vector<TextRow> rows{};
  FaultList faults{};  // rows with one are not in `rows`
  FaultList notes{};   // not an error: "a byte order mark was stripped"
};

// The format by the name's ending; `lines` for anything unknown.
TextFormat format_of(std::string_view path);

// `name` is used in messages only. Fails (before reading rows) when a mapped column does not exist:
// the message lists the columns found and the nearest name.
Result<TextTable> read_table(std::string_view bytes, const std::string& name,
                             const ReadOptions& options);
Result<TextTable> read_table_file(const std::string& path, const ReadOptions& options);

// One RFC 4180 field, quoted where it must be.
std::string csv_field(std::string_view text);

}  // namespace ymir
