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

/// When to stop waiting. Functions that wait return false or nullopt after the end.
struct Deadline {
  std::chrono::steady_clock::time_point end;
  /// Called every 100 ms while waiting; may throw.
  std::function<void()> check = [] {};
};

/// Waits until poll() reports one of `events`.
bool wait_for(int fd, short events, const Deadline& deadline);
/// Whether the peer has closed the connection and all it sent was read; false if `fd` is -1.
bool is_closed(int fd);
/// False also if the peer has closed the connection.
bool read_all(int fd, std::span<std::byte> to, const Deadline& deadline);
bool write_all(int fd, std::span<const std::byte> from, const Deadline& deadline);

/// A numeric address.
struct SocketAddress {
  std::array<char, 64> host{};
  std::uint32_t port = 0;
};
SocketAddress own_address(int fd);
SocketAddress peer_address(int fd);

/// Sets O_NONBLOCK, TCP_NODELAY and FD_CLOEXEC.
FileDescriptor prepared_socket(int fd);
/// Throws RuntimeFailure with `where` if the name cannot be resolved or the address is taken.
FileDescriptor listen_at(const std::string& host, std::uint32_t port, const std::string& where);
/// Retries until the connection is accepted.
std::optional<FileDescriptor> connect_to(const std::string& host, std::uint32_t port,
                                         const Deadline& deadline, const std::string& where);

}  // namespace meshwright
