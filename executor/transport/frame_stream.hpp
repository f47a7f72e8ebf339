/// Frames over a stream socket between two processes of a run. Never blocks: unsent data is queued,
/// incomplete frames are continued by the next call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <stdexcept>
#include <vector>

#include "executor/transport/communicator.hpp"
#include "executor/transport/wire.hpp"

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

/// The two ends of a new stream socket. Throws RuntimeFailure if the system refuses.
std::array<FileDescriptor, 2> socket_pair();

enum class FrameKind : std::uint8_t {
  kMessage,      ///< rank to rank
  kReport,       ///< rank to launcher
  kFailed,       ///< rank to launcher: the bytes say why
  kFinished,     ///< rank to launcher: nothing follows; launcher to rank: all ranks have finished
  kStop,         ///< launcher to rank: the run has failed; in jobs the bytes say why
  kProgress,     ///< rank to the process that supervises the run
  kInterrupted,  ///< rank to launcher: its process was interrupted
  kKeepalive     ///< launcher to rank, from time to time
};
inline constexpr FrameKind kLastFrameKind = FrameKind::kKeepalive;
/// Whether a frame is a heartbeat. A hung rank sends and receives the others, too.
constexpr bool shows_progress(FrameKind kind) {
  return kind != FrameKind::kProgress && kind != FrameKind::kKeepalive;
}

struct Frame {
  FrameKind kind = FrameKind::kMessage;
  MessageTag tag;
  MessageTimes times;
  std::vector<std::byte> bytes;
};

/// A serialized frame header: the payload size comes first.
inline constexpr std::size_t kFrameHeaderSize = 32;
using FrameHeader = std::array<std::byte, kFrameHeaderSize>;
FrameHeader header_of(FrameKind kind, MessageTag tag, const MessageTimes& times, std::size_t size);
/// A frame without its payload, and the size of the payload.
Frame frame_from(const FrameHeader& header);
std::size_t size_from(const FrameHeader& header);

/// Bytes of a frame. Far beyond what ranks send; a larger one is an error of the sender.
inline constexpr std::size_t kLargestFrame = std::size_t{1} << 40;

/// Reassembles frames from the byte stream of one sender, which may arrive in pieces of any size.
class FrameParser {
 public:
  using Take = std::function<void(Frame&&)>;
  /// Calls take() for every frame that these bytes complete. Throws InvalidFrame.
  void parse(std::span<const std::byte> bytes, const Take& take);
  /// The part of the current payload that is still missing; empty until the header is complete. A
  /// caller may read straight into its beginning and report the size with filled(), which avoids a
  /// copy of long payloads.
  std::span<std::byte> missing();
  void filled(std::size_t size, const Take& take);

 private:
  FrameHeader header_{};
  std::size_t header_size_ = 0;  ///< header bytes that have arrived
  void make_room();
  Frame frame_;
  std::size_t frame_size_ = 0, expected_ = 0;  ///< payload bytes that have arrived, and in total
};

class FrameStream {
 public:
  /// `beats`, if given, counts every transfer and must outlive the stream.
  explicit FrameStream(FileDescriptor socket, Beats* beats = nullptr)
      : socket_(std::move(socket)), beats_(beats) {}
  int fd() const { return socket_.get(); }

  /// Thread-safe. Frames are dropped if the other end has closed.
  void send(FrameKind kind, MessageTag tag, const MessageTimes& times,
            std::span<const std::byte> bytes);
  void send(FrameKind kind, std::span<const std::byte> bytes = {}) { send(kind, {}, {}, bytes); }
  bool has_unsent() const;
  /// Sends as much of the queue as the socket accepts without blocking.
  void send_rest();

  /// Calls take() for every complete frame; to be called by one thread only. False: the other end
  /// has closed and all its frames were taken, or it has sent an invalid one.
  bool receive(const FrameParser::Take& take, bool is_heartbeat = true);

 private:
  std::size_t send_now(std::span<const std::byte> first, std::span<const std::byte> second,
                       bool is_heartbeat = true);
  void beat() {
    if (beats_ != nullptr) beats_->fetch_add(1, std::memory_order_relaxed);
  }

  FileDescriptor socket_;
  Beats* beats_;
  mutable std::mutex mutex_;       ///< guards unsent_ and sent_
  std::vector<std::byte> unsent_;  ///< queued bytes; those before sent_ are sent
  std::size_t sent_ = 0;
  bool is_broken_ = false;

  std::vector<std::byte> buffer_;
  FrameParser parser_;
};

}  // namespace meshwright
