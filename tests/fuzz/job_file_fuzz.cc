// The job file: any bytes give a spec or faults; a spec without faults is written and read back
// the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ymir/api/job_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  ymir::JobFileOptions options;
  options.owner = "user-a";
  const auto read = ymir::read_job_file({reinterpret_cast<const char*>(bytes), size}, options);
  for (const auto& fault : read.faults)
    if (ymir::to_string(fault, "job.yaml").empty() || fault.line < 1 || fault.column < 1)
      std::abort();
  if (!read.faults.empty()) return 0;
  const std::string resolved = ymir::write_job_file(read.spec);
  const auto again = ymir::read_job_file(resolved, options);
  if (!again.faults.empty() || ymir::write_job_file(again.spec) != resolved) std::abort();
  return 0;
}
