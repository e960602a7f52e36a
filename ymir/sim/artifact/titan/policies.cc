// The five policies of Titan's world: srtf, tiresias, optimus and themis as published, faults
// included, and titan itself without merging.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ymir/sim/artifact/titan/objective.h"
#include "ymir/sim/artifact/titan/world.h"

namespace ymir::artifact::titan {
namespace {

// Serves the shortest of the waiting jobs; what runs is never considered.
Result<> srtf(World& world) {
  struct Candidate {
    std::pair<double, double> order{};  // seconds left, submission
    World::Start start{};
  };
  std::vector<Candidate> candidates;
  for (const int index : world.pending()) {
    const TraceJob& asked = *world.job(index).asked;
    YMIR_TRY_ASSIGN(const double left, world.predicted(index, asked.gpus));
    candidates.push_back({{left, asked.submission_s}, {index, asked.gpus}});
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::order);
  int budget = world.free_gpus();
  std::vector<World::Start> starts;
  for (const Candidate& candidate : candidates) {
    if (candidate.start.gpus > budget) continue;
    budget -= candidate.start.gpus;
    starts.push_back(candidate.start);
  }
  return world.start(starts);
}

// Two queues by attained service, each in the order of submission.
class Tiresias {
 public:
  explicit Tiresias(double limit) : limit_(limit) {}

  Result<> operator()(World& world) {
    for (auto& queue : queues_)
      std::erase_if(queue, [&](int index) { return world.job(index).state == State::kEnded; });
    for (const int index : world.running()) {
      if (world.job(index).service < limit_ || std::erase(queues_[0], index) == 0) continue;
      queues_[1].push_back(index);
    }
    queues_[0].insert(queues_[0].end(), world.arrived().begin(), world.arrived().end());

    int budget = world.num_gpus();
    std::vector<int> stops;
    std::vector<World::Start> starts;
    for (auto& queue : queues_) {
      std::ranges::stable_sort(queue, {},
                               [&](int index) { return world.job(index).asked->submission_s; });
      for (const int index : queue) {
        const int gpus = world.job(index).asked->gpus;
        const bool runs = world.job(index).state == State::kRunning;
        if (gpus <= budget) {
          budget -= gpus;
          if (!runs) starts.push_back({index, gpus});
        } else if (runs) {
          stops.push_back(index);
        }
      }
    }
    for (const int index : stops) world.stop(index);
    return world.start(starts);
  }

 private:
  double limit_;
  std::array<std::vector<int>, 2> queues_{};
};

// Each job one GPU, then one more to where the forecast falls most.
class Optimus {
 public:
  // `last_job`: the fault of the publication, cap and new gain are those of the last job.
  explicit Optimus(bool last_job) : last_job_(last_job) {}

  Result<> operator()(World& world) const {
    std::vector<int> active = world.running();
    active.insert(active.end(), world.pending().begin(), world.pending().end());
    std::ranges::stable_sort(active, {},
                             [&](int index) { return world.job(index).asked->submission_s; });
    if (active.empty()) return Ok{};
    YMIR_TRY_ASSIGN(const std::vector<int> counts, counts_of(world, active));
    std::vector<World::Start> starts;
    for (std::size_t i = 0; i < active.size(); ++i) {
      const Job& job = world.job(active[i]);
      if (counts[i] == job.gpus()) continue;
      if (job.state == State::kRunning) world.stop(active[i]);
      if (counts[i] > 0) starts.push_back({active[i], counts[i]});
    }
    return world.start(starts);
  }

 private:
  Result<std::vector<int>> counts_of(World& world, const std::vector<int>& active) const {
    int budget = world.num_gpus();
    std::vector<int> counts(active.size(), 0);
    std::vector<double> gains(active.size(), 0);
    for (std::size_t i = 0; i < active.size() && budget > 0; ++i, --budget) {
      counts[i] = 1;
      YMIR_TRY_ASSIGN(gains[i], gain(world, active[i], 1));
    }
    for (; budget > 0; --budget) {
      const auto most = std::ranges::max_element(gains);
      if (*most <= 0) break;
      const auto i = static_cast<std::size_t>(most - gains.begin());
      ++counts[i];
      const int judged = last_job_ ? active.back() : active[i];
      gains[i] = 0;
      if (counts[i] + 1 > world.job(judged).kind->max_gpus) continue;
      YMIR_TRY_ASSIGN(gains[i], gain(world, judged, counts[i]));
    }
    return counts;
  }

  static Result<double> gain(World& world, int index, int gpus) {
    YMIR_TRY_ASSIGN(const double now, world.predicted(index, gpus));
    YMIR_TRY_ASSIGN(const double then, world.predicted(index, gpus + 1));
    return now - then;
  }

  bool last_job_;
};

// Leases, given to the candidates with the largest finish-time fairness.
class Themis {
 public:
  Themis(double keep, double lease_s, int num_jobs) : keep_(keep), lease_s_(lease_s) {
    deserved_.resize(static_cast<std::size_t>(num_jobs));
    lease_start_.resize(static_cast<std::size_t>(num_jobs));
  }

  Result<> operator()(World& world) {
    deserve(world);
    struct Candidate {
      int job = 0;
      double order = 0;
    };
    std::vector<Candidate> candidates;
    int budget = world.free_gpus();
    for (const auto* list : {&world.pending(), &world.running()})
      for (const int index : *list) {
        const bool runs = world.job(index).state == State::kRunning;
        if (runs && world.now() - lease_start(index) < lease_s_) continue;
        if (runs) budget += world.job(index).asked->gpus;
        YMIR_TRY_ASSIGN(const double rho, fairness(world, index));
        candidates.push_back({index, 1 / rho});
      }
    std::ranges::stable_sort(candidates, {}, &Candidate::order);
    const double kept = std::nearbyint(static_cast<double>(candidates.size()) * keep_);
    candidates.resize(static_cast<std::size_t>(kept));

    std::vector<int> stops;
    std::vector<World::Start> starts;
    for (const Candidate& candidate : candidates) {
      const Job& job = world.job(candidate.job);
      const bool runs = job.state == State::kRunning;
      if (job.asked->gpus <= budget) {
        budget -= job.asked->gpus;
        if (runs)
          lease_start(candidate.job) += lease_s_;
        else
          starts.push_back({candidate.job, job.asked->gpus});
      } else if (runs) {
        stops.push_back(candidate.job);
      }
    }
    for (const int index : stops) world.stop(index);
    YMIR_TRY(world.start(starts));
    for (const World::Start& next : starts)
      if (world.job(next.job).state == State::kRunning) lease_start(next.job) = world.now();
    return Ok{};
  }

 private:
  double& lease_start(int job) { return lease_start_[static_cast<std::size_t>(job)]; }
  double& deserved(int job) { return deserved_[static_cast<std::size_t>(job)]; }

  void deserve(World& world) {
    const auto active = static_cast<double>(world.pending().size() + world.running().size());
    const double share = world.num_gpus() / (active + kHair);
    for (const auto* list : {&world.pending(), &world.running()})
      for (const int index : *list) {
        const Job& job = world.job(index);
        deserved(index) +=
            std::min(share, static_cast<double>(job.asked->gpus)) * world.elapsed(job);
      }
  }

  Result<double> fairness(World& world, int index) {
    const Job& job = world.job(index);
    const double due = deserved(index);
    if (due == 0) return 1;
    // The publication counts the running jobs twice and forgets those that wait.
    const auto active = static_cast<double>(2 * world.running().size());
    const double part =
        std::min(world.num_gpus() / (active + kHair), static_cast<double>(job.asked->gpus));
    const int share = std::max(1, static_cast<int>(part));
    YMIR_TRY_ASSIGN(const double on_share, world.predicted(index, share));
    YMIR_TRY_ASSIGN(const double on_request, world.predicted(index, job.asked->gpus));
    const double alone =
        job.running * (due / (job.service + kHair)) + (job.staying - job.running) + on_share;
    return (job.staying + on_request * (job.service / (due + kHair))) / alone;
  }

  static constexpr double kHair = 1e-3;  // against division by zero, as published
  double keep_, lease_s_;
  std::vector<double> deserved_{}, lease_start_{};
};

// Titan's own objective, each job alone.
class WithoutMerging {
 public:
  explicit WithoutMerging(const Settings& settings)
      : ties_(settings.word("titan.ties", "fewest") == "most" ? Ties::kMost : Ties::kFewest),
        floor_s_(settings.number("titan.floor_s", 120)),
        idle_cost_(settings.number("titan.idle_cost", 10'000)) {}

  Result<> operator()(World& world) const {
    YMIR_TRY_ASSIGN(std::vector<int> kept, shortest(world));
    if (kept.empty()) return Ok{};
    const int share = std::max(1, world.num_gpus() / static_cast<int>(kept.size()));
    std::vector<std::vector<Choice>> choices;
    for (const int index : kept) {
      YMIR_TRY_ASSIGN(auto of_job, choices_of(world, index, share));
      choices.push_back(std::move(of_job));
    }
    const std::vector<int> counts = cheapest(choices, world.num_gpus(), ties_);
    std::vector<World::Start> starts;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const Job& job = world.job(kept[i]);
      if (counts[i] == job.gpus()) continue;
      if (job.state == State::kRunning) world.stop(kept[i]);
      if (counts[i] > 0) starts.push_back({kept[i], counts[i]});
    }
    return world.start(starts);
  }

 private:
  // As many jobs as there are GPUs, the shortest first; the others are stopped.
  static Result<std::vector<int>> shortest(World& world) {
    std::vector<std::pair<double, int>> active;
    for (const auto* list : {&world.pending(), &world.running()})
      for (const int index : *list) {
        YMIR_TRY_ASSIGN(const double left, world.predicted(index, 1));
        active.emplace_back(left, index);
      }
    std::ranges::stable_sort(active, {}, &std::pair<double, int>::first);
    const auto most = static_cast<std::size_t>(world.num_gpus());
    std::vector<int> kept;
    for (std::size_t i = 0; i < active.size(); ++i)
      if (i < most)
        kept.push_back(active[i].second);
      else if (world.job(active[i].second).state == State::kRunning)
        world.stop(active[i].second);
    return kept;
  }

  // 0, 1, 2, 3 and the multiples of 4, up to what the job can use.
  Result<std::vector<Choice>> choices_of(World& world, int index, int share) const {
    const int most = std::min(world.job(index).kind->max_gpus, world.num_gpus());
    const auto floored = [&](int gpus) -> Result<double> {
      YMIR_TRY_ASSIGN(const double left, world.predicted(index, gpus));
      return std::max(left, floor_s_);
    };
    YMIR_TRY_ASSIGN(const double fair, floored(std::min(share, most)));
    std::vector<Choice> choices = {{0, idle_cost_}};
    for (int gpus = 1; gpus <= most; gpus += gpus < 4 ? 1 : 4) {
      YMIR_TRY_ASSIGN(const double left, floored(gpus));
      choices.push_back({gpus, left / fair});
    }
    return choices;
  }

  Ties ties_;
  double floor_s_, idle_cost_;
};

// Reads settings and trace, then runs with what `make` gives.
template <class Make>
Policy policy(const std::string& name, double interval_s, std::vector<std::string> faults,
              Make make) {
  return {name, "titan", [=](const Trace& trace, const Options& options) -> Result<Run> {
            YMIR_TRY_ASSIGN(const Settings settings, Settings::read(options.settings));
            YMIR_TRY_ASSIGN(World world, World::make(trace, options, settings));
            const double interval = options.interval_s > 0 ? options.interval_s : interval_s;
            YMIR_TRY_ASSIGN(Run run, world.run(interval, make(world, settings)));
            run.notes.insert(run.notes.end(), faults.begin(), faults.end());
            run.constants = settings.used();
            run.constants["interval_s"] = fmt::format("{}", interval);
            return run;
          }};
}

}  // namespace
}  // namespace ymir::artifact::titan

namespace ymir::artifact {

std::vector<Policy> titan_policies() {
  using namespace titan;
  const std::string late = "GPUs of an ended job stay blocked to the end of the round";
  const std::string passes = "forecasts count one accumulation pass too many";
  const std::string lengths = "a target that its curve never meets counts as met";
  return {
      policy("srtf@titan", 300, {late, passes, lengths, "a running job is never preempted"},
             [](const World&, const Settings&) { return Decide(srtf); }),
      policy("tiresias@titan", 300, {late, lengths},
             [](const World&, const Settings& settings) {
               return Decide(Tiresias(settings.number("tiresias.limit", 14'400)));
             }),
      policy("optimus@titan", 300,
             {late, passes, lengths, "cap and gain of a chosen job are those of the last one"},
             [](const World&, const Settings& settings) {
               return Decide(Optimus(settings.word("optimus.last_job", "on") == "on"));
             }),
      policy(
          "themis@titan", 60,
          {late, passes, lengths, "the fair share counts running jobs twice and none that waits"},
          [](const World& world, const Settings& settings) {
            return Decide(Themis(settings.number("themis.keep", 0.8),
                                 settings.number("themis.lease_s", 600), world.num_jobs()));
          }),
      policy(
          "titan", 120, {late, passes, lengths},
          [](const World&, const Settings& settings) { return Decide(WithoutMerging(settings)); }),
  };
}

}  // namespace ymir::artifact
