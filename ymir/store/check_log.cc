#include "ymir/store/check_log.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "ymir/base/hash.h"
#include "ymir/store/rows.h"
#include "ymir/store/sqlite_log.h"

namespace ymir {
namespace {

constexpr std::size_t kPage = 1000;

// The checker's own books, kept from the events alone.
class Auditor {
 public:
  explicit Auditor(LogReport& report) : report_(report) {}

  void take(const Event& event) {
    ++report_.events;
    seq_ = event.seq;
    if (event.seq != state_.seq + 1) {
      fault(fmt::format("follows event {}", state_.seq));
      folds_ = false;
    }
    if (event.at < last_at_) fault("is older than the event before it");
    last_at_ = event.at;
    std::visit([&](const auto& e) { book(e); }, event.body);
    fold(event);
  }

  void finish() {
    for (const auto& [run, slots] : held_)
      if (folds_ && !state_.runs.contains(run)) fault(to_string(run) + " still holds slots");
    for (const auto& [id, job] : state_.jobs)
      if (!job.ended() && job.checkpoint) verify(*job.checkpoint, id);
  }

 private:
  void fault(std::string text) {
    if (report_.faults.size() < kMaxFaults) report_.faults.push_back({seq_, std::move(text)});
  }

  template <class E>
  void book(const E&) {}
  void book(const JobSubmitted&) { ++report_.jobs; }
  void book(const JobFinished& e) {
    ++report_.ended;
    if (!ended_.insert(e.job).second) fault(to_string(e.job) + " ends a second time");
  }
  void book(const PlanAdopted& e) {
    ++report_.rounds;
    for (const PlannedAssignment& line : e.plan.assignments) {
      const bool from_finished = line.what.mode == Mode::kTemporal;
      if (ended_.contains(line.what.job)) fault("plan holds ended " + to_string(line.what.job));
      if (line.what.partner && !from_finished && ended_.contains(*line.what.partner))
        fault("plan holds ended " + to_string(*line.what.partner));
    }
  }
  void book(const FlowAuthorised& e) {
    ++report_.flows;
    flows_.insert({e.run, e.from, e.to});
  }
  void book(const RunRequested& e) {
    ++report_.runs;
    if (e.run <= newest_run_) fault(to_string(e.run) + " is not newer than the run before");
    newest_run_ = e.run;
    for (const int slot : e.slots)
      if (!taken_.insert({e.place, slot}).second)
        fault(fmt::format("slot {} of {} is taken twice", slot, to_string(e.place)));
    for (const JobId job : e.jobs)
      if (ended_.contains(job)) fault("run of ended " + to_string(job));
    held_[e.run] = {e.place, e.slots};
    requested_[e.run] = e;
  }
  // Before a run begins to learn from a partner, the flow must be on record.
  void book(const RunStarted& e) {
    const auto found = requested_.find(e.run);
    if (found == requested_.end()) return fault(to_string(e.run) + " starts, nobody asked for it");
    const RunRequested& run = found->second;
    if (run.profile || run.what.mode == Mode::kNormal || !run.what.partner) return;
    for (std::size_t i = 0; i < run.jobs.size() && i < run.from_steps.size(); ++i) {
      const JobId from = run.jobs.size() == 2 ? run.jobs[1 - i] : *run.what.partner;
      const bool begins = run.from_steps[i] == 0 || run.what.mode == Mode::kSpatial;
      if (begins && !flows_.contains({e.run, from, run.jobs[i]}))
        fault(fmt::format("{} learns from {} without a flow on record", to_string(run.jobs[i]),
                          to_string(from)));
    }
  }
  void book(const RunStopped& e) { release(e.run); }
  void book(const RunLost& e) { release(e.run); }
  void release(RunId run) {
    const auto found = held_.find(run);
    if (found == held_.end()) return fault(to_string(run) + " ends, but holds nothing");
    for (const int slot : found->second.second) taken_.erase({found->second.first, slot});
    held_.erase(found);
    requested_.erase(run);
  }

  void fold(const Event& event) {
    if (!folds_) return;
    if (const Result<> allowed = state_.allows(event.body); !allowed) {
      fault(allowed.error().message);
      folds_ = false;  // what follows would be judged by a wrong state
      return;
    }
    state_.apply(event);
    for (const JobId id : jobs_of(event.body)) check(id);
    if (const RunId run = run_of(event.body))
      if (const auto view = state_.runs.find(run); view != state_.runs.end())
        for (const JobId id : view->second.jobs) check(id);
    if (state_.free_gpus() < 0) fault("more slots are taken than exist");
  }
  void check(JobId id) {
    const auto found = state_.jobs.find(id);
    if (found == state_.jobs.end()) return;
    const JobView& job = found->second;
    int& rank = ranks_[id];
    if (rank_of(job) < rank)
      fault(fmt::format("state of {} falls to {}", to_string(id), to_string(job.state)));
    rank = rank_of(job);
    if (!job.ended()) return;
    if (job.run) fault(to_string(id) + " has ended and still runs");
    const auto [charge, first] = charges_.emplace(id, job.busy);
    if (!first && charge->second != job.busy) fault(to_string(id) + " is charged after its end");
  }

  void verify(const Checkpoint& checkpoint, JobId job) {
    if (checkpoint.path.empty() || checkpoint.hash.empty()) return;
    const std::string file = checkpoint.path + "/state.json";
    std::error_code error;
    if (!std::filesystem::exists(file, error)) {
      ++report_.checkpoints_gone;
      return;
    }
    const auto hash = sha256_file(file);
    if (hash && *hash == checkpoint.hash) {
      ++report_.checkpoints_verified;
    } else {
      fault(fmt::format("checkpoint of {} at step {} is not what the log names: {}", to_string(job),
                        checkpoint.step, file));
    }
  }

  LogReport& report_;
  Snapshot state_{};
  bool folds_ = true;
  std::uint64_t seq_ = 0;
  Time last_at_ = Time::min();
  RunId newest_run_{};
  std::set<JobId> ended_{};
  std::set<std::pair<PlaceId, int>> taken_{};
  std::map<RunId, std::pair<PlaceId, std::vector<int>>> held_{};
  std::map<RunId, RunRequested> requested_{};
  std::set<std::tuple<RunId, JobId, JobId>> flows_{};
  std::map<JobId, int> ranks_{};
  std::map<JobId, Seconds> charges_{};
};

}  // namespace

Result<LogReport> check_log(const EventLog& log) {
  LogReport report;
  Auditor auditor(report);
  for (std::uint64_t next = 1;;) {
    YMIR_TRY_ASSIGN(const std::vector<Event> events, log.read(next, kPage));
    for (const Event& event : events) auditor.take(event);
    if (events.size() < kPage) break;
    next = events.back().seq + 1;
  }
  auditor.finish();
  report.head = log.head_hash();
  return report;
}

Result<LogReport> check_log(const std::string& path) {
  YMIR_TRY_ASSIGN(const std::unique_ptr<SqliteLog> log, SqliteLog::open(path, false));
  LogReport report;
  Auditor auditor(report);
  // One damaged row is told once: the chain goes on from the hash that is written.
  std::string head;
  for (std::uint64_t next = 1;;) {
    YMIR_TRY_ASSIGN(const std::vector<LogRow> rows, log->read_rows(next, kPage));
    for (const LogRow& row : rows) {
      if (row.hash != hash_of(row, head) && report.faults.size() < kMaxFaults)
        report.faults.push_back({row.seq, "does not have the hash written with it"});
      head = row.hash;
      if (Result<Event> event = to_event(row)) {
        auditor.take(*event);
      } else if (report.faults.size() < kMaxFaults) {
        report.faults.push_back({row.seq, event.error().message});
      }
    }
    if (rows.size() < kPage) break;
    next = rows.back().seq + 1;
  }
  auditor.finish();
  if (report.sound())
    if (const Result<> verified = log->verify(); !verified)
      report.faults.push_back({0, verified.error().message});
  report.head = head;
  return report;
}

}  // namespace ymir
