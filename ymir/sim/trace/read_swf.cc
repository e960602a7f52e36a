#include <fmt/format.h>

#include <array>
#include <optional>

#include "ymir/base/text.h"
#include "ymir/sim/trace/readers.h"

namespace ymir {
namespace {

constexpr std::size_t kFields = 18;
enum Field : std::size_t { kNumber, kSubmit, kWait, kRunTime, kAllocated, kAsked = 7 };
constexpr std::array<std::string_view, 8> kNames = {
    "job number",           "submit time", "wait time", "run time",
    "allocated processors", "CPU time",    "memory",    "requested processors"};

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size() && words.size() <= kFields;) {
    const std::size_t begin = line.find_first_not_of(" \t", at);
    if (begin == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t", begin), line.size());
    words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

}  // namespace

// Standard workload format: 18 numbers a line, -1 = not known, `;` begins a comment. Its rows are
// cut at blanks, so `rows` is made with a separator that no line holds.
void read_swf(CsvRows& rows, Trace& trace) {
  int unknown = 0;
  while (rows.next()) {
    if (trim(rows.text(0)).starts_with(';')) continue;
    const std::vector<std::string_view> words = words_of(rows.text(0));
    if (words.size() != kFields) {
      rows.fault_at(rows.line(), fmt::format("{}{} fields where the format has 18",
                                             words.size() > kFields ? "more than " : "",
                                             std::min(words.size(), kFields)));
      continue;
    }
    const auto number = [&](Field field, double least) {
      const std::optional<double> value = parse_double(words[field]);
      if (value && *value >= least && *value <= kMaxTraceSeconds) return *value;
      rows.fault_at(rows.line(), fmt::format("{} must be a number from {}: {}", kNames[field],
                                             least, fit(words[field], 40)));
      return 0.0;
    };
    TraceJob job{.name = std::string(words[kNumber]), .line = rows.line()};
    number(kNumber, 0);
    job.submission_s = number(kSubmit, 0);
    job.duration_s = number(kRunTime, -1);
    const double asked = number(kAsked, -1), allocated = number(kAllocated, -1);
    const double gpus = asked > 0 ? asked : allocated;
    if (!rows.good()) continue;
    if (gpus > static_cast<double>(kMaxTraceGpus)) {
      rows.fault_at(rows.line(), fmt::format("more than {} processors", kMaxTraceGpus));
      continue;
    }
    job.gpus = static_cast<int>(gpus);
    if (job.gpus < 1 || job.duration_s <= 0)
      ++unknown;
    else
      trace.jobs.push_back(std::move(job));
  }
  trace.warnings.push_back("processors are read as GPUs");
  if (unknown > 0)
    trace.warnings.push_back(fmt::format("{} jobs of no known length or size left out", unknown));
}

}  // namespace ymir
