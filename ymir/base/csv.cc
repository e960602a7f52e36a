#include "ymir/base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ymir/base/file.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

constexpr std::size_t kMaxFaults = 20;
constexpr std::size_t kMaxColumns = 256;
constexpr std::size_t kMaxLineBytes = 1u << 16;
constexpr std::size_t kMaxNameBytes = 256;

// As shown in a message: short, printable.
std::string shown(std::string_view value) {
  std::string text;
  for (const char c : value.substr(0, 40))
    text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  if (!valid_utf8(text)) text = "(not UTF-8)";
  return value.size() > 40 ? text + "..." : text;
}

}  // namespace

CsvRows::CsvRows(std::string file, std::string_view text, char separator, std::size_t max_rows)
    : file_(std::move(file)), rest_(text), separator_(separator), max_rows_(max_rows) {
  if (rest_.starts_with("\xef\xbb\xbf")) {
    fault_at(1, "begins with a byte order mark (save the file as UTF-8 without one)");
    stopped_ = true;
  } else if (rest_.starts_with("\xff\xfe") || rest_.starts_with("\xfe\xff")) {
    fault_at(1, "is UTF-16 (save the file as UTF-8)");
    stopped_ = true;
  }
}

std::vector<std::size_t> CsvRows::columns(const std::vector<std::string>& names) {
  std::vector<std::size_t> places(names.size(), 0);
  if (stopped_) return places;
  if (!next()) {
    if (num_faults_ == 0)
      fault_at(0, fmt::format("is empty (the first line must name the columns {})",
                              join(names, std::string_view(&separator_, 1))));
    stopped_ = true;
    return places;
  }
  for (const std::string& field : fields_) header_.emplace_back(trim(field));
  has_header_ = true;
  rows_ = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto count = std::ranges::count(header_, names[i]);
    places[i] = static_cast<std::size_t>(std::ranges::find(header_, names[i]) - header_.begin());
    if (count != 1) {
      fault_at(row_line_, fmt::format("{} column `{}` (needs the columns {})",
                                      count == 0 ? "no" : "more than one", names[i],
                                      join(names, std::string_view(&separator_, 1))));
      stopped_ = true;
    }
  }
  for (const std::string& column : header_)
    if (std::ranges::find(names, column) == names.end()) unused_.push_back(column);
  return places;
}

bool CsvRows::next() {
  while (!stopped_ && !rest_.empty()) {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    row_line_ = ++line_;
    row_good_ = true;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (trim(line).empty()) continue;
    if (++rows_ > max_rows_) {
      fault_at(row_line_, fmt::format("more than {} rows", max_rows_));
      stopped_ = true;
      break;
    }
    if (!cut(line)) continue;
    if (has_header_ && fields_.size() != header_.size()) {
      fault_at(row_line_,
               fmt::format("{} columns where the header names {} (columns are separated "
                           "by {})",
                           fields_.size(), header_.size(), separator_ == '\t' ? "tabs" : "commas"));
      continue;
    }
    return true;
  }
  return false;
}

// Cuts a line into fields_; notes a fault and returns false when it cannot.
bool CsvRows::cut(std::string_view line) {
  fields_.clear();
  if (line.size() > kMaxLineBytes) {
    fault_at(row_line_, fmt::format("line of more than {} bytes", kMaxLineBytes));
    return false;
  }
  for (std::size_t at = 0;; ++at) {
    std::string field;
    if (at < line.size() && line[at] == '"') {
      for (++at;; ++at) {
        if (at >= line.size()) {
          fault_at(row_line_, "a quote is not closed on its line");
          return false;
        }
        if (line[at] == '"' && at + 1 < line.size() && line[at + 1] == '"')
          ++at;
        else if (line[at] == '"')
          break;
        field += line[at];
      }
      if (++at < line.size() && line[at] != separator_) {
        fault_at(row_line_, "text follows a closing quote (inside quotes, a quote is doubled)");
        return false;
      }
    } else {
      const std::size_t end = std::min(line.find(separator_, at), line.size());
      field = line.substr(at, end - at);
      at = end;
    }
    fields_.push_back(std::move(field));
    if (fields_.size() > kMaxColumns) {
      fault_at(row_line_, fmt::format("more than {} columns", kMaxColumns));
      return false;
    }
    if (at >= line.size()) return true;
  }
}

std::string CsvRows::column_name(std::size_t column) const {
  return column < header_.size() ? "`" + shown(header_[column]) + "`"
                                 : fmt::format("{}", column + 1);
}

void CsvRows::fault(std::size_t column, const std::string& what, const std::string& fix) {
  fault_at(row_line_, fmt::format("column {}: {}: {}{}", column_name(column), what,
                                  column < fields_.size() ? shown(fields_[column]) : "",
                                  fix.empty() ? "" : " (" + fix + ")"));
}

void CsvRows::fault_at(int line, const std::string& what) {
  row_good_ = false;
  ++num_faults_;
  if (faults_.size() >= kMaxFaults) return;
  faults_.push_back(line > 0 ? fmt::format("{}:{}: {}", file_, line, what)
                             : fmt::format("{}: {}", file_, what));
}

std::string CsvRows::name(std::size_t column) {
  const std::string_view value = trim(fields_[column]);
  const bool control = std::ranges::any_of(
      value, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (!value.empty() && value.size() <= kMaxNameBytes && !control && valid_utf8(value))
    return std::string(value);
  fault(column, fmt::format("must be a name of 1..{} bytes of UTF-8", kMaxNameBytes));
  return "";
}

double CsvRows::number(std::size_t column, double least, double most) {
  const std::optional<double> value = parse_double(trim(fields_[column]));
  if (value && *value >= least && *value <= most) return *value;
  fault(column, fmt::format("must be a number in {}..{}", least, most));
  return 0;
}

std::int64_t CsvRows::whole(std::size_t column, std::int64_t least, std::int64_t most) {
  const std::string_view text = trim(fields_[column]);
  std::optional<std::int64_t> value = parse_int(text);
  if (!value)  // "4.0": a table that some program has read as decimal numbers
    if (const auto decimal = parse_double(text);
        decimal && std::abs(*decimal) < 1e15 && std::trunc(*decimal) == *decimal)
      value = static_cast<std::int64_t>(*decimal);
  if (value && *value >= least && *value <= most) return *value;
  fault(column, fmt::format("must be a whole number in {}..{}", least, most));
  return 0;
}

Result<> CsvRows::ok() const {
  if (num_faults_ == 0) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               num_faults_ == 1
                   ? faults_.front()
                   : fmt::format("{} (and {} more)", faults_.front(), num_faults_ - 1)};
}

Result<> read_csv(const std::string& file, const std::vector<std::string>& columns,
                  const std::function<void(CsvRows& row, const std::vector<std::size_t>& at)>& each,
                  std::size_t max_bytes) {
  YMIR_TRY_ASSIGN(const std::string text, read_file(file, max_bytes));
  CsvRows rows(file, text);
  const std::vector<std::size_t> at = rows.columns(columns);
  while (rows.next()) each(rows, at);
  return rows.ok();
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace ymir
