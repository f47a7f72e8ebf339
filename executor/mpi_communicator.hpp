/// Ranks as processes of an MPI job. The thread of the rank only puts messages into a queue and
/// takes them out of a mailbox; all calls of MPI are made by the thread that calls move().
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "executor/communicator.hpp"
#include "executor/frame_stream.hpp"
#include "executor/mailbox.hpp"

namespace meshwright {

class MpiCommunicator final : public Communicator {
 public:
  using Take = std::function<void(RankId, Frame&&)>;
  /// `beats` outlives it.
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
  /// Any thread; copies the bytes.
  void post(RankId to, FrameKind kind, MessageTag tag, const MessageTimes& times,
            std::span<const std::byte> bytes);
  /// Receives end with a PeerFailure from now on.
  void close() { mailbox_.close(); }

  /// Sends what is waiting and takes in what has come; frames that are no messages between ranks go
  /// to take(). Waits a little where there is nothing to do. One thread only.
  void move(const Take& take);
  /// True once everything that was posted has left.
  bool is_idle() const;

 private:
  struct Outgoing;
  bool start_sends(const Take& take);
  bool take_arrived(const Take& take);
  static void start(Outgoing& out);
  bool advance(Outgoing& out);
  /// Puts messages into the mailbox; what else there is goes to take(), which outlives it.
  FrameParser::Take sorter(RankId from, const Take& take);
  RankId rank_;
  Beats& beats_;
  Mailbox mailbox_;
  mutable std::mutex mutex_;  ///< of the queue
  std::condition_variable posted_;
  std::vector<Outgoing> queue_;
  std::vector<Outgoing> under_way_;   ///< MPI still reads their bytes
  std::vector<FrameParser> parsers_;  ///< by sender
  std::vector<std::byte> piece_;
  int idle_rounds_ = 0;
};

}  // namespace meshwright
