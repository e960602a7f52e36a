#include "ymir/sim/metrics/record.h"

#include <algorithm>
#include <cmath>

namespace ymir {

double JobRecord::jct_s() const {
  return finished && completion_s ? *completion_s - submission_s : std::nan("");
}

Micro to_micro(double seconds) { return static_cast<Micro>(std::llround(seconds * 1e6)); }

Micro RunRecord::begin() const {
  Micro first = INT64_MAX;
  for (const JobRecord& job : jobs) first = std::min(first, to_micro(job.submission_s));
  return jobs.empty() ? 0 : first;
}

Micro RunRecord::end() const {
  Micro last = begin();
  for (const JobRecord& job : jobs)
    if (job.completion_s) last = std::max(last, to_micro(*job.completion_s));
  for (const Hold& hold : holds) last = std::max(last, hold.to);
  return last;
}

}  // namespace ymir
