#include "ymir/sim/trace/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "ymir/base/csv.h"
#include "ymir/base/file.h"
#include "ymir/base/text.h"
#include "ymir/sim/trace/readers.h"

namespace ymir {
namespace {

struct Reader {
  std::string_view format;
  char separator;
  void (*read)(CsvRows&, Trace&);
};
constexpr Reader kReaders[] = {
    {"pollux", ',', read_pollux},     {"titan", ',', read_titan},
    {"philly", ',', read_philly},     {"gavel", '\t', read_gavel},
    {"tiresias", ',', read_tiresias}, {"alibaba2023", ',', read_alibaba2023},
    {"swf", '\n', read_swf},  // its lines are cut at blanks, by the reader
};

void refuse_doubles(CsvRows& rows, const Trace& trace) {
  std::map<std::string_view, int> line_of;
  for (const TraceJob& job : trace.jobs) {
    const auto [first, fresh] = line_of.emplace(job.name, job.line);
    if (!fresh)
      rows.fault_at(job.line,
                    fmt::format("the name is taken by line {}: {}", first->second, job.name));
  }
}

void note_order(Trace& trace) {
  const auto later = std::ranges::is_sorted_until(trace.jobs, {}, &TraceJob::submission_s);
  if (later == trace.jobs.end()) return;
  trace.unsorted = true;
  trace.warnings.push_back(fmt::format(
      "unsorted: the job of line {} is submitted before the one above it", later->line));
}

// The list of nodes that lies beside a list of pods; none when there is none, or more than one.
std::optional<std::string> node_list_beside(const std::string& file) {
  std::optional<std::string> found;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::absolute(file).parent_path(), error)) {
    const std::string name = entry.path().filename();
    if (name.find("node_list") == std::string::npos || !name.ends_with(".csv")) continue;
    if (found) return std::nullopt;
    found = entry.path();
  }
  return found;
}

}  // namespace

const std::vector<std::string>& trace_formats() {
  static const std::vector<std::string> formats = [] {
    std::vector<std::string> names;
    for (const Reader& reader : kReaders) names.emplace_back(reader.format);
    return names;
  }();
  return formats;
}

Result<TraceScan> scan_trace(const std::string& format, const std::string& file,
                             const std::string& text) {
  const auto reader = std::ranges::find(kReaders, format, &Reader::format);
  if (reader == std::end(kReaders))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("unknown format of a trace: {} (known: {})", format,
                             join(trace_formats(), ", "))};
  TraceScan scan{.trace = {.format = format, .file = file}};
  CsvRows rows(file, text, reader->separator);
  reader->read(rows, scan.trace);
  refuse_doubles(rows, scan.trace);
  if (scan.trace.jobs.empty() && scan.trace.nodes.empty() && rows.num_faults() == 0)
    rows.fault_at(0, "no jobs");
  for (const std::string& column : rows.unused())
    if (format == "pollux" || format == "titan")
      scan.trace.warnings.push_back("column not read: " + column);
  note_order(scan.trace);
  scan.faults = rows.faults();
  scan.num_faults = rows.num_faults();
  return scan;
}

Result<Trace> parse_trace(const std::string& format, const std::string& file,
                          const std::string& text) {
  YMIR_TRY_ASSIGN(TraceScan scan, scan_trace(format, file, text));
  if (scan.num_faults == 0) return std::move(scan.trace);
  return Error{ErrorCode::kInvalidArgument,
               scan.num_faults == 1
                   ? scan.faults.front()
                   : fmt::format("{} (and {} more)", scan.faults.front(), scan.num_faults - 1)};
}

Result<Trace> read_trace(const std::string& format, const std::string& file) {
  YMIR_TRY_ASSIGN(const std::string text, read_file(file));
  YMIR_TRY_ASSIGN(Trace trace, parse_trace(format, file, text));
  if (format != "alibaba2023" || !trace.nodes.empty()) return trace;
  if (const auto beside = node_list_beside(file)) {
    YMIR_TRY_ASSIGN(const std::string nodes, read_file(*beside));
    YMIR_TRY_ASSIGN(const Trace list, parse_trace(format, *beside, nodes));
    trace.nodes = list.nodes;
    trace.warnings.push_back(fmt::format("{} nodes from the list beside it", trace.nodes.size()));
  }
  return trace;
}

}  // namespace ymir
