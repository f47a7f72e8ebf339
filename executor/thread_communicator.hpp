/// Ranks as threads of one process: messages are copies in memory. Always there, needs nothing.
#pragma once

#include <deque>

#include "executor/communicator.hpp"
#include "executor/mailbox.hpp"

namespace meshwright {

/// Where the ranks of one job meet; outlives its communicators.
class ThreadHub {
 public:
  explicit ThreadHub(int ranks) : mailboxes_(static_cast<std::size_t>(ranks)) {}
  int rank_count() const { return static_cast<int>(mailboxes_.size()); }
  Mailbox& mailbox_of(RankId rank) { return mailboxes_[rank.index()]; }
  /// Every rank that waits for a message, now or later, gets a PeerFailure.
  void close();

 private:
  std::deque<Mailbox> mailboxes_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(ThreadHub& hub, RankId rank) : hub_(hub), rank_(rank) {}
  RankId rank() const override { return rank_; }
  int rank_count() const override { return hub_.rank_count(); }
  void send(RankId to, MessageTag tag, std::span<const std::byte> bytes,
            const MessageTimes& times) override;
  MessageTimes receive(RankId from, MessageTag tag, std::span<std::byte> bytes) override;

 private:
  ThreadHub& hub_;
  RankId rank_;
};

}  // namespace meshwright
