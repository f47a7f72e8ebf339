#include "executor/launch/guarded_process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

namespace meshwright {
namespace {

using std::chrono::milliseconds;

TEST(GuardedProcess, TellsHowItsChildEnded) {
  const auto end = run_in_child(milliseconds(100));
  if (!end) ::_exit(7);
  EXPECT_EQ(end->exit_code, 7);
  EXPECT_EQ(end->signal, 0);
  EXPECT_FALSE(end->was_suspended);
}

TEST(GuardedProcess, KillsAChildThatIsSuspendedForTooLong) {
  const auto end = run_in_child(milliseconds(100));
  if (!end) {
    ::raise(SIGSTOP);
    ::_exit(7);
  }
  EXPECT_EQ(end->signal, SIGKILL);
  EXPECT_TRUE(end->was_suspended);
}

/// Another process continues it after 50 ms.
TEST(GuardedProcess, WaitsForAChildThatContinues) {
  const auto end = run_in_child(std::chrono::seconds(20));
  if (!end) {
    const pid_t self = ::getpid();
    if (::fork() == 0) {
      std::this_thread::sleep_for(milliseconds(50));
      ::kill(self, SIGCONT);
      ::_exit(0);
    }
    ::raise(SIGSTOP);
    ::_exit(7);
  }
  EXPECT_EQ(end->exit_code, 7);
  EXPECT_FALSE(end->was_suspended);
}

}  // namespace
}  // namespace meshwright
