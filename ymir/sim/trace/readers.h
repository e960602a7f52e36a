// The readers behind scan_trace(), one file a format. Each takes its rows from `rows`, notes what
// is wrong there, and appends to `trace` the rows without a fault. To add a format: a file
// read_NAME.cc, a line here and one in the table of trace.cc.
#pragma once

#include "ymir/base/csv.h"
#include "ymir/sim/trace/trace.h"

namespace ymir {

inline constexpr double kMaxTraceSeconds = 1e10;
inline constexpr std::int64_t kMaxTraceGpus = 100'000;

void read_pollux(CsvRows& rows, Trace& trace);
void read_titan(CsvRows& rows, Trace& trace);
void read_philly(CsvRows& rows, Trace& trace);
void read_gavel(CsvRows& rows, Trace& trace);
void read_tiresias(CsvRows& rows, Trace& trace);
void read_alibaba2023(CsvRows& rows, Trace& trace);
void read_swf(CsvRows& rows, Trace& trace);

}  // namespace ymir
