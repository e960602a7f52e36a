#include "ymir/base/line_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace ymir {
namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point deadline_after(Seconds timeout) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout);
}

// Waits for `events` until the deadline; the events that came, 0 at the deadline.
short wait_for(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd entry{fd, events, 0};
    const int timeout = static_cast<int>(std::clamp<long long>(left.count(), 0, 1'000'000'000));
    const int ready = ::poll(&entry, 1, timeout);
    if (ready > 0) return entry.revents;
    if (ready == 0 && Clock::now() >= deadline) return 0;
    if (ready < 0 && errno != EINTR) return POLLERR;
  }
}

// A socket must not raise SIGPIPE; what is no socket (a pipe) is written plainly.
ssize_t write_some(int fd, const char* bytes, std::size_t size) {
  const ssize_t sent = ::send(fd, bytes, size, MSG_NOSIGNAL);
  return sent < 0 && errno == ENOTSOCK ? ::write(fd, bytes, size) : sent;
}

}  // namespace

LineChannel::LineChannel(int fd, Options options) : fd_(fd), options_(options) {
  ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
  ::fcntl(fd_, F_SETFD, FD_CLOEXEC);
}

LineChannel::~LineChannel() { close(); }

LineChannel::LineChannel(LineChannel&& other) noexcept { *this = std::move(other); }

LineChannel& LineChannel::operator=(LineChannel&& other) noexcept {
  if (this == &other) return *this;
  close();
  fd_ = std::exchange(other.fd_, -1);
  options_ = other.options_;
  partial_ = std::exchange(other.partial_, {});
  lines_ = std::exchange(other.lines_, {});
  incoming_bytes_ = std::exchange(other.incoming_bytes_, 0);
  outgoing_ = std::exchange(other.outgoing_, {});
  written_ = std::exchange(other.written_, 0);
  return *this;
}

void LineChannel::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Error LineChannel::broken(ErrorCode code, const std::string& text) {
  close();
  return {code, text};
}

Result<> LineChannel::receive() {
  if (fd_ < 0) return Error{ErrorCode::kUnavailable, "the channel is closed"};
  char buffer[1 << 16];
  while (incoming_bytes_ < options_.max_incoming) {
    const ssize_t n = ::read(fd_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Ok{};
    if (n < 0)
      return broken(ErrorCode::kUnavailable, std::string("cannot read: ") + std::strerror(errno));
    if (n == 0)
      return broken(ErrorCode::kUnavailable, partial_.empty()
                                                 ? "the peer closed the channel"
                                                 : "the peer closed the channel within a line");
    YMIR_TRY(take({buffer, static_cast<std::size_t>(n)}));
  }
  return Ok{};
}

Result<> LineChannel::take(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    if (partial_.size() + end > options_.max_line)
      return broken(ErrorCode::kExhausted,
                    "a line longer than " + std::to_string(options_.max_line) + " bytes");
    partial_.append(bytes.substr(0, end));
    if (end == bytes.size()) return Ok{};
    incoming_bytes_ += partial_.size() + 1;
    lines_.push_back(std::exchange(partial_, {}));
    bytes.remove_prefix(end + 1);
  }
  return Ok{};
}

std::optional<std::string> LineChannel::next() {
  if (lines_.empty()) return std::nullopt;
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  incoming_bytes_ -= line.size() + 1;
  return line;
}

Result<> LineChannel::send(std::string_view line) {
  YMIR_CHECK(line.find('\n') == std::string_view::npos, "a line that holds a line break");
  if (fd_ < 0) return Error{ErrorCode::kUnavailable, "the channel is closed"};
  if (line.size() > options_.max_line)
    return Error{ErrorCode::kExhausted, "line of " + std::to_string(line.size()) +
                                            " bytes, at most " + std::to_string(options_.max_line)};
  if (outgoing_bytes() + line.size() + 1 > options_.max_outgoing)
    return Error{ErrorCode::kExhausted, "the peer does not read: " +
                                            std::to_string(outgoing_bytes()) + " bytes are queued"};
  outgoing_.append(line);
  outgoing_.push_back('\n');
  return flush();
}

Result<> LineChannel::flush() {
  if (fd_ < 0) return Error{ErrorCode::kUnavailable, "the channel is closed"};
  while (written_ < outgoing_.size()) {
    const ssize_t n = write_some(fd_, outgoing_.data() + written_, outgoing_.size() - written_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n < 0) {
      // The peer may have said why before it closed: those lines stay readable by next().
      const std::string why = std::string("cannot write: ") + std::strerror(errno);
      static_cast<void>(receive());
      return broken(ErrorCode::kUnavailable, why);
    }
    written_ += static_cast<std::size_t>(n);
  }
  // Keeps the erased prefix amortised: a slow peer costs no copy of the queue for each write.
  if (written_ == outgoing_.size() || written_ > options_.max_outgoing / 2) {
    outgoing_.erase(0, written_);
    written_ = 0;
  }
  return Ok{};
}

Result<std::optional<std::string>> LineChannel::wait_line(Seconds timeout) {
  const auto deadline = deadline_after(timeout);
  for (;;) {
    if (auto line = next()) return std::optional<std::string>(std::move(line));
    if (fd_ < 0) return Error{ErrorCode::kUnavailable, "the channel is closed"};
    const short events = static_cast<short>(POLLIN | (wants_write() ? POLLOUT : 0));
    const short ready = wait_for(fd_, events, deadline);
    if (ready == 0) return std::optional<std::string>();
    if ((ready & POLLOUT) != 0 && !flush() && lines_.empty())
      return Error{ErrorCode::kUnavailable, "the channel is closed"};
    if ((ready & ~POLLOUT) != 0 && fd_ >= 0)
      if (auto received = receive(); !received && lines_.empty()) return received.error();
  }
}

Result<> LineChannel::drain(Seconds timeout) {
  const auto deadline = deadline_after(timeout);
  YMIR_TRY(flush());
  while (wants_write()) {
    if (wait_for(fd_, POLLOUT, deadline) == 0)
      return Error{ErrorCode::kTimeout, "the peer does not read: " +
                                            std::to_string(outgoing_bytes()) + " bytes are queued"};
    YMIR_TRY(flush());
  }
  return Ok{};
}

}  // namespace ymir
