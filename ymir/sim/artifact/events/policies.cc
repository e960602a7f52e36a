// The policies of the event simulator, and how a trace and its results are read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ymir/sim/artifact/events/events.h"
#include "ymir/sim/artifact/settings.h"

namespace ymir::artifact::events {
namespace {

constexpr int kMaxGpus = 1 << 16;
constexpr double kMaxSeconds = 1e12;

// Only numbers of GPUs are simulated; who holds which is told for the eye, lowest first.
class Seats {
 public:
  Seats(int nodes, int gpus_per_node) : gpus_per_node_(gpus_per_node) {
    owner_.assign(static_cast<std::size_t>(nodes * gpus_per_node), -1);
  }
  std::vector<int> take(int job, int gpus) {
    std::vector<int> nodes;
    for (std::size_t seat = 0; seat < owner_.size() && static_cast<int>(nodes.size()) < gpus;
         ++seat)
      if (owner_[seat] < 0) {
        owner_[seat] = job;
        nodes.push_back(static_cast<int>(seat) / gpus_per_node_);
      }
    YMIR_CHECK(static_cast<int>(nodes.size()) == gpus, "more GPUs given than there are");
    return nodes;
  }
  void give_back(int job) { std::ranges::replace(owner_, job, -1); }

 private:
  int gpus_per_node_;
  std::vector<int> owner_{};
};

bool whole(double seconds) {
  return seconds >= 0 && seconds <= kMaxSeconds && seconds == std::floor(seconds);
}

Result<Job> read_job(const Trace& trace, const TraceJob& asked, int num_gpus) {
  const std::string where = fmt::format("{}:{}: {}", trace.file, asked.line, asked.name);
  if (asked.gpus < 1 || asked.gpus > num_gpus)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} asks for {} GPUs of {}", where, asked.gpus, num_gpus)};
  if (!whole(asked.submission_s) || !whole(asked.duration_s) || asked.duration_s < 1)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: submission and duration are no whole seconds: {}, {}", where,
                             asked.submission_s, asked.duration_s)};
  return Job{.gpus = asked.gpus,
             .submission = static_cast<std::int64_t>(asked.submission_s),
             .duration = static_cast<std::int64_t>(asked.duration_s)};
}

Result<Run> run(const Trace& trace, const Options& options, const Rules& rules) {
  const int nodes = options.nodes > 0 ? options.nodes : 4;
  const int gpus_per_node = options.gpus_per_node > 0 ? options.gpus_per_node : 4;
  if (nodes > kMaxGpus / gpus_per_node)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("more than {} GPUs: {} x {}", kMaxGpus, nodes, gpus_per_node)};
  std::vector<int> order(trace.jobs.size());
  std::iota(order.begin(), order.end(), 0);
  const auto asked = [&](int index) -> const TraceJob& {
    return trace.jobs[static_cast<std::size_t>(index)];
  };
  std::ranges::stable_sort(order, {}, [&](int index) { return asked(index).submission_s; });
  std::vector<Job> jobs;
  for (const int index : order) {
    YMIR_TRY_ASSIGN(const Job job, read_job(trace, asked(index), nodes * gpus_per_node));
    jobs.push_back(job);
  }

  Run result;
  if (options.interval_s > 0)
    result.notes.push_back("decides at every event: the interval is not used");
  Seats seats(nodes, gpus_per_node);
  result.rounds =
      simulate(jobs, nodes * gpus_per_node, rules, [&](std::int64_t now, int at, bool runs) {
        const int index = order[static_cast<std::size_t>(at)];
        Change change{.at_s = static_cast<double>(now), .job = index};
        seats.give_back(index);
        if (runs) change.nodes = seats.take(index, asked(index).gpus);
        result.changes.push_back(std::move(change));
      });
  result.jobs.resize(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    result.jobs[static_cast<std::size_t>(order[i])] = {
        .name = asked(order[i]).name,
        .submission_s = static_cast<double>(job.submission),
        .first_start_s = static_cast<double>(job.start),
        .completion_s = static_cast<double>(job.end),
        .queueing_s = static_cast<double>(job.pending),
        .gpu_seconds = static_cast<double>(job.total * job.gpus),
        .restarts = job.starts - 1,
        .promotions = job.promotions,
        .requested_gpus = job.gpus,
        .last_gpus = job.gpus,
        .finished = true};
  }
  return result;
}

Result<Run> run_tiresias(const Trace& trace, const Options& options, bool late_demotion) {
  YMIR_TRY_ASSIGN(const Settings settings, Settings::read(options.settings));
  Rules rules{.order = Order::kAttained, .late_demotion = late_demotion};
  rules.limits = {static_cast<std::int64_t>(settings.number("tiresias.limit", 3250)),
                  static_cast<std::int64_t>(settings.number("tiresias.limit2", 7200))};
  if (rules.limits[0] >= rules.limits[1])
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("tiresias.limit is not below tiresias.limit2: {}, {}", rules.limits[0],
                             rules.limits[1])};
  rules.promote = settings.number("tiresias.promote", 0);
  rules.service_in_gpus = settings.word("tiresias.service", "gpu-seconds") == "gpu-seconds";
  YMIR_TRY_ASSIGN(Run result, run(trace, options, rules));
  result.constants = settings.used();
  if (late_demotion && rules.service_in_gpus)
    result.notes.push_back(
        "the instant of a demotion is predicted in seconds and GPU-seconds mixed: jobs of several "
        "GPUs fall late");
  return result;
}

Policy simple(const std::string& name, Order order) {
  return {name, "tiresias", [order](const Trace& trace, const Options& options) -> Result<Run> {
            YMIR_TRY(Settings::read(options.settings));
            return run(trace, options, {.order = order});
          }};
}

}  // namespace
}  // namespace ymir::artifact::events

namespace ymir::artifact {

std::vector<Policy> events_policies() {
  using namespace events;
  return {{"tiresias@events", "tiresias",
           [](const Trace& t, const Options& o) { return run_tiresias(t, o, true); }},
          {"tiresias@events-fixed", "tiresias",
           [](const Trace& t, const Options& o) { return run_tiresias(t, o, false); }},
          simple("srtf@events", Order::kRemaining),
          simple("srsf@events", Order::kRemainingByGpus),
          simple("fewest-gpus@events", Order::kFewestGpus),
          simple("fifo@events", Order::kFifo),
          simple("fit@events", Order::kFit)};
}

}  // namespace ymir::artifact
