#include "ymir/cluster/worker_pool.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "ymir/base/file.h"
#include "ymir/base/log.h"
#include "ymir/base/text.h"
#include "ymir/cluster/agent_protocol.h"

namespace ymir {
namespace {

WorkerPool::Clock::duration ticks(Seconds seconds) {
  return std::chrono::duration_cast<WorkerPool::Clock::duration>(seconds);
}

bool overlap(const std::set<int>& a, const std::set<int>& b) {
  return std::any_of(a.begin(), a.end(), [&](int slot) { return b.contains(slot); });
}

}  // namespace

Result<> WorkerPoolOptions::validate() const {
  if (program.empty())
    return Error{ErrorCode::kInvalidArgument, "worker: the program is not given"};
  if (!(hung.count() > 0) || !(start.count() > 0) || !(stop_within.count() > 0))
    return Error{ErrorCode::kInvalidArgument, "hung, start and stop_within must be above 0 s"};
  if (hung_gaps < 1 || group < 1)
    return Error{ErrorCode::kInvalidArgument, "hung_gaps and group must be at least 1"};
  return Ok{};
}

WorkerPool::WorkerPool(WorkerPoolOptions options, std::vector<Slot> slots)
    : options_(std::move(options)), slots_(std::move(slots)) {}

WorkerPool::~WorkerPool() {
  std::error_code ignored;
  for (const auto& worker : workers_) std::filesystem::remove(record_of(*worker), ignored);
}

std::string WorkerPool::record_of(const Worker& worker) const {
  return fmt::format("{}/{}", options_.records, worker.process.name().pid);
}

Result<> WorkerPool::end_leftovers() {
  YMIR_TRY(make_folders(options_.records));
  std::error_code error;
  std::vector<ProcessName> left;
  for (const auto& entry : std::filesystem::directory_iterator(options_.records, error)) {
    const auto pid = parse_int(entry.path().filename().string());
    const auto started = read_file(entry.path().string(), 64);
    std::filesystem::remove(entry.path(), error);
    if (pid && started) left.push_back({static_cast<pid_t>(*pid), *started});
  }
  for (const ProcessName& name : left) kill_process(name);
  // SIGKILL works at once but for a process in the middle of a system call.
  const auto deadline = Clock::now() + std::chrono::seconds(5);
  for (const ProcessName& name : left)
    while (is_alive(name)) {
      if (Clock::now() > deadline)
        return Error{ErrorCode::kTimeout,
                     fmt::format("worker {} of an earlier agent does not end", name.pid)};
      ::poll(nullptr, 0, 5);
    }
  return Ok{};
}

void WorkerPool::warm_up() {
  for (int slot = 0; slot < num_slots(); ++slot) {
    const std::set<int> alone{slot};
    if (std::any_of(workers_.begin(), workers_.end(),
                    [&](const auto& worker) { return overlap(worker->slots, alone); }))
      continue;
    if (auto worker = spawn(alone); !worker) {
      log::warning("no warm worker: {}", worker.error().message);
      return;
    }
  }
}

Result<WorkerPool::Worker*> WorkerPool::spawn(const std::set<int>& slots) {
  std::set<int> cores;
  for (const int slot : slots)
    cores.insert(slots_[static_cast<std::size_t>(slot)].cores.begin(),
                 slots_[static_cast<std::size_t>(slot)].cores.end());
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error{ErrorCode::kUnavailable, std::string("no socket pair: ") + std::strerror(errno)};
  LineChannel channel(ends[0], {.max_line = kMaxLine});
  ChildProcess::Spec spec;
  spec.program = options_.program;
  spec.arguments = {"--fd",         "3",         "--cache",
                    options_.cache, "--threads", std::to_string(cores.size())};
  spec.cores.assign(cores.begin(), cores.end());
  spec.channel = ends[1];
  auto process = ChildProcess::start(spec);
  ::close(ends[1]);
  if (!process) return process.error();
  workers_.push_back(std::make_unique<Worker>(
      Worker{*std::move(process), std::move(channel), slots, "", {}, Clock::now()}));
  Worker& worker = *workers_.back();
  if (auto written = write_file(record_of(worker), worker.process.name().started); !written)
    log::warning("no record of worker {}: {}", worker.process.name().pid, written.error().message);
  log::info("worker {} on slots {} with {} cores", worker.process.name().pid, fmt::join(slots, ","),
            cores.size());
  return &worker;
}

void WorkerPool::retire_one(const std::set<int>& slots) {
  Worker* oldest = nullptr;
  for (const auto& worker : workers_)
    if (!worker->run && !worker->leaving && worker->slots == slots &&
        (oldest == nullptr || worker->used < oldest->used))
      oldest = worker.get();
  if (oldest == nullptr) return;
  oldest->leaving = true;
  oldest->process.kill();
}

Result<WorkerPool::Worker*> WorkerPool::worker_for(const std::set<int>& slots,
                                                   const std::string& model) {
  Worker* fresh = nullptr;
  std::size_t same_slots = 0;
  for (const auto& worker : workers_) {
    if (worker->slots != slots || worker->leaving || worker->run) continue;
    if (worker->process.ended() || worker->channel.fd() < 0) continue;
    ++same_slots;
    if (worker->model == model) return worker.get();
    if (worker->model.empty()) fresh = worker.get();
  }
  if (fresh != nullptr) return fresh;
  if (same_slots >= options_.group) retire_one(slots);
  return spawn(slots);
}

WorkerPool::Worker* WorkerPool::worker_of(RunId run) {
  for (const auto& worker : workers_)
    if (worker->run && worker->run->id == run) return worker.get();
  return nullptr;
}

Result<> WorkerPool::start(StartRun order) {
  const std::set<int> slots(order.slots.begin(), order.slots.end());
  if (slots.empty() || *slots.begin() < 0 || *slots.rbegin() >= num_slots())
    return Error{ErrorCode::kNotFound, fmt::format("no such slots: {}", fmt::join(slots, ","))};
  if (order.tasks.empty())
    return Error{ErrorCode::kInvalidArgument, "a run without jobs: " + to_string(order.run)};
  for (const auto& worker : workers_)
    if (worker->run && overlap(worker->slots, slots))
      return Error{ErrorCode::kConflict,
                   fmt::format("slots {} are busy with {}", fmt::join(worker->slots, ","),
                               to_string(worker->run->id))};
  const std::string model = order.tasks.front().spec.model;
  YMIR_TRY_ASSIGN(Worker* const worker, worker_for(slots, model));
  order.num_threads =
      static_cast<int>(slots_[static_cast<std::size_t>(*slots.begin())].cores.size());
  Run run;
  run.id = order.run;
  for (const TaskOrder& task : order.tasks) run.jobs.push_back(task.job);
  run.heard = worker->used = Clock::now();
  worker->model = model;
  worker->run = std::move(run);
  if (auto sent = worker->channel.send(encode_line(Action(order))); !sent)
    kill(*worker, "worker_died: " + sent.error().message, false);  // its RunLost follows
  return Ok{};
}

bool WorkerPool::stop(const StopRun& order) {
  Worker* const worker = worker_of(order.run);
  if (worker == nullptr) return false;
  Run& run = *worker->run;
  if (run.stop_by && !order.now) return true;
  if (!run.stop_by)
    run.stop_by = Clock::now() + std::max(ticks(options_.stop_within), 3 * run.longest);
  if (auto sent = worker->channel.send(encode_line(Action(order))); !sent)
    kill(*worker, "worker_died: " + sent.error().message, false);
  return true;
}

void WorkerPool::stop_all() {
  for (const RunId run : runs()) stop(StopRun{run, false});
}

void WorkerPool::kill_runs(const std::string& why) {
  for (const auto& worker : workers_)
    if (worker->run) kill(*worker, why, false);
}

void WorkerPool::kill(Worker& worker, const std::string& why, bool fault) {
  if (worker.run && worker.run->killed.empty()) {
    worker.run->killed = why;
    worker.run->fault = fault;
  }
  worker.leaving = true;
  worker.process.kill();
}

void WorkerPool::service(Clock::time_point now) {
  for (const auto& worker : workers_) {
    // Its end is looked at first: what it said before its death is complete then.
    const bool ended = worker->process.ended().has_value();
    if (!paused_ || ended) read(*worker, now);
    if (ended)
      bury(*worker);
    else
      watch(*worker, now);
  }
  std::erase_if(workers_, [this](const auto& worker) {
    if (!worker->buried) return false;
    std::error_code ignored;
    std::filesystem::remove(record_of(*worker), ignored);
    return true;
  });
  // Children of dead workers come to us (child subreaper) and must not stay as zombies.
  for (siginfo_t info{};
       ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0; info = {}) {
    if (std::any_of(workers_.begin(), workers_.end(),
                    [&](const auto& worker) { return worker->process.name().pid == info.si_pid; }))
      break;
    ::waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

void WorkerPool::read(Worker& worker, Clock::time_point now) {
  if (worker.channel.wants_write() && !worker.channel.flush() && worker.run)
    kill(worker, "worker_died: it does not take orders", false);
  Result<> received = Ok{};
  do {
    received = worker.channel.fd() < 0 ? Result<>(Ok{}) : worker.channel.receive();
    bool any = false;
    while (auto line = worker.channel.next()) {
      hear(worker, *line, now);
      any = true;
    }
    if (!any) break;
  } while (received && worker.channel.fd() >= 0);
  // A worker that closed its channel can take no order any more, alive or not.
  if (worker.channel.fd() < 0 && !worker.leaving) {
    const bool too_long = !received && received.error().code == ErrorCode::kExhausted;
    kill(worker, too_long ? "worker_died: " + received.error().message : "", too_long);
  }
}

void WorkerPool::hear(Worker& worker, const std::string& line, Clock::time_point now) {
  auto report = decode_report(line);
  if (!report) {
    if (!worker.leaving)
      kill(worker, "worker_died: it wrote what is no report: " + report.error().message, true);
    return;
  }
  const auto* body = std::get_if<EventBody>(&*report);
  const std::optional<RunId> run =
      body == nullptr ? std::get<StepReport>(*report).run : reported_run(*body);
  if (!worker.run || !run || *run != worker.run->id) {
    log::warning("worker {} reports about a run that it does not have", worker.process.name().pid);
    return;
  }
  Run& mine = *worker.run;
  if (mine.spoke) mine.longest = std::max(mine.longest, now - mine.heard);
  mine.spoke = true;
  mine.heard = worker.used = now;
  if (body != nullptr && ends_run(*body)) worker.run.reset();
  reports_.push_back(*std::move(report));
}

void WorkerPool::watch(Worker& worker, Clock::time_point now) {
  if (!worker.run || worker.leaving || paused_) return;
  const Run& run = *worker.run;
  const auto patience = run.spoke ? std::max(ticks(options_.hung), options_.hung_gaps * run.longest)
                                  : ticks(options_.start);
  if (run.stop_by && now > *run.stop_by)
    kill(worker, "worker_died: it did not stop in time", false);
  else if (now - run.heard > patience)
    kill(worker, run.spoke ? "hung" : "start_failed: no word of the run", true);
}

void WorkerPool::bury(Worker& worker) {
  worker.buried = true;
  const std::string how = *worker.process.ended();
  if (worker.run) {
    // Whoever leaves in order before the first word could not begin: a missing library, a folder
    // that can't be made. That is not the job's doing.
    const bool could_not_begin = !worker.run->spoke && how.starts_with("exit ");
    RunLost lost{worker.run->id,
                 (could_not_begin ? "start_failed: its worker ended: " : "worker_died: ") + how,
                 worker.process.crashed() && !could_not_begin};
    if (!worker.run->killed.empty()) {
      lost.why = worker.run->killed;
      lost.fault = worker.run->fault;
    }
    log::warning("{} is lost: {}", to_string(lost.run), lost.why);
    reports_.push_back(EventBody(std::move(lost)));
    worker.run.reset();
  } else if (!worker.leaving) {
    log::warning("idle worker {} ended: {}", worker.process.name().pid, how);
  }
}

std::vector<Report> WorkerPool::take_reports() { return std::exchange(reports_, {}); }

void WorkerPool::add_to(std::vector<pollfd>& fds) const {
  for (const auto& worker : workers_) {
    fds.push_back({worker->process.pidfd(), POLLIN, 0});
    if (worker->channel.fd() < 0) continue;
    const int wanted = (!paused_ && worker->channel.wants_read() ? POLLIN : 0) |
                       (worker->channel.wants_write() ? POLLOUT : 0);
    if (wanted != 0) fds.push_back({worker->channel.fd(), static_cast<short>(wanted), 0});
  }
}

std::vector<RunId> WorkerPool::runs() const {
  std::vector<RunId> runs;
  for (const auto& worker : workers_)
    if (worker->run) runs.push_back(worker->run->id);
  std::sort(runs.begin(), runs.end());
  return runs;
}

}  // namespace ymir
