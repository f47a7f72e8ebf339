#include "executor/transport/mailbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/error.hpp"

namespace meshwright {
namespace {

/// Time for the launcher to stop the run after a sender has closed its connection.
constexpr std::chrono::seconds kForLauncher{1};

}  // namespace

void Mailbox::put(RankId from, MessageTag tag, Message message) {
  {
    const std::lock_guard lock(mutex_);
    waiting_[{from, tag}].push_back(std::move(message));
  }
  arrived_.notify_one();
}

Mailbox::Message Mailbox::take(RankId from, MessageTag tag) {
  std::unique_lock lock(mutex_);
  auto place = waiting_.end();
  ++takers_;
  arrived_.wait(lock, [&] {
    place = waiting_.find({from, tag});
    return closed_ || place != waiting_.end() || closed_senders_.contains(from);
  });
  // The launcher knows better why a process is gone.
  if (!closed_ && place == waiting_.end())
    arrived_.wait_for(lock, kForLauncher, [&] { return closed_; });
  --takers_;
  if (closed_) throw PeerFailure("another rank failed");
  if (place == waiting_.end())
    throw RuntimeFailure({fmt::format("rank {}", from.value), "lost the connection to it",
                          "check the network and the output of that rank"});
  Message message = std::move(place->second.front());
  place->second.pop_front();
  if (place->second.empty()) waiting_.erase(place);
  return message;
}

MessageTimes Mailbox::take_into(RankId from, MessageTag tag, std::span<std::byte> bytes) {
  const Message message = take(from, tag);
  if (message.bytes.size() != bytes.size())
    throw RuntimeFailure(
        {fmt::format("message of rank {}", from.value),
         fmt::format("has {} bytes, expected {}", message.bytes.size(), bytes.size()),
         "report this bug, with the command line and the input files"});
  std::copy(message.bytes.begin(), message.bytes.end(), bytes.begin());
  return message.times;
}

void Mailbox::close_sender(RankId from) {
  {
    const std::lock_guard lock(mutex_);
    closed_senders_.insert(from);
  }
  arrived_.notify_all();
}

void Mailbox::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  arrived_.notify_all();
}

}  // namespace meshwright
