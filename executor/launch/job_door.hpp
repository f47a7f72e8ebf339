/// The listening socket of a process of a job. Serves many connections at a time: those that are
/// silent or do not know the secret delay nobody.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/launch/handshake.hpp"
#include "executor/launch/tcp_socket.hpp"

namespace meshwright {

class JobDoor {
 public:
  /// `judge` decides on processes that know the secret.
  JobDoor(FileDescriptor listening, std::string secret, std::function<Verdict(const Hello&)> judge)
      : listening_(std::move(listening)), secret_(std::move(secret)), judge_(std::move(judge)) {}

  struct Visitor {
    FileDescriptor socket;
    Hello hello;
  };
  /// The next process that is let in.
  std::optional<Visitor> next(const Patience& patience);
  /// Of those who connect from now on.
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
  /// True: the whole Hello is here. Closes the socket if the other side has.
  static bool receive(Pending& pending);
  /// Answers; closes the socket unless it is let in.
  void answer(Pending& pending) const;

  FileDescriptor listening_;
  std::string secret_;
  std::function<Verdict(const Hello&)> judge_;
  std::vector<Pending> pending_;
};

}  // namespace meshwright
