#include "ymir/schedule/themis.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "ymir/schedule/budget_walk.h"
#include "ymir/schedule/settings.h"
#include "ymir/schedule/themis_share.h"

namespace ymir {

namespace {

constexpr double kNothingYet = 1e9;  // priority of a share of which nothing was received

struct Account {
  double isolated_past = 0;                // seconds on an exclusive share for the work done
  double left = 0, isolated_share = 1;     // at the last round
  double window_from = 0, run_before = 0;  // begin of the window, seconds run until then
  double owed = 0;                         // seconds due in earlier windows and not received
  double share = 0;                        // due since the last round

  static Account from(const std::vector<double>& v) {
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6]};
  }
  std::vector<double> values() const {
    return {isolated_past, left, isolated_share, window_from, run_before, owed, share};
  }
};

std::map<JobId, Account> accounts_of(const Snapshot& cluster) {
  std::map<JobId, Account> accounts;
  if (!cluster.wish) return accounts;
  for (const Plan::Memory& line : cluster.wish->plan.memory)
    if (line.values.size() == 7)
      accounts.emplace_hint(accounts.end(), line.job, Account::from(line.values));
  return accounts;
}

struct Claimant {
  Request request{};
  Account account{};
  double run = 0;  // seconds it has held its GPUs so far
  double priority = 0;
};

// The account as of now: work done since the last round, and a new window when the old one is over.
Account carried_on(Account account, double left, double run, double now, double window) {
  account.isolated_past += std::max(0.0, account.left - left) / account.isolated_share;
  account.left = left;
  if (now - account.window_from >= window) {
    account.owed +=
        account.share * (now - account.window_from) - std::max(0.0, run - account.run_before);
    account.window_from = now;
    account.run_before = run;
  }
  return account;
}

}  // namespace

Result<ThemisOptions> ThemisOptions::from(const std::map<std::string, std::string>& settings) {
  ThemisOptions options;
  std::string request = "smallest";
  SettingsReader reader("themis", settings);
  double of_the_auction = 0;  // its settings have this family's name too
  reader.number("window", options.window_s)
      .choice("request", {"smallest", "largest"}, request)
      .number("lease", of_the_auction)
      .number("f", of_the_auction);
  YMIR_TRY(reader.done());
  options.largest_size = request == "largest";
  if (!(options.window_s > 0))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("themis.window must be > 0: {}", options.window_s)};
  return options;
}

Result<Decision> Themis::decide(const Round& round) const {
  Decision decision;
  Plan& plan = decision.plan;
  const AloneRound alone(round);
  const double now = to_seconds(round.cluster.now);
  const double num_gpus = round.cluster.num_gpus();
  const std::map<JobId, Account> accounts = accounts_of(round.cluster);

  std::vector<Claimant> claimants;
  for (const Request& request : requests(alone, options_.largest_size, plan)) {
    const AloneJob& job = *request.job;
    const Candidate* size = request.alone;
    const double left = std::max(AloneJob::seconds(*size), 1e-3);
    const double run = job.service(round.cluster.now) / size->what.gpus;
    const auto known = accounts.find(job.job->id);
    const Account before = known != accounts.end()
                               ? known->second
                               : Account{.left = left, .window_from = now, .run_before = run};
    claimants.push_back({.request = request,
                         .account = carried_on(before, left, run, now, options_.window_s),
                         .run = run});
  }
  std::vector<ShareJob> shares;
  for (const Claimant& each : claimants)
    shares.push_back({.gpus = static_cast<double>(each.request.alone->what.gpus),
                      .steps_left = each.account.left,
                      .steps_per_s = 1,
                      .age_s = (round.cluster.now - each.request.job->job->submitted).count(),
                      .isolated_past_s = each.account.isolated_past});
  if (num_gpus > 0 && !shares.empty()) {
    YMIR_TRY_ASSIGN(const FairShares fair, max_min_shares(shares, num_gpus));
    for (std::size_t i = 0; i < claimants.size(); ++i) {
      Account& account = claimants[i].account;
      account.share = fair.x[i];
      account.isolated_share = isolated_share(shares[i].gpus, num_gpus, shares.size());
      const double elapsed = now - account.window_from;
      const double received = elapsed > 0 ? (claimants[i].run - account.run_before) / elapsed : 0.0;
      claimants[i].priority = received > 0 ? account.share / received : kNothingYet * account.share;
    }
  }
  std::ranges::sort(claimants, {}, [](const Claimant& each) {
    return std::tuple(-each.priority, -each.account.owed, -each.account.share,
                      each.request.job->job->submitted, each.request.job->job->id);
  });
  std::vector<Request> list;
  for (const Claimant& each : claimants) {
    list.push_back(each.request);
    plan.memory.push_back({each.request.job->job->id, each.account.values()});
  }
  std::ranges::sort(plan.memory, {}, &Plan::Memory::job);
  walk_down(round, list, true, plan);
  plan.proof = "heuristic";
  return decision;
}

std::map<std::string, std::string> Themis::constants() const {
  return {{"window", fmt::format("{}", options_.window_s)},
          {"request", options_.largest_size ? "largest" : "smallest"}};
}

}  // namespace ymir
