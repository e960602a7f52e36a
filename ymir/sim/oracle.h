// Oracle: beliefs that come from the truth of a JobModel instead of from an estimator, wrong where
// they are told to be. For `ymir:oracle`, for scenarios with `believe` lines, and for any study
// that wants to know what a better estimate would be worth. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ymir/control/beliefs.h"
#include "ymir/sim/job_model.h"

namespace ymir {

// How wrong a link of the forecast is: factors exp(bias + sigma N), drawn once by the seed. Draws
// are keyed by what they are about, so that a further job changes no other draw.
struct LinkError {
  double bias = 0, sigma = 0;
  bool any() const { return bias != 0 || sigma != 0; }
};

struct OracleErrors {
  std::uint64_t seed = 0;
  LinkError gain{};       // of the speed-up, by ordered pair of families
  LinkError steps{};      // of the steps left, by job
  LinkError step_time{};  // by job
  // Reads "error.gain", "error.steps", "error.step_time" = "bias:0.1,sigma:0.2" or a sigma alone.
  // False: the key is none of these.
  Result<bool> read(const std::string& key, const std::string& value);
};

struct OracleOptions {
  bool pairs = true;
  OracleErrors errors{};
  // Nothing is known of a job but what its owner declared: its budget of steps as its length, and
  // of every pair that may share this speed-up - 1.
  bool declared = false;
  double prior_gain = 0.1;
  int max_sources = 8;    // offered to one job, likewise mates; the best by transfer weight
  double strength = 0.5;  // of each temporal candidate
  Seconds start_time{2};  // what a start or a change costs
  // What is believed instead of the truth, by (source, target) and by (first, second).
  std::map<std::pair<JobId, JobId>, double> temporal{};
  std::map<std::pair<JobId, JobId>, SpatialTruth> spatial{};
};

class Oracle {
 public:
  // `truth` outlives the oracle.
  Oracle(const JobModel& truth, OracleOptions options);

  Forecast forecast(const Snapshot& now) const;
  std::vector<TransferOutlook> outlooks(const Snapshot& now) const;
  // Of the jobs in `merged`.
  std::vector<TransferSettled> settle(const Snapshot& now, const std::set<JobId>& merged) const;
  // The oracle outlives the results.
  Beliefs bind() const;
  // One link of an estimator's forecast as it truly is: similarity, gain, steps or step_time
  // (another name: none).
  KnownLinks link(std::string_view name) const;

 private:
  struct Position {  // where a job is now, as far as reports tell
    std::int64_t step = 0;
    double progress = 0;
  };
  struct Seen {  // an active job, looked at once a forecast
    const JobView* job = nullptr;
    const RunView* run = nullptr;
    double left = 0;   // steps alone
    double start = 0;  // seconds
    std::vector<int> sizes{};
    bool fresh = false;  // may still begin a merge
  };
  struct Peers {  // jobs of one backbone and family
    std::vector<const Seen*> active{};
    const JobView* done = nullptr;  // one that has succeeded, where families are alike
  };
  using Families = std::map<int, Peers>;
  struct Field {
    std::vector<Seen> active{};  // by id
    std::map<std::string_view, Families> backbones{};
  };
  // What bound beliefs remember of the log, so that nobody has to be looked at who ended long ago.
  struct Watch {
    std::set<JobId> merged{};     // with a transfer that is not settled
    std::map<int, JobId> done{};  // the first of each family to succeed
  };
  Forecast forecast(const Snapshot& now, const Watch* watch) const;
  Field look(const Snapshot& now, const Watch* watch) const;
  Seen seen(const Snapshot& now, const JobView& job, int largest) const;
  Position position(const Snapshot& now, const JobView& job) const;
  // Steps until the evaluation that meets the target, when progress grows by `rate` a step.
  double steps_left(JobId job, Position from, double rate) const;
  double alone_left(const Snapshot& now, const JobView& job) const;
  double step_seconds(JobId job, int gpus) const;
  double start_seconds(JobId job) const;
  double gain(JobId source, JobId target) const;
  SpatialTruth joint(JobId first, JobId second) const;
  Seconds lost_by(const Snapshot& now, const JobView& job, const Transfer& split) const;
  void add_alone(const Seen& job, Forecast& forecast) const;
  std::vector<Candidate> temporal(const Snapshot& now, const JobView& source, const Seen* running,
                                  const Seen& target) const;
  std::vector<Candidate> spatial(const Snapshot& now, const Seen& first, const Seen& second) const;
  void add_outlooks(const Snapshot& now, Forecast& forecast) const;
  void add_sources(const Snapshot& now, const Field& field, const Seen& target,
                   Forecast& forecast) const;
  void add_mates(const Snapshot& now, const Field& field, const Seen& first,
                 Forecast& forecast) const;
  double error_of_pair(int source, int target) const;
  double error_of_job(JobId job, int link, const LinkError& error) const;

  const JobModel& truth_;
  OracleOptions options_;
  bool by_family_ = false;                          // gains are those of families
  std::vector<std::vector<double>> pair_errors_{};  // factors of speed-ups, by family
};

}  // namespace ymir
