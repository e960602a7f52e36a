#include <fmt/format.h>

#include <algorithm>

#include "ymir/schedule/packing.h"
#include "ymir/schedule/passes.h"

namespace ymir {

namespace {

PlaceId place_of(const Draft& draft, const Offer& offer) {
  if (!offer.goes_on) return {};
  const JobId trains = offer.pending() ? *offer.what().partner : offer.what().job;
  const auto run = draft.cluster().runs.find(draft.job(trains).run);
  return run == draft.cluster().runs.end() ? PlaceId{} : run->second.place;
}

// Least GPUs the job would take alone.
int least_gpus(const Draft& draft, JobId id) {
  int least = 0;
  for (const Offer& offer : draft.offers)
    if (!offer.shared() && offer.first == id)
      least = least == 0 ? offer.what().gpus : std::min(least, offer.what().gpus);
  return least;
}

// The partner that a job came closest to, and what spoke against it.
std::string best_refused(const Draft& draft, JobId id) {
  const Offer* best = nullptr;
  for (const Offer& offer : draft.offers) {
    if (!offer.shared() || !offer.serves(id) || offer.dropped.empty()) continue;
    if (!best || offer.candidate->transfer_weight.p50 > best->candidate->transfer_weight.p50)
      best = &offer;
  }
  if (!best) return "";
  const JobId other = best->what().job == id ? *best->what().partner : best->what().job;
  return fmt::format(" refused={}:{} {}", to_string(best->what().mode), to_string(other),
                     best->dropped);
}

std::string reason_of(const Draft& draft, JobId id) {
  if (const auto known = draft.waits.find(id); known != draft.waits.end()) return known->second;
  std::string reason = fmt::format("no_capacity gpus={}", least_gpus(draft, id));
  if (!draft.plan.gpu_price.empty() && draft.quantum > 0)
    reason += fmt::format(" price={:.3g}", draft.plan.gpu_price.front() / draft.quantum);
  if (const auto regret = draft.regret_of_waiting.find(id); regret != draft.regret_of_waiting.end())
    reason += fmt::format(" loss={:.3g}", static_cast<double>(regret->second) / draft.quantum);
  return reason + best_refused(draft, id);
}

}  // namespace

Result<> place(Draft& draft) {
  std::vector<Load> loads;
  std::ranges::stable_sort(draft.chosen, std::greater<>(),
                           [&](std::size_t i) { return draft.offers[i].utility; });
  for (const std::size_t i : draft.chosen)
    loads.push_back({draft.offers[i].what().gpus, place_of(draft, draft.offers[i])});
  const std::vector<bool> room = pack(draft.cluster(), loads);
  std::vector<std::size_t> placed;
  for (std::size_t k = 0; k < draft.chosen.size(); ++k) {
    const Offer& offer = draft.offers[draft.chosen[k]];
    if (room[k]) {
      placed.push_back(draft.chosen[k]);
      continue;
    }
    draft.plan.value -= offer.utility;
    if (draft.plan.proof == "optimal") draft.plan.proof = "gap";
    for (const JobId job : {offer.first, offer.second})
      if (job) draft.waits[job] = fmt::format("fragmented gpus={}", offer.what().gpus);
  }
  draft.chosen = std::move(placed);
  return Ok{};
}

Result<> explain(Draft& draft) {
  std::set<JobId> served;
  for (const std::size_t i : draft.chosen) {
    const Offer& offer = draft.offers[i];
    PlannedAssignment line{
        .what = offer.what(), .card = offer.candidate->card, .utility = offer.utility, .regret = 0};
    if (const auto regret = draft.regret.find(i); regret != draft.regret.end())
      line.regret = regret->second;
    draft.plan.assignments.push_back(std::move(line));
    served.insert({offer.first, offer.second});
  }
  std::ranges::sort(draft.plan.assignments, {}, [](const auto& line) { return line.what.job; });
  for (const JobView* job : draft.cluster().active_jobs())
    if (!served.contains(job->id))
      draft.plan.waiting.push_back({job->id, reason_of(draft, job->id)});
  return Ok{};
}

}  // namespace ymir
