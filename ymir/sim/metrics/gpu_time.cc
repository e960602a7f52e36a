#include "ymir/sim/metrics/gpu_time.h"

#include <algorithm>

namespace ymir {
namespace {

// A change of counts at an instant.
struct Delta {
  int training = 0, switching = 0, profiling = 0, holding = 0, active = 0;
};

// A job waits from submission to end, except while a run holds GPUs for it.
std::map<Micro, Delta> deltas_of(const RunRecord& record) {
  std::map<Micro, Delta> deltas;
  const Micro end = record.end();
  std::vector<std::vector<std::pair<Micro, Micro>>> held(record.jobs.size());
  for (const Hold& hold : record.holds) {
    const int gpus = static_cast<int>(hold.gpus.size());
    int Delta::* kind = hold.profile ? &Delta::profiling : &Delta::switching;
    deltas[hold.from].*kind += gpus;
    if (!hold.profile) {
      deltas[hold.ready].switching -= gpus;
      deltas[hold.ready].training += gpus;
      deltas[hold.to].training -= gpus;
    } else {
      deltas[hold.to].profiling -= gpus;
    }
    for (const int job : hold.jobs)
      held[static_cast<std::size_t>(job)].emplace_back(hold.from, hold.to);
  }
  for (std::size_t i = 0; i < record.jobs.size(); ++i) {
    const JobRecord& job = record.jobs[i];
    const Micro from = to_micro(job.submission_s);
    const Micro to = job.completion_s ? to_micro(*job.completion_s) : end;
    deltas[from].active += 1;
    deltas[to].active -= 1;
    for (const auto& [begin, stop] : held[i]) {
      if (std::max(begin, from) >= std::min(stop, to)) continue;
      deltas[std::max(begin, from)].holding += 1;
      deltas[std::min(stop, to)].holding -= 1;
    }
  }
  return deltas;
}

}  // namespace

std::vector<ClusterPoint> cluster_over_time(const RunRecord& record) {
  std::vector<ClusterPoint> points;
  Delta now;
  for (const auto& [at, delta] : deltas_of(record)) {
    now.training += delta.training;
    now.switching += delta.switching;
    now.profiling += delta.profiling;
    now.holding += delta.holding;
    now.active += delta.active;
    points.push_back(
        {at, now.training, now.switching, now.profiling, now.active - now.holding, now.active});
  }
  return points;
}

GpuTime gpu_time(const RunRecord& record) {
  GpuTime time;
  for (const Hold& hold : record.holds) {
    const auto gpus = static_cast<Micro>(hold.gpus.size());
    // Training of jobs that have all ended already blocks GPUs (a rule of some simulators).
    Micro over = hold.to - hold.from;
    for (const int job : hold.jobs) {
      const JobRecord& of = record.jobs[static_cast<std::size_t>(job)];
      const Micro ended = of.completion_s ? to_micro(*of.completion_s) : hold.to;
      over = std::min(over, std::max<Micro>(0, hold.to - std::max(ended, hold.ready)));
    }
    if (hold.jobs.empty()) over = 0;
    if (hold.profile) {
      time.profile += (hold.to - hold.from) * gpus;
      continue;
    }
    const Micro useful = hold.to - hold.ready - hold.redone - over;
    time.switching += (hold.ready - hold.from) * gpus;
    time.redone += hold.redone * gpus;
    time.blocked += over * gpus;
    time.useful += useful * gpus;
    time.by_mode[static_cast<int>(hold.mode)] += useful * gpus;
  }
  const std::vector<ClusterPoint> points = cluster_over_time(record);
  const Micro begin = record.begin(), end = record.end();
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Micro from = std::max(points[i].at, begin);
    const Micro to = i + 1 < points.size() ? points[i + 1].at : end;
    if (to <= from) continue;
    const int busy = points[i].training + points[i].switching + points[i].profiling;
    const Micro free = static_cast<Micro>(record.num_gpus() - busy) * (to - from);
    (points[i].waiting > 0 ? time.idle_waiting : time.idle_empty) += free;
  }
  return time;
}

}  // namespace ymir
