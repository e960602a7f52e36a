#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ymir/base/text.h"
#include "ymir/core/codec.h"
#include "ymir/sim/scenario.h"

namespace ymir {

namespace {

std::string name_of(const Scenario& scenario, JobId job) {
  return job && job.value <= scenario.jobs.size() ? scenario.jobs[job.value - 1].name
                                                  : to_string(job);
}

JobId id_of(const Scenario& scenario, const std::string& name) {
  for (std::size_t i = 0; i < scenario.jobs.size(); ++i)
    if (scenario.jobs[i].name == name) return JobId{i + 1};
  return {};
}

// --- a job's life in words --------------------------------------------------------------------

class Trail {
 public:
  Trail(const Scenario& scenario, JobId job) : scenario_(scenario), job_(job) {}

  void see(const Event& event) {
    std::visit([this](const auto& body) { add(body); }, event.body);
  }
  std::vector<std::string> take() && { return std::move(words_); }

 private:
  template <class T>
  void add(const T&) {}  // says nothing about a job's life
  void add(const JobSubmitted& e) { say(e.job, "Submitted"); }
  void add(const DataChecked& e) { say(e.job, "Checked"); }
  void add(const JobHeld& e) { say(e.job, "Held"); }
  void add(const JobReleased& e) { say(e.job, "Released"); }
  void add(const ProfileFinished& e) { say(e.job, "Profiled"); }
  void add(const ProfileFailed& e) { say(e.job, "ProfileFailed"); }
  void add(const EpochEvaluated& e) { say(e.job, "Evaluated"); }
  void add(const RunKept& e) { say(e.job, "Kept"); }
  void add(const RunSplit& e) {
    say(e.job, "Split");
    if (e.restart) say(e.job, "GoesBack");
    say(e.partner, "Split");
  }
  void add(const RunRequested& e) {
    if (std::ranges::count(e.jobs, job_)) runs_[e.run] = e;
  }
  void add(const RunStarted& e) {
    if (const auto run = runs_.find(e.run); run != runs_.end()) words_.push_back(how(run->second));
  }
  void add(const RunStopped& e) {
    if (runs_.erase(e.run)) words_.push_back("Stopped(" + e.why + ")");
  }
  void add(const RunLost& e) {
    if (runs_.erase(e.run)) words_.push_back("Lost(" + e.why + ")");
  }
  void add(const JobFinished& e) {
    say(e.job, e.outcome == Outcome::kSucceeded ? "Finished"
               : e.outcome == Outcome::kFailed  ? "Failed(" + e.code + ")"
                                                : "Cancelled");
  }
  void say(JobId job, const std::string& word) {
    if (job == job_) words_.push_back(word);
  }
  std::string how(const RunRequested& run) const {
    if (run.profile) return "Profiling";
    if (run.what.mode == Mode::kNormal) return "Started(normal)";
    const JobId other = run.what.job == job_ ? run.what.partner.value_or(JobId{}) : run.what.job;
    return fmt::format("Started({},{})", to_string(run.what.mode), name_of(scenario_, other));
  }

  const Scenario& scenario_;
  JobId job_;
  std::map<RunId, RunRequested> runs_;
  std::vector<std::string> words_;
};

// Index of the first word that is not found in its place, or nothing.
std::optional<std::size_t> first_missing(const std::vector<std::string>& wanted,
                                         const std::vector<std::string>& seen) {
  auto from = seen.begin();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    from = std::find(from, seen.end(), wanted[i]);
    if (from == seen.end()) return i;
    ++from;
  }
  return std::nullopt;
}

// --- invariants -------------------------------------------------------------------------------

// Own account of jobs and slots: shares no code with the fold that it checks.
class Account {
 public:
  explicit Account(std::vector<std::string>& faults) : faults_(faults) {}

  void see(const Event& event) {
    if (event.at < last_) fault(event, "time falls");
    last_ = event.at;
    if (const auto* e = std::get_if<RunRequested>(&event.body)) take(event, *e);
    if (const auto* e = std::get_if<RunStopped>(&event.body)) release(event, e->run);
    if (const auto* e = std::get_if<RunLost>(&event.body)) release(event, e->run);
    if (const auto* e = std::get_if<JobFinished>(&event.body))
      if (!ended_.insert(e->job).second) fault(event, to_string(e->job) + " ends twice");
    if (const auto* e = std::get_if<EpochEvaluated>(&event.body))
      if (ended_.contains(e->job)) fault(event, to_string(e->job) + " trains after its end");
  }
  void end(const Snapshot& state) {
    for (const auto& [id, job] : state.jobs)
      if (!ended_.contains(id))
        faults_.push_back(fmt::format("{} never ends: {} {}", to_string(id), to_string(job.state),
                                      job.waiting_for));
    if (!slots_.empty()) faults_.push_back("slots are held at the end");
  }

 private:
  void take(const Event& event, const RunRequested& run) {
    for (const JobId job : run.jobs)
      if (ended_.contains(job)) fault(event, to_string(job) + " starts after its end");
    for (const int slot : run.slots) {
      const auto [held, fresh] = slots_.emplace(std::pair{run.place, slot}, run.run);
      if (!fresh) fault(event, fmt::format("slot {} is held by {}", slot, to_string(held->second)));
    }
  }
  void release(const Event& event, RunId run) {
    const auto held = std::erase_if(slots_, [&](const auto& entry) { return entry.second == run; });
    if (held == 0) fault(event, to_string(run) + " ends without slots");
  }
  void fault(const Event& event, const std::string& what) {
    faults_.push_back(
        fmt::format("event {} at {:.3f}s: {}", event.seq, to_seconds(event.at), what));
  }

  std::vector<std::string>& faults_;
  Time last_{};
  std::set<JobId> ended_;
  std::map<std::pair<PlaceId, int>, RunId> slots_;
};

// --- expectations -----------------------------------------------------------------------------

class Judge {
 public:
  Judge(const Scenario& scenario, const ScenarioRun& run, const ScenarioRun& again)
      : scenario_(scenario), run_(run), again_(again) {}

  // What is wrong with it, or nothing.
  std::string judge(const Expectation& expected) const {
    if (!expected.trail.empty()) return judge_trail(expected);
    const std::optional<std::string> value = value_of(expected);
    if (!value) return "unknown field";
    if (expected.op.empty()) return *value == "yes" ? "" : "is " + *value;
    std::optional<double> wanted = parse_double(expected.value), seen = parse_double(*value);
    std::string wanted_text = expected.value;
    if (!wanted && wanted_text.ends_with("s"))
      wanted = parse_double(std::string_view(wanted_text).substr(0, wanted_text.size() - 1));
    if (!wanted && (expected.op == "before" || expected.op == "after")) {
      const JobId other = id_of(scenario_, wanted_text.substr(0, wanted_text.find('.')));
      if (other) wanted = finish_of(other);
    }
    const bool equal = wanted && seen ? *wanted == *seen : *value == wanted_text;
    const bool both = wanted && seen;
    const bool holds = expected.op == "=="                             ? equal
                       : expected.op == "!="                           ? !equal
                       : !both                                         ? false
                       : expected.op == "<" || expected.op == "before" ? *seen < *wanted
                       : expected.op == "<="                           ? *seen <= *wanted
                       : expected.op == ">" || expected.op == "after"  ? *seen > *wanted
                                                                       : *seen >= *wanted;
    return holds ? "" : "is " + *value;
  }

 private:
  std::string judge_trail(const Expectation& expected) const {
    const std::vector<std::string> seen =
        trail_of(scenario_, run_, id_of(scenario_, expected.subject));
    const auto missing = first_missing(expected.trail, seen);
    if (!missing) return "";
    return fmt::format("{} is missing in: {}", expected.trail[*missing], join(seen, " "));
  }

  double finish_of(JobId job) const {
    const auto found = run_.state.jobs.find(job);
    if (found == run_.state.jobs.end() || !found->second.finished) return 1e18;
    return to_seconds(*found->second.finished);
  }

  template <class Keep>
  static std::int64_t count(const ScenarioRun& run, Keep keep) {
    return std::ranges::count_if(run.log, keep);
  }

  std::optional<std::string> value_of(const Expectation& expected) const {
    const auto yes = [](bool holds) { return std::string(holds ? "yes" : "no"); };
    if (expected.subject == "log") {
      if (expected.field == "same_twice") return yes(same_twice());
      if (const auto found = run_.counts.find(expected.field); found != run_.counts.end())
        return std::to_string(found->second);
      return std::nullopt;
    }
    if (expected.subject == "rounds") return of_rounds(expected.field);
    return of_job(id_of(scenario_, expected.subject), expected.field);
  }

  bool same_twice() const {
    return std::ranges::equal(
        run_.log, again_.log, {}, [](const Event& e) { return encode_line(e); },
        [](const Event& e) { return encode_line(e); });
  }

  std::optional<std::string> of_rounds(const std::string& field) const {
    std::int64_t rounds = 0, proved = 0, pairs = 0;
    for (const Event& event : run_.log)
      if (const auto* e = std::get_if<PlanAdopted>(&event.body)) {
        ++rounds;
        proved += e->plan.proof == "optimal" ? 1 : 0;
        for (const PlannedAssignment& line : e->plan.assignments)
          pairs += line.what.partner ? 1 : 0;
      }
    if (field == "count") return std::to_string(rounds);
    if (field == "unproved") return std::to_string(rounds - proved);
    if (field == "pairs") return std::to_string(pairs);
    return std::nullopt;
  }

  std::optional<std::string> of_job(JobId id, const std::string& field) const {
    const auto found = run_.state.jobs.find(id);
    if (found == run_.state.jobs.end()) return std::nullopt;
    const JobView& job = found->second;
    if (field == "state") return to_string(job.state);
    if (field == "finished") return fmt::format("{:.6f}", finish_of(id));
    if (field == "starts") return std::to_string(job.starts);
    if (field == "faults") return std::to_string(job.faults);
    if (field == "steps") return std::to_string(job.result ? job.result->step : job.steps_done);
    if (field == "steps_lost")
      return std::to_string(run_.counts.at("steps_lost " + name_of(scenario_, id)));
    if (field == "waited") return fmt::format("{:.3f}", job.waited.count());
    if (field == "transfers") return std::to_string(job.transfers.size());
    if (field == "target_reached")
      return std::string(job.result && job.result->target_reached ? "yes" : "no");
    if (field == "partner")
      return job.transfers.empty() ? "none" : name_of(scenario_, job.transfers.back().partner);
    if (field == "epochs_merged") {
      std::size_t epochs = 0;
      for (const Transfer& transfer : job.transfers) epochs += transfer.evaluations.size();
      return std::to_string(epochs);
    }
    if (field == "largest") {  // GPUs of its largest run
      int most = 0;
      for (const Event& event : run_.log)
        if (const auto* e = std::get_if<RunRequested>(&event.body))
          if (!e->profile && std::ranges::count(e->jobs, id)) most = std::max(most, e->what.gpus);
      return std::to_string(most);
    }
    return std::nullopt;
  }

  const Scenario& scenario_;
  const ScenarioRun& run_;
  const ScenarioRun& again_;
};

}  // namespace

std::vector<std::string> trail_of(const Scenario& scenario, const ScenarioRun& run, JobId job) {
  Trail trail(scenario, job);
  for (const Event& event : run.log) trail.see(event);
  return std::move(trail).take();
}

std::vector<std::string> check_invariants(const Scenario& scenario, const ScenarioRun& run) {
  std::vector<std::string> faults;
  Account account(faults);
  Snapshot folded;
  bool sound = true;
  for (const Event& event : run.log) {
    account.see(event);
    const bool next = event.seq == folded.seq + 1;
    if (next && folded.allows(event.body)) {
      folded.apply(event);
    } else if (sound) {
      faults.push_back(fmt::format("event {} may not stand there", event.seq));
      sound = false;
    }
  }
  account.end(run.state);
  if (folded.jobs.size() != scenario.jobs.size())
    faults.push_back(fmt::format("{} jobs of {} came", folded.jobs.size(), scenario.jobs.size()));
  // The wish carries measured times, which are no part of the state that must be equal.
  Snapshot held = run.state;
  if (held.wish) held.wish->pass_ms.clear();
  if (encode(folded) != encode(held)) faults.push_back("the log folds to another state");
  return faults;
}

std::vector<std::string> check_expectations(const Scenario& scenario, const ScenarioRun& run,
                                            const ScenarioRun& again) {
  std::vector<std::string> faults;
  const Judge judge(scenario, run, again);
  for (const Expectation& expected : scenario.expectations)
    if (const std::string fault = judge.judge(expected); !fault.empty())
      faults.push_back(fmt::format("{}:{}: expected {}: {}", scenario.name, expected.line,
                                   expected.text, fault));
  return faults;
}

}  // namespace ymir
