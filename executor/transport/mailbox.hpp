/// Messages that have arrived at a rank but have not been received yet.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "executor/transport/communicator.hpp"

namespace meshwright {

class Mailbox {
 public:
  struct Message {
    std::vector<std::byte> bytes;
    MessageTimes times;
  };

  void put(RankId from, MessageTag tag, Message message);
  /// Waits for the next message with this sender and tag. Throws PeerFailure once closed, even if
  /// the message has arrived: a failed run must not continue. Throws RuntimeFailure if the sender
  /// has closed its connection and the run goes on.
  Message take(RankId from, MessageTag tag);
  /// The same, into memory of the right size (anything else is our bug).
  MessageTimes take_into(RankId from, MessageTag tag, std::span<std::byte> bytes);
  /// Wakes all waiting threads; from now on take() throws.
  void close();
  /// The sender has closed its connection: no more messages will arrive.
  void close_sender(RankId from);
  /// Whether a thread is waiting in take().
  bool is_waited_for() const { return takers_ > 0; }

 private:
  struct Key {
    RankId from;
    MessageTag tag;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<Key, std::deque<Message>> waiting_;
  std::set<RankId> closed_senders_;
  bool closed_ = false;
  std::atomic<int> takers_{0};
};

}  // namespace meshwright
