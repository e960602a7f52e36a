// LineChannel: text lines over a connected stream descriptor (socket pair, Unix socket, pipe).
//
// A line is any bytes without '\n', at most `max_line` of them, and ends with one '\n'. The
// descriptor is made non-blocking; partial writes, EINTR and lines cut anywhere are handled here.
// Both queues are bounded: send() refuses with kExhausted when the peer does not read, receive()
// leaves bytes in the kernel while too many lines wait, so that the peer is slowed down. A peer
// that closed or a line that is too long ends the channel for good; lines that arrived whole before
// that are still handed out. Thread-compatible: one thread at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "ymir/base/result.h"
#include "ymir/base/time.h"

namespace ymir {

class LineChannel {
 public:
  struct Options {
    std::size_t max_line = 256 * 1024;           // bytes, without the '\n'
    std::size_t max_incoming = 4 * 1024 * 1024;  // bytes of whole lines not yet taken by next()
    std::size_t max_outgoing = 8 * 1024 * 1024;  // bytes accepted by send() and not yet written
  };

  LineChannel() = default;                                      // closed
  explicit LineChannel(int fd) : LineChannel(fd, Options{}) {}  // owns the descriptor
  LineChannel(int fd, Options options);
  ~LineChannel();
  LineChannel(LineChannel&& other) noexcept;
  LineChannel& operator=(LineChannel&& other) noexcept;

  // For poll(): the descriptor (-1 when closed) and what to wait for.
  int fd() const { return fd_; }
  bool wants_read() const { return fd_ >= 0 && incoming_bytes_ < options_.max_incoming; }
  bool wants_write() const { return fd_ >= 0 && outgoing_bytes() > 0; }
  std::size_t outgoing_bytes() const { return outgoing_.size() - written_; }

  // Reads what has arrived, without waiting. kUnavailable: the peer closed or the connection broke;
  // kExhausted: a line longer than max_line. After an error the channel is closed.
  Result<> receive();
  // The oldest whole line not yet taken.
  std::optional<std::string> next();

  // Queues the line and writes what the peer takes now. kExhausted: the queue is full and nothing
  // was queued, or the line is too long; kUnavailable: the connection broke.
  Result<> send(std::string_view line);
  // Writes what the peer takes now.
  Result<> flush();

  // For a program with one peer: waits up to `timeout` for a line, writing meanwhile what is
  // queued. Empty: the time is over. Zero: only looks.
  Result<std::optional<std::string>> wait_line(Seconds timeout);
  // Waits until everything queued is written. kTimeout: it was not.
  Result<> drain(Seconds timeout);

  void close();

 private:
  Result<> take(std::string_view bytes);
  Error broken(ErrorCode code, const std::string& text);

  int fd_ = -1;
  Options options_{};
  std::string partial_{};            // bytes of the line that has not ended yet
  std::deque<std::string> lines_{};  // whole, not yet taken
  std::size_t incoming_bytes_ = 0;   // of lines_
  std::string outgoing_{};
  std::size_t written_ = 0;  // prefix of outgoing_ that is out
};

}  // namespace ymir
