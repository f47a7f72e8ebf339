#include "executor/transport/thread_communicator.hpp"

#include "core/base/check.hpp"

namespace meshwright {

void ThreadHub::close() {
  for (Mailbox& mailbox : mailboxes_) mailbox.close();
}

void ThreadHub::report(RankId rank, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (sink_) sink_(rank, bytes);
}

void ThreadHub::shut_sink() {
  const std::lock_guard lock(mutex_);
  sink_ = {};
}

void ThreadCommunicator::send(RankId to, MessageTag tag, std::span<const std::byte> bytes,
                              const MessageTimes& times) {
  MW_CHECK(to.value >= 0 && to.value < rank_count());
  hub_.mailbox_of(to).put(rank_, tag, {{bytes.begin(), bytes.end()}, times});
  beats_.fetch_add(1, std::memory_order_relaxed);
}

MessageTimes ThreadCommunicator::receive(RankId from, MessageTag tag, std::span<std::byte> bytes) {
  const MessageTimes times = hub_.mailbox_of(rank_).take_into(from, tag, bytes);
  beats_.fetch_add(1, std::memory_order_relaxed);
  return times;
}

}  // namespace meshwright
