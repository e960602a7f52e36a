#include "ymir/schedule/optimus.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <tuple>

#include "ymir/schedule/budget_walk.h"
#include "ymir/schedule/loss_fit.h"

namespace ymir {

namespace {

// A job on its way up its sizes.
struct Climber {
  const AloneJob* job = nullptr;
  double longer = 1;     // than the forecast says: the steps that are left
  std::size_t size = 0;  // index of what it has now

  const Candidate& now() const { return *job->sizes[size]; }
  int more_gpus() const { return job->sizes[size + 1]->what.gpus - now().what.gpus; }
  // Seconds saved for each GPU added; 0 at its largest size.
  double gain() const {
    if (size + 1 >= job->sizes.size()) return 0;
    return longer * (AloneJob::seconds(now()) - AloneJob::seconds(*job->sizes[size + 1])) /
           more_gpus();
  }
};

void climb(std::vector<Climber>& climbers, int free) {
  struct Step {
    double gain = 0;
    std::size_t who = 0;
    // The heap's top: most gain, then the earliest in the list.
    bool operator<(const Step& other) const {
      return std::tuple(gain, other.who) < std::tuple(other.gain, who);
    }
  };
  std::priority_queue<Step> steps;
  const auto offer = [&](std::size_t who) {
    if (const double gain = climbers[who].gain(); gain > 0) steps.push({gain, who});
  };
  for (std::size_t who = 0; who < climbers.size(); ++who) offer(who);
  while (free > 0 && !steps.empty()) {
    const std::size_t who = steps.top().who;
    steps.pop();
    Climber& climber = climbers[who];
    if (climber.more_gpus() > free) continue;  // others may take a smaller step
    free -= climber.more_gpus();
    ++climber.size;
    offer(who);
  }
}

}  // namespace

Result<Decision> Optimus::decide(const Round& round) const {
  Decision decision;
  Plan& plan = decision.plan;
  const AloneRound alone(round);
  plan.waiting = alone.waiting();
  std::vector<const AloneJob*> order;
  for (const AloneJob& job : alone.jobs()) order.push_back(&job);
  std::ranges::stable_sort(order, {}, [](const AloneJob* job) { return job->job->submitted; });

  const LossFits fits(round.cluster, loss_fit_);
  int free = round.cluster.num_gpus();
  std::vector<Climber> climbers;
  for (const AloneJob* job : order) {
    const int least = job->smallest()->what.gpus;
    if (least > free) {
      plan.waiting.push_back(
          {job->job->id, fmt::format("no_capacity gpus={} free={}", least, free)});
      continue;
    }
    free -= least;
    climbers.push_back({job, loss_fit_ ? fits.longer(*job) : 1});
  }
  climb(climbers, free);

  std::vector<Request> taken;
  for (const Climber& climber : climbers) taken.push_back({climber.job, &climber.now()});
  give(round, taken, plan);
  return decision;
}

}  // namespace ymir
