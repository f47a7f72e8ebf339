/// The listening socket of a job's process. Handshakes are concurrent, so that silent or
/// unauthenticated connections do not delay the others.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/launch/handshake.hpp"
#include "executor/launch/tcp_socket.hpp"

namespace meshwright {

class JobAcceptor {
 public:
  /// `verdict_of` decides on processes that know the secret.
  JobAcceptor(FileDescriptor listening, std::string secret,
              std::function<Verdict(const Hello&)> verdict_of)
      : listening_(std::move(listening)),
        secret_(std::move(secret)),
        verdict_of_(std::move(verdict_of)) {}

  struct Connection {
    FileDescriptor socket;
    Hello hello;
  };
  /// The next process that is accepted. Throws RuntimeFailure if no descriptor is left for it.
  std::optional<Connection> next(const Deadline& deadline);
  /// Secret for the connections from now on.
  void set_secret(std::string secret) { secret_ = std::move(secret); }
  std::uint32_t port() const { return own_address(listening_.get()).port; }

 private:
  struct Pending {
    FileDescriptor socket;
    Challenge challenge{};
    Hello hello;
    std::size_t received = 0;  ///< bytes of hello
    std::chrono::steady_clock::time_point until;
  };
  void accept_one();
  /// Whether the Hello is complete. Closes the socket if the peer has.
  static bool receive(Pending& pending);
  /// Sends the Welcome; closes the socket unless the verdict is kAccepted.
  void answer(Pending& pending) const;

  FileDescriptor listening_;
  std::string secret_;
  std::function<Verdict(const Hello&)> verdict_of_;
  std::vector<Pending> pending_;
};

}  // namespace meshwright
