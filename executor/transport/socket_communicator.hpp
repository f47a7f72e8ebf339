/// Messages between processes through one stream socket per pair of ranks. A background thread
/// receives data and flushes queued data, so that a send never blocks, whatever the other side
/// does.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "executor/transport/communicator.hpp"
#include "executor/transport/frame_stream.hpp"
#include "executor/transport/mailbox.hpp"

namespace meshwright {

/// The sockets of one rank.
struct RankSockets {
  std::vector<FileDescriptor> peers;  ///< by rank; none for itself
  FileDescriptor launcher;
};

class SocketCommunicator final : public Communicator {
 public:
  /// `beats` must outlive it.
  SocketCommunicator(RankId rank, RankSockets sockets, Beats& beats);
  /// Waits until all queued data are sent; once stopped, only those for the launcher, since other
  /// ranks may never receive theirs.
  ~SocketCommunicator() override;
  RankId rank() const override { return rank_; }
  int rank_count() const override { return static_cast<int>(peers_.size()); }
  void send(RankId to, MessageTag tag, std::span<const std::byte> bytes,
            const MessageTimes& times) override;
  MessageTimes receive(RankId from, MessageTag tag, std::span<std::byte> bytes) override;
  void report(std::span<const std::byte> bytes) override { tell(FrameKind::kReport, bytes); }
  /// The launcher has stopped the run, or is gone: receive() throws a PeerFailure.
  bool is_stopped() const { return is_stopped_; }
  /// The bytes of the launcher's kStop; empty when it gave no reason or is gone. To be called once
  /// is_stopped().
  std::span<const std::byte> stop_reason() const { return stop_reason_; }
  /// Frames that the launcher has sent so far.
  std::int64_t frames_of_launcher() const { return frames_of_launcher_; }
  /// Stops the run for this rank, and no longer waits for the launcher, which does not answer.
  void give_up_launcher();
  /// No memory was left for received messages, so the run was stopped for this rank.
  bool is_out_of_memory() const { return is_out_of_memory_; }
  /// The launcher has reported that all ranks finished.
  bool is_released() const { return is_released_; }
  /// The launcher has closed its connection. Set last: read it before the others.
  bool is_launcher_gone() const { return is_launcher_gone_; }
  /// Sends a frame to the launcher.
  void tell(FrameKind kind, std::span<const std::byte> bytes = {});

 private:
  struct Peer {
    std::unique_ptr<FrameStream> stream;  ///< null for this rank itself
    bool is_open = false;                 ///< used by the background thread only
  };
  void run();
  /// False once there is nothing left to do.
  bool wait_and_move();
  void wake();
  void take_from_launcher(Frame&& frame);
  void stop();
  RankId rank_;
  std::vector<Peer> peers_;
  Peer launcher_;
  FileDescriptor wake_;
  Mailbox mailbox_;
  std::vector<std::byte> stop_reason_;  ///< written before is_stopped_ is set
  std::atomic<std::int64_t> frames_of_launcher_{0};
  std::atomic<bool> ending_{false}, is_stopped_{false}, is_released_{false},
      is_launcher_gone_{false}, is_launcher_given_up_{false}, is_out_of_memory_{false};
  std::thread thread_;
};

}  // namespace meshwright
