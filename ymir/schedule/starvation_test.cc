// The starvation bound in simulation: solver and Utility together, under arrivals chosen to starve.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ymir/optimize/planner.h"
#include "ymir/schedule/utility.h"

namespace ymir {
namespace {

constexpr double kRound = 120, kSwitch = 10;  // seconds
constexpr int kGpus = 4, kQueue = 9, kVictimGpus = 2;
constexpr double kTransfer = 1.8;

// One long job of two GPUs on four, against an endless queue of short, young, one-GPU jobs that go
// well together in pairs: as soon as one ends, another arrives.
class Adversary {
 public:
  explicit Adversary(const UtilityOptions& options) : options_(options), utility_(options) {}

  void run(int rounds) {
    for (int k = 0; k < rounds; ++k) {
      arrive();
      offer();
      const Solution solution = planner_.solve(problem_);
      ASSERT_EQ(solution.proof, Proof::kOptimal);
      advance(solution);
    }
  }
  int longest_wait() const { return longest_wait_; }  // rounds without progress, over all jobs
  int victim_wait() const { return victim_wait_; }
  double proved_bound() const {
    if (options_.hard_tier > 0) return tier_wait_bound(options_, kQueue, kVictimGpus, kGpus);
    return wait_bound(options_, {.jobs = kQueue,
                                 .served = fewest_served_,
                                 .smallest_gpus = kVictimGpus,
                                 .priority_low = priority_low_,
                                 .priority_high = priority_high_,
                                 .psi_low = psi_low_,
                                 .psi_high = psi_high_,
                                 .most_transfer = kTransfer});
  }

 private:
  struct Job {
    std::uint64_t key = 0;
    double age = 0, left = 0, whole = 0;  // seconds; seconds on one GPU
    int idle = 0, smallest = 1;
  };
  struct Offer {
    JobIndex first = kNoJob, second = kNoJob;
    int gpus = 0, tier_members = 0;
    double value = 0;
  };

  void arrive() {
    if (jobs_.empty() || jobs_[0].key != 1) jobs_.insert(jobs_.begin(), {1, 0, 4e5, 4e5, 0, 2});
    while (static_cast<int>(jobs_.size()) < kQueue)
      jobs_.push_back({next_key_++, 0, 110, 110, 0, 1});
  }

  MemberFacts member(const Job& job, int gpus) {
    const double speed = std::min<double>(job.smallest, 1.0 * kGpus / kQueue);  // time-sliced
    const double fair = std::max(kRound, job.left / speed);
    const double finish = std::max(kRound, job.left / gpus);
    const double speed_up = fair / finish;
    const double psi = (1 + options_.spread) * speed_up / (speed_up + options_.spread);
    psi_low_ = std::min(psi_low_, psi);
    psi_high_ = std::max(psi_high_, psi);
    MemberFacts facts{{Seconds(job.age), Seconds(fair), Seconds(job.whole / speed), job.idle},
                      Seconds(finish),
                      true};
    const double priority = utility_.priority(facts.job);
    priority_low_ = std::min(priority_low_, priority);
    priority_high_ = std::max(priority_high_, priority);
    return facts;
  }

  void add_offer(JobIndex first, JobIndex second, int gpus) {
    CandidateFacts facts;
    facts.members.push_back(member(jobs_[first], gpus));
    if (second != kNoJob) facts.members.push_back(member(jobs_[second], gpus));
    facts.transfer_weight = second == kNoJob ? 1 : kTransfer;
    facts.switching = Seconds(kSwitch);
    offers_.push_back({first, second, gpus, utility_.tier_members(facts), utility_.value(facts)});
  }

  void offer() {
    offers_.clear();
    const auto count = static_cast<JobIndex>(jobs_.size());
    for (JobIndex j = 0; j < count; ++j) {
      for (int g = jobs_[j].smallest; g <= kGpus; g *= 2) add_offer(j, kNoJob, g);
    }
    for (JobIndex i = 1; i < count; ++i) {
      for (JobIndex j = i + 1; j < count; ++j) add_offer(i, j, 1);
    }
    problem_.reset(std::vector<Capacity>{{kGpus, {}}});
    double most = 0;
    for (const Offer& offer : offers_) most = std::max(most, offer.value);
    const double unit = utility_unit(most, kVictimGpus, problem_.utility_limit(kQueue));
    const std::int64_t bonus = tier_bonus(std::llround(most * unit), kVictimGpus);
    const auto option = [&](const Offer& offer) {
      const std::int64_t u = std::max<std::int64_t>(1, std::llround(offer.value * unit));
      return Option{static_cast<std::int32_t>(u + offer.tier_members * bonus),
                    static_cast<std::uint16_t>(offer.gpus), 0, 0};
    };
    std::vector<Option> alone;
    for (JobIndex j = 0; j < count; ++j) {
      alone.clear();
      for (const Offer& offer : offers_) {
        if (offer.first == j && offer.second == kNoJob) alone.push_back(option(offer));
      }
      problem_.add_job(jobs_[j].key, alone);
    }
    for (const Offer& offer : offers_) {
      const Option together = option(offer);
      if (offer.second != kNoJob) problem_.add_pair(offer.first, offer.second, {&together, 1});
    }
  }

  void advance(const Solution& solution) {
    fewest_served_ = std::min(fewest_served_, static_cast<double>(solution.chosen.size()));
    std::vector<double> speed(jobs_.size(), 0);
    for (const Choice& choice : solution.chosen) {
      speed[choice.first] = choice.option.gpus;
      if (choice.second != kNoJob) speed[choice.second] = choice.option.gpus;
    }
    std::vector<Job> kept;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      Job job = jobs_[j];
      job.age += kRound;
      job.left -= speed[j] * (kRound - kSwitch);
      job.idle = speed[j] > 0 ? 0 : job.idle + 1;
      longest_wait_ = std::max(longest_wait_, job.idle);
      if (job.key == 1) victim_wait_ = std::max(victim_wait_, job.idle);
      if (job.left > 0) kept.push_back(job);
    }
    jobs_ = std::move(kept);
  }

  UtilityOptions options_;
  Utility utility_;
  Planner planner_;
  RoundProblem problem_;
  std::vector<Job> jobs_;
  std::vector<Offer> offers_;
  std::uint64_t next_key_ = 2;
  int longest_wait_ = 0, victim_wait_ = 0;
  double priority_low_ = 1e9, priority_high_ = 0, psi_low_ = 1e9, psi_high_ = 0;
  double fewest_served_ = kGpus;
};

TEST(Starvation, AgeingAloneEndsEveryWait) {
  UtilityOptions options;
  options.hard_tier = 0;
  Adversary adversary(options);

  adversary.run(10'000);

  EXPECT_LT(adversary.longest_wait(), adversary.proved_bound());
  EXPECT_GT(adversary.victim_wait(), 5);  // the adversary does make it wait
}

TEST(Starvation, TheHardTierEndsEveryWaitSooner) {
  UtilityOptions options;
  options.hard_tier = 30;
  options.tau = 1e5;  // ageing all but off: the tier alone must do it
  Adversary adversary(options);

  adversary.run(10'000);

  EXPECT_LE(adversary.longest_wait(), adversary.proved_bound());
  EXPECT_GE(adversary.victim_wait(), 30);
}

TEST(Starvation, WithoutAgeingAndTierTheLongJobDoesStarve) {
  UtilityOptions options;
  options.hard_tier = 0;
  options.tau = 1e6;
  Adversary adversary(options);

  adversary.run(2'000);

  EXPECT_GT(adversary.victim_wait(), 1'000);  // the scenario is one that needs the remedy
}

}  // namespace
}  // namespace ymir
