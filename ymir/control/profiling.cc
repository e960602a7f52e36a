#include "ymir/control/profiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "ymir/control/controller.h"

namespace ymir {

Result<> ProfilingOptions::validate() const {
  const auto invalid = [](const char* text) { return Error{ErrorCode::kInvalidArgument, text}; };
  if (!(share >= 0 && share <= 1)) return invalid("profiling.share must lie in 0..1");
  if (!(window > Seconds(0))) return invalid("profiling.window must be > 0");
  if (!(share_of_job > 0 && share_of_job <= 1))
    return invalid("profiling.share_of_job must lie in 0..1");
  if (min_steps < 1 || max_steps < min_steps)
    return invalid("profiling.min_steps must be >= 1 and <= max_steps");
  if (!(max_time > Seconds(0))) return invalid("profiling.max_time must be > 0");
  if (probe_runs < 0) return invalid("profiling.probe_runs must be >= 0");
  return Ok{};
}

std::int64_t profile_steps(const JobView& job, const ProfilingOptions& options) {
  const double share = static_cast<double>(job.facts.total_steps) * options.share_of_job;
  const std::int64_t steps = std::clamp(static_cast<std::int64_t>(std::min(share, 1e15)),
                                        options.min_steps, options.max_steps);
  return job.facts.total_steps > 0 ? std::min(steps, job.facts.total_steps) : steps;
}

// One profile always fits, however small the share.
double ProfileQuota::capacity(const Snapshot& now) const {
  return std::max(options_.share * now.num_gpus() * options_.window.count(),
                  options_.max_time.count());
}

double ProfileQuota::level(const Snapshot& now) const {
  const double full = capacity(now);
  if (!filled_once_) return full;
  const double flow = options_.share * now.num_gpus() * (now.now - filled_).count();
  return std::min(full, level_ + flow);
}

void ProfileQuota::observe(const Event& event, const Snapshot& after) {
  if (const auto* asked = std::get_if<RunRequested>(&event.body)) {
    if (asked->profile) running_[asked->run] = {event.at, static_cast<int>(asked->slots.size())};
    return;
  }
  if (!std::holds_alternative<RunStopped>(event.body) &&
      !std::holds_alternative<RunLost>(event.body))
    return;
  const auto found = running_.find(run_of(event.body));
  if (found == running_.end()) return;
  const double spent = (event.at - found->second.since).count() * found->second.slots;
  level_ = level(after) - spent;
  filled_ = event.at;
  filled_once_ = true;
  running_.erase(found);
}

bool ProfileQuota::allows(const Snapshot& now, int slots) const {
  if (!options_.enabled || options_.share <= 0) return false;
  double left = level(now);
  for (const auto& [run, profile] : running_) left -= options_.max_time.count() * profile.slots;
  // The last of the bucket may go to a profile that needs a little more.
  return left > 0 && (running_.empty() || left >= options_.max_time.count() * slots);
}

// --- the controller's part ---

std::vector<Estimator::ProbeWish> Controller::probes_for(const JobView& job) const {
  if (!options_.profiling.probes || !job.spec.sharing.allow || !job.spec.sharing.take) return {};
  auto wishes = beliefs_.probes_wanted(state_, job.id);
  std::erase_if(wishes, [&](const Estimator::ProbeWish& wish) {
    const auto source = state_.jobs.find(wish.source);
    return source == state_.jobs.end() || source->second.adapter().empty() ||
           !may_learn(source->second, job, Mode::kTemporal);
  });
  return wishes;
}

int Controller::spare_slots() const {
  int spare = state_.free_gpus();
  for (const Assignment& want : state_.due()) {
    const JobView& job = state_.jobs.at(want.job);
    if (!job.run) spare -= want.gpus;
  }
  return spare;
}

// New jobs first, by priority and submission; then probes for those that wait, so that the next
// round knows more about sources that came or ended meanwhile. Only slots that the plan leaves
// over.
void Controller::grant_profiles() {
  if (!options_.profiling.enabled || state_.free_gpus() == 0 || !quota_.allows(state_, 1)) return;
  std::vector<const JobView*> fresh, waiting;
  for (const JobId id : state_.open) {
    const JobView& job = state_.jobs.at(id);
    const bool may = job.state == JobState::kQueued || job.state == JobState::kProfiling;
    if (!may || job.held || job.run || may_start_at(job) > world_.now()) continue;
    (job.profile_settled ? waiting : fresh).push_back(&job);
  }
  if (fresh.empty() && (waiting.empty() || probe_runs_ >= options_.profiling.probe_runs)) return;
  int spare = spare_slots();
  const auto fits = [&](const JobView& job) {
    return job.spec.min_gpus <= spare && quota_.allows(state_, job.spec.min_gpus);
  };
  std::ranges::stable_sort(fresh, std::ranges::greater{},
                           [](const JobView* job) { return job->spec.priority; });
  for (const JobView* job : fresh) {
    if (!fits(*job)) continue;
    spare -= job->spec.min_gpus;
    start({.mode = Mode::kNormal, .job = job->id, .gpus = job->spec.min_gpus}, true,
          profile_steps(*job, options_.profiling), probes_for(*job));
  }
  for (const JobView* job : waiting) {
    if (probe_runs_ >= options_.profiling.probe_runs) break;
    if (!fits(*job) || job->has_progress() || job->merged) continue;
    auto wishes = probes_for(*job);
    std::erase_if(wishes, [&](const auto& w) { return probed_.contains({job->id, w.source}); });
    if (wishes.empty()) continue;
    for (const auto& wish : wishes) probed_.insert({job->id, wish.source});
    spare -= job->spec.min_gpus;
    ++probe_runs_;
    start({.mode = Mode::kNormal, .job = job->id, .gpus = job->spec.min_gpus}, true, 0, wishes);
  }
}

}  // namespace ymir
