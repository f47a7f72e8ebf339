#include "executor/transport/mailbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"

namespace meshwright {

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
    if (closed_) return true;
    place = waiting_.find({from, tag});
    return place != waiting_.end();
  });
  --takers_;
  if (closed_) throw PeerFailure("another rank failed");
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

void Mailbox::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  arrived_.notify_all();
}

}  // namespace meshwright
