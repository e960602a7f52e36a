#include "ymir/schedule/alone.h"

#include <algorithm>

#include "ymir/schedule/packing.h"
#include "ymir/schedule/sizes.h"

namespace ymir {

const Candidate* AloneJob::at(int gpus) const {
  for (const Candidate* size : sizes)
    if (size->what.gpus == gpus) return size;
  return nullptr;
}

double AloneJob::seconds(const Candidate& size) {
  return size.members.front().finish_in.p50 - size.switch_cost.count();
}

double AloneJob::restart_seconds() const {
  double most = 0;
  for (const Candidate* size : sizes) most = std::max(most, size->switch_cost.count());
  return most;
}

double AloneJob::running_since(Time now) const {
  return started ? std::max(0.0, (now - *started).count()) : 0;
}

AloneRound::AloneRound(const Round& round) {
  const auto order = [](const Candidate* c) { return std::pair(c->what.job, c->what.gpus); };
  const int largest = largest_node(round.cluster);
  for (const Candidate& candidate : round.forecast.candidates) {
    const bool normal = candidate.what.mode == Mode::kNormal && !candidate.members.empty();
    if (normal && candidate.what.gpus <= largest) sizes_.push_back(&candidate);
  }
  if (!std::ranges::is_sorted(sizes_, {}, order)) std::ranges::stable_sort(sizes_, {}, order);

  auto next = sizes_.begin();
  for (const JobView* view : round.cluster.active_jobs()) {
    const JobView& job = *view;
    const JobId id = job.id;
    while (next != sizes_.end() && (*next)->what.job < id) ++next;
    const auto first = next;
    while (next != sizes_.end() && (*next)->what.job == id) ++next;
    if (job.state == JobState::kProfiling) {
      waiting_.push_back({id, "profile"});
      continue;
    }
    if (!fits_a_node(job.spec, largest)) {
      waiting_.push_back({id, does_not_fit(job.spec, largest)});
      continue;
    }
    const auto end = std::remove_if(first, next, [&s = job.spec](const Candidate* size) {
      return size->what.gpus < s.min_gpus || size->what.gpus > s.max_gpus ||
             (!s.sizes.empty() && std::ranges::count(s.sizes, size->what.gpus) == 0);
    });
    if (first == end) {
      waiting_.push_back({id, "no_forecast"});
      continue;
    }
    AloneJob alone{.job = &job, .sizes = {first, end}, .service_before = job.busy.count()};
    if (const auto run = round.cluster.runs.find(job.run); run != round.cluster.runs.end() &&
                                                           !run->second.profile &&
                                                           run->second.what.mode == Mode::kNormal) {
      alone.place = run->second.place;
      alone.held = run->second.what.gpus;
      alone.started = run->second.started;
    }
    jobs_.push_back(alone);
  }
}

}  // namespace ymir
