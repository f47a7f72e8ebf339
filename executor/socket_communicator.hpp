/// Ranks as processes of one machine: messages go through a socket between every two of them. A
/// thread of its own takes in what arrives and sends what sockets did not take at once, so that a
/// send never waits, whatever the other side does.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "executor/communicator.hpp"
#include "executor/frame_stream.hpp"
#include "executor/mailbox.hpp"

namespace meshwright {

/// One rank's ends of its sockets.
struct RankSockets {
  std::vector<FileDescriptor> peers;  ///< by rank; its own: none
  FileDescriptor launcher;
};

class SocketCommunicator final : public Communicator {
 public:
  /// `beats` outlives it.
  SocketCommunicator(RankId rank, RankSockets sockets, Beats& beats);
  /// Waits until everything that was sent has left; once stopped, only what the launcher is told:
  /// other ranks may never take theirs.
  ~SocketCommunicator() override;
  RankId rank() const override { return rank_; }
  int rank_count() const override { return static_cast<int>(peers_.size()); }
  void send(RankId to, MessageTag tag, std::span<const std::byte> bytes,
            const MessageTimes& times) override;
  MessageTimes receive(RankId from, MessageTag tag, std::span<std::byte> bytes) override;
  void report(std::span<const std::byte> bytes) override { tell(FrameKind::kReport, bytes); }
  /// The launcher has said so, or is gone: whoever waits for a message gets a PeerFailure.
  bool is_stopped() const { return is_stopped_; }
  /// Something for the launcher.
  void tell(FrameKind kind, std::span<const std::byte> bytes = {});

 private:
  struct Peer {
    std::unique_ptr<FrameStream> stream;  ///< null: this rank itself
    bool is_open = false;                 ///< read by the thread alone
  };
  void run();
  /// False: nothing is left to do.
  bool wait_and_move();
  void wake();
  void stop();
  RankId rank_;
  std::vector<Peer> peers_;
  Peer launcher_;
  FileDescriptor wake_;
  Mailbox mailbox_;
  std::atomic<bool> ending_{false}, is_stopped_{false};
  std::thread thread_;
};

}  // namespace meshwright
