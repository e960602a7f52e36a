#include "ymir/base/line_channel.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace ymir {
namespace {

std::pair<int, int> connected() {
  int fds[2] = {-1, -1};
  YMIR_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0, "socketpair");
  return {fds[0], fds[1]};
}

void write_raw(int fd, std::string_view bytes) {
  YMIR_CHECK(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
             "write");
}

std::vector<std::string> take_all(LineChannel& channel) {
  std::vector<std::string> lines;
  while (auto line = channel.next()) lines.push_back(*std::move(line));
  return lines;
}

TEST(LineChannel, HandsOutWholeLinesInOrder) {
  const auto [here, there] = connected();
  LineChannel channel(here);
  write_raw(there, "one\n\ntwo\nthr");

  ASSERT_TRUE(channel.receive());
  const auto first = take_all(channel);
  write_raw(there, "ee\n");
  ASSERT_TRUE(channel.receive());
  const auto second = take_all(channel);

  EXPECT_EQ(first, (std::vector<std::string>{"one", "", "two"}));
  EXPECT_EQ(second, std::vector<std::string>{"three"});
  ::close(there);
}

RC_GTEST_PROP(LineChannel, GivesTheSameLinesHoweverTheBytesAreCut,
              (const std::vector<std::string>& words, unsigned cut)) {
  const auto [here, there] = connected();
  LineChannel channel(here);
  std::vector<std::string> sent;
  std::string bytes;
  for (std::string word : words) {
    std::erase(word, '\n');
    bytes += word + "\n";
    sent.push_back(word);
  }

  std::vector<std::string> received;
  const std::size_t piece = 1 + cut % 7;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    write_raw(there, std::string_view(bytes).substr(at, piece));
    RC_ASSERT(static_cast<bool>(channel.receive()));
    for (auto& line : take_all(channel)) received.push_back(std::move(line));
  }

  RC_ASSERT(received == sent);
  ::close(there);
}

TEST(LineChannel, ClosesOnALineThatIsTooLongEvenWithoutItsEnd) {
  const auto [here, there] = connected();
  LineChannel channel(here, {.max_line = 10});
  write_raw(there, "0123456789\n01234567890");

  const auto received = channel.receive();

  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(channel.fd(), -1);
  EXPECT_EQ(take_all(channel), std::vector<std::string>{"0123456789"});
  ::close(there);
}

TEST(LineChannel, HandsOutWhatCameBeforeThePeerClosed) {
  const auto [here, there] = connected();
  LineChannel channel(here);
  write_raw(there, "last words\nhalf a li");
  ::close(there);

  const auto line = channel.wait_line(Seconds(1));
  const auto after = channel.wait_line(Seconds(1));

  ASSERT_TRUE(line);
  EXPECT_EQ(**line, "last words");
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().code, ErrorCode::kUnavailable);
}

TEST(LineChannel, RefusesToQueueMoreThanTheLimitAndLosesNothingThatItAccepted) {
  const auto [here, there] = connected();
  LineChannel sender(here, {.max_outgoing = 100'000});
  LineChannel receiver(there);
  const std::string line(5'000, 'x');

  int accepted = 0;
  while (sender.send(line)) ++accepted;
  const bool still_open = sender.fd() >= 0;
  int received = 0;
  while (received < accepted) {
    ASSERT_TRUE(receiver.receive());
    received += static_cast<int>(take_all(receiver).size());
    ASSERT_TRUE(sender.flush());
  }

  EXPECT_GT(accepted, 19);
  EXPECT_TRUE(still_open);
  EXPECT_FALSE(sender.wants_write());
}

TEST(LineChannel, StopsReadingWhileTooManyLinesWait) {
  const auto [here, there] = connected();
  LineChannel channel(here, {.max_incoming = 1'000});
  LineChannel peer(there);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(peer.send(std::string(2'000, 'a')));

  ASSERT_TRUE(channel.receive());
  const bool reads_on = channel.wants_read();
  const auto first = take_all(channel);
  ASSERT_TRUE(channel.receive());
  const auto second = take_all(channel);

  EXPECT_FALSE(reads_on);
  EXPECT_LT(first.size(), 100u);
  EXPECT_GT(second.size(), 0u);
}

TEST(LineChannel, SaysTimeoutWhenThePeerNeverReads) {
  const auto [here, there] = connected();
  LineChannel channel(here, {.max_outgoing = 4 << 20});
  while (channel.send(std::string(100'000, 'x')));

  const auto drained = channel.drain(Seconds(0.01));

  ASSERT_FALSE(drained);
  EXPECT_EQ(drained.error().code, ErrorCode::kTimeout);
  ::close(there);
}

TEST(LineChannel, ReportsABrokenConnectionWithoutASignal) {
  const auto [here, there] = connected();
  LineChannel channel(here);
  ::close(there);

  const auto sent = channel.send("anybody there?");

  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(channel.fd(), -1);
}

TEST(LineChannel, WaitLineGivesNothingWhenTheTimeIsOver) {
  const auto [here, there] = connected();
  LineChannel channel(here);

  const auto line = channel.wait_line(Seconds(0));

  ASSERT_TRUE(line);
  EXPECT_FALSE(line->has_value());
  ::close(there);
}

}  // namespace
}  // namespace ymir
