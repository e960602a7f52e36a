#include "ymir/sim/metrics/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>

namespace ymir {
namespace {

JobId id_of(std::size_t job) { return JobId{static_cast<std::uint64_t>(job) + 1}; }

// --- what a job can do ---

// Seconds of a step on each size, on the best nodes. Speed is linear between the sizes told, so
// every other is a mixture of two of them.
std::map<int, double> steps_of(const WorkloadJob& job, JobId id, const JobModel& model,
                               int num_gpus) {
  const int low = std::min(job.min_gpus, num_gpus), high = std::min(job.max_gpus, num_gpus);
  std::map<int, double> steps{{low, 0}, {high, 0}};
  std::set<int> nodes{0};
  for (int size = 1; size < high; size *= 2) steps[std::max(size, low)] = 0;
  for (const StepTimes::Row& row : job.table.rows) {
    steps[std::clamp(row.gpus, low, high)] = 0;
    nodes.insert(row.nodes);
  }
  for (auto& [size, seconds] : steps) {
    seconds = model.step_time(id, size).count();
    for (const int spread : nodes)
      seconds = std::min(seconds, model.step_time(id, size, spread).count());
  }
  return steps;
}

// Jobs that are alike as partners.
using Kind = std::tuple<std::string, std::string, std::string>;  // backbone, domain, task
struct Kinds {
  std::map<Kind, std::vector<JobId>> jobs{};  // of those that share, the first two
};

Kinds kinds_of(const Workload& workload) {
  Kinds kinds;
  for (std::size_t i = 0; i < workload.jobs.size(); ++i) {
    const WorkloadJob& job = workload.jobs[i];
    auto& list = kinds.jobs[{job.backbone, job.domain, job.task}];
    if (job.share && list.size() < 2) list.push_back(id_of(i));
  }
  return kinds;
}

// The best of each, over all partners of the job.
struct BestPartners {
  double temporal = 0;       // gain
  bool joint = false;        // there is somebody to train together with
  double joint_service = 1;  // factors of what the job costs alone
  double joint_seconds = 1;
};

BestPartners best_partners(const WorkloadJob& job, JobId id, const JobModel& model,
                           const Kinds& kinds, Sharing sharing) {
  BestPartners best;
  if (!job.share || sharing == Sharing::kNone) return best;
  const Kind first{job.backbone, job.domain, ""};
  for (auto at = kinds.jobs.lower_bound(first); at != kinds.jobs.end(); ++at) {
    const auto& [backbone, domain, task] = at->first;
    if (backbone != job.backbone || domain != job.domain) break;
    const auto partner = std::ranges::find_if(at->second, [&](JobId other) { return other != id; });
    if (partner == at->second.end()) continue;
    best.temporal = std::max(best.temporal, model.temporal_gain(*partner, id));
    if (sharing != Sharing::kAny) continue;
    const SpatialTruth pair = model.spatial(std::min(id, *partner), std::max(id, *partner));
    const double speed = 1 + (id < *partner ? pair.gain_first : pair.gain_second);
    best.joint = true;
    if (speed <= 0) continue;
    best.joint_service = std::min(best.joint_service, pair.joint / 2 / speed);
    best.joint_seconds = std::min(best.joint_seconds, pair.joint / speed);
  }
  return best;
}

// --- one machine as fast as all ---

double shortest_first(std::span<const Demand> jobs, double num_gpus) {
  std::vector<std::size_t> by_arrival(jobs.size());
  std::iota(by_arrival.begin(), by_arrival.end(), std::size_t{0});
  std::ranges::stable_sort(by_arrival, {}, [&](std::size_t i) { return jobs[i].at; });
  std::priority_queue<double, std::vector<double>, std::greater<>> left;  // seconds of each
  double now = 0, total = 0;
  for (std::size_t next = 0; next < by_arrival.size() || !left.empty();) {
    const double arrival = next < by_arrival.size() ? jobs[by_arrival[next]].at
                                                    : std::numeric_limits<double>::infinity();
    // All that are there wait, or run, until the next end or arrival.
    const double until = left.empty() ? arrival : std::min(arrival, now + left.top());
    const double rest = left.empty() ? 0 : left.top() - (until - now);
    total += static_cast<double>(left.size()) * (until - now);
    if (!left.empty()) left.pop();
    if (until < arrival) {
      now = until;
      continue;
    }
    if (rest > 0) left.push(rest);
    now = arrival;
    left.push(jobs[by_arrival[next++]].least_service() / num_gpus);
  }
  return total;
}

// --- prices ---

// One further bit of speed of a job, and the GPUs that it takes for each unit of it.
struct Bit {
  double speed = 0;  // of the whole job a second
  double slope = 0;  // GPU-seconds for the whole job at that speed
};

// The ways of a job and all mixtures: from standing still to the fastest, by rising slope.
std::vector<Bit> bits_of(const Demand& job) {
  std::vector<Bit> bits;
  double speed = 0, gpus = 0;
  while (true) {
    const Demand::Way* best = nullptr;
    double least = 0;
    for (const Demand::Way& way : job.ways) {
      const double faster = 1 / way.seconds - speed;
      if (faster <= 1e-12 / way.seconds) continue;
      const double slope = (way.gpus - gpus) / faster;
      if (best == nullptr || slope < least) {
        best = &way;
        least = slope;
      }
    }
    if (best == nullptr) return bits;
    bits.push_back({1 / best->seconds - speed, std::max(least, 0.0)});
    speed = 1 / best->seconds;
    gpus = best->gpus;
  }
}

class PriceBound {
 public:
  PriceBound(std::span<const Demand> jobs, double num_gpus)
      : jobs_(jobs),
        num_gpus_(num_gpus),
        cells_(static_cast<int>(std::clamp<std::size_t>(10 * jobs.size(), 50, 500))) {
    double first = std::numeric_limits<double>::infinity(), last = 0, service = 0, longest = 0;
    for (const Demand& job : jobs) {
      bits_.push_back(bits_of(job));
      first = std::min(first, job.at);
      last = std::max(last, job.at);
      service += job.least_service();
      longest = std::max(longest, job.least_seconds());
    }
    begin_ = first;
    width_ = (last - first + service / num_gpus + longest) / cells_;
    price_.assign(static_cast<std::size_t>(cells_), 0);
    used_.assign(static_cast<std::size_t>(cells_), 0);
  }

  double best(int effort) {
    if (!(width_ > 0)) return 0;
    guess();
    double best = 0, stride = 1;
    std::vector<double> best_price = price_;
    for (int step = 0, idle = 0; step < effort; ++step) {
      const double value = weigh();
      if (value > best * (1 + 1e-5)) {
        idle = 0;
      } else if (++idle > 5) {
        idle = 0;
        stride /= 2;
        price_ = best_price;
        if (value < best) continue;
      }
      if (value > best) {
        best = value;
        best_price = price_;
      }
      climb(stride * 0.05 * best);
    }
    return best;
  }

 private:
  struct Bought {
    double price = 0;  // of all of the job's work
    double amount = 0;
    double gpu_seconds = 0;
    int cell = 0;
  };

  double start_of(int cell) const { return begin_ + width_ * cell; }

  // As if, at any moment, one GPU-second more would bring those present forward, one after another.
  void guess() {
    std::vector<double> present(price_.size(), 0);
    for (const Demand& job : jobs_) {
      const double end = job.at + 2 * job.least_seconds();
      for (int cell = cell_of(job.at); cell < cells_ && start_of(cell) < end; ++cell)
        present[static_cast<std::size_t>(cell)] += 1;
    }
    for (std::size_t i = 0; i < present.size(); ++i)
      price_[i] = 0.5 * std::max(0.0, present[i] / num_gpus_ - 0.5);
  }
  int cell_of(double at) const {
    return std::clamp(static_cast<int>((at - begin_) / width_), 0, cells_ - 1);
  }

  // What the job is charged at the least when it ends in `last`: time and GPUs. `own` holds the
  // cheapest work of the cells before, by rising price, at most all of the job.
  double charge(std::size_t j, int last, double from, const std::vector<Bought>& own,
                std::vector<Bought>* bought) const {
    const Demand& job = jobs_[j];
    const double begin = std::max(from, start_of(last));
    double done = 0, cost = begin - job.at;
    for (const Bought& each : own) {
      done += each.amount;
      cost += each.amount * each.price;
    }
    const double length = start_of(last + 1) - begin, seconds = job.least_seconds();
    std::size_t keep = own.size();
    double kept_of_last = keep > 0 ? own.back().amount : 0;
    std::vector<Bought> fresh;
    for (const Bit& bit : bits_[j]) {
      // Work in the last cell also takes time there.
      const double price = price_[static_cast<std::size_t>(last)] * bit.slope + seconds;
      double room = bit.speed * length;
      const auto take = [&](double amount) {
        room -= amount;
        cost += amount * price;
        if (bought) fresh.push_back({price, amount, amount * bit.slope, last});
      };
      if (done < 1) {
        const double amount = std::min(room, 1 - done);
        done += amount;
        take(amount);
      }
      while (room > 0 && keep > 0 && own[keep - 1].price > price) {
        const double amount = std::min(room, kept_of_last);
        cost -= amount * own[keep - 1].price;
        kept_of_last -= amount;
        take(amount);
        if (kept_of_last <= 0) {
          --keep;
          kept_of_last = keep > 0 ? own[keep - 1].amount : 0;
        }
      }
    }
    if (done < 1 - 1e-12) return std::numeric_limits<double>::infinity();
    if (bought) {
      for (std::size_t k = 0; k < keep; ++k) {
        const double part = k + 1 == keep ? kept_of_last / own[k].amount : 1;
        fresh.push_back(
            {own[k].price, own[k].amount * part, own[k].gpu_seconds * part, own[k].cell});
      }
      *bought = std::move(fresh);
    }
    return cost;
  }

  void add(std::size_t j, int cell, double from, std::vector<Bought>& own) const {
    const double length = start_of(cell + 1) - std::max(from, start_of(cell));
    for (const Bit& bit : bits_[j]) {
      const Bought fresh{.price = price_[static_cast<std::size_t>(cell)] * bit.slope,
                         .amount = std::min(1.0, bit.speed * length),
                         .gpu_seconds = std::min(1.0, bit.speed * length) * bit.slope,
                         .cell = cell};
      own.insert(std::ranges::upper_bound(own, fresh.price, {}, &Bought::price), fresh);
    }
    double sum = 0;
    for (std::size_t k = 0; k < own.size(); ++k) {
      if (sum + own[k].amount > 1) {
        const double part = (1 - sum) / own[k].amount;
        own[k].amount *= part;
        own[k].gpu_seconds *= part;
        own.resize(own[k].amount > 0 ? k + 1 : k);
        return;
      }
      sum += own[k].amount;
    }
  }

  // The least charge of one job; notes what it buys.
  double least_charge(std::size_t j) {
    const double at = jobs_[j].at;
    const int first = cell_of(at);
    // After the last cell GPUs are free; nobody is done there sooner than that.
    double least = start_of(cells_) - at;
    int last = -1;
    own_.clear();
    for (int cell = first; cell < cells_ && start_of(cell) - at < least; ++cell) {
      const double cost = charge(j, cell, at, own_, nullptr);
      if (cost < least) {
        least = cost;
        last = cell;
      }
      add(j, cell, at, own_);
    }
    if (last < 0) return least;
    own_.clear();
    for (int cell = first; cell < last; ++cell) add(j, cell, at, own_);
    std::vector<Bought> bought;
    charge(j, last, at, own_, &bought);
    for (const Bought& each : bought)
      used_[static_cast<std::size_t>(each.cell)] += each.gpu_seconds;
    return least;
  }

  double weigh() {
    std::ranges::fill(used_, 0.0);
    double value = 0;
    for (std::size_t j = 0; j < jobs_.size(); ++j) value += least_charge(j);
    for (const double price : price_) value -= price * num_gpus_ * width_;
    return value;
  }

  // Dearer where more is bought than there is.
  void climb(double gain) {
    double square = 0;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      used_[i] -= num_gpus_ * width_;
      if (price_[i] <= 0 && used_[i] < 0) used_[i] = 0;
      square += used_[i] * used_[i];
    }
    if (square <= 0) return;
    for (std::size_t i = 0; i < used_.size(); ++i)
      price_[i] = std::max(0.0, price_[i] + gain / square * used_[i]);
  }

  std::span<const Demand> jobs_;
  double num_gpus_ = 1, begin_ = 0, width_ = 0;
  int cells_ = 0;  // of time; one price in each
  std::vector<std::vector<Bit>> bits_{};
  std::vector<double> price_{}, used_{};  // by cell; used: GPU-seconds
  std::vector<Bought> own_{};
};

}  // namespace

double Demand::least_service() const {
  double least = std::numeric_limits<double>::infinity();
  for (const Way& way : ways) least = std::min(least, way.gpus * way.seconds);
  return least;
}
double Demand::least_seconds() const {
  double least = std::numeric_limits<double>::infinity();
  for (const Way& way : ways) least = std::min(least, way.seconds);
  return least;
}

std::vector<Demand> least_demands(const Workload& workload, const JobModel& model, int num_gpus,
                                  Sharing sharing, double noise) {
  const Kinds kinds = kinds_of(workload);
  std::vector<Demand> demands;
  for (std::size_t i = 0; i < workload.jobs.size(); ++i) {
    const WorkloadJob& job = workload.jobs[i];
    const JobId id = id_of(i);
    const JobTruth& truth = model.job(id);
    const BestPartners best = best_partners(job, id, model, kinds, sharing);
    const double lucky = noise > 0 ? model.progress_at(id, truth.target_metric - noise) : 1;
    const double alone = static_cast<double>(truth.steps);
    const double head = best.temporal / (1 + best.temporal);
    const auto epoch = static_cast<double>(truth.steps_per_epoch);
    const double needed = alone * std::clamp(lucky - head, 0.0, 1.0);
    const double steps = std::max(1.0, std::ceil(needed / epoch - 1e-6)) * epoch;
    // Steps trained together, few or many, may use up what the last epoch has too much, so whoever
    // can train so is not rounded.
    const double mixed = alone * std::clamp(lucky, 0.0, 1.0);
    Demand demand{.at = job.at};
    for (const auto& [size, seconds] : steps_of(job, id, model, num_gpus)) {
      const double gpus = size;
      demand.ways.push_back({gpus, steps * seconds});
      if (!best.joint) continue;
      demand.ways.push_back({gpus, mixed * seconds});
      demand.ways.push_back(
          {gpus * best.joint_service / best.joint_seconds, mixed * seconds * best.joint_seconds});
    }
    demands.push_back(std::move(demand));
  }
  return demands;
}

double least_total_jct(std::span<const Demand> jobs, double num_gpus, int effort) {
  double seconds = 0;
  for (const Demand& job : jobs) seconds += job.least_seconds();
  return std::max(
      {seconds, shortest_first(jobs, num_gpus), PriceBound(jobs, num_gpus).best(effort)});
}

}  // namespace ymir
