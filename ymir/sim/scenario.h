// Scenario: a test as data (tests/scenarios/*.scn): a cluster, jobs, what is believed of them, what
// is true, and what must come of it. The grammar, one statement a line, # to the end of the line is
// a comment:
//
//   cluster  nodes=2 gpus=4 policy=ymir round=120s start=2s profile=off max_faults=3
//   set      theta=1.2 pass.dominance=off                       settings of the policy
//   job      a at=0s backbone=vit steps=100 epoch=10 step=1s gpus=1..4 share=yes wait=120s
//   believe  a->b gain=+0.30        believe a+b gain=+0.2,+0.1 joint=1.2
//   truth    a->b gain=-0.05        truth   a+b gain=-0.1,+0.0 joint=1.3
//   at       100s cancel b | hold b | release b | kill b | lose node1 [until 300s] | restart
//   faults   seed=3 lose=0.1 delay=0.2 double=0.1 slow=0.2 decision=30s
//   expect   b: Submitted Profiled Started(temporal,a) Evaluated Split Started(normal) Finished
//   expect   b.steps_lost == 0   a.finished before 400s   log.same_twice
//
// With span=yes on the cluster line one run may span several nodes. A policy that knows no
// estimator (ymir:no-estimator) believes what was declared. What is believed is the truth, except
// where a believe line says otherwise; `beliefs=estimator` on the cluster line asks the real
// estimator instead. The words after `expect JOB:` must appear in that order, others may stand
// between. At the end of every run the invariants of check_invariants() hold, expected or not.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ymir/control/controller.h"
#include "ymir/sim/faulty_world.h"
#include "ymir/sim/oracle.h"
#include "ymir/sim/sim_world.h"

namespace ymir {

struct ScenarioJob {
  std::string name{};
  Time at{};
  JobSpec spec{};
  JobTruth truth{};
};

struct ScenarioAction {
  enum class Kind { kCancel, kHold, kRelease, kKill, kLose, kRestart } kind = Kind::kCancel;
  Time at{};
  JobId job{};
  int node = 0;
  Time until = kNever;
};

// One thing that must be so. `subject` is a job's name, "log" or "rounds".
struct Expectation {
  int line = 0;
  std::string text{};  // as written
  std::string subject{}, field{};
  std::string op{};  // == != < <= > >= before after; empty: a flag
  std::string value{};
  std::vector<std::string> trail{};  // when not empty: these words in this order
};

struct Scenario {
  std::string name{};
  SimOptions cluster{};
  std::string policy = "ymir";
  std::map<std::string, std::string> settings{};
  ControllerOptions controller{};
  bool real_estimator = false;
  std::vector<ScenarioJob> jobs{};  // ids in this order, from 1
  OracleOptions beliefs{};
  std::map<std::pair<JobId, JobId>, double> temporal{};
  std::map<std::pair<JobId, JobId>, SpatialTruth> spatial{};
  // The same by families of jobs, where the lines above say nothing.
  std::map<std::pair<std::string, std::string>, double> family_temporal{};
  std::map<std::pair<std::string, std::string>, SpatialTruth> family_spatial{};
  std::vector<ScenarioAction> actions{};
  FaultOptions faults{};
  bool faulty = false;
  std::vector<Expectation> expectations{};
  std::function<void(const Event&)> watch{};  // hears every event of the log, in its order
  // Off: only `watch` has the log, which for thousands of jobs is most of the memory of a run. A
  // scenario that restarts its controller keeps it.
  bool keep_log = true;
};

// Errors name file:line. At most 1 MiB, 10,000 lines and 10,000 jobs.
Result<Scenario> parse_scenario(const std::string& name, const std::string& text);

// Makes the beliefs of a scenario with beliefs=estimator; called anew for each controller.
using MakeBeliefs = std::function<Beliefs()>;

struct ScenarioRun {
  std::vector<Event> log{};  // empty when it is not kept
  Snapshot state{};
  std::map<std::string, std::int64_t> counts{};  // lost_requests, steps_lost, controllers, ...
  std::vector<double> solve_ms{};                // measured, by round; not in the log above
};

JobModel model_of(const Scenario& scenario);

Result<ScenarioRun> run_scenario(const Scenario& scenario, const MakeBeliefs& estimator = {});

// The words of a job's life, for `expect JOB:` and for reading failures.
std::vector<std::string> trail_of(const Scenario& scenario, const ScenarioRun& run, JobId job);

// What is wrong, one line each; empty: all as expected. Invariants first: every job ended exactly
// once and holds nothing afterwards, no slot was used twice at a time, times do not fall, and the
// log folds to the state that the controller had.
std::vector<std::string> check_invariants(const Scenario& scenario, const ScenarioRun& run);
std::vector<std::string> check_expectations(const Scenario& scenario, const ScenarioRun& run,
                                            const ScenarioRun& again);

}  // namespace ymir
