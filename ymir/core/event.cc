#include "ymir/core/event.h"

namespace ymir {
namespace {

template <class T>
constexpr bool kHasJob = requires(const T& e) { e.job; };
template <class T>
constexpr bool kHasRun = requires(const T& e) { e.run; };

}  // namespace

std::vector<JobId> jobs_of(const EventBody& body) {
  return std::visit(
      [](const auto& e) -> std::vector<JobId> {
        using T = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<T, PlanAdopted>) {
          std::vector<JobId> jobs;
          for (const PlannedAssignment& line : e.plan.assignments) {
            jobs.push_back(line.what.job);
            if (line.what.partner) jobs.push_back(*line.what.partner);
          }
          return jobs;
        } else if constexpr (std::is_same_v<T, RunRequested> || std::is_same_v<T, RunStopped>) {
          return e.jobs;
        } else if constexpr (std::is_same_v<T, FlowAuthorised>) {
          return {e.to, e.from};
        } else if constexpr (std::is_same_v<T, RunSplit> || std::is_same_v<T, TransferSettled>) {
          return {e.job, e.partner};
        } else if constexpr (kHasJob<T>) {
          return {e.job};
        } else {
          return {};
        }
      },
      body);
}

RunId run_of(const EventBody& body) {
  return std::visit(
      [](const auto& e) -> RunId {
        if constexpr (kHasRun<std::decay_t<decltype(e)>>)
          return e.run;
        else
          return {};
      },
      body);
}

}  // namespace ymir
