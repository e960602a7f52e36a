#include "ymir/cluster/live_world.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "ymir/base/log.h"

namespace ymir {
namespace {

constexpr int kTick = 100;  // ms: the grain of every timer of the serving thread
constexpr Seconds kLongWait{1e6};
constexpr std::size_t kMostOrders = 100'000;

}  // namespace

Result<> LiveWorldOptions::validate() const {
  YMIR_TRY(agents.validate());
  if (engine) YMIR_TRY(engine->validate());
  YMIR_TRY(data_check.validate());
  if (most_events == 0) return Error{ErrorCode::kInvalidArgument, "most_events: must be above 0"};
  return Ok{};
}

Result<std::unique_ptr<LiveWorld>> LiveWorld::create(LiveWorldOptions options) {
  YMIR_TRY(options.validate());
  YMIR_TRY_ASSIGN(auto server, AgentServer::create(options.agents));
  std::unique_ptr<LiveWorld> world(new LiveWorld(std::move(options)));
  world->server_ = std::move(server);
  if (world->options_.engine) world->engine_.emplace(*world->options_.engine, *world->server_);
  LiveWorld* const self = world.get();
  world->data_check_ =
      std::make_unique<DataCheck>(world->options_.data_check, [self](EventBody body) {
        {
          const std::lock_guard lock(self->mutex_);
          self->inbox_.push_back({PlaceId{}, 0, std::move(body)});
        }
        self->changed_.notify_all();
      });
  world->thread_ = std::jthread([self](const std::stop_token& stop) { self->serve(stop); });
  return world;
}

LiveWorld::LiveWorld(LiveWorldOptions options)
    : options_(std::move(options)),
      started_(std::max(wall_clock(), options_.not_before)),
      started_steady_(std::chrono::steady_clock::now()),
      poke_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  YMIR_CHECK(poke_ >= 0, "eventfd");
}

LiveWorld::~LiveWorld() {
  data_check_.reset();
  thread_.request_stop();
  poke();
  if (thread_.joinable()) thread_.join();
  engine_.reset();
  ::close(poke_);
}

Time LiveWorld::now() const {
  return started_ + std::chrono::duration_cast<WorldClock::duration>(
                        std::chrono::steady_clock::now() - started_steady_);
}

void LiveWorld::poke() const {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(poke_, &one, sizeof one));  // full: it is awake anyway
}

std::vector<Event> LiveWorld::wait(Time deadline) {
  std::vector<Event> events;
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return woken_ || !inbox_.empty(); };
  if (deadline == kNever) {
    changed_.wait(lock, ready);
  } else {
    // The deadline is a wall time; what is waited for is the rest of it on the steady clock.
    const Seconds left = std::min(deadline - now(), kLongWait);
    const auto until = std::chrono::steady_clock::now() + left;
    changed_.wait_until(lock, std::chrono::time_point_cast<std::chrono::nanoseconds>(until), ready);
  }
  woken_ = false;
  const Time at = now();
  for (AgentServer::Incoming& incoming : inbox_) {
    if (incoming.number > 0) handed_[incoming.place] = incoming.number;
    if (incoming.body) events.push_back(Event{0, at, "agent", *std::move(incoming.body)});
  }
  inbox_.clear();
  return events;
}

void LiveWorld::acknowledge() {
  {
    const std::lock_guard lock(mutex_);
    acknowledged_ = handed_;
  }
  poke();
}

Result<> LiveWorld::request(const Action& action) {
  if (const auto* check = std::get_if<CheckData>(&action)) return data_check_->start(*check);
  if (const auto* stop = std::get_if<StopCheck>(&action)) {
    data_check_->cancel(stop->job);
    return Ok{};
  }
  {
    const std::lock_guard lock(mutex_);
    if (orders_.size() >= kMostOrders)
      return Error{ErrorCode::kExhausted, "too many orders wait for the agents"};
    orders_.push_back(action);
  }
  poke();
  return Ok{};
}

void LiveWorld::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

std::vector<StepReport> LiveWorld::progress() const {
  const std::lock_guard lock(mutex_);
  std::vector<StepReport> newest;
  for (const auto& [job, step] : progress_) newest.push_back(step);
  return newest;
}

bool LiveWorld::drain(Seconds within) {
  const auto deadline = std::chrono::steady_clock::now() + within + Seconds(1);
  std::unique_lock lock(mutex_);
  draining_ = within;
  poke();
  return changed_.wait_until(lock, std::chrono::time_point_cast<std::chrono::nanoseconds>(deadline),
                             [this] { return idle_ && inbox_.empty(); });
}

Result<> LiveWorld::invite(const std::string& path) {
  Invitation invitation{path, {}};
  std::unique_lock lock(mutex_);
  invitations_.push_back(&invitation);
  poke();
  changed_.wait(lock, [&] { return invitation.done.has_value(); });
  return *invitation.done;
}

void LiveWorld::serve(const std::stop_token& stop) {
  std::vector<pollfd> fds;
  while (!stop.stop_requested()) {
    fds.clear();
    fds.push_back({poke_, POLLIN, 0});
    server_->add_to(fds);
    if (engine_) engine_->add_to(fds);
    ::poll(fds.data(), fds.size(), kTick);
    std::uint64_t count = 0;
    static_cast<void>(!::read(poke_, &count, sizeof count));
    take_orders();
    const auto time = AgentServer::Clock::now();
    server_->service(time);
    if (engine_) engine_->service(time);
    publish();
  }
}

void LiveWorld::take_orders() {
  std::deque<Action> orders;
  std::map<PlaceId, std::uint64_t> acknowledged;
  std::vector<Invitation*> invitations;
  std::optional<Seconds> draining;
  {
    const std::lock_guard lock(mutex_);
    orders.swap(orders_);
    acknowledged.swap(acknowledged_);
    invitations.swap(invitations_);
    draining = draining_;
    server_->pause_reading(inbox_.size() >= options_.most_events);
  }
  for (const auto& [place, number] : acknowledged) server_->acknowledge(place, number);
  for (const Action& order : orders) {
    if (const auto* stop = std::get_if<StopRun>(&order)) server_->order(*stop);
    // While draining no run is started: its intent is in the log, the next ymird closes it.
    if (const auto* start = std::get_if<StartRun>(&order); start != nullptr && !draining)
      server_->order(*start);
  }
  for (Invitation* invitation : invitations) {
    auto join = server_->invite();
    Result<> done = join ? write_join_file(invitation->path, *join) : Result<>(join.error());
    const std::lock_guard lock(mutex_);
    invitation->done = std::move(done);
    changed_.notify_all();
  }
  if (draining && !std::exchange(told_to_drain_, true)) {
    if (engine_) engine_->stop_replacing();
    server_->dismiss_all(*draining);
  }
}

void LiveWorld::publish() {
  std::vector<AgentServer::Incoming> incoming = server_->take_incoming();
  const std::vector<StepReport> steps = server_->take_progress();
  const std::lock_guard lock(mutex_);
  for (const StepReport& step : steps) progress_[step.job] = step;
  for (AgentServer::Incoming& one : incoming) {
    if (one.body && ends_run(*one.body))
      std::erase_if(progress_, [run = *reported_run(*one.body)](const auto& entry) {
        return entry.second.run == run;
      });
    inbox_.push_back(std::move(one));
  }
  idle_ = told_to_drain_ && server_->nothing_runs() && (!engine_ || !engine_->has_agent());
  if (!inbox_.empty() || idle_) changed_.notify_all();
}

}  // namespace ymir
