#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ymir/schedule/passes.h"

namespace ymir {

namespace {

// Marks each pair on offer for which `reason` gives one. Offers without a partner are never
// touched: a job can always run alone.
void drop_pairs(Draft& draft, const std::function<std::string(const Offer&)>& reason) {
  for (Offer& offer : draft.offers)
    if (offer.shared() && offer.dropped.empty()) offer.dropped = reason(offer);
}

const MemberForecast* member(const Offer& offer, JobId job) {
  for (const MemberForecast& each : offer.candidate->members)
    if (each.job == job) return &each;
  return nullptr;
}

// Alone the job makes its deadline even if it goes badly, in this pair it does not.
bool misses_deadline_by_sharing(const Draft& draft, const Offer& offer, JobId id) {
  const JobView& job = draft.job(id);
  const MemberForecast* shared = member(offer, id);
  if (!job.spec.deadline || !shared) return false;
  const double left = (*job.spec.deadline - draft.cluster().now).count();
  if (shared->finish_in.p90 <= left) return false;
  return std::ranges::any_of(draft.offers, [&](const Offer& alone) {
    return !alone.shared() && alone.first == id &&
           alone.candidate->members.front().finish_in.p90 <= left;
  });
}

}  // namespace

Result<> filter_sharing(Draft& draft) {
  drop_pairs(draft, [&](const Offer& offer) -> std::string {
    const SharingSpec& job = draft.job(offer.what().job).spec.sharing;
    const SharingSpec& partner = draft.job(*offer.what().partner).spec.sharing;
    if (!job.allow || !partner.allow) return "no_sharing";
    if (!job.take || !partner.give) return "no_sharing direction";
    if (offer.what().mode == Mode::kTemporal)
      return job.temporal && partner.temporal ? "" : "no_sharing mode=temporal";
    if (!job.give || !partner.take) return "no_sharing direction";
    return job.spatial && partner.spatial ? "" : "no_sharing mode=spatial";
  });
  return Ok{};
}

Result<> filter_trust_domain(Draft& draft) {
  drop_pairs(draft, [&](const Offer& offer) -> std::string {
    return draft.job(offer.what().job).spec.sharing.trust_domain ==
                   draft.job(*offer.what().partner).spec.sharing.trust_domain
               ? ""
               : "trust_domain";
  });
  return Ok{};
}

Result<> filter_backbone(Draft& draft) {
  drop_pairs(draft, [&](const Offer& offer) -> std::string {
    const JobView& job = draft.job(offer.what().job);
    const JobView& partner = draft.job(*offer.what().partner);
    if (job.facts.backbone.empty() || job.facts.backbone != partner.facts.backbone)
      return "backbone";
    const MethodSpec& a = job.spec.method;
    const MethodSpec& b = partner.spec.method;
    const bool same_modules = std::ranges::is_permutation(a.targets, b.targets);
    return a.kind == b.kind && a.rank == b.rank && same_modules ? "" : "adapter_shape";
  });
  return Ok{};
}

Result<> filter_barred(Draft& draft) {
  drop_pairs(draft, [&](const Offer& offer) -> std::string {
    const JobId job = offer.what().job, partner = *offer.what().partner;
    return draft.job(job).barred.contains(partner) || draft.job(partner).barred.contains(job)
               ? "split_before"
               : "";
  });
  return Ok{};
}

Result<> filter_progress(Draft& draft) {
  drop_pairs(draft, [&](const Offer& offer) -> std::string {
    const bool began = offer.pair_runs && !offer.pending();
    if (began) return "";
    if (draft.job(offer.what().job).has_progress()) return "has_progress";
    const bool both = offer.what().mode == Mode::kSpatial;
    return both && draft.job(*offer.what().partner).has_progress() ? "has_progress" : "";
  });
  return Ok{};
}

Result<> filter_deadline(Draft& draft) {
  drop_pairs(draft, [&](const Offer& offer) -> std::string {
    for (const JobId id : {offer.first, offer.second})
      if (id && misses_deadline_by_sharing(draft, offer, id)) return "deadline " + to_string(id);
    return "";
  });
  return Ok{};
}

Result<> filter_partner_wait(Draft& draft) {
  drop_pairs(draft, [&](const Offer& offer) -> std::string {
    if (!offer.pending()) return "";
    const JobView& target = draft.job(offer.what().job);
    const MemberForecast* source = member(offer, *offer.what().partner);
    const double limit = target.spec.sharing.max_wait_for_partner.count();
    if (!source || source->finish_in.p50 > limit)
      return fmt::format("partner_wait {:.0f}s > {:.0f}s", source ? source->finish_in.p50 : 0,
                         limit);
    const double idle = (draft.cluster().now - target.last_progress).count();
    const double most = draft.options.partner_wait_max.count();
    return idle > most ? fmt::format("partner_wait idle {:.0f}s > {:.0f}s", idle, most) : "";
  });
  return Ok{};
}

Result<> filter_transfer_weight(Draft& draft) {
  drop_pairs(draft, [&](const Offer& offer) -> std::string {
    if (offer.pair_runs || offer.candidate->card.explores) return "";
    const double weight = offer.candidate->transfer_weight.p50;
    return weight >= draft.options.utility.least_transfer
               ? ""
               : fmt::format("transfer_weight {:.2f} < {}", weight,
                             draft.options.utility.least_transfer);
  });
  return Ok{};
}

Result<> filter_saving(Draft& draft) {
  drop_pairs(draft, [&](const Offer& offer) -> std::string {
    if (offer.pair_runs || offer.candidate->card.explores) return "";
    const double saving = offer.candidate->expected_saving;
    return saving > 0 ? "" : fmt::format("no_gain expected_saving={:.1f}s", saving);
  });
  return Ok{};
}

}  // namespace ymir
