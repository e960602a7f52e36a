#include <algorithm>
#include <string>

#include "ymir/base/text.h"
#include "ymir/base/time.h"
#include "ymir/sim/trace/readers.h"

namespace ymir {

// Rows have no names: a job is called by its number, from 0. The origin of time is the earliest
// time stamp; the rows are not in the order of time.
void read_philly(CsvRows& rows, Trace& trace) {
  const auto at = rows.columns({"timestamp", "duration", "num_gpus"});
  int number = 0;
  while (rows.next()) {
    TraceJob job{.name = std::to_string(number++), .line = rows.line()};
    std::string stamp(trim(rows.text(at[0])));
    if (stamp.size() == 19 && stamp[10] == ' ') stamp[10] = 'T';
    const std::optional<Time> time = parse_time(stamp + "Z");
    if (!time) rows.fault(at[0], "must be YEAR-MONTH-DAY HOUR:MINUTE:SECOND");
    job.duration_s = rows.number(at[1], 0, kMaxTraceSeconds);
    job.gpus = static_cast<int>(rows.whole(at[2], 1, kMaxTraceGpus));
    if (rows.good() && job.duration_s <= 0) rows.fault(at[1], "must be longer than 0 s");
    if (!rows.good()) continue;
    job.submission_s = to_seconds(*time);
    trace.jobs.push_back(std::move(job));
  }
  if (trace.jobs.empty()) return;
  const double origin =
      std::ranges::min_element(trace.jobs, {}, &TraceJob::submission_s)->submission_s;
  for (TraceJob& job : trace.jobs) job.submission_s -= origin;
}

}  // namespace ymir
