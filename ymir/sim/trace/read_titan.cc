#include "ymir/base/text.h"
#include "ymir/sim/trace/readers.h"

namespace ymir {

void read_titan(CsvRows& rows, Trace& trace) {
  const auto at =
      rows.columns({"name", "submission_time", "application", "num_gpus", "target_batch_size",
                    "target_lr", "target_gradient_steps", "target_metric"});
  while (rows.next()) {
    TraceJob job{.line = rows.line()};
    job.name = rows.name(at[0]);
    job.submission_s = rows.number(at[1], 0, kMaxTraceSeconds);
    job.application = rows.name(at[2]);
    const std::size_t sign = job.application.find('@');
    if (rows.good() && (sign == 0 || sign >= job.application.size() - 1))
      rows.fault(at[2], "must be MODEL@DATASET");
    job.gpus = static_cast<int>(rows.whole(at[3], 1, kMaxTraceGpus));
    job.batch_size = rows.whole(at[4], 1, 1'000'000'000);
    // Kept as written, because it is a key of the tables; that it is a number is checked.
    rows.number(at[5], 1e-12, 1e3);
    job.learning_rate = std::string(trim(rows.text(at[5])));
    job.gradient_steps = static_cast<int>(rows.whole(at[6], 1, 1'000'000));
    job.target_metric = rows.number(at[7], -1e9, 1e9);
    if (rows.good()) trace.jobs.push_back(std::move(job));
  }
}

}  // namespace ymir
