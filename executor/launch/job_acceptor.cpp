#include "executor/launch/job_acceptor.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "core/base/error.hpp"

namespace meshwright {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kHandshakeTimeout{2000}, kSlice{100}, kOutOfDescriptors{20};
constexpr std::size_t kMostPending = 128;

/// The first bytes to a new connection fit in the buffer of its socket.
template <class T>
bool send_now(int fd, const T& value) {
  return ::send(fd, &value, sizeof(value), MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(value));
}

}  // namespace

std::optional<JobAcceptor::Connection> JobAcceptor::next(const Deadline& deadline) {
  while (Clock::now() < deadline.end) {
    deadline.check();
    std::vector<pollfd> polled{{listening_.get(), POLLIN, 0}};
    for (const Pending& each : pending_) polled.push_back({each.socket.get(), POLLIN, 0});
    ::poll(polled.data(), polled.size(), static_cast<int>(kSlice.count()));
    std::optional<Connection> connection;
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      Pending& each = pending_[i];
      if (connection || polled[i + 1].revents == 0 || !receive(each)) continue;
      answer(each);
      if (each.socket.get() >= 0) connection = Connection{std::move(each.socket), each.hello};
      each.socket = FileDescriptor();
    }
    const Clock::time_point now = Clock::now();
    std::erase_if(pending_,
                  [&](const Pending& each) { return each.socket.get() < 0 || now > each.until; });
    if (connection) return connection;
    if (polled.front().revents != 0) accept_one();
  }
  return std::nullopt;
}

void JobAcceptor::accept_one() {
  const int fd = ::accept(listening_.get(), nullptr, nullptr);
  if (fd < 0) {  // without a pause, a process out of descriptors would spin
    if (errno == EMFILE && pending_.empty())  // no connection will be closed
      throw RuntimeFailure({.where = "--ranks job",
                            .what = "cannot accept a connection: too many open files",
                            .hint = "raise the limit of open files (ulimit -n)"});
    if (errno != EAGAIN && errno != EINTR) std::this_thread::sleep_for(kOutOfDescriptors);
    return;
  }
  Pending pending{prepared_socket(fd), new_challenge(), {}, 0, Clock::now() + kHandshakeTimeout};
  if (!send_now(fd, pending.challenge)) return;
  if (pending_.size() == kMostPending) pending_.erase(pending_.begin());
  pending_.push_back(std::move(pending));
}

bool JobAcceptor::receive(Pending& pending) {
  const auto bytes = std::as_writable_bytes(std::span(&pending.hello, 1)).subspan(pending.received);
  const ssize_t n = ::recv(pending.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n <= 0) {
    pending.socket = FileDescriptor();
    return false;
  }
  pending.received += static_cast<std::size_t>(n);
  return pending.received == sizeof(Hello);
}

void JobAcceptor::answer(Pending& pending) const {
  const Hello& hello = pending.hello;
  Verdict verdict = Verdict::kOtherSecret;
  if (hello.protocol == kProtocol && is_signed(hello, secret_, pending.challenge))
    verdict = verdict_of_(hello);
  const bool told = send_now(pending.socket.get(), signed_welcome(verdict, secret_, hello));
  if (!told || verdict != Verdict::kAccepted) pending.socket = FileDescriptor();
}

}  // namespace meshwright
