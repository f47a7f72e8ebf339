/// Messages between the processes of an MPI job. The rank's thread only enqueues messages and takes
/// them from a mailbox; all MPI calls are made by the thread that calls move().
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "executor/transport/communicator.hpp"
#include "executor/transport/frame_stream.hpp"
#include "executor/transport/mailbox.hpp"

namespace meshwright {

class MpiCommunicator final : public Communicator {
 public:
  using Take = std::function<void(RankId, Frame&&)>;
  /// `beats` must outlive it.
  MpiCommunicator(RankId rank, int rank_count, Beats& beats);
  ~MpiCommunicator() override;
  RankId rank() const override { return rank_; }
  int rank_count() const override { return static_cast<int>(parsers_.size()); }
  void send(RankId to, MessageTag tag, std::span<const std::byte> bytes,
            const MessageTimes& times) override;
  MessageTimes receive(RankId from, MessageTag tag, std::span<std::byte> bytes) override {
    return mailbox_.take_into(from, tag, bytes);
  }
  void report(std::span<const std::byte> bytes) override {
    post(RankId(0), FrameKind::kReport, {}, {}, bytes);
  }
  /// Thread-safe; copies the bytes.
  void post(RankId to, FrameKind kind, MessageTag tag, const MessageTimes& times,
            std::span<const std::byte> bytes);
  /// From now on receive() throws a PeerFailure.
  void close() { mailbox_.close(); }

  /// Sends queued frames and receives pending ones; frames other than messages between ranks are
  /// passed to take(). Sleeps briefly if there is nothing to do. To be called by one thread only.
  void move(const Take& take);
  /// True once everything posted has been sent.
  bool is_idle() const;

 private:
  struct Outgoing;
  bool start_sends(const Take& take);
  bool take_arrived(const Take& take);
  static void start(Outgoing& out);
  bool advance(Outgoing& out);
  /// Puts messages into the mailbox and passes other frames to take(), which must outlive the
  /// result.
  FrameParser::Take sorter(RankId from, const Take& take);
  RankId rank_;
  Beats& beats_;
  Mailbox mailbox_;
  mutable std::mutex mutex_;  ///< guards the queue
  std::condition_variable posted_;
  std::vector<Outgoing> queue_;
  std::vector<Outgoing> under_way_;   ///< MPI still reads their buffers
  std::vector<FrameParser> parsers_;  ///< by sender
  std::vector<std::byte> piece_;
  int idle_rounds_ = 0;
};

}  // namespace meshwright
