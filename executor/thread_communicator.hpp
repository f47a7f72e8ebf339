/// Ranks as threads of one process: messages are copies in memory. Always there, needs nothing.
#pragma once

#include <deque>
#include <functional>
#include <mutex>

#include "executor/communicator.hpp"
#include "executor/mailbox.hpp"

namespace meshwright {

/// Where the ranks of one job meet; outlives its communicators.
class ThreadHub {
 public:
  using ReportSink = std::function<void(RankId, std::span<const std::byte>)>;
  explicit ThreadHub(int ranks, ReportSink sink = {})
      : mailboxes_(static_cast<std::size_t>(ranks)), sink_(std::move(sink)) {}
  int rank_count() const { return static_cast<int>(mailboxes_.size()); }
  Mailbox& mailbox_of(RankId rank) { return mailboxes_[rank.index()]; }
  /// Every rank that waits for a message, now or later, gets a PeerFailure.
  void close();
  /// Calls the sink, one call at a time.
  void report(RankId rank, std::span<const std::byte> bytes);
  /// The sink is not called any more, now and later.
  void shut_sink();

 private:
  std::deque<Mailbox> mailboxes_;
  std::mutex mutex_;  ///< of the sink
  ReportSink sink_;
};

class ThreadCommunicator final : public Communicator {
 public:
  /// Both outlive it.
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
