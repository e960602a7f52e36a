// Snapshot::due: the newest plan, read in the light of what has happened since.
#include <algorithm>

#include "ymir/core/snapshot.h"

namespace ymir {
namespace {

class Reading {
 public:
  explicit Reading(const Snapshot& now) : now_(now) {
    const std::size_t most = now.wish ? now.wish->plan.assignments.size() : 0;
    due_.reserve(most);
    seen_.reserve(most);
  }

  void add(const Assignment& planned) {
    switch (planned.mode) {
      case Mode::kNormal:
        return alone(planned.job, planned.gpus, due_);
      case Mode::kTemporal:
        return after_source(planned);
      case Mode::kSpatial:
        return together(planned);
    }
  }
  std::vector<Assignment> take() && {
    due_.insert(due_.end(), spare_.begin(), spare_.end());
    return std::move(due_);
  }

 private:
  const JobView* startable(JobId id) const {
    const auto job = now_.jobs.find(id);
    return job != now_.jobs.end() && job->second.active() && !seen_.contains(id) ? &job->second
                                                                                 : nullptr;
  }

  // A job that has learnt from a source goes on under that name.
  void alone(JobId id, int gpus, std::vector<Assignment>& list) {
    const JobView* job = startable(id);
    if (job == nullptr) return;
    seen_.insert(id);
    const Transfer* merge = job->merge();
    if (merge != nullptr && merge->mode == Mode::kTemporal)
      list.push_back({Mode::kTemporal, id, merge->partner, gpus, merge->strength});
    else
      list.push_back({.mode = Mode::kNormal, .job = id, .gpus = gpus});
  }

  void after_source(const Assignment& planned) {
    const JobView* job = startable(planned.job);
    const auto source = now_.jobs.find(*planned.partner);
    const bool fresh = job != nullptr && !job->has_progress() && !job->merged &&
                       !job->barred.contains(*planned.partner);
    if (!fresh || source == now_.jobs.end()) return alone(planned.job, planned.gpus, due_);
    if (source->second.state == JobState::kSucceeded) {
      seen_.insert(planned.job);
      return due_.push_back(planned);
    }
    if (startable(*planned.partner) == nullptr) return alone(planned.job, planned.gpus, due_);
    seen_.insert(planned.job);  // waits for its source on the same GPUs
    alone(*planned.partner, planned.gpus, due_);
  }

  void together(const Assignment& planned) {
    const JobView* job = startable(planned.job);
    const JobView* partner = startable(*planned.partner);
    if (job != nullptr && partner != nullptr && may_be_together(*job, *partner)) {
      seen_.insert(job->id);
      seen_.insert(partner->id);
      return due_.push_back(planned);
    }
    // Not any more: the first keeps the GPUs, the other starts where some are left over.
    alone(planned.job, planned.gpus, due_);
    alone(*planned.partner, planned.gpus, job == nullptr ? due_ : spare_);
  }

  // A pair goes on together, or begins while neither has progress of its own.
  static bool may_be_together(const JobView& a, const JobView& b) {
    if (a.barred.contains(b.id) || b.barred.contains(a.id)) return false;
    const auto with = [](const JobView& job, JobId id) {
      return job.merge() != nullptr && job.merge()->partner == id;
    };
    if (with(a, b.id) && with(b, a.id)) return true;
    return !a.merged && !b.merged && !a.has_progress() && !b.has_progress();
  }

  const Snapshot& now_;
  IdSet<JobId> seen_{};
  std::vector<Assignment> due_{}, spare_{};
};

}  // namespace

std::vector<Assignment> Snapshot::due() const {
  Reading reading(*this);
  if (wish)
    for (const PlannedAssignment& line : wish->plan.assignments) reading.add(line.what);
  return std::move(reading).take();
}

}  // namespace ymir
