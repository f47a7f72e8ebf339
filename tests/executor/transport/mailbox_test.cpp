#include "executor/transport/mailbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/base/error.hpp"

namespace meshwright {
namespace {

constexpr MessageTag kTag{Channel::kControl, 0};

TEST(Mailbox, KeepsWhatASenderSentBeforeItClosed) {
  Mailbox mailbox;
  mailbox.put(RankId(1), kTag, {{std::byte{7}}, {}});
  mailbox.close_sender(RankId(1));
  EXPECT_EQ(mailbox.take(RankId(1), kTag).bytes, std::vector<std::byte>{std::byte{7}});
}

TEST(Mailbox, NamesASenderWhoseMessagesNoLongerArrive) {
  Mailbox mailbox;
  mailbox.close_sender(RankId(1));
  try {
    mailbox.take(RankId(1), kTag);
    ADD_FAILURE() << "took a message that nobody sent";
  } catch (const RuntimeFailure& failure) {
    EXPECT_THAT(failure.what(), testing::HasSubstr("rank 1: lost the connection"));
  }
}

TEST(Mailbox, LeavesTheReasonToTheLauncherThatStopsTheRun) {
  Mailbox mailbox;
  mailbox.close_sender(RankId(1));
  std::thread launcher([&] { mailbox.close(); });
  EXPECT_THROW(mailbox.take(RankId(1), kTag), PeerFailure);
  launcher.join();
}

TEST(Mailbox, WaitsForOtherSenders) {
  Mailbox mailbox;
  mailbox.close_sender(RankId(1));
  std::thread sender([&] { mailbox.put(RankId(2), kTag, {}); });
  EXPECT_NO_THROW(mailbox.take(RankId(2), kTag));
  sender.join();
}

}  // namespace
}  // namespace meshwright
