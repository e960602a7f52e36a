// Views: the state as the JSON that programs read: field names, seconds, bytes.
// Each is one JSON document as text. Pure, any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ymir/core/event.h"
#include "ymir/core/snapshot.h"

namespace ymir {

using StepReports = std::map<JobId, StepReport>;  // newest of each running job

struct JobFilter {
  std::string owner{};     // empty: everybody's
  std::string state{};     // "running"; empty: any
  JobId before{};          // older than this one; 0: from the newest
  std::size_t limit = 20;  // 1..100
};
// {"object":"list","data":[...],"has_more":bool}, newest first; the fields of `ymir ls`.
std::string job_list_view(const Snapshot& now, const StepReports& progress,
                          const JobFilter& filter);
// The same fields as in the list and: spec, job_file, facts, evaluations, transfers, result.
std::string job_view(const Snapshot& now, const StepReports& progress, const JobView& job);
// Why it waits or runs as it does: state, reason, the newest plan's choice with its card.
// `lost_why`: of the newest run that was lost, where it has made no progress since.
std::string explain_view(const Snapshot& now, const JobView& job, const std::string& lost_why = "");
std::string nodes_view(const Snapshot& now);

// One line: {"seq","at","actor","kind","v","body"}.
std::string event_view(const Event& event);
std::string event_list_view(const std::vector<Event>& events, std::uint64_t next, bool has_more);
// True when the event names the job.
bool mentions(const Event& event, JobId job);
// Which jobs each run has: RunStarted and RunLost name only their run, whose RunRequested came
// before. Knows the newest runs among the events that it has seen.
class JobsOfRuns {
 public:
  void see(const Event& event);
  // True when the event is about the job: names it, or is about a run of it.
  bool concern(const Event& event, JobId job) const;

 private:
  std::map<RunId, std::vector<JobId>> jobs_{};
};

// Mode and partner as they stand: of the active run, else of the last merge that was not split.
struct Pairing {
  std::string mode = "normal";  // profile, normal, temporal, spatial
  JobId partner{};
};
Pairing pairing_of(const Snapshot& now, const JobView& job);

}  // namespace ymir
