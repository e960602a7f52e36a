#include "ymir/sim/metrics/check_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ymir/sim/metrics/gpu_time.h"

namespace ymir {
namespace {

constexpr std::size_t kMaxFaults = 50;

class Checker {
 public:
  Checker(const RunRecord& record, const RunLimits& limits) : record_(record), limits_(limits) {}

  std::vector<std::string> check() {
    faults_ = record_.faults;
    check_gpu_time();
    check_gpus();
    for (std::size_t i = 0; i < record_.jobs.size(); ++i) {
      check_service(i);
      check_ends(i);
      check_speed(i);
    }
    check_splits();
    if (faults_.size() > kMaxFaults) {
      const std::size_t more = faults_.size() - kMaxFaults;
      faults_.resize(kMaxFaults);
      faults_.push_back(fmt::format("and {} more", more));
    }
    return std::move(faults_);
  }

 private:
  template <class... Args>
  void broken(fmt::format_string<Args...> format, Args&&... args) {
    faults_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  const std::string& name(int job) const {
    return record_.jobs[static_cast<std::size_t>(job)].name;
  }
  static double seconds(Micro time) { return static_cast<double>(time) / 1e6; }

  void check_gpu_time() {
    const GpuTime time = gpu_time(record_);
    const Micro whole = record_.num_gpus() * (record_.end() - record_.begin());
    if (time.sum() != whole)
      broken("R1: the GPUs' time adds up to {} s, not to {} s", seconds(time.sum()),
             seconds(whole));
    for (const Micro part : {time.useful, time.redone, time.switching, time.profile, time.blocked,
                             time.idle_waiting, time.idle_empty})
      if (part < 0) broken("R1: a part of the GPUs' time is negative: {} s", seconds(part));
  }
  void check_gpus() {
    std::vector<Micro> busy_until(static_cast<std::size_t>(record_.num_gpus()), INT64_MIN);
    for (const Hold& hold : record_.holds) {  // by start
      if (!(hold.from <= hold.ready && hold.ready <= hold.to) || hold.redone < 0 ||
          hold.redone > hold.to - hold.ready)
        broken("R5: a run of {} ends before it begins", name(hold.jobs.front()));
      for (const int gpu : hold.gpus) {
        if (gpu < 0 || gpu >= record_.num_gpus()) {
          broken("R2: {} runs on GPU {} of {}", name(hold.jobs.front()), gpu, record_.num_gpus());
          continue;
        }
        Micro& until = busy_until[static_cast<std::size_t>(gpu)];
        if (hold.from < until)
          broken("R2: GPU {} is used twice at {} s, by {} too", gpu, seconds(hold.from),
                 name(hold.jobs.front()));
        until = std::max(until, hold.to);
      }
    }
    held_.assign(record_.jobs.size(), 0);
    last_.assign(record_.jobs.size(), INT64_MIN);
    last_from_ = last_;
    first_.assign(record_.jobs.size(), INT64_MAX);
    for (const Hold& hold : record_.holds)
      for (const int job : hold.jobs) {
        const auto i = static_cast<std::size_t>(job);
        held_[i] += (hold.to - hold.from) * static_cast<Micro>(hold.gpus.size());
        last_[i] = std::max(last_[i], hold.to);
        last_from_[i] = std::max(last_from_[i], hold.from);
        first_[i] = std::min(first_[i], hold.from);
      }
  }
  // What the simulator says that a job was given, against what the runs held. The controller
  // counts from a run's first step, so there it is at most what was held.
  void check_service(std::size_t i) {
    const JobRecord& job = record_.jobs[i];
    const double held = seconds(held_[i]);
    const double slack = 1e-6 * (1 + held);
    const bool differs = record_.public_simulator ? std::abs(job.gpu_seconds - held) > slack
                                                  : job.gpu_seconds > held + slack;
    if (differs && (job.finished || !record_.public_simulator))
      broken("R3: {} was given {} GPU-s and held {}", job.name, job.gpu_seconds, held);
  }
  void check_ends(std::size_t i) {
    const JobRecord& job = record_.jobs[i];
    if (!job.completion_s && !limits_.until_horizon && !record_.public_simulator)
      broken("R4: {} has not ended", job.name);
    if (first_[i] < to_micro(job.submission_s))
      broken("R5: {} holds GPUs before it was submitted", job.name);
    if (job.finished && !job.completion_s) broken("R4: {} finished at no time", job.name);
    if (job.completion_s && *job.completion_s < job.submission_s)
      broken("R5: {} ends before it was submitted", job.name);
    const Micro held_until = limits_.real_workers ? last_from_[i] : last_[i];
    if (job.completion_s && !record_.public_simulator && held_until > to_micro(*job.completion_s))
      broken("R6: {} holds GPUs {} s after its end", job.name,
             seconds(held_until - to_micro(*job.completion_s)));
    if (job.finished && last_[i] == INT64_MIN) broken("R5: {} finished and never ran", job.name);
  }
  void check_speed(std::size_t i) {
    const JobRecord& job = record_.jobs[i];
    if (!limits_.least_seconds || !job.finished) return;
    const double least = limits_.least_seconds(i);
    if (job.jct_s() < least * (1 - 1e-9) - 1e-6)
      broken("R8: {} took {} s where the truth allows no less than {} s", job.name, job.jct_s(),
             least);
  }
  void check_splits() {
    for (const Merge& merge : record_.merges) {
      if (!merge.split) continue;
      for (const int job : {merge.job, merge.partner}) {
        const JobRecord& of = record_.jobs[static_cast<std::size_t>(job)];
        const bool ended = of.completion_s && to_micro(*of.completion_s) <= *merge.split;
        if (!ended && last_[static_cast<std::size_t>(job)] <= *merge.split && of.finished)
          broken("R7: {} was split at {} s and never ran again", of.name, seconds(*merge.split));
      }
    }
  }

  const RunRecord& record_;
  const RunLimits& limits_;
  std::vector<std::string> faults_;
  std::vector<Micro> held_, first_, last_, last_from_;
};

}  // namespace

std::vector<std::string> check_run(const RunRecord& record, const RunLimits& limits) {
  return Checker(record, limits).check();
}

}  // namespace ymir
