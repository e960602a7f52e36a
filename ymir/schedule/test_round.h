// TestRound: a cluster and a forecast made by hand, for the tests of policies.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "ymir/schedule/policy.h"

namespace ymir {

class TestRound {
 public:
  explicit TestRound(std::initializer_list<int> nodes = {4}) {
    cluster.now = from_seconds(1000);
    for (const int slots : nodes) {
      const PlaceId place{cluster.places.size() + 1};
      cluster.places[place] = {.place = place,
                               .node = "node" + std::to_string(place.value),
                               .hardware = "test",
                               .num_slots = slots};
    }
  }

  // A profiled job that waits, allows sharing and may take 1..max_gpus.
  JobView& job(std::uint64_t id, int max_gpus = 1, int min_gpus = 1) {
    JobView& view = cluster.jobs[JobId{id}];
    view.id = JobId{id};
    view.state = JobState::kQueued;
    view.profile_settled = true;
    view.spec.name = to_string(view.id);
    view.spec.min_gpus = min_gpus;
    view.spec.max_gpus = max_gpus;
    view.spec.target = {"accuracy", 0.9};
    view.spec.sharing.trust_domain = "team";
    view.spec.sharing.max_wait_for_partner = Seconds(600);
    view.facts.backbone = "minilm";
    view.submitted = view.last_progress = from_seconds(900 + static_cast<double>(id));
    return view;
  }

  // Alone it takes so many seconds on `gpus`.
  Candidate& alone(std::uint64_t id, int gpus, double seconds, double switch_cost = 5) {
    return add({.mode = Mode::kNormal, .job = JobId{id}, .partner = {}, .gpus = gpus},
               {{JobId{id}, seconds}}, 1, switch_cost);
  }
  // On 1, 2, 4, .. GPUs up to its largest count, with perfect speed-up.
  void alone_at_all_sizes(std::uint64_t id, double seconds_on_one) {
    const JobSpec& spec = cluster.jobs.at(JobId{id}).spec;
    for (int gpus = 1; gpus <= spec.max_gpus; gpus *= 2)
      if (gpus >= spec.min_gpus) alone(id, gpus, seconds_on_one / gpus);
  }
  Candidate& temporal(std::uint64_t target, std::uint64_t source, int gpus, double source_seconds,
                      double target_seconds, double weight) {
    const bool done = cluster.jobs.at(JobId{source}).ended();
    std::vector<std::pair<JobId, double>> members{{JobId{target}, target_seconds}};
    if (!done) members.push_back({JobId{source}, source_seconds});
    return add({.mode = Mode::kTemporal,
                .job = JobId{target},
                .partner = JobId{source},
                .gpus = gpus,
                .strength = 0.5},
               members, weight, 5);
  }
  Candidate& spatial(std::uint64_t first, std::uint64_t second, int gpus, double first_seconds,
                     double second_seconds, double weight) {
    return add(
        {.mode = Mode::kSpatial, .job = JobId{first}, .partner = JobId{second}, .gpus = gpus},
        {{JobId{first}, first_seconds}, {JobId{second}, second_seconds}}, weight, 5);
  }

  // It runs so now, on the first place.
  RunView& runs(const Assignment& what, std::vector<JobId> jobs) {
    const RunId run{++cluster.next_run};
    RunView& view = cluster.runs[run];
    view = {.run = run, .what = what, .jobs = jobs, .place = PlaceId{1}};
    for (int slot = 0; slot < what.gpus; ++slot) view.slots.push_back(slot);
    view.started = cluster.now;
    for (const JobId id : jobs) {
      cluster.jobs.at(id).run = run;
      cluster.jobs.at(id).state = JobState::kRunning;
      cluster.jobs.at(id).steps_done = 10;
    }
    return view;
  }
  RunView& runs_alone(std::uint64_t id, int gpus) {
    return runs({.mode = Mode::kNormal, .job = JobId{id}, .partner = {}, .gpus = gpus},
                {JobId{id}});
  }

  Round round() const { return {.cluster = cluster, .forecast = forecast}; }

  Snapshot cluster{};
  Forecast forecast{};

 private:
  Candidate& add(const Assignment& what, const std::vector<std::pair<JobId, double>>& members,
                 double weight, double switch_cost) {
    Candidate candidate{.what = what};
    for (const auto& [id, seconds] : members)
      candidate.members.push_back({.job = id,
                                   .steps = Interval::exactly(seconds),
                                   .finish_in = {seconds * 0.9, seconds, seconds * 1.2}});
    candidate.transfer_weight = {weight * 0.9, weight, weight * 1.1};
    candidate.expected_saving = weight > 1 ? 10 : -10;
    candidate.switch_cost = Seconds(switch_cost);
    candidate.card.source = "model";
    forecast.candidates.push_back(candidate);
    return forecast.candidates.back();
  }
};

// The plan that a policy decides; it has passed check_plan.
inline Plan plan_by(std::string_view policy, const TestRound& test,
                    const std::map<std::string, std::string>& settings = {}) {
  const auto made = make_policy(policy, settings);
  EXPECT_TRUE(made) << made.error().message;
  const Round round = test.round();
  const auto decision = (*made)->decide(round);
  EXPECT_TRUE(decision) << decision.error().message;
  if (!decision) return {};
  const auto checked = check_plan(round, decision->plan);
  EXPECT_TRUE(checked) << checked.error().message;
  return decision->plan;
}

// "j1x2 j2+j3x1 j2->j4x1": who runs in a plan, shortly.
inline std::string in_short(const Plan& plan) {
  std::string text;
  for (const PlannedAssignment& line : plan.assignments) {
    const Assignment& what = line.what;
    if (!text.empty()) text += " ";
    if (what.mode == Mode::kTemporal) text += to_string(*what.partner) + "->";
    text += to_string(what.job);
    if (what.mode == Mode::kSpatial) text += "+" + to_string(*what.partner);
    text += "x" + std::to_string(what.gpus);
  }
  return text;
}

inline std::string why_waits(const Plan& plan, std::uint64_t id) {
  for (const Plan::Waiting& line : plan.waiting)
    if (line.job == JobId{id}) return line.reason;
  return "does not wait";
}

}  // namespace ymir
