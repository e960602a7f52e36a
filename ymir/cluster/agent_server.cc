#include "ymir/cluster/agent_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/log.h"

namespace ymir {
namespace {

constexpr Seconds kHelloWithin{5};
constexpr Seconds kOversleep{1};
constexpr std::size_t kMostEnded = 10'000;

AgentServer::Clock::duration ticks(Seconds seconds) {
  return std::chrono::duration_cast<AgentServer::Clock::duration>(seconds);
}

Result<int> listen_at(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return Error{ErrorCode::kUnavailable, std::strerror(errno)};
  ::unlink(path.c_str());  // of an earlier ymird: the lock on the state folder says it is gone
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0600) != 0 || ::listen(fd, 64) != 0) {
    const int error = errno;
    ::close(fd);
    return Error{ErrorCode::kUnavailable, path + ": " + std::strerror(error)};
  }
  return fd;
}

bool same_user(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

}  // namespace

Result<> AgentServerOptions::validate() const {
  if (folder.empty()) return Error{ErrorCode::kInvalidArgument, "folder: is not given"};
  if (!(beat.count() > 0) || beat * 3 >= lease)
    return Error{ErrorCode::kInvalidArgument, "beat: must be above 0 and below a third of lease"};
  if (lost < lease * 1.2)
    return Error{ErrorCode::kInvalidArgument, "lost: must be at least 1.2 times lease"};
  if (!(resend.count() > 0) || most_sends < 1 || most_connections < 1)
    return Error{ErrorCode::kInvalidArgument, "resend, most_sends, most_connections: too small"};
  return Ok{};
}

Result<std::unique_ptr<AgentServer>> AgentServer::create(AgentServerOptions options) {
  YMIR_TRY(options.validate());
  YMIR_TRY(make_folders(options.folder));
  if (::chmod(options.folder.c_str(), 0700) != 0)
    return Error{ErrorCode::kPermission, options.folder + ": " + std::strerror(errno)};
  YMIR_TRY_ASSIGN(PlaceBook book, PlaceBook::open(options.folder + "/places.json"));
  YMIR_TRY_ASSIGN(std::string path, unix_path("unix:" + options.folder + "/agent.sock"));
  YMIR_TRY_ASSIGN(const int listener, listen_at(path));
  return std::unique_ptr<AgentServer>(
      new AgentServer(std::move(options), std::move(book), listener, std::move(path)));
}

AgentServer::AgentServer(AgentServerOptions options, PlaceBook book, int listener, std::string path)
    : options_(std::move(options)),
      book_(std::move(book)),
      listener_(listener),
      path_(std::move(path)),
      serviced_(Clock::now()) {}

AgentServer::~AgentServer() {
  ::close(listener_);
  ::unlink(path_.c_str());
}

Result<JoinFile> AgentServer::invite() {
  YMIR_TRY_ASSIGN(const PlaceId place, book_.new_place());
  JoinFile join{"unix:" + path_, place, new_secret()};
  invited_[place] = sha256(join.secret);
  return join;
}

bool AgentServer::is_admitted(PlaceId place) const { return places_.contains(place); }

void AgentServer::lose(PlaceId id, const std::string& why) {
  invited_.erase(id);
  if (auto erased = book_.erase(id); !erased) log::error("{}", erased.error().message);
  const auto at = places_.find(id);
  if (at == places_.end()) return;
  log::warning("place {} is lost: {}", id.value, why);
  std::vector<RunId> runs;
  for (const auto& [run, place] : runs_)
    if (place == id) runs.push_back(run);
  for (const RunId run : runs) give_up(run, "place_lost");
  if (at->second.offered) incoming_.push_back({id, 0, EventBody(PlaceLost{id, why})});
  const int connection = at->second.connection;
  places_.erase(at);
  lost_.push_back(id);
  if (connection != 0) close(connection, "its place is lost");
}

std::vector<PlaceId> AgentServer::take_lost() { return std::exchange(lost_, {}); }

void AgentServer::order(const StartRun& start) {
  if (ended_.contains(start.run)) return;  // its end is on the way to whoever asks again
  const auto place = places_.find(start.place);
  if (place == places_.end() || !place->second.offered) {
    incoming_.push_back({start.place, 0, EventBody(RunLost{start.run, "place_lost", false})});
    return;
  }
  runs_[start.run] = start.place;
  const std::uint64_t id = next_order_++;
  send_order(start.place, start.run, true, StartOrder{id, start}, id);
}

void AgentServer::order(const StopRun& stop) {
  if (ended_.contains(stop.run)) return;
  const auto run = runs_.find(stop.run);
  if (run == runs_.end()) {
    incoming_.push_back({PlaceId{}, 0, EventBody(RunLost{stop.run, "unknown_run", false})});
    return;
  }
  const std::uint64_t id = next_order_++;
  send_order(run->second, stop.run, false, StopOrder{id, stop}, id);
}

void AgentServer::send_order(PlaceId id, RunId run, bool is_start, AgentMessage message,
                             std::uint64_t number) {
  Place& place = places_.at(id);
  place.orders[number] = Order{encode_message(message), run, is_start, {}, 0};
  if (place.connection != 0) resend(id, Clock::now(), false);
}

void AgentServer::resend(PlaceId id, Clock::time_point now, bool all) {
  Place& place = places_.at(id);
  for (auto& [number, order] : place.orders) {
    if (!all && order.sends > 0 && now - order.sent < ticks(options_.resend)) continue;
    if (order.sends >= options_.most_sends && !all)
      return close(place.connection, "orders are not answered");
    order.sends = all ? 1 : order.sends + 1;
    order.sent = now;
    if (auto sent = connections_.at(place.connection).channel.send(order.line); !sent)
      return close(place.connection, sent.error().message);
  }
}

void AgentServer::acknowledge(PlaceId id, std::uint64_t up_to) { say(id, Ack{up_to}); }

void AgentServer::dismiss_all(Seconds within) {
  std::vector<PlaceId> all;
  for (const auto& [id, place] : places_) all.push_back(id);
  for (const PlaceId id : all) say(id, Dismiss{within});
}

std::vector<AgentServer::Incoming> AgentServer::take_incoming() {
  return std::exchange(incoming_, {});
}

std::vector<StepReport> AgentServer::take_progress() { return std::exchange(progress_, {}); }

void AgentServer::say(PlaceId id, const AgentMessage& message) {
  const auto place = places_.find(id);
  if (place == places_.end() || place->second.connection == 0) return;
  const int connection = place->second.connection;
  if (auto sent = connections_.at(connection).channel.send(encode_message(message)); !sent)
    close(connection, sent.error().message);
}

void AgentServer::close(int id, const std::string& why) {
  const auto connection = connections_.find(id);
  if (connection == connections_.end()) return;
  const PlaceId place = connection->second.place;
  connections_.erase(connection);
  if (const auto at = places_.find(place); at != places_.end() && at->second.connection == id)
    at->second.connection = 0;
  log::info("connection {} of place {} closed: {}", id, place.value, why);
}

bool AgentServer::end(RunId run) {
  if (runs_.erase(run) == 0) return false;
  ended_.insert(run);
  if (ended_.size() > kMostEnded) ended_.erase(ended_.begin());
  return true;
}

void AgentServer::give_up(RunId run, const std::string& why) {
  if (end(run)) incoming_.push_back({PlaceId{}, 0, EventBody(RunLost{run, why, false})});
}

void AgentServer::drop(const std::string& why) {
  ++num_dropped_;
  log::warning("report dropped: {}", why);
}

void AgentServer::add_to(std::vector<pollfd>& fds) const {
  fds.push_back({listener_, POLLIN, 0});
  for (const auto& [id, connection] : connections_) {
    const int wanted = (!paused_ && connection.channel.wants_read() ? POLLIN : 0) |
                       (connection.channel.wants_write() ? POLLOUT : 0);
    if (wanted != 0) fds.push_back({connection.channel.fd(), static_cast<short>(wanted), 0});
  }
}

void AgentServer::service(Clock::time_point now) {
  accept_some(now);
  std::vector<int> open;
  for (const auto& [id, connection] : connections_) open.push_back(id);
  for (const int id : open)
    if (connections_.contains(id)) read(id, now);  // what another said may have closed it

  // After an oversleep everything that waited has been read above; nobody is judged by it.
  if (now - serviced_ > ticks(kOversleep))
    for (auto& [id, place] : places_) place.answered = now;
  serviced_ = now;

  std::vector<PlaceId> silent;
  for (auto& [id, place] : places_) {
    if (now - place.answered > ticks(options_.lost)) silent.push_back(id);
    if (place.connection != 0) resend(id, now, false);
  }
  for (const PlaceId id : silent) lose(id, "silent");
}

void AgentServer::accept_some(Clock::time_point now) {
  for (;;) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (connections_.size() >= options_.most_connections || !same_user(fd)) {
      static_cast<void>(LineChannel(fd).send(
          encode_message(HelloRefused{"not_allowed", "another user, or too many connections"})));
      continue;
    }
    connections_[next_connection_++] = {LineChannel(fd, agent_link_options()), {}, now};
  }
}

void AgentServer::read(int id, Clock::time_point now) {
  Connection& connection = connections_.at(id);
  if (!connection.place && now - connection.since > ticks(kHelloWithin))
    return close(id, "no hello");
  if (connection.channel.wants_write())
    if (auto flushed = connection.channel.flush(); !flushed)
      return close(id, flushed.error().message);
  if (paused_) return;
  const auto received = connection.channel.receive();
  while (auto line = connection.channel.next()) {
    auto message = decode_message(*line);
    if (!message && message.error().code == ErrorCode::kNotFound) continue;  // of a newer agent
    if (!message) {
      ++num_dropped_;
      return close(id, "a line that is no message: " + message.error().message);
    }
    if (!hear(id, *message, now)) return;
  }
  if (!received) close(id, received.error().message);
}

bool AgentServer::hear(int id, const AgentMessage& message, Clock::time_point now) {
  const PlaceId place_id = connections_.at(id).place;
  if (const auto* hello = std::get_if<Hello>(&message); hello != nullptr && !place_id)
    return welcome(id, *hello, now);
  const auto place = places_.find(place_id);
  if (place == places_.end()) {
    close(id, "it did not say hello first");
    return false;
  }
  if (const auto* beat = std::get_if<Beat>(&message)) {
    place->second.answered = now;
    say(place_id, BeatOk{beat->n});
  } else if (const auto* event = std::get_if<Numbered>(&message)) {
    if (!take(place_id, *event)) {
      close(id, "a gap in the numbers of its events");
      return false;
    }
  } else if (const auto* progress = std::get_if<StepProgress>(&message)) {
    const auto run = runs_.find(progress->step.run);
    if (run != runs_.end() && run->second == place_id) progress_.push_back(progress->step);
  } else if (const auto* answer = std::get_if<Answer>(&message)) {
    take(place_id, *answer);
  } else {
    close(id, "a message that only ymird sends");
    return false;
  }
  return connections_.contains(id);
}

std::optional<HelloRefused> AgentServer::why_not(const Hello& hello, std::string& key) {
  if (hello.protocol_min > kAgentProtocol || hello.protocol_max < kAgentProtocol)
    return HelloRefused{
        "wrong_version",
        fmt::format("ymird {} speaks protocol {}, agent {} speaks {}-{}", YMIR_VERSION,
                    kAgentProtocol, hello.build, hello.protocol_min, hello.protocol_max)};
  if (hello.num_slots < 1) return HelloRefused{"not_allowed", "no slots"};
  if (!hello.secret.empty()) {
    const auto invited = invited_.find(hello.place);
    if (invited == invited_.end() || !same_secret(invited->second, sha256(hello.secret)))
      return HelloRefused{"bad_secret", "the secret is wrong or was used"};
    key = new_secret();
    PlaceBook::Entry entry;
    if (const auto known = book_.entries().find(hello.place); known != book_.entries().end())
      entry = known->second;
    entry.key_hash = sha256(key);
    invited_.erase(invited);
    if (auto saved = book_.set(hello.place, entry); !saved)
      return HelloRefused{"not_allowed", saved.error().message};
    return std::nullopt;
  }
  const auto known = book_.entries().find(hello.place);
  if (known == book_.entries().end() || known->second.key_hash.empty())
    return HelloRefused{"unknown_place", fmt::format("place {} is gone", hello.place.value)};
  if (!same_secret(known->second.key_hash, sha256(hello.key)))
    return HelloRefused{"superseded", fmt::format("place {} has another key", hello.place.value)};
  return std::nullopt;
}

bool AgentServer::welcome(int id, const Hello& hello, Clock::time_point now) {
  std::string key;
  if (const auto refused = why_not(hello, key)) {
    static_cast<void>(connections_.at(id).channel.send(encode_message(*refused)));
    close(id, "refused: " + refused->code);
    return false;
  }
  Place& place = places_[hello.place];
  // A half-dead connection looks fine from here: the newer one counts.
  if (place.connection != 0) close(place.connection, "its agent came back");
  place.connection = id;
  place.answered = now;
  connections_.at(id).place = hello.place;
  say(hello.place, Welcome{kAgentProtocol, hello.place, key, options_.lease, options_.beat});
  if (connections_.contains(id)) reconcile(hello.place, hello, now);
  return connections_.contains(id);
}

void AgentServer::reconcile(PlaceId id, const Hello& hello, Clock::time_point now) {
  Place& place = places_.at(id);
  if (place.next_number == 0) place.next_number = hello.first_number;
  place.ready = PlaceReady{id, hello.node, hello.num_slots, hello.hardware};
  const std::set<RunId> told(hello.runs.begin(), hello.runs.end());
  std::vector<RunId> strangers;
  for (const RunId run : told)
    if (!runs_.contains(run) && !place.leaving.contains(run) && !place.offered)
      strangers.push_back(run);
  for (const RunId run : strangers) {
    place.leaving.insert(run);
    const std::uint64_t number = next_order_++;
    place.orders[number] =
        Order{encode_message(StopOrder{number, StopRun{run, true}}), run, false, {}, 0};
  }
  // Runs that it should have and does not know, and whose order is not under way either.
  std::vector<RunId> missing;
  for (const auto& [run, where] : runs_)
    if (where == id && !told.contains(run) &&
        std::none_of(place.orders.begin(), place.orders.end(), [&](const auto& order) {
          return order.second.is_start && order.second.run == run;
        }))
      missing.push_back(run);
  for (const RunId run : missing) give_up(run, "unknown_to_agent");
  resend(id, now, true);
  offer_if_free(id);
}

void AgentServer::offer_if_free(PlaceId id) {
  const auto place = places_.find(id);
  if (place == places_.end() || place->second.offered || !place->second.leaving.empty()) return;
  place->second.offered = true;
  log::info("place {} is ready: {} slots on {}", id.value, place->second.ready.num_slots,
            place->second.ready.node);
  incoming_.push_back({id, 0, EventBody(place->second.ready)});
}

bool AgentServer::take(PlaceId id, const Numbered& event) {
  Place& place = places_.at(id);
  if (event.number < place.next_number) return true;  // sent again: we have it
  if (event.number > place.next_number) return false;
  ++place.next_number;
  const std::optional<RunId> run = reported_run(event.body);
  const auto known = run ? runs_.find(*run) : runs_.end();
  Incoming incoming{id, event.number, std::nullopt};
  if (known != runs_.end() && known->second == id) {
    incoming.body = event.body;
    if (ends_run(event.body)) end(*run);
  } else if (run && place.leaving.contains(*run)) {
    if (ends_run(event.body)) place.leaving.erase(*run);
  } else {
    drop(fmt::format("place {} has no run {}", id.value, run ? to_string(*run) : "at all"));
  }
  incoming_.push_back(std::move(incoming));
  offer_if_free(id);
  return true;
}

void AgentServer::take(PlaceId id, const Answer& answer) {
  Place& place = places_.at(id);
  const auto at = place.orders.find(answer.id);
  if (at == place.orders.end()) return;
  const Order order = at->second;
  place.orders.erase(at);
  if (answer.code == "ok") return;
  log::warning("place {} refused an order for {}: {}: {}", id.value, to_string(order.run),
               answer.code, answer.text);
  if (!order.is_start) {
    // Nothing of that run is left there: whoever waits for its end has to hear it. A start that is
    // still under way is answered by itself.
    if (answer.code != "unknown_run") return;
    if (place.leaving.erase(order.run) > 0) return offer_if_free(id);
    const bool may_come = std::ranges::any_of(place.orders, [&](const auto& other) {
      return other.second.is_start && other.second.run == order.run;
    });
    if (!may_come) give_up(order.run, "unknown_to_agent");
    return;
  }
  give_up(order.run, "start_failed: " + answer.text);
}

}  // namespace ymir
