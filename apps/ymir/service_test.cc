#include "apps/ymir/service.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>

namespace ymir::cli {
namespace {

using testing::ExitedWithCode;

// In a child: a program is asked to end by `number`, which it ignored before or not.
void ask(int number, bool ignored) {
  std::signal(number, ignored ? SIG_IGN : SIG_DFL);
  catch_interrupt();
  std::raise(number);
  std::_Exit(interrupted() ? 0 : 3);
}

TEST(Interrupt, IsWhatATerminalOrASchedulerSends) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    EXPECT_EXIT(ask(number, false), ExitedWithCode(0), "") << number;
}

TEST(Interrupt, IsNotWhatTheCallerHadIgnored) {
  EXPECT_EXIT(ask(SIGHUP, true), ExitedWithCode(3), "");
}

TEST(Interrupt, ALaterOneEndsTheProgram) {
  EXPECT_EXIT(
      {
        catch_interrupt(std::chrono::milliseconds(0));
        std::raise(SIGTERM);
        std::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST(Interrupt, TheSameTwiceAtOnceIsOneWish) {  // as `timeout` sends it
  EXPECT_EXIT(
      {
        catch_interrupt(std::chrono::hours(1));
        std::raise(SIGTERM);
        std::raise(SIGTERM);
        std::_Exit(interrupted() ? 0 : 3);
      },
      ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ymir::cli
