#include "ymir/tune/data/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/tune/data/unicode.h"

namespace ymir {
namespace {

struct Line {
  std::string_view text{};
  std::int64_t number = 0;
};

// Takes the next line off `rest`, without its end (LF or CR LF).
Line take_line(std::string_view& rest, std::int64_t& number) {
  const auto end = std::min(rest.find('\n'), rest.size());
  std::string_view text = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return {text, ++number};
}

DataFault too_long(const std::string& file, std::int64_t line) {
  return {"row too long", file, line, 0, fmt::format("row of more than {} bytes", kMaxRowBytes)};
}

// Counts the characters before a place of a line; places are asked for in rising order.
class ColumnCounter {
 public:
  explicit ColumnCounter(std::string_view bytes) : bytes_(bytes) {}
  void start_line(std::size_t at) {
    counted_ = at;
    characters_ = 0;
  }
  // From 1.
  std::int64_t column(std::size_t at) {
    characters_ += count_code_points(bytes_.substr(counted_, at - counted_));
    counted_ = at;
    return characters_ + 1;
  }

 private:
  std::string_view bytes_;
  std::size_t counted_ = 0;
  std::int64_t characters_ = 0;
};

// Calls `row` for every line that is not empty and not too long.
template <class Row>
void for_each_line(std::string_view bytes, const std::string& file, FaultList& faults, Row row) {
  for (std::int64_t number = 0; !bytes.empty();) {
    const Line line = take_line(bytes, number);
    if (line.text.empty()) continue;
    if (line.text.size() > kMaxRowBytes)
      faults.add(too_long(file, line.number));
    else
      row(line);
  }
}

// RFC 4180 with any separator, one byte at a time, with the place of each field.
class CsvParser {
 public:
  CsvParser(std::string_view bytes, char separator, const std::string& file, FaultList& faults)
      : bytes_(bytes), separator_(separator), file_(file), faults_(faults), counter_(bytes) {}

  std::vector<Record> parse(std::size_t most = std::string_view::npos) {
    std::vector<Record> records;
    while (at_ < bytes_.size() && !stopped_ && records.size() < most) {
      Record record = parse_row();
      const bool empty = record.fields.size() == 1 && record.fields[0].text.empty() && !quoted_;
      if (good_ && !empty) records.push_back(std::move(record));
    }
    return records;
  }

 private:
  bool at_line_end() const {
    return bytes_[at_] == '\n' ||
           (bytes_[at_] == '\r' && at_ + 1 < bytes_.size() && bytes_[at_ + 1] == '\n') ||
           (bytes_[at_] == '\r' && at_ + 1 == bytes_.size());
  }
  void pass_line_end() {
    if (bytes_[at_] == '\r') ++at_;
    if (at_ < bytes_.size() && bytes_[at_] == '\n') ++at_;
    ++line_;
    counter_.start_line(at_);
  }
  std::int64_t column() { return counter_.column(at_); }
  void fault(std::string kind, std::int64_t line, std::int64_t column, std::string text) {
    if (good_) faults_.add({std::move(kind), file_, line, column, std::move(text)});
    good_ = false;
  }

  Record parse_row() {
    Record record{.line = line_};
    good_ = true;
    quoted_ = false;
    const std::size_t start = at_;
    for (;;) {
      Field field{.line = line_, .column = column()};
      if (at_ < bytes_.size() && bytes_[at_] == '"')
        parse_quoted(field, start);
      else
        parse_plain(field);
      if (record.fields.size() < kMaxFields)
        record.fields.push_back(std::move(field));
      else
        fault("too many columns", record.line, 0, fmt::format("more than {} columns", kMaxFields));
      if (at_ - start > kMaxRowBytes && good_) {
        faults_.add(too_long(file_, record.line));
        good_ = false;
      }
      if (at_ >= bytes_.size()) return record;
      if (at_line_end()) {
        pass_line_end();
        return record;
      }
      ++at_;  // the separator
    }
  }

  void parse_plain(Field& field) {
    const std::size_t begin = at_;
    while (at_ < bytes_.size() && bytes_[at_] != separator_ && !at_line_end()) ++at_;
    field.text = bytes_.substr(begin, at_ - begin);
  }

  void parse_quoted(Field& field, std::size_t row_start) {
    quoted_ = true;
    ++at_;
    while (at_ < bytes_.size()) {
      const char c = bytes_[at_];
      if (c == '"' && at_ + 1 < bytes_.size() && bytes_[at_ + 1] == '"') {
        field.text += c;
        at_ += 2;
        continue;
      }
      if (c == '"') {
        ++at_;
        if (at_ < bytes_.size() && bytes_[at_] != separator_ && !at_line_end()) {
          fault("text after a closing quote", line_, column(),
                "text follows a closing quote (a quote inside a quoted field is doubled)");
          while (at_ < bytes_.size() && bytes_[at_] != separator_ && !at_line_end()) ++at_;
        }
        return;
      }
      if (at_ - row_start > kMaxRowBytes) break;
      field.text += c;
      ++at_;
      if (c == '\n') {
        ++line_;
        counter_.start_line(at_);
      }
    }
    // Where the row should have ended is unknown, so nothing after it can be read.
    fault("quote never closed", field.line, field.column,
          at_ < bytes_.size()
              ? fmt::format("the quote that opens here is not closed within {} bytes", kMaxRowBytes)
              : "the quote that opens here is never closed");
    stopped_ = true;
    at_ = bytes_.size();
  }

  std::string_view bytes_;
  char separator_;
  const std::string& file_;
  FaultList& faults_;
  ColumnCounter counter_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  bool good_ = true;     // the row that is being read
  bool quoted_ = false;  // it has a quoted field: `""` is a row, an empty line is none
  bool stopped_ = false;
};

// An object's members become fields; false when it is none.
bool read_object(std::string_view text, std::int64_t line, std::int64_t column,
                 const std::string& file, FaultList& faults, Record& record) {
  auto json = parse_json(text, {.max_bytes = kMaxRowBytes, .max_depth = 16});
  if (!json) {
    faults.add({"not JSON", file, line, column, json.error().message});
    return false;
  }
  if (!json->is_object() || json->size() > kMaxFields) {
    faults.add({"not an object", file, line, column,
                json->is_object() ? fmt::format("more than {} keys", kMaxFields)
                                  : "is not a JSON object"});
    return false;
  }
  record.line = line;
  for (const auto& [key, value] : json->items()) {
    if (value.is_null()) continue;  // as if it were not there
    const bool is_text = value.is_string();
    record.fields.push_back(
        {is_text ? value.get<std::string>() : canonical(value), key, is_text, line, column});
  }
  return true;
}

// Finds where the JSON value that starts at `at` ends, by brackets and quotes alone; the value
// itself is checked when it is parsed. Counts the lines passed.
std::size_t end_of_value(std::string_view bytes, std::size_t at, std::int64_t& line) {
  int depth = 0;
  bool in_text = false;
  for (; at < bytes.size(); ++at) {
    const char c = bytes[at];
    if (c == '\n') ++line;
    if (in_text) {
      if (c == '\\')
        ++at;
      else if (c == '"')
        in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth < 0) return at;
    } else if (c == ',' && depth == 0) {
      return at;
    }
  }
  return std::min(at, bytes.size());
}

}  // namespace

char csv_separator(std::string_view bytes) {
  constexpr std::size_t kSample = 100;  // rows looked at
  char best = ',';
  std::ptrdiff_t most = 0;
  for (const char separator : {',', ';', '\t'}) {
    FaultList ignored;
    const std::string nameless;
    const auto records = CsvParser(bytes, separator, nameless, ignored).parse(kSample);
    if (records.empty() || records[0].fields.size() < 2) continue;
    const auto alike = std::ranges::count_if(records, [&](const Record& record) {
      return record.fields.size() == records[0].fields.size();
    });
    if (alike > most) {
      most = alike;
      best = separator;
    }
  }
  return best;
}

std::vector<Record> split_csv(std::string_view bytes, char separator, const std::string& file,
                              FaultList& faults) {
  return CsvParser(bytes, separator, file, faults).parse();
}

std::vector<Record> split_tsv(std::string_view bytes, const std::string& file, FaultList& faults) {
  std::vector<Record> records;
  for_each_line(bytes, file, faults, [&](const Line& line) {
    Record record{.line = line.number};
    const auto parts = split(line.text, '\t');
    if (parts.size() > kMaxFields) {
      faults.add({"too many columns", file, line.number, 0,
                  fmt::format("more than {} columns", kMaxFields)});
      return;
    }
    ColumnCounter counter(line.text);
    for (const std::string_view part : parts)
      record.fields.push_back(
          {.text = std::string(part),
           .line = line.number,
           .column = counter.column(static_cast<std::size_t>(part.data() - line.text.data()))});
    records.push_back(std::move(record));
  });
  return records;
}

std::vector<Record> split_lines(std::string_view bytes, bool labelled, const std::string& file,
                                FaultList& faults) {
  std::vector<Record> records;
  for_each_line(bytes, file, faults, [&](const Line& line) {
    const std::string_view row = trim(line.text);
    if (row.empty()) return;
    const auto blank = std::min(row.find_first_of(" \t"), row.size());
    const std::string_view text = trim(row.substr(blank));
    const auto place = [&line](std::string_view part) -> std::int64_t {
      if (part.empty()) return 0;
      return count_code_points({line.text.data(), part.data()}) + 1;
    };
    if (!labelled) {
      records.push_back(
          {line.number, {{.text = std::string(row), .line = line.number, .column = place(row)}}});
      return;
    }
    records.push_back(
        {line.number,
         {{.text = std::string(row.substr(0, blank)), .line = line.number, .column = place(row)},
          {.text = std::string(text), .line = line.number, .column = place(text)}}});
  });
  return records;
}

bool holds_json_array(std::string_view bytes, bool in_doubt) {
  std::int64_t number = 0;
  std::string_view line;
  while (line.empty() && !bytes.empty()) line = trim(take_line(bytes, number).text);
  if (line.starts_with('[')) return true;
  return parse_json(line, {.max_bytes = kMaxRowBytes, .max_depth = 16}) ? false : in_doubt;
}

std::vector<Record> split_json_lines(std::string_view bytes, const std::string& file,
                                     FaultList& faults) {
  std::vector<Record> records;
  for_each_line(bytes, file, faults, [&](const Line& line) {
    if (trim(line.text).empty()) return;
    if (Record record; read_object(line.text, line.number, 1, file, faults, record))
      records.push_back(std::move(record));
  });
  return records;
}

std::vector<Record> split_json_array(std::string_view bytes, const std::string& file,
                                     FaultList& faults) {
  std::vector<Record> records;
  std::int64_t line = 1;
  std::size_t at = 0;
  ColumnCounter counter(bytes);
  const auto pass_blanks = [&] {
    for (; at < bytes.size() &&
           (bytes[at] == ' ' || bytes[at] == '\t' || bytes[at] == '\r' || bytes[at] == '\n');
         ++at)
      if (bytes[at] == '\n') {
        ++line;
        counter.start_line(at + 1);
      }
  };
  const auto fault = [&](const char* text) {
    faults.add({"not a JSON array", file, line, counter.column(at), text});
  };
  pass_blanks();
  if (at >= bytes.size() || bytes[at] != '[') {
    fault(
        "a JSON array of objects begins with [ (of one object a line, each stands in its line "
        "whole)");
    return records;
  }
  ++at;
  pass_blanks();
  if (at < bytes.size() && bytes[at] == ']') return records;
  for (;;) {
    pass_blanks();
    const std::int64_t first_line = line, column = counter.column(at);
    const std::size_t begin = at;
    at = end_of_value(bytes, at, line);
    if (at >= bytes.size()) {
      at = begin;
      line = first_line;
      fault("the element that begins here, or the array, never ends");
      return records;
    }
    if (Record record; read_object(trim(bytes.substr(begin, at - begin)), first_line, column, file,
                                   faults, record))
      records.push_back(std::move(record));
    if (line != first_line) counter.start_line(bytes.substr(0, at).rfind('\n') + 1);
    if (bytes[at] == '}') {
      fault("a bracket closes that was never opened");
      return records;
    }
    if (bytes[at] == ']') break;
    ++at;
  }
  ++at;
  pass_blanks();
  if (at < bytes.size()) fault("text follows the array");
  return records;
}

}  // namespace ymir
