#include "ymir/sim/trace/readers.h"

namespace ymir {

void read_tiresias(CsvRows& rows, Trace& trace) {
  const auto at = rows.columns(
      {"job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration", "interval"});
  while (rows.next()) {
    TraceJob job{.line = rows.line()};
    job.name = rows.name(at[0]);
    job.gpus = static_cast<int>(rows.whole(at[1], 1, kMaxTraceGpus));
    job.submission_s = static_cast<double>(rows.whole(at[2], 0, 10'000'000'000));
    job.steps = rows.whole(at[3], 0, 1'000'000'000'000);
    job.application = rows.name(at[4]);
    job.duration_s = static_cast<double>(rows.whole(at[5], 1, 10'000'000'000));
    rows.number(at[6], 0, kMaxTraceSeconds);  // since the row above: told again by submit_time
    if (rows.good()) trace.jobs.push_back(std::move(job));
  }
}

}  // namespace ymir
