// The demo's parts: a daemon of its own, the arrivals of a small team's morning, the live view, and
// the results. One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/ymir/verb.h"
#include "ymir/api/http_client.h"
#include "ymir/api/report_html.h"
#include "ymir/base/child_process.h"
#include "ymir/base/result.h"
#include "ymir/core/job.h"

namespace ymir::cli {

// ymird as a child with a state folder of its own; ended by the destructor at the latest.
class DemoDaemon {
 public:
  struct Options {
    std::string state{};  // folder
    int slots = 2;
    double round = 3;  // seconds
    std::string policy = "ymir";
    std::vector<std::string> settings{};  // KEY=VALUE
  };
  // Returns when it answers and has its slots.
  static Result<DemoDaemon> start(const Options& options);

  const HttpClient& client() const { return client_; }
  std::string log() const { return state_ + "/log.db"; }
  std::string diagnostics() const { return state_ + "/ymird.log"; }
  bool alive() { return !child_.ended(); }
  void stop();  // in order; waits

 private:
  DemoDaemon(ChildProcess child, HttpClient client, std::string state)
      : child_(std::move(child)), client_(std::move(client)), state_(std::move(state)) {}
  ChildProcess child_;
  HttpClient client_;
  std::string state_{};
};

struct Arrival {
  double at = 0;  // seconds after the start
  JobSpec spec{};
};
// Of `folder`/arrivals.csv; only the jobs named in `only` unless that is empty.
Result<std::vector<Arrival>> read_arrivals(const std::string& folder,
                                           const std::vector<std::string>& only);

// Submits all jobs held, and lets them go together once their data is checked: the next round sees
// them at once, none with progress.
Result<> submit_together(DemoDaemon& daemon, const std::vector<Arrival>& arrivals);

// Submits each job when its time has come (unless that was done) and shows what happens until all
// have ended.
// kTimeout after `limit` seconds; kUnavailable when the daemon has died.
Result<> run_demo_jobs(const Globals& globals, DemoDaemon& daemon,
                       const std::vector<Arrival>& arrivals, bool submitted, double limit);

// A line a job: mode, partner, predicted and actual gain, time to target, rollback and why.
std::string result_table(const Snapshot& state, bool no_color);
// True when every job succeeded: reached its target, or ended by its own stop rule.
bool all_good(const Snapshot& state);
std::string comparison_text(const ReportComparison& comparison);

}  // namespace ymir::cli
