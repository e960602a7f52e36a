#include <fmt/format.h>

#include <algorithm>

#include "ymir/base/text.h"
#include "ymir/sim/metrics/record.h"

namespace ymir {
namespace {

Micro micro(Time time) { return time.time_since_epoch().count(); }
int index_of(JobId job) { return static_cast<int>(job.value) - 1; }

JobRecord job_record(const JobView& job, const WorkloadJob& given, const Workload& workload) {
  JobRecord record{.name = given.name,
                   .backbone = given.backbone,
                   .dataset = given.task,
                   .submission_s = to_seconds(job.submitted)};
  if (job.first_started) {
    record.first_start_s = to_seconds(*job.first_started);
    record.first_wait_s = std::max(0.0, *record.first_start_s - record.submission_s);
  }
  if (job.finished) record.completion_s = to_seconds(*job.finished);
  // A job that named no target has done what it was to do.
  record.finished = job.state == JobState::kSucceeded && job.result &&
                    (job.result->target_reached || job.spec.target.metric.empty());
  record.queueing_s = job.waited.count();
  record.first_wait_s = std::min(record.first_wait_s, record.queueing_s);
  record.gpu_seconds = job.busy.count();
  record.restarts = std::max(0, job.starts - 1);
  record.requested_gpus = given.gpus;
  record.merged = !job.transfers.empty();
  for (const Transfer& transfer : job.transfers) {
    record.partner = workload.jobs[transfer.partner.value - 1].name;
    record.predicted_gain = transfer.card.speedup.p50 - 1;
    record.actual_gain = transfer.settled && !transfer.settled->censored
                             ? std::optional(transfer.settled->actual - 1)
                             : std::nullopt;
    record.rolled_back |= transfer.verdict == Transfer::Verdict::kSplit;
    if (transfer.settled && transfer.verdict == Transfer::Verdict::kSplit)
      record.extra_jct_s += transfer.settled->extra.count();
  }
  return record;
}

const char* verdict_of(const Transfer& transfer) {
  return transfer.verdict == Transfer::Verdict::kSplit  ? "split"
         : transfer.verdict == Transfer::Verdict::kKept ? "kept"
                                                        : "open";
}

// The mode and size of each job's newest training run; the start and end of its merges.
void add_from_holds(RunRecord& record) {
  for (const Hold& hold : record.holds) {
    if (hold.profile) continue;
    for (const int job : hold.jobs) {
      JobRecord& of = record.jobs[static_cast<std::size_t>(job)];
      of.mode = to_string(hold.mode);
      of.last_gpus = static_cast<int>(hold.gpus.size());
    }
  }
}

}  // namespace

// Reads a log once, from its first event to its last.
class LogRecord::Reader {
 public:
  void see(const Event& event) {
    at_ = micro(event.at);
    std::visit([this](const auto& body) { add(body); }, event.body);
  }
  RunRecord end(const Snapshot& state, const Workload& workload, bool goes_on) {
    for (const auto& [id, job] : state.jobs)
      record_.jobs.push_back(job_record(job, workload.jobs[id.value - 1], workload));
    end_runs(goes_on);
    add_from_holds(record_);
    for (const auto& [id, job] : state.jobs)
      for (const Transfer& transfer : job.transfers) record_.merges.push_back(merge(id, transfer));
    std::ranges::stable_sort(record_.merges, {}, &Merge::decided);
    return std::move(record_);
  }

 private:
  void end_runs(bool goes_on) {
    while (goes_on && !open_.empty()) close(open_.begin()->first, "", false);
    for (const auto& [run, open] : open_)
      record_.faults.push_back(fmt::format("R4: run {} is still there at the end", run.value));
    const bool alike = next_base_ == record_.gpus_per_node * static_cast<int>(nodes_.size());
    record_.nodes = alike ? static_cast<int>(nodes_.size()) : next_base_;
    if (!alike) record_.gpus_per_node = 1;
    for (std::size_t i = 0; i < reasons_.size(); ++i) note_reason(i);
    std::ranges::stable_sort(record_.holds, {}, &Hold::from);
  }
  Merge merge(JobId id, const Transfer& transfer) {
    const auto [from, gpus] = requested_[transfer.run];
    Merge merge{.job = index_of(id),
                .partner = index_of(transfer.partner),
                .mode = transfer.mode,
                .decided = from,
                .from = from,
                .gpus = gpus,
                .transfer_weight = transfer.card.transfer_weight,
                .predicted_gain = transfer.card.speedup.p50 - 1,
                .verdict = verdict_of(transfer),
                .why = transfer.why};
    const auto decided = decided_.find({id, transfer.partner, transfer.mode});
    if (decided != decided_.end()) merge.decided = std::min(from, decided->second);
    if (const auto split = split_at_.find({transfer.run, id}); split != split_at_.end())
      merge.split = split->second;
    if (transfer.settled) merge.extra_s = transfer.settled->extra.count();
    if (transfer.settled && !transfer.settled->censored)
      merge.actual_gain = transfer.settled->actual - 1;
    return merge;
  }

  struct Open {
    Hold hold{};
    std::optional<Micro> ready{};
    Micro committed = 0;  // newest committed work
  };

  template <class T>
  void add(const T&) {}  // says nothing about GPUs
  void add(const PlaceReady& e) {
    // A node that comes back has the GPUs that it had, unless it comes with more.
    auto node = std::ranges::find_if(nodes_, [&](const Node& known) {
      return !known.place && known.name == e.node && known.gpus >= e.num_slots;
    });
    if (node == nodes_.end()) {
      node = nodes_.insert(nodes_.end(), {.name = e.node, .base = next_base_, .gpus = e.num_slots});
      next_base_ += e.num_slots;
    }
    node->place = e.place;
    record_.gpus_per_node = std::max(record_.gpus_per_node, e.num_slots);
    place_[e.place] = node->base;
  }
  void add(const PlaceLost& e) {
    const auto node = std::ranges::find(nodes_, e.place, &Node::place);
    if (node != nodes_.end()) node->place = {};
  }
  void add(const JobSubmitted& e) {
    reasons_.resize(std::max<std::size_t>(reasons_.size(), e.job.value));
    active_ += 1;
  }
  void add(const JobFinished&) { active_ -= 1; }
  void add(const DataChecked& e) { checked_[e.job] = at_; }
  void add(const PlanAdopted& e) {
    RoundRecord round{.round = e.round,
                      .at_s = static_cast<double>(at_) / 1e6,
                      .active = active_,
                      .wanted = static_cast<int>(e.plan.assignments.size()),
                      .value = e.plan.value,
                      .bound = e.plan.bound,
                      .proof = e.plan.proof};
    std::vector<Assignment> wanted;  // a plan's lines are in the order of their jobs
    wanted.reserve(e.plan.assignments.size());
    auto before = wanted_.begin();
    for (const PlannedAssignment& line : e.plan.assignments) {
      wanted.push_back(line.what);
      for (; before != wanted_.end() && before->job < line.what.job; ++before) ++round.changes;
      const bool was_there = before != wanted_.end() && before->job == line.what.job;
      if (!was_there || *before != line.what) ++round.changes;
      if (was_there) ++before;
      if (line.what.mode != Mode::kNormal && line.what.partner)
        decided_.try_emplace({line.what.job, *line.what.partner, line.what.mode}, at_);
    }
    round.changes += static_cast<int>(wanted_.end() - before);
    for (const Plan::Waiting& waiting : e.plan.waiting) {
      const std::string code(split(waiting.reason, ' ').front());
      if (waiting.job.value <= reasons_.size()) ++reasons_[waiting.job.value - 1][code];
    }
    wanted_ = std::move(wanted);
    record_.rounds.push_back(std::move(round));
  }
  void add(const RunRequested& e) {
    Open open{.hold = {.from = at_, .mode = e.what.mode, .profile = e.profile}};
    const auto base = place_.find(e.place);
    if (base == place_.end())
      record_.faults.push_back(fmt::format("run {} on a place that is not there", e.run.value));
    for (const int slot : e.slots)
      open.hold.gpus.push_back(slot + (base == place_.end() ? 0 : base->second));
    for (const JobId job : e.jobs) open.hold.jobs.push_back(index_of(job));
    if (e.what.partner) open.hold.partner = index_of(*e.what.partner);
    open_[e.run] = std::move(open);
    requested_[e.run] = {at_, static_cast<int>(e.slots.size())};
    if (!e.profile) return;
    if (const auto since = checked_.find(e.jobs.front()); since != checked_.end()) {
      record_.profile_wait_s += static_cast<double>(at_ - since->second) / 1e6;
      checked_.erase(since);
    }
  }
  void add(const RunStarted& e) {
    if (const auto run = open_.find(e.run); run != open_.end())
      run->second.ready = run->second.committed = at_;
  }
  void add(const CheckpointCommitted& e) {
    if (const auto run = open_.find(e.run); run != open_.end()) run->second.committed = at_;
  }
  void add(const RunStopped& e) { close(e.run, e.why, false); }
  void add(const RunLost& e) { close(e.run, e.why, true); }
  void add(const RunSplit& e) {
    split_at_[{e.run, e.job}] = split_at_[{e.run, e.partner}] = at_;
    if (!e.restart) return;
    // The target goes back to before the merge: what this run trained for it is void.
    if (const auto run = open_.find(e.run); run != open_.end() && run->second.hold.jobs.size() == 1)
      void_.insert(e.run);
  }

  void close(RunId id, const std::string& why, bool lost) {
    const auto found = open_.find(id);
    if (found == open_.end()) {
      record_.faults.push_back(fmt::format("R5: run {} ends that never began", id.value));
      return;
    }
    Open& open = found->second;
    Hold& hold = open.hold;
    hold.to = at_;
    hold.ready = open.ready.value_or(at_);
    if (lost && open.ready) hold.redone = at_ - open.committed;
    if (void_.erase(id)) hold.redone = hold.to - hold.ready;
    hold.why_ended = why;
    record_.holds.push_back(std::move(hold));
    open_.erase(found);
  }

  void note_reason(std::size_t job) {
    const auto most =
        std::ranges::max_element(reasons_[job], {}, [](const auto& entry) { return entry.second; });
    if (most != reasons_[job].end() && job < record_.jobs.size())
      record_.jobs[job].waited_because = most->first;
  }

  RunRecord record_;
  Micro at_ = 0;
  int next_base_ = 0, active_ = 0;
  struct Node {
    std::string name{};
    int base = 0, gpus = 0;  // its first GPU, how many
    PlaceId place{};         // 0: it is gone
  };
  std::vector<Node> nodes_;
  std::map<PlaceId, int> place_;
  std::map<RunId, Open> open_;
  std::set<RunId> void_;
  std::map<JobId, Micro> checked_;
  std::map<std::tuple<JobId, JobId, Mode>, Micro> decided_;
  std::map<RunId, std::pair<Micro, int>> requested_;  // instant, GPUs
  std::map<std::pair<RunId, JobId>, Micro> split_at_;
  std::vector<Assignment> wanted_;  // by the newest plan
  std::vector<std::map<std::string, int>> reasons_;
};

LogRecord::LogRecord() : reader_(std::make_unique<Reader>()) {}
LogRecord::~LogRecord() = default;
void LogRecord::see(const Event& event) { reader_->see(event); }
RunRecord LogRecord::end(const Snapshot& state, const Workload& workload, bool goes_on) {
  return reader_->end(state, workload, goes_on);
}

RunRecord record_of(const std::vector<Event>& log, const Snapshot& state, const Workload& workload,
                    bool goes_on) {
  LogRecord record;
  for (const Event& event : log) record.see(event);
  return record.end(state, workload, goes_on);
}

}  // namespace ymir
