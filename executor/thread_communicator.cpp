#include "executor/thread_communicator.hpp"

#include <algorithm>

#include "core/check.hpp"

namespace meshwright {

void ThreadHub::close() {
  for (Mailbox& mailbox : mailboxes_) mailbox.close();
}

void ThreadCommunicator::send(RankId to, MessageTag tag, std::span<const std::byte> bytes,
                              const MessageTimes& times) {
  MW_CHECK(to.value >= 0 && to.value < rank_count());
  hub_.mailbox_of(to).put(rank_, tag, {{bytes.begin(), bytes.end()}, times});
}

MessageTimes ThreadCommunicator::receive(RankId from, MessageTag tag, std::span<std::byte> bytes) {
  const Mailbox::Message message = hub_.mailbox_of(rank_).take(from, tag);
  MW_CHECK(message.bytes.size() == bytes.size());
  std::copy(message.bytes.begin(), message.bytes.end(), bytes.begin());
  return message.times;
}

}  // namespace meshwright
