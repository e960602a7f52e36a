// Trace: the jobs of a published workload file, as its columns say and no more. What they mean
// (lengths, curves, step times) comes from the profiles of sim/profiles/.
//
// One reader a format, each bounded (10^6 rows, 1 GiB) and naming file:line of a fault: negative or
// NaN times, wrong number of columns, duplicate names, a BOM where none may be. Rows keep the order
// of the file; `unsorted` says that it is not that of submission. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

struct TraceJob {
  std::string name{};
  std::string application{};    // pollux: application; titan: model@dataset; gavel: job_type
  double submission_s = 0;      // from the origin of the file, or its first row (philly)
  int gpus = 1;                 // asked for
  double duration_s = 0;        // rigid jobs: alone on what they ask for; 0: unknown
  std::int64_t batch_size = 0;  // pollux, titan; 0: unknown
  std::string learning_rate{};  // titan, as written ("4e-5": a key of the tables)
  int gradient_steps = 1;       // titan: accumulation
  double target_metric = 0;     // titan
  std::int64_t steps = 0;       // gavel: total_steps; tiresias: iterations
  int line = 0;                 // of the file
};

struct TraceNode {  // alibaba2023: what the file of nodes holds
  std::string name{}, model{};
  int gpus = 0;
};

struct Trace {
  std::string format{}, file{};
  std::vector<TraceJob> jobs{};
  std::vector<TraceNode> nodes{};       // empty: the file says nothing
  std::vector<std::string> warnings{};  // "12 pods without a GPU left out", "unsorted: ..."
  bool unsorted = false;
};

// Every fault of a file, for a linter: the trace holds the rows that have none.
struct TraceScan {
  Trace trace{};
  std::vector<std::string> faults{};  // the first 20, "FILE:LINE: ..."
  std::size_t num_faults = 0;
};
Result<TraceScan> scan_trace(const std::string& format, const std::string& file,
                             const std::string& text);
const std::vector<std::string>& trace_formats();

// The trace, or the first fault and how many more there are.
// `format`: pollux, titan, philly, gavel, tiresias, alibaba2023, swf.
Result<Trace> parse_trace(const std::string& format, const std::string& file,
                          const std::string& text);
// Beside a list of pods (alibaba2023) the one file *node_list*.csv of its folder is read too.
Result<Trace> read_trace(const std::string& format, const std::string& file);

}  // namespace ymir
