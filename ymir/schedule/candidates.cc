#include <fmt/format.h>

#include <algorithm>

#include "ymir/schedule/packing.h"
#include "ymir/schedule/passes.h"
#include "ymir/schedule/sizes.h"

namespace ymir {

namespace {

const RunView* run_of(const Snapshot& cluster, JobId id) {
  const auto job = cluster.jobs.find(id);
  if (job == cluster.jobs.end() || !job->second.run) return nullptr;
  const auto run = cluster.runs.find(job->second.run);
  return run == cluster.runs.end() || run->second.profile ? nullptr : &run->second;
}

bool same_pair(const Assignment& a, const Assignment& b) {
  return a.mode == b.mode && a.job == b.job && a.partner == b.partner;
}

// In normal mode, as the source that a target waits for, or as a target whose source has ended: a
// run with one job goes on whatever name the plan gives it.
bool trains_alone(const RunView& run, JobId job) {
  return run.jobs.size() == 1 && run.jobs.front() == job;
}

bool wished(const Snapshot& cluster, const Assignment& what) {
  return cluster.wish && std::ranges::any_of(cluster.wish->plan.assignments, [&](const auto& line) {
           return same_pair(line.what, what);
         });
}

void note_what_runs(const Snapshot& cluster, Offer& offer) {
  const Assignment& what = offer.what();
  const RunView* run = run_of(cluster, offer.pending() ? *what.partner : what.job);
  if (!run) return;
  const bool same_size = run->what.gpus == what.gpus;
  if (what.mode == Mode::kNormal) {
    offer.goes_on = same_size && trains_alone(*run, what.job);
  } else if (offer.pending()) {
    offer.pair_runs = trains_alone(*run, *what.partner) && wished(cluster, what);
    offer.goes_on = offer.pair_runs && same_size;
  } else {
    offer.pair_runs = same_pair(run->what, what);
    offer.goes_on = offer.pair_runs && same_size;
  }
}

// The jobs that may stand in a plan of this round.
bool may_be_offered(const JobView& job) {
  return job.active() && job.state != JobState::kProfiling;
}

}  // namespace

Result<> offer_alone(Draft& draft) {
  const int largest = largest_node(draft.cluster());
  for (const JobView* job : draft.cluster().active_jobs()) {
    if (job->state == JobState::kProfiling)
      draft.waits[job->id] = "profiling";
    else if (!fits_a_node(job->spec, largest))
      draft.waits[job->id] = does_not_fit(job->spec, largest);
    else
      draft.waits[job->id] = "no_forecast";  // until an offer is found
  }
  for (const Candidate& candidate : draft.round.forecast.candidates) {
    const Assignment& what = candidate.what;
    const auto job = draft.cluster().jobs.find(what.job);
    if (what.mode != Mode::kNormal || what.partner || candidate.members.size() != 1) continue;
    if (job == draft.cluster().jobs.end() || !may_be_offered(job->second)) continue;
    if (!has_size(job->second.spec, what.gpus, largest)) continue;
    Offer offer{.candidate = &candidate, .first = what.job, .progressing = {what.job}};
    note_what_runs(draft.cluster(), offer);
    draft.offers.push_back(std::move(offer));
    draft.waits.erase(what.job);
  }
  return Ok{};
}

Result<> offer_pairs(Draft& draft) {
  const auto& jobs = draft.cluster().jobs;
  const int largest = largest_node(draft.cluster());
  for (const Candidate& candidate : draft.round.forecast.candidates) {
    const Assignment& what = candidate.what;
    if (what.mode == Mode::kNormal || !what.partner || *what.partner == what.job) continue;
    const auto job = jobs.find(what.job), partner = jobs.find(*what.partner);
    if (job == jobs.end() || partner == jobs.end() || !may_be_offered(job->second)) continue;
    const bool source_is_done =
        what.mode == Mode::kTemporal && partner->second.state == JobState::kSucceeded;
    if (!source_is_done && !may_be_offered(partner->second)) continue;
    if (candidate.members.size() != (source_is_done ? 1u : 2u)) continue;
    if (!has_size(job->second.spec, what.gpus, largest)) continue;
    if (!source_is_done && !has_size(partner->second.spec, what.gpus, largest)) continue;
    Offer offer{.candidate = &candidate, .first = what.job};
    if (!source_is_done) {
      offer.first = std::min(what.job, *what.partner);
      offer.second = std::max(what.job, *what.partner);
    }
    if (what.mode == Mode::kSpatial)
      offer.progressing = {offer.first, offer.second};
    else
      offer.progressing = {source_is_done ? what.job : *what.partner};
    note_what_runs(draft.cluster(), offer);
    draft.offers.push_back(std::move(offer));
  }
  return Ok{};
}

}  // namespace ymir
