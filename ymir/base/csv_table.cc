#include "ymir/base/csv_table.h"

#include <fmt/format.h>

#include <utility>

#include "ymir/base/file.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

std::string at_line(const std::string& file, int line, const std::string& what) {
  return file + ":" + std::to_string(line) + ": " + what;
}

}  // namespace

Result<CsvTable> CsvTable::read(const std::string& file, const CsvLimits& limits) {
  YMIR_TRY_ASSIGN(std::string text, read_file(file, limits.bytes));
  return parse(std::move(text), file, limits);
}

Result<CsvTable> CsvTable::parse(std::string text, std::string file, const CsvLimits& limits) {
  if (text.size() > limits.bytes || text.size() >= UINT32_MAX)
    return Error{ErrorCode::kExhausted,
                 file + ": larger than " + format_bytes(static_cast<double>(limits.bytes))};
  CsvTable table;
  table.text_ = std::move(text);
  table.file_ = std::move(file);
  if (table.text_.starts_with("\xEF\xBB\xBF"))
    return Error{ErrorCode::kInvalidArgument,
                 at_line(table.file_, 1, "begins with a byte order mark")};
  int line = 0;
  for (std::size_t begin = 0; begin < table.text_.size();) {
    ++line;
    std::size_t end = table.text_.find('\n', begin);
    if (end == std::string::npos) end = table.text_.size();
    const std::size_t next = end + 1;
    if (end > begin && table.text_[end - 1] == '\r') --end;
    if (end > begin) YMIR_TRY(table.add_line(begin, end, line, limits));
    begin = next;
  }
  if (table.header_.empty())
    return Error{ErrorCode::kInvalidArgument, at_line(table.file_, 1, "no header row")};
  return table;
}

Result<> CsvTable::add_line(std::size_t begin, std::size_t end, int line, const CsvLimits& limits) {
  const std::string_view row = std::string_view(text_).substr(begin, end - begin);
  if (row.find('"') != std::string_view::npos)
    return Error{ErrorCode::kInvalidArgument,
                 at_line(file_, line, "quoted fields are not read here")};
  const std::vector<std::string_view> fields = split(row, ',');
  if (header_.empty()) {
    if (fields.size() > limits.columns)
      return Error{ErrorCode::kExhausted, at_line(file_, line, "too many columns")};
    for (const std::string_view field : fields) header_.emplace_back(trim(field));
    return Ok{};
  }
  if (fields.size() != header_.size())
    return Error{ErrorCode::kInvalidArgument,
                 at_line(file_, line,
                         std::to_string(fields.size()) + " fields where the header has " +
                             std::to_string(header_.size()))};
  if (lines_.size() == limits.rows)
    return Error{ErrorCode::kExhausted,
                 at_line(file_, line, "more than " + std::to_string(limits.rows) + " rows")};
  for (const std::string_view field : fields) {
    const std::string_view value = trim(field);
    // A blank field may be anywhere; all others lie in text_.
    const std::size_t at =
        value.empty() ? begin : static_cast<std::size_t>(value.data() - text_.data());
    cells_.push_back(
        {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + value.size())});
  }
  lines_.push_back(line);
  return Ok{};
}

std::string_view CsvTable::cell(std::size_t row, std::size_t column) const {
  YMIR_CHECK(row < rows() && column < header_.size(), "no such cell");
  const Cell& cell = cells_[row * header_.size() + column];
  return std::string_view(text_).substr(cell.begin, cell.end - cell.begin);
}

Result<std::size_t> CsvTable::column_index(std::string_view column) const {
  for (std::size_t i = 0; i < header_.size(); ++i)
    if (header_[i] == column) return i;
  return Error{
      ErrorCode::kNotFound,
      at_line(file_, 1, "no column " + std::string(column) + " (has " + join(header_, ", ") + ")")};
}

template <class T, class Parse>
Result<std::vector<T>> CsvTable::values(std::string_view column, const char* kind,
                                        Parse convert) const {
  YMIR_TRY_ASSIGN(const std::size_t index, column_index(column));
  std::vector<T> out;
  out.reserve(rows());
  for (std::size_t row = 0; row < rows(); ++row) {
    const auto value = convert(cell(row, index));
    if (!value)
      return fault(row, std::string(column) + " is not " + kind + ": " +
                            std::string(cell(row, index).substr(0, 40)));
    out.push_back(T(*value));
  }
  return out;
}

Result<std::vector<std::string>> CsvTable::texts(std::string_view column) const {
  return values<std::string>(column, "text", [](std::string_view t) { return std::optional(t); });
}

template <class T>
Result<std::vector<T>> CsvTable::within(std::string_view column, Result<std::vector<T>> numbers,
                                        T least, T most) const {
  for (std::size_t row = 0; numbers && row < numbers->size(); ++row)
    if ((*numbers)[row] < least || (*numbers)[row] > most)
      return fault(
          row, fmt::format("{} is not within {} and {}: {}", column, least, most, (*numbers)[row]));
  return numbers;
}

Result<std::vector<double>> CsvTable::numbers(std::string_view column, double least,
                                              double most) const {
  return within(column, values<double>(column, "a number", parse_double), least, most);
}

Result<std::vector<std::int64_t>> CsvTable::integers(std::string_view column, std::int64_t least,
                                                     std::int64_t most) const {
  return within(column, values<std::int64_t>(column, "a whole number", parse_int), least, most);
}

Error CsvTable::fault(std::size_t row, const std::string& what) const {
  YMIR_CHECK(row < rows(), "no such row");
  return {ErrorCode::kInvalidArgument, at_line(file_, lines_[row], what)};
}

}  // namespace ymir
