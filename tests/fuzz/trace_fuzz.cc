// The first byte picks the format, the rest is a trace: jobs and faults, never a crash.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "ymir/base/result.h"
#include "ymir/sim/trace/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto& formats = ymir::trace_formats();
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto scan = ymir::scan_trace(formats[data[0] % formats.size()], "f", text);
  YMIR_CHECK(static_cast<bool>(scan), "a known format was refused");
  YMIR_CHECK(scan->faults.size() <= 20, "more faults than are told");
  for (const ymir::TraceJob& job : scan->trace.jobs) {
    YMIR_CHECK(std::isfinite(job.submission_s) && job.submission_s >= 0, "a bad time got through");
    YMIR_CHECK(std::isfinite(job.duration_s) && job.duration_s >= 0, "a bad length got through");
    YMIR_CHECK(job.gpus >= 1 && job.line >= 1 && !job.name.empty(), "half a job got through");
  }
  return 0;
}
