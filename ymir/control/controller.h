// Controller: the one loop. It hears what happened, writes it down, judges
// running transfers, holds rounds, and starts and stops runs until reality is what the newest plan
// wants. The daemon runs it over a live cluster, the simulator over a model of one.
//
// Guarantees: an event is durable before anybody outside sees its effect; a request to the world
// leaves only after its intent is in the log; a run starts only on slots that are free. Crash-only:
// a new controller over the same log closes the runs of the old one and goes on from the newest
// checkpoints. run() belongs to one thread; submit, cancel, hold, release, snapshot and progress
// may be called from any other.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/control/beliefs.h"
#include "ymir/control/controller_options.h"
#include "ymir/control/profiling.h"
#include "ymir/control/world.h"
#include "ymir/core/snapshot.h"
#include "ymir/schedule/policy.h"
#include "ymir/store/event_log.h"

namespace ymir {

class Controller {
 public:
  // Replays `log`, then appends DaemonStarted, RunLost of each run that was under way and PlaceLost
  // of each place. `world`, `log` and `policy` outlive the controller.
  static Result<std::unique_ptr<Controller>> create(ControllerOptions options, World& world,
                                                    EventLog& log, const Policy& policy,
                                                    Beliefs beliefs);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Until `stop`, or until the world is finished. An error is fatal: the log could not be written,
  // or the policy broke its contract.
  Result<> run(std::stop_token stop = {});

  // Commands wait until run() has made them durable; kUnavailable once it has ended, kConflict when
  // the state does not allow them ("j3 has already ended"), kNotFound for an unknown job. All
  // `specs` of one call are one transaction.
  Result<std::vector<JobId>> submit(std::vector<JobSpec> specs, bool held = false);
  Result<> cancel(JobId job, const std::string& actor = "user");
  Result<> hold(JobId job, const std::string& actor = "user");
  Result<> release(JobId job, const std::string& actor = "user");

  // As of the newest durable event; never null.
  std::shared_ptr<const Snapshot> snapshot() const;
  std::vector<StepReport> progress() const { return world_.progress(); }

  // For the thread of run(), and for others after it has ended.
  const Snapshot& state() const { return state_; }
  Snapshot take_state() && { return std::move(state_); }  // last of all
  // Reports that were dropped because the state does not allow them: late, doubled, or false.
  std::uint64_t num_refused() const { return num_refused_; }

 private:
  struct Command;
  using Versions = std::vector<std::pair<JobId, std::uint64_t>>;  // of active jobs, by id
  Controller(ControllerOptions options, World& world, EventLog& log, const Policy& policy,
             Beliefs beliefs);

  // The stages of the loop; each leaves its events and requests to flush().
  Result<> loop(const std::stop_token& stop);
  void close_the_past();
  Result<> hear(std::vector<Event> reports);
  Result<> obey();
  void grant_profiles();
  void judge_transfers();
  Result<> hold_round();
  void reconcile();

  // note() changes the state and queues the event; flush() makes all that is queued durable in one
  // transaction, publishes it, and only then lets the requests out.
  void note(EventBody body, const std::string& actor = "controller", Time at = {});
  template <class Body>
  void take_note(const Body& body);
  Result<> flush();
  void close_commands();

  // Parts of the stages.
  void hear_one(Event& report);  // moves the body out
  bool credible(const EventBody& body) const;
  void follow_up();  // of the event noted last
  Result<std::vector<JobId>> carry_out(const Command& command);
  Result<std::vector<JobId>> ask(Command command);
  bool round_is_due() const;
  PlanAdopted adopt(Plan plan, const Versions& seen, std::uint64_t based_on) const;
  void check_data();
  void stop_runs();
  void watch_starts();
  void start_due();
  void start(const Assignment& what, bool profile, std::int64_t profile_steps,
             const std::vector<Estimator::ProbeWish>& probes);
  Assignment lawful(Assignment what) const;
  StartRun order_for(const RunView& run) const;
  std::vector<Estimator::ProbeWish> probes_for(const JobView& job) const;
  int spare_slots() const;
  Time may_start_at(const JobView& job) const;
  Time next_wakeup() const;
  Time when_to_look_again() const;
  bool may_learn(const JobView& from, const JobView& to, Mode mode) const;

  struct Sent {  // a request under way
    Time at{};
    int times = 0;
  };
  struct Starting {  // asked for, and not begun so far
    StartRun order{};
    Time requested{};
    Sent sent{};
  };

  ControllerOptions options_;
  World& world_;
  EventLog& log_;
  const Policy& policy_;
  Beliefs beliefs_;
  Snapshot state_;
  ProfileQuota quota_;
  std::vector<Event> pending_{};      // applied, not durable yet
  std::vector<Action> outbox_{};      // wait for pending_
  std::vector<Starting> starting_{};  // by run
  std::map<RunId, Sent> stops_sent_{};
  std::map<JobId, Sent> checks_sent_{};
  std::set<std::pair<JobId, JobId>> probed_{};  // target and source, by a run of their own
  int probe_runs_ = 0;                          // since the newest plan
  Time next_round_{};
  bool round_wanted_ = false, evaluated_ = false, settle_ = false;
  // reconcile() has nothing to do until something happened that it acts on, or this moment.
  bool changed_ = true, submitted_ = false;  // a new job is in no plan: only its data are checked
  Time look_again_{};
  std::set<JobId> unchecked_{};  // open, and their data are not known yet
  std::set<JobId> unlucky_{};    // open, with runs that were lost
  std::uint64_t num_refused_ = 0;

  mutable std::mutex mutex_{};  // guards what stands below
  std::deque<std::unique_ptr<Command>> commands_{};
  bool ended_ = false;
  std::shared_ptr<const Snapshot> published_{};
};

}  // namespace ymir
