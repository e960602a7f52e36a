#include "ymir/sim/metrics/fairness.h"

#include <algorithm>
#include <cmath>

namespace ymir {
namespace {

// Mean number of active jobs over a span, from submissions and ends.
class ActiveJobs {
 public:
  explicit ActiveJobs(const RunRecord& record) {
    std::map<double, double> change;
    for (const JobRecord& job : record.jobs) {
      change[job.submission_s] += 1;
      if (job.completion_s) change[*job.completion_s] -= 1;
    }
    double at = 0, area = 0, active = 0;
    for (const auto& [time, delta] : change) {
      area += active * (time - at);
      at = time;
      active += delta;
      points_[time] = {area, active};
    }
  }
  double mean(double from, double to) const {
    return to > from ? (area_until(to) - area_until(from)) / (to - from) : 1;
  }

 private:
  double area_until(double time) const {
    const auto after = points_.upper_bound(time);
    if (after == points_.begin()) return 0;
    const auto& [at, point] = *std::prev(after);
    return point.first + point.second * (time - at);
  }
  std::map<double, std::pair<double, double>> points_;  // area before, active after
};

class Formulas {
 public:
  Formulas(const RunRecord& record, const SoloTruth& truth)
      : record_(record), truth_(truth), active_(record), gpus_(record.num_gpus()) {}

  void add(std::size_t i, const std::vector<const Hold*>& holds,
           std::map<std::string, std::vector<double>>& rho) {
    const JobRecord& job = record_.jobs[i];
    const double jct = job.jct_s();
    const double alone = truth_.seconds(i, job.requested_gpus);
    const double n =
        std::isfinite(jct) ? active_.mean(job.submission_s, *job.completion_s) : std::nan("");
    const double all = static_cast<double>(record_.jobs.size());
    rho["share"].push_back(jct / on_share(i, gpus_ / n));
    rho["themis"].push_back(jct / (alone * std::max(1.0, n / gpus_)));
    rho["static"].push_back(jct / (alone * std::max(1.0, all / gpus_)));
    rho["gavel"].push_back(jct / (alone * isolation(job, holds)));
    const int whole = std::isfinite(n) ? std::clamp(static_cast<int>(gpus_ / std::max(n, 1e-9)),
                                                    truth_.min_gpus[i], truth_.max_gpus[i])
                                       : 1;
    rho["resimulated"].push_back(jct / (truth_.start_s + truth_.seconds(i, whole)));
  }

 private:
  // Run time on a share that need not be whole.
  double on_share(std::size_t i, double share) const {
    if (!std::isfinite(share)) return std::nan("");
    const double least = truth_.min_gpus[i], most = truth_.max_gpus[i];
    const double clipped = std::clamp(share, least, most);
    const int low = static_cast<int>(clipped);
    const double slow = 1 / truth_.seconds(i, low);
    const double fast = clipped > low ? 1 / truth_.seconds(i, low + 1) : slow;
    double speed = slow + (fast - slow) * (clipped - low);
    if (share < least) speed *= share / least;  // time slicing
    return 1 / speed;
  }
  // How much longer than alone it would take on its isolated share, over the time in which it ran.
  double isolation(const JobRecord& job, const std::vector<const Hold*>& holds) const {
    double time = 0, sum = 0;
    for (const Hold* hold : holds) {
      const double from = static_cast<double>(hold->from) / 1e6;
      const double to = static_cast<double>(hold->to) / 1e6;
      sum += (to - from) * std::max(1.0, active_.mean(from, to) * job.requested_gpus / gpus_);
      time += to - from;
    }
    return time > 0 ? sum / time : 1;
  }

  const RunRecord& record_;
  const SoloTruth& truth_;
  ActiveJobs active_;
  double gpus_;
};

}  // namespace

const std::vector<std::string>& fairness_formulas() {
  static const std::vector<std::string> names{"share", "themis", "static", "gavel", "resimulated"};
  return names;
}

std::map<std::string, std::vector<double>> fairness(const RunRecord& record,
                                                    const SoloTruth& truth) {
  std::vector<std::vector<const Hold*>> holds(record.jobs.size());
  for (const Hold& hold : record.holds)
    if (!hold.profile)
      for (const int job : hold.jobs) holds[static_cast<std::size_t>(job)].push_back(&hold);
  std::map<std::string, std::vector<double>> rho;
  Formulas formulas(record, truth);
  for (std::size_t i = 0; i < record.jobs.size(); ++i) formulas.add(i, holds[i], rho);
  return rho;
}

}  // namespace ymir
