#include "ymir/tune/data/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/tune/data/records.h"

namespace ymir {
namespace {

constexpr std::size_t kMaxFile = 1u << 30;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

struct FormatName {
  std::string_view name;
  TextFormat format;
};
constexpr std::array<FormatName, 5> kFormats = {{{"csv", TextFormat::kCsv},
                                                 {"tsv", TextFormat::kTsv},
                                                 {"jsonl", TextFormat::kJsonLines},
                                                 {"json", TextFormat::kJson},
                                                 {"lines", TextFormat::kLines}}};
const std::vector<std::string> kRoles = {"text", "text_pair", "label"};

constexpr int kMaxShown = 300;  // columns of a message that quotes the file

Error refused(const std::string& message) {
  return {ErrorCode::kInvalidArgument, fit(printable(message), kMaxShown)};
}

bool is_json(TextFormat format) {
  return format == TextFormat::kJson || format == TextFormat::kJsonLines;
}

// "did you mean "sentence"?" where something is near enough.
std::string no_column(const std::string& role, const std::string& name, const std::string& file,
                      const std::vector<std::string>& found) {
  std::string text = fmt::format("data.columns: no column \"{}\" in {} (found: {})", name, file,
                                 join(found, ", "));
  if (const auto near = nearest(name, found))
    text += fmt::format("; did you mean \"{}\"?", *near);
  else if (role == name)
    text += fmt::format("; say which column is the {} with data.columns", role);
  return text;
}

// Where a role stands: a field's number, or for JSON a key.
struct Column {
  std::string role{};
  std::string name{};  // as the job says, or the role itself
  std::size_t index = 0;
};

std::optional<std::size_t> number_of(const std::string& name) {
  const auto value = parse_int(name);
  if (!value || *value < 0 || *value >= static_cast<std::int64_t>(kMaxFields)) return std::nullopt;
  return static_cast<std::size_t>(*value);
}

std::vector<Column> wanted_columns(const ReadOptions& options) {
  std::vector<Column> columns;
  for (const std::string& role : kRoles) {
    const auto mapped = options.columns.find(role);
    if (mapped != options.columns.end())
      columns.push_back({role, mapped->second});
    else if (role == "text" ||
             (role == "label" && options.need_label && options.label_columns.empty()))
      columns.push_back({role, role});
  }
  for (const std::string& name : options.label_columns) columns.push_back({"label", name});
  return columns;
}

std::vector<std::string> texts_of(const Record& record) {
  std::vector<std::string> texts;
  for (const Field& field : record.fields) texts.push_back(field.text);
  return texts;
}

// A map of columns for a file of which no header is known: by name where the first row seems to be
// one in other letters, else by number.
std::string columns_hint(const std::vector<Column>& columns,
                         const std::vector<std::string>& first) {
  std::vector<std::string> entries;
  for (const Column& column : columns) {
    const auto like = std::ranges::find_if(
        first, [&column](const std::string& name) { return to_lower(trim(name)) == column.role; });
    if (like != first.end()) entries.push_back(fmt::format("{}: {}", column.role, *like));
  }
  return entries.empty() ? "{text: 0, label: 1}" : "{" + join(entries, ", ") + "}";
}

// Finds the header row and the columns of a delimited file.
Result<> map_delimited(const std::vector<Record>& records, const std::string& file,
                       const ReadOptions& options, std::vector<Column>& columns, TextTable& table) {
  const auto first = texts_of(records[0]);
  const auto stands_in_first = [&](const Column& c) {
    return std::ranges::find(first, c.name) != first.end();
  };
  const bool by_name =
      std::ranges::any_of(columns, [](const Column& column) { return !number_of(column.name); });
  // A name can only be found in a header; a file mapped by numbers alone has one when told so.
  const bool has_header =
      options.header == "yes" ||
      (options.header == "auto" && by_name && std::ranges::any_of(columns, stands_in_first));
  if (has_header) table.header = first;
  for (Column& column : columns) {
    const auto named = std::ranges::find(table.header, column.name);
    const auto number = number_of(column.name);
    if (named != table.header.end()) {
      column.index = static_cast<std::size_t>(named - table.header.begin());
    } else if (number && *number < first.size()) {
      column.index = *number;
    } else if (number) {
      return refused(
          fmt::format("data.columns: no column {} in {} (its rows have {}, counted from 0)",
                      *number, file, first.size()));
    } else if (options.header == "no" || (!has_header && options.columns.empty())) {
      return refused(fmt::format(
          "{} has no header that names \"{}\" (first row: {}); say where the columns are, e.g. "
          "data.columns: {}",
          file, column.name, join(first, ", "), columns_hint(columns, first)));
    } else {
      return refused(no_column(column.role, column.name, file, first));
    }
  }
  return Ok{};
}

// The fields of a row that the roles name, or a fault. JSON rows may lack a key.
class RowReader {
 public:
  RowReader(const std::string& file, const ReadOptions& options, std::vector<Column> columns,
            std::size_t num_fields, std::string remedy, TextTable& table)
      : file_(file),
        format_(table.format),
        options_(options),
        columns_(std::move(columns)),
        num_fields_(num_fields),
        remedy_(std::move(remedy)),
        table_(table) {}

  void read(const Record& record) {
    if (!is_json(format_) && record.fields.size() != num_fields_) {
      table_.faults.add(
          {"wrong number of fields", file_, record.line, 0,
           fmt::format("{} fields, expected {}{}", record.fields.size(), num_fields_,
                       table_.header.empty() ? " as in the first row" : " as in the header")});
      return;
    }
    TextRow row{.line = record.line};
    for (const Column& column : columns_) {
      const Field* field = find(record, column);
      if (field == nullptr || !accept(*field, column, row)) return;
    }
    table_.rows.push_back(std::move(row));
  }
  std::int64_t num_empty() const { return num_empty_; }  // rows left out

 private:
  static void add_label(std::string_view label, TextRow& row) {
    if (!row.label.empty()) row.label += kLabelJoint;
    row.label += label;
  }
  // A label column of 0 or 1. Returns what is wrong.
  static std::string add_flag(const Field& field, const std::string& name, TextRow& row) {
    const std::string text = to_lower(trim(field.text));
    const auto value = parse_double(text);
    const bool yes = text == "true" || value == 1.0;
    if (!yes && text != "false" && value != 0.0)
      return fmt::format("\"{}\" in the column of label {} is not 0 or 1",
                         fit(printable(field.text), 40), name);
    if (yes) add_label(name, row);
    return {};
  }
  // All labels of a field, each once. Returns what is wrong.
  std::string add_labels(const Field& field, TextRow& row) const {
    std::vector<std::string> labels;
    if (!field.is_text && field.text.starts_with('[')) {
      const auto list = parse_json(field.text, {.max_bytes = kMaxRowBytes, .max_depth = 2});
      if (!list) return list.error().message;
      for (const Json& item : *list) {
        if (!item.is_string() && !item.is_number())
          return "a label of the list is neither a text nor a number";
        labels.push_back(item.is_string() ? item.get<std::string>() : canonical(item));
      }
    } else {
      std::string_view rest = field.text;
      while (!rest.empty()) {
        const auto end = std::min(rest.find(options_.label_separator), rest.size());
        labels.emplace_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + options_.label_separator.size(), rest.size()));
      }
    }
    std::vector<std::string> seen;
    for (const std::string& label : labels) {
      const std::string clean(trim(label));
      if (clean.empty()) continue;
      if (clean.find(kLabelJoint) != clean.npos) return "a label holds the control character 0x1F";
      if (std::ranges::find(seen, clean) != seen.end()) continue;
      seen.push_back(clean);
      add_label(clean, row);
    }
    return {};
  }

  const Field* find(const Record& record, const Column& column) {
    if (!is_json(format_)) return &record.fields[column.index];
    const auto found = std::ranges::find(record.fields, column.name, &Field::name);
    if (found != record.fields.end()) return &*found;
    table_.faults.add({"key missing", file_, record.line, 0,
                       fmt::format("has no key \"{}\" (or it is null)", column.name)});
    return nullptr;
  }

  bool accept(const Field& field, const Column& column, TextRow& row) {
    std::size_t bad = 0;
    const auto fault = [&](const char* kind, std::string text) {
      table_.faults.add({kind, file_, field.line, field.column, std::move(text)});
      return false;
    };
    if (!valid_utf8(field.text, &bad))
      return fault("not UTF-8", fmt::format("byte {} of the {} is not UTF-8 ({})", bad + 1,
                                            column.role, remedy_));
    if (field.text.find('\0') != std::string::npos)
      return fault("NUL character", fmt::format("the {} holds a NUL character (the file is damaged "
                                                "or no text; remove it with: tr -d '\\000')",
                                                column.role));
    const bool blank = trim(field.text).empty();
    const bool is_set = column.role == "label" && options_.many_labels();
    if (blank && !(is_set && options_.label_columns.empty())) {
      if (!options_.drop_empty)
        return fault(
            "empty field",
            fmt::format("the {} is empty (data.empty: drop leaves such rows out)", column.role));
      ++num_empty_;
      return false;
    }
    if (column.role == "label") {
      row.label_line = field.line;
      row.label_column = field.column;
      if (!is_set) {
        if (!field.is_text && (field.text.starts_with('[') || field.text.starts_with('{')))
          return fault("label that can't be read",
                       fmt::format("the label is {}", field.text.starts_with('[')
                                                          ? "a list; sets of labels are for "
                                                            "task.kind: multi_label"
                                                          : "an object"));
        row.label = trim(field.text);
        return true;
      }
      const std::string wrong = options_.label_columns.empty() ? add_labels(field, row)
                                                               : add_flag(field, column.name, row);
      return wrong.empty() || fault("label that can't be read", wrong);
    }
    if (!field.is_text)
      return fault("not a text", fmt::format("the {} is not a text", column.role));
    (column.role == "text" ? row.text : row.pair) = field.text;
    return true;
  }

  std::int64_t num_empty_ = 0;
  const std::string& file_;
  TextFormat format_;
  const ReadOptions& options_;
  std::vector<Column> columns_;
  std::size_t num_fields_;
  std::string remedy_;  // for bytes that are not UTF-8
  TextTable& table_;
};

// What the bytes that are not UTF-8 probably are, and what to do. Latin-1 has nothing printable in
// 0x80 to 0x9F, where Windows has quotes and dashes.
std::string encoding_remedy(std::string_view bytes) {
  const bool windows = std::ranges::any_of(bytes, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 && byte < 0xA0;
  });
  return windows ? "perhaps Windows-1252; convert the file with: iconv -f windows-1252 -t utf-8"
                 : "if the file is Latin-1, say data.encoding: latin-1";
}

// What a file that is no text at all seems to be; empty when it may be text.
std::string other_kind(std::string_view bytes) {
  struct Magic {
    std::string_view bytes, kind;
  };
  static constexpr std::array<Magic, 8> kKnown = {
      {{"\xFF\xFE", "UTF-16; convert it with: iconv -f utf-16 -t utf-8"},
       {"\xFE\xFF", "UTF-16; convert it with: iconv -f utf-16 -t utf-8"},
       {"\x1F\x8B", "gzip data; unpack it with: gunzip"},
       {"PK\x03\x04", "a zip archive (or a spreadsheet); unpack it, or save it as CSV"},
       {"PAR1", "Parquet; save it as CSV or JSONL"},
       {"\x89PNG", "a PNG image"},
       {"\xFF\xD8\xFF", "a JPEG image"},
       {"\x28\xB5\x2F\xFD", "zstd data; unpack it with: unzstd"}}};
  for (const Magic& known : kKnown)
    if (bytes.starts_with(known.bytes)) return std::string(known.kind);
  if (bytes.find('\n') == bytes.npos && std::ranges::count(bytes, '\r') > 1)
    return "text whose lines end with CR alone; convert it with: tr '\\r' '\\n'";
  const std::string_view start = bytes.substr(0, 4096);
  std::size_t even = 0, odd = 0;
  for (std::size_t i = 0; i < start.size(); ++i)
    if (start[i] == '\0') ++(i % 2 == 0 ? even : odd);
  if (odd > start.size() / 4 && even * 4 < odd)
    return "UTF-16 without a mark; convert it with: iconv -f utf-16le -t utf-8";
  if (even > start.size() / 4 && odd * 4 < even)
    return "UTF-16 without a mark; convert it with: iconv -f utf-16be -t utf-8";
  return even + odd > start.size() / 10 ? "binary data, not text" : "";
}

std::string from_latin_1(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 16);
  for (const char c : bytes) append_utf8(text, static_cast<unsigned char>(c));
  return text;
}

std::vector<Record> split_records(std::string_view bytes, TextFormat format, bool labelled,
                                  const std::string& file, FaultList& faults) {
  switch (format) {
    case TextFormat::kCsv:
      return split_csv(bytes, csv_separator(bytes), file, faults);
    case TextFormat::kTsv:
      return split_tsv(bytes, file, faults);
    case TextFormat::kJsonLines:
      return split_json_lines(bytes, file, faults);
    case TextFormat::kJson:
      return split_json_array(bytes, file, faults);
    case TextFormat::kLines:
      return split_lines(bytes, labelled, file, faults);
  }
  return {};
}

// Fills the columns' places, or says what is missing.
Result<> map_columns(const std::vector<Record>& records, const std::string& file,
                     const ReadOptions& options, std::vector<Column>& columns, TextTable& table) {
  if (table.format == TextFormat::kLines) {
    if (!options.columns.empty() && !options.columns.contains("text_pair"))
      return refused(file +
                     ": lines `label text` have no columns; say data.format: csv or tsv if it "
                     "is a table, else leave data.columns out");
    for (Column& column : columns) {
      if (column.role == "text_pair") return refused(file + ": lines `label text` hold one text");
      if (!options.label_columns.empty())
        return refused(file + ": lines `label text` have no columns of labels");
      column.index = column.role == "label" ? 0 : records[0].fields.size() - 1;
    }
    return Ok{};
  }
  if (!is_json(table.format)) return map_delimited(records, file, options, columns, table);
  std::vector<std::string> keys;
  for (const Field& field : records[0].fields) keys.push_back(field.name);
  for (const Column& column : columns) {
    const auto has_key = [&column](const Record& record) {
      return std::ranges::find(record.fields, column.name, &Field::name) != record.fields.end();
    };
    if (std::ranges::none_of(records, has_key))
      return refused(no_column(column.role, column.name, file, keys));
  }
  return Ok{};
}

}  // namespace

Result<> ReadOptions::validate() const {
  std::vector<std::string> formats = {"auto"};
  for (const FormatName& known : kFormats) formats.emplace_back(known.name);
  const auto one_of = [](const char* field, const std::string& value,
                         const std::vector<std::string>& known) -> Result<> {
    if (std::ranges::find(known, value) != known.end()) return Ok{};
    return refused(fmt::format("data.{} \"{}\" is not one of {}", field, value, join(known, ", ")));
  };
  YMIR_TRY(one_of("format", format, formats));
  YMIR_TRY(one_of("header", header, {"auto", "yes", "no"}));
  YMIR_TRY(one_of("encoding", encoding, {"utf-8", "latin-1"}));
  for (const auto& [role, name] : columns) {
    YMIR_TRY(one_of("columns key", role, kRoles));
    if (name.empty()) return refused(fmt::format("data.columns.{} is empty", role));
  }
  return Ok{};
}

TextFormat format_of(std::string_view path) {
  const auto dot = path.rfind('.');
  const std::string ending = dot == std::string_view::npos ? "" : to_lower(path.substr(dot + 1));
  if (ending == "ndjson") return TextFormat::kJsonLines;
  const auto* known = std::ranges::find(kFormats, ending, &FormatName::name);
  return known == kFormats.end() ? TextFormat::kLines : known->format;
}

Result<TextTable> read_table(std::string_view bytes, const std::string& name,
                             const ReadOptions& options) {
  YMIR_TRY(options.validate());
  TextTable table;
  const auto* known = std::ranges::find(kFormats, options.format, &FormatName::name);
  table.format = known == kFormats.end() ? format_of(name) : known->format;
  if (const std::string kind = other_kind(bytes); !kind.empty())
    return refused(fmt::format("{}: is {}", name, kind));
  if (bytes.starts_with(kByteOrderMark)) {
    bytes.remove_prefix(kByteOrderMark.size());
    table.notes.add({"byte order mark", name, 0, 0, "a byte order mark was stripped"});
  }
  const bool labelled = options.need_label || options.many_labels();
  std::string converted;
  if (options.encoding == "latin-1") {
    converted = from_latin_1(bytes);
    bytes = converted;
  }
  if (known == kFormats.end() && is_json(table.format))
    table.format = holds_json_array(bytes, table.format == TextFormat::kJson)
                       ? TextFormat::kJson
                       : TextFormat::kJsonLines;
  const auto records = split_records(bytes, table.format, labelled, name, table.faults);
  if (records.empty()) {
    if (table.faults.empty()) table.faults.add({"no rows", name, 0, 0, "holds no rows"});
    return table;
  }
  auto columns = wanted_columns(options);
  YMIR_TRY(map_columns(records, name, options, columns, table));
  table.has_pair =
      std::ranges::any_of(columns, [](const Column& c) { return c.role == "text_pair"; });
  RowReader reader(name, options, columns, records[0].fields.size(), encoding_remedy(bytes), table);
  for (std::size_t i = table.header.empty() ? 0 : 1; i < records.size(); ++i)
    reader.read(records[i]);
  if (reader.num_empty() > 0)
    table.notes.add({"empty rows", name, 0, 0,
                     fmt::format("{}: {} rows with an empty text or label are left out", name,
                                 reader.num_empty())});
  if (table.rows.empty() && table.faults.empty())
    table.faults.add({"no rows", name, 0, 0, "holds a header and no rows"});
  return table;
}

Result<TextTable> read_table_file(const std::string& path, const ReadOptions& options) {
  YMIR_TRY_ASSIGN(const std::string bytes, read_file(path, kMaxFile));
  return read_table(bytes, path, options);
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos && !text.empty())
    return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace ymir
