#include "executor/launch/tcp_rendezvous.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "core/base/error.hpp"
#include "executor/launch/handshake.hpp"
#include "executor/launch/job_acceptor.hpp"
#include "executor/launch/tcp_socket.hpp"

namespace meshwright {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kReconnectPause{20}, kForSignal{200};

/// What rank 0 sends to every rank, before the addresses.
using SessionKey = Challenge;

template <class T>
std::span<std::byte> writable_bytes(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

class Rendezvous {
 public:
  Rendezvous(const JobPlace& place, std::chrono::milliseconds timeout,
             const std::atomic<bool>* interrupted)
      : place_(place),
        deadline_{Clock::now() + timeout,
                  [this, interrupted] {
                    if (interrupted != nullptr && *interrupted) throw RendezvousInterrupted();
                    check_connections();
                  }},
        where_(fmt::format("rank {} of {}", place.rank, place.ranks)) {
    sockets_.own.peers.resize(count());
  }

  JobSockets connect_all() {
    place_.rank == 0 ? accept_all() : connect_to_all();
    return std::move(sockets_);
  }

 private:
  std::size_t count() const { return static_cast<std::size_t>(place_.ranks); }

  [[noreturn]] void fail(const std::string& what, std::string hint = "") const {
    // Interrupted processes close connections, and launchers signal one process after another.
    std::this_thread::sleep_for(kForSignal);
    deadline_.check();
    if (hint.empty())
      hint = "check that all processes of the job were started and can reach rank 0";
    throw RuntimeFailure({.where = where_, .what = what, .hint = std::move(hint)});
  }

  /// No process leaves before all are connected.
  void check_connections() const {
    for (std::size_t r = 0; r < sockets_.own.peers.size(); ++r)
      if (is_closed(sockets_.own.peers[r].get()))
        throw RuntimeFailure({.where = where_,
                              .what = fmt::format("lost the connection to rank {}", r),
                              .hint = fmt::format("check the output of rank {}", r)});
  }

  std::string missing() const {
    std::string ranks;
    for (std::size_t r = 0; r < count(); ++r)
      if (sockets_.own.peers[r].get() < 0 && static_cast<int>(r) != place_.rank)
        ranks += fmt::format("{} {}", ranks.empty() ? "" : ",", r);
    return "missing ranks" + ranks;
  }

  /// Where the socket of this process is kept; null: it has no place in the job.
  FileDescriptor* place_of(const Hello& hello) {
    if (hello.rank <= place_.rank || hello.rank >= place_.ranks) return nullptr;
    const auto rank = static_cast<std::size_t>(hello.rank);
    if (hello.use == SocketUse::kPeer) return &sockets_.own.peers[rank];
    const bool supervises = place_.rank == 0 && hello.use == SocketUse::kLauncher;
    return supervises ? &sockets_.of_launcher[rank] : nullptr;
  }
  Verdict verdict_of(const Hello& hello) {
    FileDescriptor* place = place_of(hello);
    if (hello.ranks != place_.ranks || place == nullptr) return Verdict::kOtherSize;
    return place->get() >= 0 ? Verdict::kTaken : Verdict::kAccepted;
  }
  JobAcceptor acceptor_at(const std::string& host, std::uint32_t port, const std::string& secret) {
    return {listen_at(host, port, where_), secret,
            [this](const Hello& hello) { return verdict_of(hello); }};
  }
  JobAcceptor::Connection next_at(JobAcceptor& acceptor) {
    std::optional<JobAcceptor::Connection> connection = acceptor.next(deadline_);
    if (!connection) fail("rendezvous timed out: " + missing());
    return std::move(*connection);
  }

  // ---- rank 0 ----

  void accept_all() {
    std::array<FileDescriptor, 2> own = socket_pair();
    sockets_.own.launcher = std::move(own[0]);
    sockets_.of_launcher.resize(count());
    sockets_.of_launcher[0] = std::move(own[1]);
    if (place_.ranks == 1) return;
    JobAcceptor acceptor = acceptor_at(place_.host, place_.port, place_.secret);
    std::vector<SocketAddress> addresses(count());
    for (int left = 2 * (place_.ranks - 1); left > 0; --left) {
      JobAcceptor::Connection connection = next_at(acceptor);
      if (connection.hello.use == SocketUse::kPeer)
        addresses[static_cast<std::size_t>(connection.hello.rank)] = {
            peer_address(connection.socket.get()).host, connection.hello.port};
      *place_of(connection.hello) = std::move(connection.socket);
    }
    const SessionKey key = new_challenge();
    for (std::size_t r = 1; r < count(); ++r) {
      const int fd = sockets_.own.peers[r].get();
      if (!write_all(fd, key, deadline_) ||
          !write_all(fd, std::as_bytes(std::span(addresses)), deadline_))
        fail(fmt::format("lost connection to rank {}", r));
    }
  }

  // ---- the other ranks ----

  void connect_to_all() {
    FileDescriptor first = connected(0, place_.host, place_.port);
    JobAcceptor acceptor = acceptor_at(own_address(first.get()).host.data(), 0, "");
    port_ = acceptor.port();
    FileDescriptor launcher;
    introduce(first, {0, place_.host, place_.port, place_.secret, SocketUse::kPeer});
    introduce(launcher, {0, place_.host, place_.port, place_.secret, SocketUse::kLauncher});
    SessionKey key{};
    std::vector<SocketAddress> addresses(count());
    if (!read_all(first.get(), key, deadline_) ||
        !read_all(first.get(), std::as_writable_bytes(std::span(addresses)), deadline_))
      fail("rendezvous timed out, or lost connection to rank 0");
    sockets_.own.peers[0] = std::move(first);
    sockets_.own.launcher = std::move(launcher);
    const std::string secret =
        place_.secret +
        std::string(reinterpret_cast<const char*>(key.data()), key.size());  // NOLINT
    acceptor.set_secret(secret);
    for (int r = 1; r < place_.rank; ++r) {
      SocketAddress& at = addresses[static_cast<std::size_t>(r)];
      at.host.back() = '\0';
      FileDescriptor& socket = sockets_.own.peers[static_cast<std::size_t>(r)];
      introduce(socket, {r, at.host.data(), at.port, secret, SocketUse::kPeer});
    }
    for (int left = place_.ranks - 1 - place_.rank; left > 0; --left) {
      JobAcceptor::Connection connection = next_at(acceptor);
      *place_of(connection.hello) = std::move(connection.socket);
    }
  }

  FileDescriptor connected(int rank, const std::string& host, std::uint32_t port) const {
    std::optional<FileDescriptor> socket = connect_to(host, port, deadline_, where_);
    if (!socket)
      fail(fmt::format("rendezvous timed out: no answer from rank {} at {} port {}", rank, host,
                       port));
    return std::move(*socket);
  }

  struct Target {
    int rank;
    std::string host;
    std::uint32_t port;
    std::string secret;
    SocketUse use;
  };
  /// Connects, unless `socket` is connected, until the peer accepts this rank.
  void introduce(FileDescriptor& socket, const Target& to) const {
    while (true) {
      if (socket.get() < 0) socket = connected(to.rank, to.host, to.port);
      Challenge challenge{};
      Hello hello{kProtocol, place_.rank, place_.ranks, to.use, port_, new_challenge(), {}};
      Welcome welcome;
      bool told = read_all(socket.get(), challenge, deadline_);
      hello = signed_hello(hello, to.secret, challenge);
      told = told && write_all(socket.get(), std::as_bytes(std::span(&hello, 1)), deadline_) &&
             read_all(socket.get(), writable_bytes(welcome), deadline_);
      if (told) return check(welcome, hello, to);
      socket = FileDescriptor();  // closed: too many connections at once, or it has just ended
      std::this_thread::sleep_for(kReconnectPause);
    }
  }
  void check(const Welcome& welcome, const Hello& hello, const Target& to) const {
    const std::string other = fmt::format("rank {} at {} port {}", to.rank, to.host, to.port);
    switch (welcome.verdict) {
      case Verdict::kOtherSecret:
        fail(other + " has another secret, or another version of this program",
             "set the same MESHWRIGHT_JOB_SECRET for all processes, and start one version");
      case Verdict::kOtherSize:
        fail(fmt::format("{} does not belong to a job of {} ranks", other, place_.ranks),
             "check WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
      case Verdict::kTaken:
        fail(fmt::format("another process has joined {} as rank {}", other, place_.rank),
             "give every process a rank of its own");
      case Verdict::kAccepted:
        break;
    }
    if (!is_signed(welcome, to.secret, hello))
      fail(other + " does not know the secret of the job",
           "set the same MESHWRIGHT_JOB_SECRET for all processes");
  }

  const JobPlace& place_;
  Deadline deadline_;
  std::string where_;
  std::uint32_t port_ = 0;  ///< port that this process listens on
  JobSockets sockets_;
};

}  // namespace

JobSockets rendezvous_over_tcp(const JobPlace& place, std::chrono::milliseconds timeout,
                               const std::atomic<bool>* interrupted) {
  return Rendezvous(place, timeout, interrupted).connect_all();
}

}  // namespace meshwright
