#include "executor/launch/guarded_process.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>
#include <thread>

#include "core/base/error.hpp"

namespace meshwright {
namespace {

// Global because signal handlers cannot access anything else.
int exit_code_when_ended = 0;
volatile std::sig_atomic_t is_told_to_end = 0;

void handle_end(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

/// Waits until the child changes its state. An interrupted wait begins anew.
int next_state_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, WUNTRACED | WCONTINUED) < 0 && errno == EINTR) {
  }
  return status;
}

/// Of a suspended child: its next state, or nothing after `time`. Long gaps count only in part: if
/// this process was suspended, so was the child.
std::optional<int> next_state_within(std::chrono::milliseconds time, pid_t child) {
  constexpr std::chrono::milliseconds kPollInterval{20};
  for (std::chrono::milliseconds waited{}; waited < time; waited += kPollInterval) {
    int status = 0;
    if (::waitpid(child, &status, WUNTRACED | WCONTINUED | WNOHANG) > 0) return status;
    std::this_thread::sleep_for(kPollInterval);
  }
  return std::nullopt;
}

}  // namespace

std::optional<ChildStatus> run_in_child(std::chrono::milliseconds longest_suspension) {
  std::fflush(nullptr);  // otherwise the child would flush it, too
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0)
    throw RuntimeFailure({"--ranks mpi",
                          fmt::format("cannot start the process of a rank: {}",
                                      std::generic_category().message(errno)),
                          "raise the process limit (ulimit -u)"});
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    return std::nullopt;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // if mpirun is killed, nothing else ends the ranks promptly
  handle_end([](int) { is_told_to_end = 1; });
  ChildStatus end;
  int status = next_state_of(child);
  while (!WIFEXITED(status) && !WIFSIGNALED(status)) {
    const std::optional<int> next =
        WIFSTOPPED(status) ? next_state_within(longest_suspension, child) : next_state_of(child);
    if (!next) {
      end.was_suspended = true;
      ::kill(child, SIGKILL);
    }
    status = next ? *next : next_state_of(child);
  }
  end.was_terminated = is_told_to_end != 0;
  (WIFSIGNALED(status) ? end.signal : end.exit_code) =
      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return end;
}

void wait_for_termination(std::chrono::milliseconds time, int exit_code) {
  exit_code_when_ended = exit_code;
  handle_end([](int) { ::_exit(exit_code_when_ended); });
  std::this_thread::sleep_for(time);
}

}  // namespace meshwright
