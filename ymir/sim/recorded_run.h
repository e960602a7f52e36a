// A recorded log of the service, read as the log of a simulation is: the same record, and the same
// invariants of a run hold of it (`ymir replay LOG --check`). Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ymir/sim/metrics/record.h"

namespace ymir {

// Where two jobs have one name, each but the first gets its id behind it: "sentiment (j17)".
std::map<JobId, std::string> unique_names(std::map<JobId, std::string> names);

// The run that a log tells of, its times from the first event on. It may still go on.
// kCorruption when an event isn't allowed where it stands, kInvalidArgument when jobs are missing.
Result<RunRecord> record_of_recorded(const std::vector<Event>& log);

// What of R1..R9 (metrics/check_run.h; R9: each plan passes check_plan in the state that it was
// made for) is broken, one line each. R8 is left out: nobody knows the truth of a real job.
std::vector<std::string> check_recorded(const std::vector<Event>& log);

}  // namespace ymir
