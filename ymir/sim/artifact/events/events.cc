#include "ymir/sim/artifact/events/events.h"

#include <algorithm>
#include <limits>

namespace ymir::artifact::events {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

class Simulation {
 public:
  Simulation(std::vector<Job>& jobs, int num_gpus, const Rules& rules, const Changed& changed)
      : jobs_(jobs), num_gpus_(num_gpus), rules_(rules), changed_(changed) {
    queues_.resize(rules.limits.size() + 1);
  }

  std::int64_t run() {
    const bool in_turn = rules_.order == Order::kFifo || rules_.order == Order::kFit;
    std::int64_t instants = 0;
    for (std::int64_t jump = kNever; next_ < jobs_.size() || !active_.empty(); ++instants) {
      const std::int64_t arrival = next_ < jobs_.size() ? jobs_[next_].submission : kNever;
      now_ = std::min({arrival, next_end(), jump});
      end_jobs();
      admit();
      for (const int index : active_) account(index);
      if (in_turn)
        serve_in_turn();
      else
        serve();
      if (rules_.order == Order::kAttained) jump = next_jump();
    }
    return instants;
  }

 private:
  Job& job(int index) { return jobs_[static_cast<std::size_t>(index)]; }
  std::vector<int>& queue_of(const Job& job) {
    return queues_[static_cast<std::size_t>(job.queue)];
  }
  bool in_last_queue(const Job& job) const {
    return static_cast<std::size_t>(job.queue) == rules_.limits.size();
  }
  std::int64_t limit_of(const Job& job) const {
    return rules_.limits[static_cast<std::size_t>(job.queue)];
  }

  std::int64_t next_end() {
    std::int64_t end = kNever;
    for (const int index : active_)
      if (job(index).runs) end = std::min(end, job(index).last + left(job(index)));
    return end;
  }
  static std::int64_t left(const Job& job) { return job.duration - job.total; }

  void end_jobs() {
    std::erase_if(active_, [&](int index) {
      Job& done = job(index);
      if (!done.runs || done.last + left(done) != now_) return false;
      done.total = done.duration;
      done.end = now_;
      done.runs = false;
      std::erase(queue_of(done), index);
      changed_(now_, index, false);
      return true;
    });
  }

  void admit() {
    for (; next_ < jobs_.size() && jobs_[next_].submission == now_; ++next_) {
      jobs_[next_].last = now_;
      active_.push_back(static_cast<int>(next_));
      queues_[0].push_back(static_cast<int>(next_));
    }
  }

  void move(int index, int queue) {
    std::erase(queue_of(job(index)), index);
    job(index).queue = queue;
    queue_of(job(index)).push_back(index);
  }

  // The seconds since the last instant, and what they change of the queues.
  void account(int index) {
    Job& now = job(index);
    const std::int64_t seconds = now_ - now.last;
    now.last = now_;
    if (now.runs) {
      now.total += seconds;
      now.executed += seconds;
      const std::int64_t service = now.executed * (rules_.service_in_gpus ? now.gpus : 1);
      if (!in_last_queue(now) && service >= limit_of(now)) move(index, now.queue + 1);
      return;
    }
    now.pending += seconds;
    if (now.executed > 0) now.waited += seconds;
    if (may_rise(now) && now.waited >= rise_after(now)) {
      now.executed = now.waited = 0;
      ++now.promotions;
      move(index, 0);
    }
  }
  bool may_rise(const Job& job) const {
    return rules_.promote > 0 && job.queue > 0 && job.executed > 0;
  }
  std::int64_t rise_after(const Job& job) const {
    return static_cast<std::int64_t>(static_cast<double>(job.executed) * rules_.promote);
  }

  // The list stays sorted: equal jobs keep the order of the instant before.
  std::vector<int> order() {
    const auto sort_by = [&](auto key) {
      std::ranges::stable_sort(active_, {}, [&](int index) { return key(job(index)); });
    };
    if (rules_.order == Order::kRemaining) sort_by([](const Job& j) { return left(j); });
    if (rules_.order == Order::kRemainingByGpus)
      sort_by([](const Job& j) { return left(j) * j.gpus; });
    if (rules_.order == Order::kFewestGpus) sort_by([](const Job& j) { return j.gpus; });
    if (rules_.order != Order::kAttained) return active_;
    std::vector<int> all;
    for (const auto& queue : queues_) all.insert(all.end(), queue.begin(), queue.end());
    return all;
  }

  // From an empty cluster: takes each that fits.
  void serve() {
    int budget = num_gpus_;
    std::vector<int> stops, starts;
    for (const int index : order()) {
      const bool fits = job(index).gpus <= budget;
      if (fits) budget -= job(index).gpus;
      if (fits != job(index).runs) (fits ? starts : stops).push_back(index);
    }
    for (const int index : stops) {
      job(index).runs = false;
      changed_(now_, index, false);
    }
    for (const int index : starts) start(index);
    for (auto& queue : queues_)
      std::ranges::stable_partition(queue, [&](int index) { return job(index).runs; });
  }

  // Who waits, in the order of arrival; nobody is stopped.
  void serve_in_turn() {
    int budget = num_gpus_;
    for (const int index : active_)
      if (job(index).runs) budget -= job(index).gpus;
    for (const int index : active_) {
      if (job(index).runs) continue;
      if (job(index).gpus <= budget) {
        budget -= job(index).gpus;
        start(index);
      } else if (rules_.order == Order::kFifo) {
        break;
      }
    }
  }

  void start(int index) {
    Job& next = job(index);
    next.runs = true;
    if (next.starts++ == 0) next.start = now_;
    changed_(now_, index, true);
  }

  std::int64_t next_jump() {
    std::int64_t jump = kNever;
    for (const int index : active_) {
      const Job& next = job(index);
      if (next.runs && !in_last_queue(next))
        jump = std::min(jump, now_ + std::max<std::int64_t>(0, until_demotion(next)));
      if (next.runs || !may_rise(next) || rise_after(next) <= next.waited) continue;
      jump = std::min(jump, now_ + rise_after(next) - next.waited);
    }
    return jump;
  }
  std::int64_t until_demotion(const Job& job) const {
    const std::int64_t limit = limit_of(job);
    if (!rules_.service_in_gpus) return limit - job.executed;
    return rules_.late_demotion ? ceil_div(limit - job.executed, job.gpus)
                                : ceil_div(limit, job.gpus) - job.executed;
  }

  std::vector<Job>& jobs_;
  int num_gpus_;
  const Rules& rules_;
  const Changed& changed_;
  std::size_t next_ = 0;                    // to arrive
  std::vector<int> active_{};               // in the order of arrival, or as last sorted
  std::vector<std::vector<int>> queues_{};  // of active jobs
  std::int64_t now_ = 0;
};

}  // namespace

std::int64_t simulate(std::vector<Job>& jobs, int num_gpus, const Rules& rules,
                      const Changed& changed) {
  return Simulation(jobs, num_gpus, rules, changed).run();
}

}  // namespace ymir::artifact::events
