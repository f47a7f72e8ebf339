#include "executor/launch/tcp_rendezvous.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>

#include "core/base/error.hpp"

namespace meshwright {
namespace {

using Clock = std::chrono::steady_clock;

/// Unrelated connections that send nothing must not delay the rendezvous.
constexpr std::chrono::milliseconds kHandshakeTimeout{1000};

enum class SocketUse : std::uint32_t { kPeer, kLauncher };

/// The handshake of a new connection.
struct Hello {
  std::uint64_t number = 0;  ///< token of the rendezvous; kFirstToken for rank 0, which creates it
  std::int32_t rank = 0, ranks = 0;
  SocketUse use = SocketUse::kPeer;
  std::uint32_t port = 0;  ///< port that the sender listens on
};
constexpr std::uint64_t kFirstToken = 0x4d4553485752'0001ULL;

/// The address that a rank listens on.
struct Address {
  std::array<char, 64> host{};
  std::uint32_t port = 0;
};

class Rendezvous {
 public:
  Rendezvous(const JobPlace& place, std::chrono::milliseconds timeout)
      : place_(place), end_(Clock::now() + timeout), arrived_(count()) {}

  JobSockets connect_all() {
    JobSockets sockets;
    sockets.own.peers.resize(count());
    if (place_.rank == 0)
      accept_all(sockets);
    else
      connect_to_rank_zero(sockets);
    return sockets;
  }

 private:
  std::size_t count() const { return static_cast<std::size_t>(place_.ranks); }

  [[noreturn]] void fail(const std::string& what) const {
    throw RuntimeFailure(
        {.where = fmt::format("rank {} of {}", place_.rank, place_.ranks),
         .what = what,
         .hint = "check that all processes of the job were started and can reach rank 0"});
  }
  [[noreturn]] void fail_call(const std::string& call) const {
    fail(fmt::format("{}: {}", call, std::generic_category().message(errno)));
  }
  void check_time(const std::string& awaited) const {
    if (Clock::now() > end_) fail("rendezvous timed out: " + awaited);
  }

  /// False: timed out, or the other side has closed.
  bool wait_for(int fd, short events) const { return wait_until(end_, fd, events); }
  static bool wait_until(Clock::time_point end, int fd, short events) {
    while (Clock::now() < end) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
      pollfd polled{fd, events, 0};
      const int ready =
          ::poll(&polled, 1, static_cast<int>(std::min<std::int64_t>(left.count() + 1, 100)));
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) return false;
    }
    return false;
  }
  template <class T>
  bool read_from(int fd, T& value, Clock::time_point end) const {
    auto* to = reinterpret_cast<char*>(&value);  // NOLINT: bytes
    for (std::size_t done = 0; done < sizeof(T);) {
      if (!wait_until(std::min(end, end_), fd, POLLIN)) return false;
      const ssize_t n = ::recv(fd, to + done, sizeof(T) - done, 0);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return false;
      if (n > 0) done += static_cast<std::size_t>(n);
    }
    return true;
  }
  template <class T>
  bool write_to(int fd, const T& value) const {
    const auto* from = reinterpret_cast<const char*>(&value);  // NOLINT: bytes
    for (std::size_t done = 0; done < sizeof(T);) {
      if (!wait_for(fd, POLLOUT)) return false;
      const ssize_t n = ::send(fd, from + done, sizeof(T) - done, MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (n > 0) done += static_cast<std::size_t>(n);
    }
    return true;
  }

  // ---- sockets ----

  static FileDescriptor prepared(int fd) {
    const int yes = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    return FileDescriptor(fd);
  }

  using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;
  Found find(const std::string& host, std::uint32_t port, bool listens) const {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | (listens ? AI_PASSIVE : 0);
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                    fmt::format("{}", port).c_str(), &hints, &found);
    if (error != 0)
      fail(fmt::format("cannot resolve address '{}': {}", host, ::gai_strerror(error)));
    return {found, ::freeaddrinfo};
  }

  FileDescriptor listen_at(const std::string& host, std::uint32_t port) const {
    const Found found = find(host, port, true);
    for (const addrinfo* a = found.get(); a != nullptr; a = a->ai_next) {
      const int fd = ::socket(a->ai_family, a->ai_socktype, a->ai_protocol);
      if (fd < 0) continue;
      FileDescriptor socket = prepared(fd);
      const int yes = 1;
      ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
      if (::bind(fd, a->ai_addr, a->ai_addrlen) == 0 && ::listen(fd, 4 * place_.ranks) == 0)
        return socket;
    }
    fail_call(fmt::format("cannot listen on {} port {}", host.empty() ? "this host" : host, port));
  }

  /// Retries until the rendezvous times out: the other side may not listen yet.
  FileDescriptor connect_to(const std::string& host, std::uint32_t port) const {
    const Found found = find(host, port, false);
    while (true) {
      for (const addrinfo* a = found.get(); a != nullptr; a = a->ai_next) {
        const int fd = ::socket(a->ai_family, a->ai_socktype, a->ai_protocol);
        if (fd < 0) continue;
        FileDescriptor socket = prepared(fd);
        if (::connect(fd, a->ai_addr, a->ai_addrlen) == 0) return socket;
        if (errno != EINPROGRESS || !wait_for(fd, POLLOUT)) continue;
        int error = 0;
        socklen_t size = sizeof(error);
        ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error == 0) return socket;
      }
      check_time(fmt::format("no answer from {} port {}", host, port));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  static std::uint32_t port_of(int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);  // NOLINT: socket API
    if (address.ss_family == AF_INET6)
      return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);  // NOLINT
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);      // NOLINT
  }
  static std::array<char, 64> host_of_peer(int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    std::array<char, 64> host{};
    ::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size);  // NOLINT: socket API
    ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host.data(), host.size(),  // NOLINT
                  nullptr, 0, NI_NUMERICHOST);
    return host;
  }

  // ---- handshakes ----

  struct Visitor {
    FileDescriptor socket;
    Hello hello;
  };
  /// The next connection with a valid handshake.
  Visitor accept_from(const FileDescriptor& door, std::uint64_t number) const {
    while (true) {
      if (!wait_for(door.get(), POLLIN)) check_time(missing());
      const int fd = ::accept(door.get(), nullptr, nullptr);
      if (fd < 0) continue;
      Visitor connection{prepared(fd), {}};
      const Hello& hello = connection.hello;
      if (read_from(fd, connection.hello, Clock::now() + kHandshakeTimeout) &&
          hello.number == number && hello.ranks == place_.ranks && hello.rank > 0 &&
          hello.rank < place_.ranks)
        return connection;
    }
  }
  std::string missing() const {
    std::string ranks;
    for (std::size_t r = 0; r < arrived_.size(); ++r)
      if (!arrived_[r] && static_cast<int>(r) != place_.rank)
        ranks += fmt::format("{} {}", ranks.empty() ? "" : ",", r);
    return "missing ranks" + ranks;
  }

  void accept_all(JobSockets& sockets) {
    std::array<FileDescriptor, 2> own = socket_pair();
    sockets.own.launcher = std::move(own[0]);
    sockets.of_launcher.resize(count());
    sockets.of_launcher[0] = std::move(own[1]);
    if (place_.ranks == 1) return;
    const FileDescriptor door = listen_at(place_.host, place_.port);
    std::vector<Address> addresses(count());
    for (int left = 2 * (place_.ranks - 1); left > 0;) {
      Visitor connection = accept_from(door, kFirstToken);
      const auto rank = static_cast<std::size_t>(connection.hello.rank);
      const bool is_peer = connection.hello.use == SocketUse::kPeer;
      FileDescriptor& place = is_peer ? sockets.own.peers[rank] : sockets.of_launcher[rank];
      if (place.get() >= 0) continue;  // duplicate rank
      if (is_peer) {
        arrived_[rank] = true;
        addresses[rank] = {host_of_peer(connection.socket.get()), connection.hello.port};
      }
      place = std::move(connection.socket);
      --left;
    }
    std::uint64_t number = 0;
    if (::getrandom(&number, sizeof(number), 0) != sizeof(number)) fail_call("getrandom");
    for (std::size_t r = 1; r < count(); ++r) {
      bool told = write_to(sockets.own.peers[r].get(), number);
      for (const Address& address : addresses)
        told = told && write_to(sockets.own.peers[r].get(), address);
      if (!told) fail(fmt::format("lost connection to rank {}", r));
    }
  }

  void connect_to_rank_zero(JobSockets& sockets) {
    const FileDescriptor door = listen_at("", 0);
    Hello hello{kFirstToken, place_.rank, place_.ranks, SocketUse::kPeer, port_of(door.get())};
    FileDescriptor first = connect_to(place_.host, place_.port);
    sockets.own.launcher = connect_to(place_.host, place_.port);
    bool told = write_to(first.get(), hello);
    hello.use = SocketUse::kLauncher;
    told = told && write_to(sockets.own.launcher.get(), hello);
    std::vector<Address> addresses(count());
    told = told && read_from(first.get(), hello.number, end_);
    for (Address& address : addresses) told = told && read_from(first.get(), address, end_);
    if (!told) fail("rendezvous timed out, or lost connection to rank 0");
    sockets.own.peers[0] = std::move(first);
    hello.use = SocketUse::kPeer;
    arrived_[0] = true;
    for (int r = 1; r < place_.rank; ++r) {
      Address& at = addresses[static_cast<std::size_t>(r)];
      at.host.back() = '\0';
      FileDescriptor socket = connect_to(at.host.data(), at.port);
      if (!write_to(socket.get(), hello)) fail(fmt::format("lost connection to rank {}", r));
      sockets.own.peers[static_cast<std::size_t>(r)] = std::move(socket);
      arrived_[static_cast<std::size_t>(r)] = true;
    }
    for (int left = place_.ranks - 1 - place_.rank; left > 0;) {
      Visitor connection = accept_from(door, hello.number);
      const auto rank = static_cast<std::size_t>(connection.hello.rank);
      if (connection.hello.rank <= place_.rank || sockets.own.peers[rank].get() >= 0) continue;
      sockets.own.peers[rank] = std::move(connection.socket);
      arrived_[rank] = true;
      --left;
    }
  }

  const JobPlace& place_;
  Clock::time_point end_;
  std::vector<bool> arrived_;  ///< by rank
};

}  // namespace

JobSockets rendezvous_over_tcp(const JobPlace& place, std::chrono::milliseconds timeout) {
  return Rendezvous(place, timeout).connect_all();
}

}  // namespace meshwright
