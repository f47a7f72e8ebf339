/// Non-blocking TCP sockets, for IPv4 and IPv6.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "executor/transport/frame_stream.hpp"

namespace meshwright {

/// Until when to wait, and whether to stop waiting before. Functions that wait return false or
/// nothing then.
struct Patience {
  std::chrono::steady_clock::time_point end;
  /// May throw, which ends the wait.
  std::function<void()> check = [] {};
};

/// Waits until poll() reports one of `events`.
bool wait_for(int fd, short events, const Patience& patience);
/// False also if the other side has closed.
bool read_all(int fd, std::span<std::byte> to, const Patience& patience);
bool write_all(int fd, std::span<const std::byte> from, const Patience& patience);

/// An address of a socket, without names to look up.
struct SocketAddress {
  std::array<char, 64> host{};
  std::uint32_t port = 0;
};
SocketAddress own_address(int fd);
SocketAddress peer_address(int fd);

/// Non-blocking, without delay of small messages, closed in child processes.
FileDescriptor prepared_socket(int fd);
/// Throws RuntimeFailure with `where` if the name cannot be resolved or the address is taken.
FileDescriptor listen_at(const std::string& host, std::uint32_t port, const std::string& where);
/// Retries until someone listens there.
std::optional<FileDescriptor> connect_to(const std::string& host, std::uint32_t port,
                                         const Patience& patience, const std::string& where);

}  // namespace meshwright
