#include "ymir/cluster/agent.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "ymir/base/hash.h"
#include "ymir/base/log.h"
#include "ymir/base/machine.h"

namespace ymir {
namespace {

constexpr int kTick = 100;  // ms: the grain of every timer here
constexpr std::size_t kEnoughQueued = 1 << 20;
constexpr std::size_t kMostRecords = 10'000;

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

Result<int> connect_to(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return Error{ErrorCode::kUnavailable, std::strerror(errno)};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  const int error = errno;
  ::close(fd);
  return Error{ErrorCode::kUnavailable, path + ": " + std::strerror(error)};
}

}  // namespace

Result<> AgentOptions::validate() const {
  if (join_file.empty()) return Error{ErrorCode::kInvalidArgument, "join: no file is given"};
  if (num_slots < 0) return Error{ErrorCode::kInvalidArgument, "slots: must be at least 0"};
  if (!(redial_first.count() > 0) || redial_most < redial_first)
    return Error{ErrorCode::kInvalidArgument,
                 "redial_first must be above 0, redial_most not below"};
  if (!(unanswered.count() > 0) || !(linger.count() > 0) || most_events == 0)
    return Error{ErrorCode::kInvalidArgument, "unanswered, linger, most_events must be above 0"};
  return workers.validate();
}

Result<std::unique_ptr<Agent>> Agent::create(AgentOptions options, int signals) {
  YMIR_TRY(options.validate());
  YMIR_TRY_ASSIGN(JoinFile join, read_join_file(options.join_file));
  ::unlink(options.join_file.c_str());
  YMIR_TRY_ASSIGN(std::string socket, unix_path(join.address));
  YMIR_TRY_ASSIGN(std::vector<Slot> slots, make_slots(usable_cores(), options.num_slots));
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::unique_ptr<Agent> agent(
      new Agent(std::move(options), std::move(join), std::move(slots), signals));
  agent->socket_ = std::move(socket);
  // Before the first hello: no slot is offered while an old worker may still use it.
  YMIR_TRY(agent->pool_.end_leftovers());
  return agent;
}

Agent::Agent(AgentOptions options, JoinFile join, std::vector<Slot> slots, int signals)
    : options_(std::move(options)),
      join_(std::move(join)),
      signals_(signals),
      pool_(options_.workers, std::move(slots)) {}

Seconds Agent::now() const {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return Seconds(static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9);
}

Result<> Agent::run() {
  answered_ = now();
  pool_.warm_up();
  for (;;) {
    if (link_ == Link::kDown && now() >= redial_at_) dial();
    wait_for_something();
    while (auto line = channel_.next()) {
      auto message = decode_message(*line);
      if (!message && message.error().code == ErrorCode::kNotFound) continue;  // of a newer ymird
      if (!message) {
        hang_up("a line that is no message: " + message.error().message);
        break;
      }
      YMIR_TRY(hear(*message));
    }
    pool_.service(WorkerPool::Clock::now());
    collect_reports();
    keep_lease();
    if (link_ == Link::kUp) {
      beat();
      send_events();
      send_progress();
    }
    if (leave_by_ && ((pool_.runs().empty() && events_.empty()) || now() > *leave_by_)) return Ok{};
    if (now() - answered_ > lease_ + options_.linger)
      return Error{ErrorCode::kTimeout, "ymird was not heard of for too long"};
  }
}

void Agent::wait_for_something() {
  std::vector<pollfd> fds;
  pool_.add_to(fds);
  const std::size_t link = fds.size();
  if (channel_.fd() >= 0)
    fds.push_back(
        {channel_.fd(), static_cast<short>(POLLIN | (channel_.wants_write() ? POLLOUT : 0)), 0});
  const std::size_t signal = fds.size();
  if (signals_ >= 0 && !leave_by_) fds.push_back({signals_, POLLIN, 0});
  if (::poll(fds.data(), fds.size(), kTick) < 0 && errno != EINTR) return;
  if (signal < fds.size() && fds[signal].revents != 0)
    leave(options_.leave_within, "asked to leave");
  if (link < signal && fds[link].revents != 0) hear_everything();
}

void Agent::hear_everything() {
  if (auto flushed = channel_.flush(); !flushed) return hang_up(flushed.error().message);
  if (auto received = channel_.receive(); !received) {
    // What arrived whole before the end still counts: a refusal is followed by a close.
    if (received.error().code != ErrorCode::kUnavailable) hang_up(received.error().message);
  }
}

void Agent::dial() {
  auto fd = connect_to(socket_);
  if (!fd) return hang_up(fd.error().message);
  channel_ = LineChannel(*fd, agent_link_options());
  greet();
}

void Agent::greet() {
  Hello hello;
  hello.build = YMIR_VERSION;
  hello.place = join_.place;
  (key_.empty() ? hello.secret : hello.key) = key_.empty() ? join_.secret : key_;
  hello.node = host_name();
  hello.boot_id = boot_id();
  hello.hardware = cpu().model;
  hello.num_slots = pool_.num_slots();
  hello.runs = runs_to_tell();
  hello.first_number = events_.empty() ? next_number_ : events_.front().number;
  link_ = Link::kGreeting;
  greeted_ = now();
  say(hello);
}

void Agent::hang_up(const std::string& why) {
  if (link_ != Link::kDown) log::warning("connection to ymird ended: {}", why);
  link_ = Link::kDown;
  channel_.close();
  channel_ = LineChannel();
  beats_.clear();
  redial_after_ = std::clamp(redial_after_ * 2.0, options_.redial_first, options_.redial_most);
  // Agents of one ymird must not come back in step: 20 % apart, by place.
  const double jitter = 0.8 + 0.4 * static_cast<double>(join_.place.value % 16) / 15;
  redial_at_ = now() + redial_after_ * jitter;
}

void Agent::say(const AgentMessage& message) {
  if (auto sent = channel_.send(encode_message(message)); !sent) hang_up(sent.error().message);
}

Result<> Agent::hear(const AgentMessage& message) {
  Result<> result = Ok{};
  std::visit(Overloaded{
                 [&](const Welcome& welcome) {
                   if (!welcome.key.empty()) key_ = welcome.key;
                   join_.secret.clear();
                   lease_ = welcome.lease;
                   beat_every_ = welcome.beat;
                   link_ = Link::kUp;
                   redial_after_ = Seconds(0);
                   answered_ = greeted_;
                   beat_at_ = now();
                   sent_ = 0;
                 },
                 [&](const HelloRefused& refused) {
                   result =
                       Error{ErrorCode::kPermission,
                             "ymird refused this agent: " + refused.code + ": " + refused.text};
                 },
                 [&](const BeatOk& ok) {
                   if (const auto sent = beats_.find(ok.n); sent != beats_.end()) {
                     answered_ = std::max(answered_, sent->second);
                     beats_.erase(beats_.begin(), std::next(sent));
                   }
                 },
                 [&](const Ack& ack) {
                   while (!events_.empty() && events_.front().number <= ack.up_to)
                     events_.pop_front();
                   forget_old_records();
                 },
                 [&](const StartOrder& order) { obey(order); },
                 [&](const StopOrder& order) { obey(order); },
                 [&](const ListRuns& list) { say(Answer{list.id, "ok", "", runs_to_tell()}); },
                 [&](const Dismiss& dismiss) { leave(dismiss.within, "dismissed"); },
                 [&](const auto&) { hang_up("a message that only agents send"); },
             },
             message);
  return result;
}

void Agent::answer(std::uint64_t id, std::string code, std::string text) {
  if (code != "ok") log::warning("order refused: {}: {}", code, text);
  say(Answer{id, std::move(code), std::move(text), {}});
}

void Agent::obey(const StartOrder& order) {
  const StartRun& start = order.start;
  const std::string hash = sha256(encode_line(Action(start)));
  if (const auto known = records_.find(start.run); known != records_.end()) {
    if (known->second.body_hash == hash) return answer(order.id, "ok");
    if (!known->second.body_hash.empty())
      return answer(order.id, "conflict", to_string(start.run) + " was ordered otherwise");
    // Its stop overtook it: it is over before it began.
    known->second.body_hash = hash;
    RunStopped stopped{start.run, "stopped before its start", {}, {}, Seconds(0)};
    for (const TaskOrder& task : start.tasks) {
      stopped.jobs.push_back(task.job);
      stopped.steps.push_back(task.from_step);
    }
    remember(std::move(stopped));
    return answer(order.id, "ok");
  }
  if (leave_by_) return answer(order.id, "leaving", "this agent is about to leave");
  for (const TaskOrder& task : start.tasks)
    if (const auto newest = newest_run_.find(task.job);
        newest != newest_run_.end() && newest->second > start.run)
      return answer(
          order.id, "stale_run",
          fmt::format("{} is older than {}", to_string(start.run), to_string(newest->second)));
  if (auto started = pool_.start(start); !started)
    return answer(order.id, "cannot_start", started.error().message);
  records_[start.run] = Record{hash, false, 0};
  for (const TaskOrder& task : start.tasks) newest_run_[task.job] = start.run;
  answer(order.id, "ok");
}

void Agent::obey(const StopOrder& order) {
  if (!pool_.stop(order.stop) && !records_.contains(order.stop.run)) {
    records_[order.stop.run] = Record{"", true, 0};
    return answer(order.id, "unknown_run", to_string(order.stop.run));
  }
  answer(order.id, "ok");
}

void Agent::remember(EventBody body) {
  if (const auto run = reported_run(body)) {
    Record& record = records_[*run];
    record.last_number = next_number_;
    record.ended |= ends_run(body);
  }
  events_.push_back({next_number_++, std::move(body)});
}

void Agent::collect_reports() {
  for (Report& report : pool_.take_reports()) {
    if (auto* step = std::get_if<StepReport>(&report))
      progress_[step->job] = *step;
    else
      remember(std::get<EventBody>(std::move(report)));
  }
  pool_.pause_reading(events_.size() >= options_.most_events);
}

void Agent::send_events() {
  // Numbers have no gaps, so the place of an event follows from its number.
  while (link_ == Link::kUp && !events_.empty() && channel_.outgoing_bytes() < kEnoughQueued) {
    const std::uint64_t next = std::max(sent_ + 1, events_.front().number);
    if (next >= next_number_) return;
    say(events_[static_cast<std::size_t>(next - events_.front().number)]);
    sent_ = next;
  }
}

void Agent::send_progress() {
  if (channel_.outgoing_bytes() > 0) return;  // newest wins: the rest waits here, merged
  for (const auto& [job, step] : std::exchange(progress_, {}))
    if (link_ == Link::kUp) say(StepProgress{step});
}

void Agent::beat() {
  if (now() < beat_at_) return;
  beat_at_ = now() + beat_every_;
  Beat beat;
  beat.n = next_beat_++;
  beat.runs = pool_.runs();
  struct statvfs disk{};
  if (::statvfs(options_.workers.records.c_str(), &disk) == 0)
    beat.free_disk = static_cast<std::int64_t>(disk.f_bavail * disk.f_frsize);
  beats_[beat.n] = now();
  say(beat);
}

void Agent::keep_lease() {
  const Seconds silent = now() - answered_;
  if (channel_.fd() < 0 && link_ != Link::kDown) hang_up("ymird closed it");
  if (link_ == Link::kGreeting && now() - greeted_ > options_.unanswered)
    hang_up("the greeting is not answered");
  if (link_ == Link::kUp && !beats_.empty() && now() - beats_.begin()->second > options_.unanswered)
    hang_up("beats are not answered");
  if (silent > lease_) {
    pool_.kill_runs("lease_over");
  } else if (silent > lease_ - options_.save_before) {
    if (!std::exchange(saving_, true) && !pool_.runs().empty()) {
      log::warning("no word of ymird for {:.1f} s: runs are saved and stopped", silent.count());
      pool_.stop_all();
    }
  } else {
    saving_ = false;
  }
}

void Agent::leave(Seconds within, const std::string& why) {
  if (leave_by_) return;
  log::info("{}: {} runs are stopped, {:.1f} s at most", why, pool_.runs().size(), within.count());
  leave_by_ = now() + within;
  pool_.stop_all();
}

std::vector<RunId> Agent::runs_to_tell() const {
  std::vector<RunId> runs;
  const std::uint64_t oldest = events_.empty() ? next_number_ : events_.front().number;
  for (const auto& [run, record] : records_)
    if (!record.ended || record.last_number >= oldest) runs.push_back(run);
  return runs;
}

void Agent::forget_old_records() {
  const std::uint64_t oldest = events_.empty() ? next_number_ : events_.front().number;
  for (auto at = records_.begin(); records_.size() > kMostRecords && at != records_.end();)
    at = at->second.ended && at->second.last_number < oldest ? records_.erase(at) : std::next(at);
}

}  // namespace ymir
