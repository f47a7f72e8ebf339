#include "executor/launch/run_copies.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "executor/launch/handshake.hpp"
#include "executor/launch/supervision.hpp"

namespace meshwright {
namespace {

[[noreturn]] void fail(const std::string& call) {
  throw RuntimeFailure({.where = "--ranks job",
                        .what = fmt::format("{}: {}", call, std::generic_category().message(errno)),
                        .hint = "use fewer ranks, or --ranks threads"});
}

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> arguments;
  for (std::size_t first = 0; first < all.size();) {
    const std::size_t end = all.find('\0', first);
    arguments.push_back(all.substr(first, end - first));
    first = end == std::string::npos ? all.size() : end + 1;
  }
  return arguments;
}

/// In the child; does not return.
[[noreturn]] void exec_copy(int rank, int ranks, std::uint16_t port, const std::string& secret,
                            const std::vector<std::string>& arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto set = [](const char* name, const std::string& value) {
    ::setenv(name, value.c_str(), 1);
  };
  for (const char* name : {"RANK", "LOCAL_RANK"}) set(name, std::to_string(rank));
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) set(name, std::to_string(ranks));
  set("MASTER_ADDR", "127.0.0.1");
  set("MESHWRIGHT_JOB_SECRET", secret);
  set("MASTER_PORT", std::to_string(port));
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  ::execv("/proc/self/exe", pointers.data());
  ::_exit(127);
}

/// The process group of all copies, for the signal handler.
volatile pid_t group_of_copies = 0;
volatile std::sig_atomic_t signal_is_forwarded = 0;

void forward_signal(int signal) {
  signal_is_forwarded = 1;
  ::kill(-group_of_copies, signal);
}

/// Forwards SIGINT and SIGTERM to the copies, which write what was measured. They are a process
/// group of their own, so that a Ctrl-C of the terminal does not reach them a second time.
void forward_signals(const std::atomic<bool>& interrupted) {
  struct sigaction action {};
  action.sa_handler = forward_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  if (interrupted) forward_signal(SIGTERM);  // a signal before the handler was set
}

/// Waits for all copies. Once one has failed, the others get `grace` to end by themselves, then
/// SIGTERM, then SIGKILL.
class CopiesWatch {
 public:
  CopiesWatch(std::vector<pid_t> copies, std::chrono::milliseconds grace)
      : copies_(std::move(copies)), grace_(grace) {}

  CopiesStatus wait() {
    constexpr std::chrono::milliseconds kWaitInterval{20};
    while (ended_ < copies_.size()) {
      int status = 0;
      const pid_t copy = ::waitpid(-copies_.front(), &status, WNOHANG);
      if (copy > 0) {
        note(copy, status);
      } else {
        stop_late_ones();
        std::this_thread::sleep_for(kWaitInterval);
      }
    }
    // Rank 0 reports how other ranks ended.
    if (first_has_reported_) end_.failure.reset();
    return std::move(end_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  void note(pid_t copy, int status) {
    ++ended_;
    const auto rank = static_cast<std::size_t>(std::ranges::find(copies_, copy) - copies_.begin());
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const int code = signal == 0 ? WEXITSTATUS(status) : 128 + signal;
    const bool is_interrupted = signal == SIGINT || signal == SIGTERM || code == 128 + SIGINT;
    // Unless it has only followed the SIGTERM from here.
    if (rank == 0 && signal == 0 && !(is_interrupted && sent_ != 0)) first_has_reported_ = true;
    if (is_interrupted) {
      if (!signal_is_forwarded) forward_signal(SIGTERM);  // this copy alone was interrupted
      if (rank == 0 && !end_.failure && signal != 0)
        end_.failure = RankFailure{
            .kind = FailureKind::kInterruption, .rank = RankId(0), .cause = "interrupted"};
      if (!has_error_code_) end_.exit_code = 128 + SIGINT;
      return;
    }
    if (code == 0) return;
    if (!failed_at_) failed_at_ = Clock::now();
    if (signal == 0 && !has_error_code_) {
      has_error_code_ = true;
      end_.exit_code = code;
    }
    const bool is_known = end_.failure && end_.failure->kind == FailureKind::kDeath;
    if (signal == 0 || is_known || sent_ == SIGKILL) return;
    end_.failure = RankFailure{.kind = FailureKind::kDeath,
                               .rank = RankId(rank),
                               .cause = "was killed by " + signal_text(signal)};
  }

  void stop_late_ones() {
    if (!failed_at_ || Clock::now() - *failed_at_ < grace_ || sent_ == SIGKILL) return;
    sent_ = sent_ == 0 ? SIGTERM : SIGKILL;
    ::kill(-copies_.front(), sent_);
    failed_at_ = Clock::now();
  }

  std::vector<pid_t> copies_;  ///< by rank; the first leads their process group
  std::chrono::milliseconds grace_;
  std::size_t ended_ = 0;
  bool first_has_reported_ = false, has_error_code_ = false;
  std::optional<Clock::time_point> failed_at_;
  int sent_ = 0;  ///< the last signal; 0: none
  CopiesStatus end_;
};

}  // namespace

std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);  // NOLINT: as it is called
  const bool found = ::bind(fd, generic, size) == 0 && ::getsockname(fd, generic, &size) == 0;
  ::close(fd);
  if (!found) fail("bind");
  return ntohs(address.sin_port);
}

CopiesStatus run_copies(int ranks, const std::atomic<bool>& interrupted,
                        std::chrono::milliseconds grace) {
  const std::vector<std::string> arguments = own_arguments();
  const std::uint16_t port = free_port();
  const std::string secret = new_secret();
  std::fflush(nullptr);
  std::vector<pid_t> copies;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t copy = ::fork();
    if (copy < 0) {
      for (const pid_t started : copies) ::kill(started, SIGKILL);
      fail("fork");
    }
    const pid_t group = copies.empty() ? copy : copies.front();
    if (copy == 0) ::setpgid(0, group);
    if (copy == 0) exec_copy(rank, ranks, port, secret, arguments);
    ::setpgid(copy, group);  // in parent and child: whichever runs first
    copies.push_back(copy);
  }
  group_of_copies = copies.front();
  forward_signals(interrupted);
  return CopiesWatch(std::move(copies), grace).wait();
}

}  // namespace meshwright
