#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "ymir/base/text.h"
#include "ymir/sim/metrics/record.h"

namespace ymir {
namespace {

// Gives names to the GPUs of a public simulator, which counts them by node only.
class GpuNames {
 public:
  GpuNames(int nodes, int gpus_per_node, std::vector<std::string>& faults)
      : free_(static_cast<std::size_t>(nodes)), gpus_per_node_(gpus_per_node), faults_(faults) {
    for (int gpu = 0; gpu < nodes * gpus_per_node; ++gpu) give_back({gpu});
  }
  void give_back(const std::vector<int>& gpus) {
    for (const int gpu : gpus) free_[static_cast<std::size_t>(gpu / gpus_per_node_)].insert(gpu);
  }
  std::vector<int> take(const artifact::Change& change) {
    std::vector<int> gpus;
    for (const int node : change.nodes) {
      const bool known = node >= 0 && static_cast<std::size_t>(node) < free_.size();
      if (!known || free_[static_cast<std::size_t>(node)].empty()) {
        faults_.push_back(fmt::format("R3: at {} s job {} is given a GPU of node {} that is {}",
                                      change.at_s, change.job, node,
                                      known ? "taken" : "not there"));
        continue;
      }
      std::set<int>& free = free_[static_cast<std::size_t>(node)];
      gpus.push_back(*free.begin());
      free.erase(free.begin());
    }
    return gpus;
  }

 private:
  std::vector<std::set<int>> free_;
  int gpus_per_node_;
  std::vector<std::string>& faults_;
};

// What is released at an instant is free for what is taken there, whatever their order.
void add_holds(const artifact::Run& run, RunRecord& record) {
  GpuNames names(record.nodes, record.gpus_per_node, record.faults);
  std::map<int, Hold> open;
  for (std::size_t begin = 0; begin < run.changes.size();) {
    std::size_t end = begin;
    const Micro at = to_micro(run.changes[begin].at_s);
    while (end < run.changes.size() && to_micro(run.changes[end].at_s) == at) ++end;
    for (std::size_t i = begin; i < end; ++i)
      if (const auto held = open.find(run.changes[i].job); held != open.end()) {
        names.give_back(held->second.gpus);
        held->second.to = at;
        if (held->second.to > held->second.from) record.holds.push_back(held->second);
        open.erase(held);
      }
    for (std::size_t i = begin; i < end; ++i) {
      const artifact::Change& change = run.changes[i];
      if (const auto held = open.find(change.job); held != open.end()) {
        names.give_back(held->second.gpus);
        open.erase(held);  // given and taken back at one instant
      }
      if (change.nodes.empty()) continue;
      open[change.job] = {
          .from = at, .ready = at, .jobs = {change.job}, .gpus = names.take(change)};
    }
    begin = end;
  }
  for (auto& [job, hold] : open) {
    const artifact::JobResult& result = run.jobs[static_cast<std::size_t>(job)];
    if (result.finished)
      record.faults.push_back(fmt::format("R6: {} holds GPUs when it has ended", result.name));
  }
  std::ranges::stable_sort(record.holds, {}, &Hold::from);
}

JobRecord job_record(const artifact::JobResult& result, const TraceJob& given) {
  const std::size_t sign = given.application.find('@');
  JobRecord job{.name = result.name,
                .backbone = given.application.substr(0, sign),
                .dataset = sign == std::string::npos ? "" : given.application.substr(sign + 1),
                .submission_s = result.submission_s};
  if (result.gpu_seconds > 0 || result.finished) {
    job.first_start_s = result.first_start_s;
    job.first_wait_s = result.first_start_s - result.submission_s;
    job.mode = "normal";
  }
  if (result.finished) job.completion_s = result.completion_s;
  job.finished = result.finished;
  job.queueing_s = result.queueing_s;
  job.gpu_seconds = result.gpu_seconds;
  job.restarts = result.restarts;
  job.requested_gpus = result.requested_gpus;
  job.last_gpus = result.last_gpus;
  return job;
}

}  // namespace

RunRecord record_of(const artifact::Run& run, const Trace& trace, int nodes, int gpus_per_node) {
  RunRecord record{.trace = trace.file,
                   .nodes = nodes,
                   .gpus_per_node = gpus_per_node,
                   .public_simulator = true};
  record.notes = run.notes;
  add_holds(run, record);
  std::vector<std::size_t> order(run.jobs.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return run.jobs[i].submission_s; });
  std::vector<int> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = static_cast<int>(i);
    record.jobs.push_back(job_record(run.jobs[order[i]], trace.jobs[order[i]]));
  }
  for (Hold& hold : record.holds)
    for (int& job : hold.jobs) job = place[static_cast<std::size_t>(job)];
  for (std::int64_t i = 0; i < run.rounds; ++i)
    record.rounds.push_back({.round = static_cast<std::uint64_t>(i + 1)});
  return record;
}

}  // namespace ymir
