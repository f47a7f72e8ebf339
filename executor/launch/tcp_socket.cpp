#include "executor/launch/tcp_socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <thread>

#include "core/base/error.hpp"

namespace meshwright {
namespace {

using Clock = std::chrono::steady_clock;
using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw RuntimeFailure({.where = where,
                        .what = what,
                        .hint = "check MASTER_ADDR and MASTER_PORT, which the launcher sets"});
}

Found find(const std::string& host, std::uint32_t port, bool listens, const std::string& where) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (listens ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), fmt::format("{}", port).c_str(), &hints, &found);
  if (error != 0)
    fail(where, fmt::format("cannot resolve address '{}': {}", host, ::gai_strerror(error)));
  return {found, ::freeaddrinfo};
}

/// `get`: getsockname() or getpeername().
template <class Get>
SocketAddress address_from(Get get, int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  auto* generic = reinterpret_cast<sockaddr*>(&storage);  // NOLINT: socket API
  get(fd, generic, &size);
  SocketAddress address;
  ::getnameinfo(generic, size, address.host.data(), address.host.size(), nullptr, 0,
                NI_NUMERICHOST);
  address.port = storage.ss_family == AF_INET6
                     ? ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port)  // NOLINT
                     : ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);   // NOLINT
  return address;
}

}  // namespace

bool wait_for(int fd, short events, const Deadline& deadline) {
  constexpr std::int64_t kSlice = 100;  // milliseconds
  while (Clock::now() < deadline.end) {
    deadline.check();
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline.end - Clock::now());
    pollfd polled{fd, events, 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(std::min(left.count() + 1, kSlice)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
  return false;
}

bool is_closed(int fd) {
  std::byte next{};
  return fd >= 0 && ::recv(fd, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

bool read_all(int fd, std::span<std::byte> to, const Deadline& deadline) {
  while (!to.empty()) {
    if (!wait_for(fd, POLLIN, deadline)) return false;
    const ssize_t n = ::recv(fd, to.data(), to.size(), 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (n > 0) to = to.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

bool write_all(int fd, std::span<const std::byte> from, const Deadline& deadline) {
  while (!from.empty()) {
    if (!wait_for(fd, POLLOUT, deadline)) return false;
    const ssize_t n = ::send(fd, from.data(), from.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (n > 0) from = from.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

SocketAddress own_address(int fd) { return address_from(::getsockname, fd); }
SocketAddress peer_address(int fd) { return address_from(::getpeername, fd); }

FileDescriptor prepared_socket(int fd) {
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return FileDescriptor(fd);
}

FileDescriptor listen_at(const std::string& host, std::uint32_t port, const std::string& where) {
  constexpr int kBacklog = 4096;  // others may connect as well
  const Found found = find(host, port, true, where);
  for (const addrinfo* a = found.get(); a != nullptr; a = a->ai_next) {
    const int fd = ::socket(a->ai_family, a->ai_socktype, a->ai_protocol);
    if (fd < 0) continue;
    FileDescriptor socket = prepared_socket(fd);
    const int yes = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (::bind(fd, a->ai_addr, a->ai_addrlen) == 0 && ::listen(fd, kBacklog) == 0) return socket;
  }
  fail(where, fmt::format("cannot listen on {} port {}: {}", host, port,
                          std::generic_category().message(errno)));
}

std::optional<FileDescriptor> connect_to(const std::string& host, std::uint32_t port,
                                         const Deadline& deadline, const std::string& where) {
  const Found found = find(host, port, false, where);
  while (Clock::now() < deadline.end) {
    deadline.check();
    for (const addrinfo* a = found.get(); a != nullptr; a = a->ai_next) {
      const int fd = ::socket(a->ai_family, a->ai_socktype, a->ai_protocol);
      if (fd < 0) continue;
      FileDescriptor socket = prepared_socket(fd);
      if (::connect(fd, a->ai_addr, a->ai_addrlen) == 0) return socket;
      if (errno != EINPROGRESS || !wait_for(fd, POLLOUT, deadline)) continue;
      int error = 0;
      socklen_t size = sizeof(error);
      ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error == 0) return socket;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return std::nullopt;
}

}  // namespace meshwright
