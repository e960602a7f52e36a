#include "ymir/sim/trace/readers.h"

namespace ymir {

void read_pollux(CsvRows& rows, Trace& trace) {
  const auto at = rows.columns({"name", "time", "application", "num_replicas", "batch_size"});
  while (rows.next()) {
    TraceJob job{.line = rows.line()};
    job.name = rows.name(at[0]);
    job.submission_s = rows.number(at[1], 0, kMaxTraceSeconds);
    job.application = rows.name(at[2]);
    job.gpus = static_cast<int>(rows.whole(at[3], 1, kMaxTraceGpus));
    job.batch_size = rows.whole(at[4], 1, 1'000'000'000);
    if (rows.good()) trace.jobs.push_back(std::move(job));
  }
}

}  // namespace ymir
