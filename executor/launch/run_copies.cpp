#include "executor/launch/run_copies.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
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

/// Forwards SIGINT and SIGTERM to the copies, which write what was measured. They are a process
/// group of their own, so that a Ctrl-C of the terminal does not reach them a second time.
void forward_signals(const std::atomic<bool>& interrupted) {
  struct sigaction action {};
  action.sa_handler = [](int signal) { ::kill(-group_of_copies, signal); };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  if (interrupted) ::kill(-group_of_copies, SIGTERM);  // a signal before the handler was set
}

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

CopiesStatus run_copies(int ranks, const std::atomic<bool>& interrupted) {
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
  CopiesStatus end;
  int signal_of_first = 0;
  for (std::size_t rank = 0; rank < copies.size(); ++rank) {
    int status = 0;
    while (::waitpid(copies[rank], &status, 0) < 0 && errno == EINTR) {
    }
    const int own = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (end.exit_code == 0) end.exit_code = own;
    if (rank == 0 && WIFSIGNALED(status)) signal_of_first = WTERMSIG(status);
  }
  if (signal_of_first != 0 && signal_of_first != SIGINT && signal_of_first != SIGTERM)
    end.failure = {.kind = FailureKind::kDeath,
                   .rank = RankId(0),
                   .cause = "was killed by " + signal_text(signal_of_first)};
  return end;
}

}  // namespace meshwright
