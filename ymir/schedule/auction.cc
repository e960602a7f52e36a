#include "ymir/schedule/auction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "ymir/schedule/budget_walk.h"
#include "ymir/schedule/cheapest.h"
#include "ymir/schedule/settings.h"

namespace ymir {

namespace {

constexpr double kUnit = 1e9;  // of ln V: whole numbers

struct Account {
  double lease_end = 0, active = 0, until = 0;
};

struct Bidder {
  const AloneJob* job = nullptr;
  Account account{};
  double age = 0, independent = 1;  // seconds
  double rho = 0;                   // as it would be without what is on offer
  const Candidate* gets = nullptr;  // null: nothing
  bool keeps = false;               // its lease goes on

  double rho_of(const Candidate* size, double lease_s) const {
    const double more = size != nullptr ? AloneJob::seconds(*size)
                                        : lease_s + AloneJob::seconds(*job->sizes.back());
    return (age + std::max(more, 1e-3)) / independent;
  }
  int gpus() const { return gets != nullptr ? gets->what.gpus : 0; }
  // The next larger size; null: there is none.
  const Candidate* larger() const {
    for (const Candidate* size : job->sizes)
      if (size->what.gpus > gpus()) return size;
    return nullptr;
  }
  // The largest size of at most so many GPUs, but the smallest at least.
  const Candidate* of_at_most(double gpus) const {
    const Candidate* best = job->sizes.front();
    for (const Candidate* size : job->sizes)
      if (size->what.gpus <= gpus) best = size;
    return best;
  }
};

std::map<JobId, Account> accounts_of(const Snapshot& cluster) {
  std::map<JobId, Account> accounts;
  if (!cluster.wish) return accounts;
  for (const Plan::Memory& line : cluster.wish->plan.memory)
    if (line.values.size() == 3)
      accounts[line.job] = {line.values[0], line.values[1], line.values[2]};
  return accounts;
}

std::vector<Bidder> bidders_of(const Round& round, const AloneRound& alone,
                               const AuctionOptions& options) {
  const std::map<JobId, Account> accounts = accounts_of(round.cluster);
  const double now = to_seconds(round.cluster.now);
  const auto many = static_cast<double>(alone.jobs().size());
  std::vector<Bidder> bidders;
  for (const AloneJob& job : alone.jobs()) {
    const double submitted = to_seconds(job.job->submitted);
    Bidder bidder{.job = &job, .account = {.until = submitted}, .age = now - submitted};
    if (const auto known = accounts.find(job.job->id); known != accounts.end())
      bidder.account = known->second;
    bidder.account.active += many * std::max(0.0, now - bidder.account.until);
    bidder.account.until = now;
    const double mean = bidder.age > 0 ? std::max(1.0, bidder.account.active / bidder.age) : many;
    const Candidate& most = *job.sizes.back();
    const double done = job.service(round.cluster.now) / most.what.gpus;
    bidder.independent = std::max(done + AloneJob::seconds(most), 1e-3) * mean;
    bidder.keeps = job.held > 0 && bidder.account.lease_end > now && job.at(job.held) != nullptr;
    if (bidder.keeps) bidder.gets = job.at(job.held);
    bidder.rho = bidder.rho_of(job.held > 0 ? job.at(job.held) : nullptr, options.lease_s);
    bidders.push_back(bidder);
  }
  return bidders;
}

// Hands out `free` GPUs among those who bid; returns what is left.
Result<int> auction(std::vector<Bidder*>& bidding, int free, const AuctionOptions& options) {
  std::vector<CheapestOptions> bids;
  for (const Bidder* bidder : bidding) {
    const auto cost = [&](const Candidate* size) {  // -ln V
      return std::llround(std::log(bidder->rho_of(size, options.lease_s)) * kUnit);
    };
    CheapestOptions mine{{0, cost(nullptr)}};
    for (const Candidate* size : bidder->job->sizes) mine.push_back({size->what.gpus, cost(size)});
    bids.push_back(std::move(mine));
  }
  YMIR_TRY_ASSIGN(const std::vector<std::size_t> won, cheapest(bids, free));
  YMIR_TRY_ASSIGN(const std::vector<std::int64_t> without, cheapest_without(bids, free));
  std::int64_t all = 0;
  for (std::size_t i = 0; i < bids.size(); ++i) all += bids[i][won[i]].cost;
  for (std::size_t i = 0; i < bids.size(); ++i) {
    if (won[i] == 0) continue;
    const CheapestOption& prize = bids[i][won[i]];
    const double others = static_cast<double>(without[i] - (all - prize.cost)) / kUnit;
    const double keeps = std::exp(std::min(others, 0.0));
    bidding[i]->gets = bidding[i]->of_at_most(std::floor(keeps * prize.gpus + 1e-9));
    free -= bidding[i]->gpus();
  }
  return free;
}

// First those who have nothing, then those who can grow, the worst rho first.
void leave_nothing(std::vector<Bidder*>& by_rho, int free) {
  for (Bidder* bidder : by_rho) {
    if (bidder->gets != nullptr || bidder->job->smallest()->what.gpus > free) continue;
    bidder->gets = bidder->job->smallest();
    free -= bidder->gpus();
  }
  for (bool grew = true; grew && free > 0;) {
    grew = false;
    for (Bidder* bidder : by_rho) {
      const Candidate* larger = bidder->gets != nullptr ? bidder->larger() : nullptr;
      if (larger == nullptr || larger->what.gpus - bidder->gpus() > free) continue;
      free -= larger->what.gpus - bidder->gpus();
      bidder->gets = larger;
      grew = true;
    }
  }
}

}  // namespace

Result<AuctionOptions> AuctionOptions::from(const std::map<std::string, std::string>& settings) {
  AuctionOptions options;
  SettingsReader reader("themis", settings);
  double of_the_bisection = 0;  // its settings have this family's name too
  std::string request;
  reader.number("lease", options.lease_s)
      .number("f", options.fairness)
      .number("window", of_the_bisection)
      .choice("request", {"smallest", "largest"}, request);
  YMIR_TRY(reader.done());
  YMIR_TRY(options.validate());
  return options;
}

Result<> AuctionOptions::validate() const {
  if (!(lease_s > 0 && lease_s <= 1e7))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("themis.lease must be in (0, 1e7] s: {}", lease_s)};
  if (!(fairness >= 0 && fairness <= 1))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("themis.f must be in 0..1: {}", fairness)};
  return Ok{};
}

Result<Decision> Auction::decide(const Round& round) const {
  Decision decision;
  Plan& plan = decision.plan;
  const AloneRound alone(round);
  plan.waiting = alone.waiting();
  std::vector<Bidder> all = bidders_of(round, alone, options_);
  int free = round.cluster.num_gpus();
  std::vector<Bidder*> by_rho;
  for (Bidder& bidder : all) {
    if (bidder.keeps)
      free -= bidder.gpus();
    else
      by_rho.push_back(&bidder);
  }
  std::ranges::sort(by_rho, {}, [](const Bidder* bidder) {
    return std::tuple(-bidder->rho, bidder->job->job->submitted, bidder->job->job->id);
  });
  const auto share = std::ceil((1 - options_.fairness) * static_cast<double>(by_rho.size()) - 1e-9);
  std::vector<Bidder*> bidding(by_rho.begin(), by_rho.begin() + static_cast<std::ptrdiff_t>(share));
  free = std::max(free, 0);  // a node was lost
  YMIR_TRY_ASSIGN(free, auction(bidding, free, options_));
  leave_nothing(by_rho, free);

  std::vector<Request> taken;
  for (Bidder& bidder : all) {
    const JobId id = bidder.job->job->id;
    if (bidder.gets != nullptr) {
      if (!bidder.keeps) bidder.account.lease_end = bidder.account.until + options_.lease_s;
      taken.push_back({bidder.job, bidder.gets});
    } else {
      plan.waiting.push_back({id, fmt::format("lease gpus={}", bidder.job->smallest()->what.gpus)});
    }
    plan.memory.push_back(
        {id, {bidder.account.lease_end, bidder.account.active, bidder.account.until}});
  }
  give(round, taken, plan);
  return decision;
}

std::map<std::string, std::string> Auction::constants() const {
  return {{"lease", fmt::format("{}", options_.lease_s)},
          {"f", fmt::format("{}", options_.fairness)}};
}

}  // namespace ymir
