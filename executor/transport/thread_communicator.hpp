/// Messages between ranks that are threads of one process: copies in memory.
#pragma once

#include <deque>
#include <functional>
#include <mutex>

#include "executor/transport/communicator.hpp"
#include "executor/transport/mailbox.hpp"

namespace meshwright {

/// The mailboxes of all ranks of a run; must outlive its communicators.
class ThreadHub {
 public:
  using ReportSink = std::function<void(RankId, std::span<const std::byte>)>;
  explicit ThreadHub(int ranks, ReportSink sink = {})
      : mailboxes_(static_cast<std::size_t>(ranks)), sink_(std::move(sink)) {}
  int rank_count() const { return static_cast<int>(mailboxes_.size()); }
  Mailbox& mailbox_of(RankId rank) { return mailboxes_[rank.index()]; }
  /// From now on receive() throws PeerFailure on every rank, also in waiting threads.
  void close();
  /// Calls the sink; calls are serialized.
  void report(RankId rank, std::span<const std::byte> bytes);
  /// After this returns the sink is never called again.
  void shut_sink();

 private:
  std::deque<Mailbox> mailboxes_;
  std::mutex mutex_;  ///< guards the sink
  ReportSink sink_;
};

class ThreadCommunicator final : public Communicator {
 public:
  /// Both must outlive it.
  ThreadCommunicator(ThreadHub& hub, RankId rank, Beats& beats)
      : hub_(hub), rank_(rank), beats_(beats) {}
  RankId rank() const override { return rank_; }
  int rank_count() const override { return hub_.rank_count(); }
  void send(RankId to, MessageTag tag, std::span<const std::byte> bytes,
            const MessageTimes& times) override;
  MessageTimes receive(RankId from, MessageTag tag, std::span<std::byte> bytes) override;
  void report(std::span<const std::byte> bytes) override { hub_.report(rank_, bytes); }

 private:
  ThreadHub& hub_;
  RankId rank_;
  Beats& beats_;
};

}  // namespace meshwright
