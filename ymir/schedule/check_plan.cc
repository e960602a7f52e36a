// check_plan: shares no code with any policy, so that a policy's mistake is seen here.
#include <fmt/format.h>

#include <algorithm>

#include "ymir/schedule/policy.h"

namespace ymir {

namespace {

Error broken(const std::string& what) { return {ErrorCode::kInternal, "bad plan: " + what}; }

bool allows_size(const JobSpec& spec, int gpus) {
  if (gpus < spec.min_gpus || gpus > spec.max_gpus) return false;
  return spec.sizes.empty() || std::ranges::count(spec.sizes, gpus) > 0;
}

// The pair runs already, so the rules about progress held when it began.
bool runs_already(const Snapshot& cluster, const Assignment& what) {
  return std::ranges::any_of(cluster.runs, [&](const auto& entry) {
    const Assignment& running = entry.second.what;
    return running.mode == what.mode && running.job == what.job && running.partner == what.partner;
  });
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::ranges::sort(names);
  return names;
}

bool same_adapter_shape(const MethodSpec& a, const MethodSpec& b) {
  return a.kind == b.kind && a.rank == b.rank && sorted(a.targets) == sorted(b.targets);
}

Result<> check_consent(const Assignment& what, const JobView& job, const JobView& partner) {
  const SharingSpec& takes = job.spec.sharing;
  const SharingSpec& gives = partner.spec.sharing;
  const std::string pair = to_string(job.id) + " and " + to_string(partner.id);
  if (!takes.allow || !gives.allow) return broken("one does not share: " + pair);
  if (takes.trust_domain != gives.trust_domain) return broken("two trust domains: " + pair);
  if (job.barred.contains(partner.id) || partner.barred.contains(job.id))
    return broken("split from each other before: " + pair);
  if (what.mode == Mode::kTemporal &&
      !(takes.temporal && gives.temporal && takes.take && gives.give))
    return broken("temporal transfer not allowed: " + pair);
  if (what.mode == Mode::kSpatial &&
      !(takes.spatial && gives.spatial && takes.take && takes.give && gives.take && gives.give))
    return broken("spatial transfer not allowed: " + pair);
  if (job.facts.backbone.empty() || job.facts.backbone != partner.facts.backbone)
    return broken("two backbones: " + pair);
  if (!same_adapter_shape(job.spec.method, partner.spec.method))
    return broken("adapters of two shapes: " + pair);
  return Ok{};
}

Result<> check_pair(const Snapshot& cluster, const Assignment& what) {
  if (what.partner == what.job) return broken("partner of itself: " + to_string(what.job));
  const auto found = cluster.jobs.find(*what.partner);
  if (found == cluster.jobs.end()) return broken("no such job: " + to_string(*what.partner));
  const JobView& job = cluster.jobs.at(what.job);
  const JobView& partner = found->second;
  YMIR_TRY(check_consent(what, job, partner));
  const bool source_is_done = what.mode == Mode::kTemporal && partner.state == JobState::kSucceeded;
  if (!source_is_done && !partner.active())
    return broken("partner is not active: " + to_string(partner.id));
  if (!source_is_done && !allows_size(partner.spec, what.gpus))
    return broken(fmt::format("{} GPUs are no size of {}", what.gpus, to_string(partner.id)));
  if (what.mode == Mode::kSpatial && what.partner < what.job)
    return broken("a spatial pair names the larger id first: " + to_string(what.job));
  if (runs_already(cluster, what)) return Ok{};
  if (job.has_progress()) return broken("has progress: " + to_string(job.id));
  if (what.mode == Mode::kSpatial && partner.has_progress())
    return broken("has progress: " + to_string(partner.id));
  return Ok{};
}

Result<> check_assignment(const Snapshot& cluster, const Assignment& what) {
  const auto job = cluster.jobs.find(what.job);
  if (job == cluster.jobs.end()) return broken("no such job: " + to_string(what.job));
  if (!job->second.active())
    return broken(fmt::format("{} is {}{}", to_string(what.job), to_string(job->second.state),
                              job->second.held ? " and held" : ""));
  if (!allows_size(job->second.spec, what.gpus))
    return broken(fmt::format("{} GPUs are no size of {}", what.gpus, to_string(what.job)));
  if (!(what.strength > 0 && what.strength <= 1))
    return broken(fmt::format("strength {} of {}", what.strength, to_string(what.job)));
  if (what.partner.has_value() != (what.mode != Mode::kNormal))
    return broken(fmt::format("{} of {} with{} partner", to_string(what.mode), to_string(what.job),
                              what.partner ? " a" : "out"));
  return what.partner ? check_pair(cluster, what) : Result<>(Ok{});
}

// A run stands on one node. Tries nodes for the sizes from `next` on (largest first), each on the
// fullest node first; nodes with equally many free slots are alike: nodes[f] have f free ones.
// `steps` bounds the search.
bool packs(const std::vector<std::size_t>& sizes, std::size_t next, std::vector<int>& nodes,
           int& steps) {
  if (next == sizes.size()) return true;
  const std::size_t size = sizes[next];
  for (std::size_t free = size; free < nodes.size(); ++free) {
    if (nodes[free] == 0) continue;
    if (--steps < 0) return false;
    --nodes[free];
    ++nodes[free - size];
    if (packs(sizes, next + 1, nodes, steps)) return true;
    ++nodes[free];
    --nodes[free - size];
  }
  return false;
}

Result<> check_packing(const Snapshot& cluster, const Plan& plan) {
  std::vector<std::size_t> sizes;
  std::vector<int> nodes;
  for (const PlannedAssignment& line : plan.assignments)
    sizes.push_back(static_cast<std::size_t>(line.what.gpus));
  for (const auto& [id, place] : cluster.places) {
    const auto slots = static_cast<std::size_t>(place.num_slots);
    if (nodes.size() <= slots) nodes.resize(slots + 1);
    ++nodes[slots];
  }
  std::ranges::sort(sizes, std::greater<>());
  int steps = 100'000;
  if (packs(sizes, 0, nodes, steps)) return Ok{};
  return broken(
      fmt::format("{} assignments find no place on {} nodes", sizes.size(), cluster.places.size()));
}

}  // namespace

Result<> check_plan(const Round& round, const Plan& plan) {
  const Snapshot& cluster = round.cluster;
  IdSet<JobId> placed;
  int gpus = 0;
  for (const PlannedAssignment& line : plan.assignments) {
    const Assignment& what = line.what;
    YMIR_TRY(check_assignment(cluster, what));
    gpus += what.gpus;
    if (!placed.insert(what.job)) return broken("stands twice: " + to_string(what.job));
    const bool partner_runs = what.partner && !cluster.jobs.at(*what.partner).ended();
    if (partner_runs && !placed.insert(*what.partner))
      return broken("stands twice: " + to_string(*what.partner));
    if (line.regret < 0) return broken("negative regret: " + to_string(what.job));
  }
  if (gpus > cluster.num_gpus())
    return broken(fmt::format("{} GPUs of {}", gpus, cluster.num_gpus()));
  YMIR_TRY(check_packing(cluster, plan));
  if (plan.value > plan.bound)
    return broken(fmt::format("value {} above its bound {}", plan.value, plan.bound));

  IdSet<JobId> waiting;
  for (const Plan::Waiting& line : plan.waiting) {
    if (placed.contains(line.job)) return broken("runs and waits: " + to_string(line.job));
    if (line.reason.empty()) return broken("waits without a reason: " + to_string(line.job));
    if (!waiting.insert(line.job)) return broken("waits twice: " + to_string(line.job));
  }
  for (const JobView* job : cluster.active_jobs())
    if (!placed.contains(job->id) && !waiting.contains(job->id))
      return broken("neither runs nor waits: " + to_string(job->id));
  return Ok{};
}

}  // namespace ymir
