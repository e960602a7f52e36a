#include <fmt/format.h>

#include <algorithm>

#include "ymir/optimize/explain.h"
#include "ymir/optimize/planner.h"
#include "ymir/schedule/capacity.h"
#include "ymir/schedule/passes.h"

namespace ymir {

namespace {

using Group = std::pair<JobId, JobId>;  // second 0: one job

// Offers that may be chosen, by the jobs they serve; within a group by size, then as forecast.
std::map<Group, std::vector<std::size_t>> group_offers(const Draft& draft) {
  std::map<Group, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < draft.offers.size(); ++i)
    if (draft.offers[i].dropped.empty())
      groups[{draft.offers[i].first, draft.offers[i].second}].push_back(i);
  for (auto& [group, members] : groups)
    std::ranges::stable_sort(members, {},
                             [&](std::size_t i) { return draft.offers[i].what().gpus; });
  return groups;
}

// The round as numbers, and the way back from an option to its offer.
class Translation {
 public:
  explicit Translation(const Draft& draft) : draft_(draft), groups_(group_offers(draft)) {
    const Capacity capacity = capacity_of(draft);
    problem.reset(std::span(&capacity, 1));
    std::set<JobId> jobs;
    for (const auto& [group, members] : groups_) {
      jobs.insert(group.first);
      if (group.second) jobs.insert(group.second);
    }
    for (const JobId job : jobs) {
      index_[job] = problem.add_job(job.value, options({job, JobId{}}));
      ids_.push_back(job);
    }
    for (const auto& [group, members] : groups_)
      if (group.second)
        problem.add_pair(index_.at(group.first), index_.at(group.second), options(group));
  }

  JobId job(JobIndex index) const { return ids_[static_cast<std::size_t>(index)]; }
  JobIndex index(JobId job) const { return index_.at(job); }
  const std::map<Group, std::vector<std::size_t>>& groups() const { return groups_; }

  std::size_t offer_of(const Choice& choice) const {
    JobId first = job(choice.first), second{};
    if (choice.second != kNoJob) second = job(choice.second);
    if (second && second < first) std::swap(first, second);
    const auto& members = groups_.at({first, second});
    for (std::size_t k = 0; k < members.size(); ++k)
      if (option(members, k).gpus == choice.option.gpus &&
          option(members, k).mode == choice.option.mode)
        return members[k];
    check_failed("offer_of", __FILE__, __LINE__, "the solver chose what was not offered");
  }

  Choice choice_of(std::size_t offer) const {
    const Offer& chosen = draft_.offers[offer];
    const auto& members = groups_.at({chosen.first, chosen.second});
    const auto at = std::ranges::find(members, offer) - members.begin();
    return {.first = index(chosen.first),
            .second = chosen.second ? index(chosen.second) : kNoJob,
            .option = option(members, static_cast<std::size_t>(at))};
  }

  RoundProblem problem;

 private:
  // The mode of an option is its rank among the offers of the same group and size.
  Option option(const std::vector<std::size_t>& members, std::size_t k) const {
    const Offer& offer = draft_.offers[members[k]];
    std::size_t same = k;
    while (same > 0 && draft_.offers[members[same - 1]].what().gpus == offer.what().gpus) --same;
    return {.utility = static_cast<std::int32_t>(offer.utility),
            .gpus = static_cast<std::uint16_t>(offer.what().gpus),
            .type = 0,
            .mode = static_cast<std::uint8_t>(std::min<std::size_t>(k - same, 255))};
  }
  std::vector<Option> options(const Group& group) const {
    std::vector<Option> list;
    const auto members = groups_.find(group);
    if (members == groups_.end()) return list;
    for (std::size_t k = 0; k < members->second.size(); ++k)
      list.push_back(option(members->second, k));
    return list;
  }

  const Draft& draft_;
  std::map<Group, std::vector<std::size_t>> groups_;
  std::map<JobId, JobIndex> index_;
  std::vector<JobId> ids_;
};

std::string name_of(Proof proof) {
  switch (proof) {
    case Proof::kOptimal:
      return "optimal";
    case Proof::kGap:
      return "gap";
    case Proof::kDeadline:
      return "deadline";
  }
  return "gap";
}

// For each job what its best other choice would lose: the price tags of the solved round.
void note_regrets(Draft& draft, const Translation& translation, const Solution& solution) {
  const std::set<std::size_t> chosen_offers(draft.chosen.begin(), draft.chosen.end());
  std::map<JobId, std::size_t> chosen_for;
  for (const std::size_t i : draft.chosen) {
    chosen_for[draft.offers[i].first] = i;
    if (draft.offers[i].second) chosen_for[draft.offers[i].second] = i;
  }
  const auto keep_least = [](auto& map, auto key, std::int64_t value) {
    const auto [at, fresh] = map.emplace(key, value);
    if (!fresh) at->second = std::min(at->second, value);
  };
  for (const auto& [group, members] : translation.groups()) {
    for (const std::size_t i : members) {
      if (chosen_offers.contains(i)) continue;
      const std::int64_t loss = regret(translation.problem, solution, translation.choice_of(i));
      for (const JobId job : {group.first, group.second}) {
        if (!job) continue;
        const auto chosen = chosen_for.find(job);
        if (chosen == chosen_for.end())
          keep_least(draft.regret_of_waiting, job, loss);
        else if (draft.offers[chosen->second].what().job == job)
          keep_least(draft.regret, chosen->second, loss);
      }
    }
  }
}

}  // namespace

Result<> solve(Draft& draft) {
  const Translation translation(draft);
  YMIR_TRY(translation.problem.validate());
  Limits limits;
  limits.relative_gap = draft.options.relative_gap;
  limits.max_states = draft.round.effort;
  Planner planner;
  const Solution solution = planner.solve(translation.problem, limits, draft.round.guard);
  for (const Choice& choice : solution.chosen) draft.chosen.push_back(translation.offer_of(choice));
  draft.plan.value = solution.value;
  draft.plan.bound = solution.bound;
  draft.plan.proof = name_of(solution.proof);
  const double scale = static_cast<double>(solution.certificate.scale);
  if (!solution.certificate.row_price.empty())
    draft.plan.gpu_price = {static_cast<double>(solution.certificate.row_price.front()) / scale};
  note_regrets(draft, translation, solution);
  return Ok{};
}

}  // namespace ymir
