// Records: the bytes of a data file cut into rows of fields, each with its place. What a field
// means is reader.h's affair. Bounded: a row of 1 MiB, 4,096 fields. Pure, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/tune/data/data_faults.h"

namespace ymir {

struct Field {
  std::string text{};
  std::string name{};   // JSON only: the key
  bool is_text = true;  // JSON only: false for a number, true or false as written
  std::int64_t line = 0;
  std::int64_t column = 0;  // of its first character, counted in characters
};

struct Record {
  std::int64_t line = 0;  // physical line of its first byte
  std::vector<Field> fields{};
};

inline constexpr std::size_t kMaxRowBytes = 1u << 20;
inline constexpr std::size_t kMaxFields = 4096;

// What stands between the fields of a CSV file: the one of comma, semicolon (spreadsheets of many
// countries) and tab with which the most of the first rows have as many fields as the first row,
// and that one at least two; the comma in doubt.
char csv_separator(std::string_view bytes);

// Each appends what is wrong to `faults` (with `file` as the name) and leaves the row out. Empty
// lines are no rows.
std::vector<Record> split_csv(std::string_view bytes, char separator, const std::string& file,
                              FaultList& faults);
std::vector<Record> split_tsv(std::string_view bytes, const std::string& file, FaultList& faults);
// `label text`: two fields, cut at the first blank, blanks around them trimmed. Without labels: one
// field, the whole line, trimmed.
std::vector<Record> split_lines(std::string_view bytes, bool labelled, const std::string& file,
                                FaultList& faults);
// What a file of JSON holds, whatever its name: an array, or an object a line (false).
bool holds_json_array(std::string_view bytes, bool in_doubt);
// One JSON object a line; a field for each key.
std::vector<Record> split_json_lines(std::string_view bytes, const std::string& file,
                                     FaultList& faults);
// One array of objects.
std::vector<Record> split_json_array(std::string_view bytes, const std::string& file,
                                     FaultList& faults);

}  // namespace ymir
