/// Frames over a stream socket between two processes of a run. Nothing here ever waits: what the
/// socket does not take is kept, what it does not have is asked for again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "executor/communicator.hpp"

namespace meshwright {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept { *this = std::move(other); }
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();
  int get() const { return fd_; }  ///< -1: none

 private:
  int fd_ = -1;
};

/// Two ends of a new stream socket. RuntimeFailure when the system has no more.
std::array<FileDescriptor, 2> socket_pair();

enum class FrameKind : std::uint8_t {
  kMessage,   ///< from rank to rank
  kReport,    ///< a rank to its launcher, as are the next two
  kFailed,    ///< the bytes say why
  kFinished,  ///< nothing follows
  kStop,      ///< the launcher to a rank: the run has failed
  kProgress   ///< a rank to the one that watches
};

struct Frame {
  FrameKind kind = FrameKind::kMessage;
  MessageTag tag;
  MessageTimes times;
  std::vector<std::byte> bytes;
};

/// What stands beside the bytes of a frame, as bytes: their number first.
inline constexpr std::size_t kFrameHeaderSize = 32;
using FrameHeader = std::array<std::byte, kFrameHeaderSize>;
FrameHeader header_of(FrameKind kind, MessageTag tag, const MessageTimes& times, std::size_t size);
/// A frame without its bytes, and how many those are.
Frame frame_from(const FrameHeader& header);
std::size_t size_from(const FrameHeader& header);

/// Frames out of the bytes that come from one sender, in pieces of any size.
class FrameParser {
 public:
  using Take = std::function<void(Frame&&)>;
  /// Calls take() with every frame that these bytes complete.
  void parse(std::span<const std::byte> bytes, const Take& take);
  /// What the frame under way still lacks; nothing before its header is whole. Whoever reads into
  /// its beginning says how much with filled(): the bytes of long frames need no other place.
  std::span<std::byte> missing();
  void filled(std::size_t size, const Take& take);

 private:
  FrameHeader header_{};
  std::size_t header_size_ = 0;  ///< bytes of it that have arrived
  void make_room();
  Frame frame_;
  std::size_t frame_size_ = 0, expected_ = 0;  ///< bytes that have arrived, and all of them
};

class FrameStream {
 public:
  /// `beats`, if given, rise with whatever moves; they outlive it.
  explicit FrameStream(FileDescriptor socket, Beats* beats = nullptr)
      : socket_(std::move(socket)), beats_(beats) {}
  int fd() const { return socket_.get(); }

  /// Any thread. Frames for an end that is gone are dropped.
  void send(FrameKind kind, MessageTag tag, const MessageTimes& times,
            std::span<const std::byte> bytes);
  void send(FrameKind kind, std::span<const std::byte> bytes = {}) { send(kind, {}, {}, bytes); }
  bool has_unsent() const;
  /// As much as the socket takes now.
  void send_rest();

  /// Calls take() with every frame that is whole; one thread only. False: the other end is gone and
  /// everything it sent was taken.
  bool receive(const FrameParser::Take& take);

 private:
  std::size_t send_now(std::span<const std::byte> first, std::span<const std::byte> second,
                       bool is_sign_of_life = true);
  void beat() {
    if (beats_ != nullptr) beats_->fetch_add(1, std::memory_order_relaxed);
  }

  FileDescriptor socket_;
  Beats* beats_;
  mutable std::mutex mutex_;       ///< of what is unsent
  std::vector<std::byte> unsent_;  ///< from sent_ on
  std::size_t sent_ = 0;
  bool is_broken_ = false;

  std::vector<std::byte> buffer_;
  FrameParser parser_;
};

}  // namespace meshwright
