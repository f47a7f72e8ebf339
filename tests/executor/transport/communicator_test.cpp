/// The guarantees of Communicator, for ranks of every kind.
#include "executor/transport/communicator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>

#include "tests/executor/launch/on_ranks.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;

class Messages : public testing::TestWithParam<RankKind> {};

void send(Communicator& communicator, RankId to, MessageTag tag, std::int32_t value) {
  communicator.send(to, tag, std::as_bytes(std::span(&value, 1)), {Ticks(value), Ticks(2 * value)});
}
std::int32_t receive(Communicator& communicator, RankId from, MessageTag tag) {
  std::int32_t value = 0;
  const MessageTimes times =
      communicator.receive(from, tag, std::as_writable_bytes(std::span(&value, 1)));
  return times == MessageTimes{Ticks(value), Ticks(2 * value)} ? value : -1;
}

TEST_P(Messages, OfOneTagArriveInOrderAndOthersWait) {
  const MessageTag a{Channel::kData, 1}, b{Channel::kTensor, 1}, c{Channel::kData, 2};
  const auto got = on_ranks<std::int32_t>(GetParam(), 2, [&](Communicator& communicator) {
    std::vector<std::int32_t> values;
    if (communicator.rank() == RankId(0)) {
      for (const std::int32_t i : {10, 11}) send(communicator, RankId(1), a, i);
      send(communicator, RankId(1), b, 20);
      send(communicator, RankId(1), c, 30);
      return values;
    }
    for (const MessageTag tag : {c, b, a, a})
      values.push_back(receive(communicator, RankId(0), tag));
    return values;
  });
  EXPECT_THAT(got[1], ElementsAre(30, 20, 10, 11));
}

TEST_P(Messages, AreDistinguishedBySender) {
  const auto got = on_ranks<std::int32_t>(GetParam(), 5, [](Communicator& communicator) {
    const int n = communicator.rank_count();
    for (int to = 0; to < n; ++to)
      send(communicator, RankId(to), {}, 10 * communicator.rank().value + to);
    std::vector<std::int32_t> values;
    for (int from = n; from-- > 0;) values.push_back(receive(communicator, RankId(from), {}));
    return values;
  });
  for (int r = 0; r < 5; ++r)
    EXPECT_THAT(got[static_cast<std::size_t>(r)], ElementsAre(40 + r, 30 + r, 20 + r, 10 + r, r));
}

TEST_P(Messages, MayBeEmpty) {
  const auto got = on_ranks<std::int64_t>(GetParam(), 2, [](Communicator& communicator) {
    const RankId other(1 - communicator.rank().value);
    communicator.send(other, {}, {}, {Ticks(7), Ticks(8)});
    return std::vector{communicator.receive(other, {}, {}).end.value};
  });
  EXPECT_THAT(got, ElementsAre(ElementsAre(8), ElementsAre(8)));
}

/// Both send more than a socket buffer holds before either receives: a blocking send would
/// deadlock.
TEST_P(Messages, OfSixtyFourMegabytesInBothDirectionsDoNotDeadlock) {
  constexpr std::size_t kWords = std::size_t{8} << 20;
  const auto sums = on_ranks<std::uint64_t>(GetParam(), 2, [](Communicator& communicator) {
    std::vector<std::uint64_t> words(kWords);
    std::iota(words.begin(), words.end(), static_cast<std::uint64_t>(communicator.rank().value));
    const RankId other(1 - communicator.rank().value);
    communicator.send(other, {}, std::as_bytes(std::span(words)), {});
    communicator.receive(other, {}, std::as_writable_bytes(std::span(words)));
    bool in_order = true;
    for (std::size_t i = 1; i < kWords; ++i) in_order &= words[i] == words[i - 1] + 1;
    return std::vector<std::uint64_t>{words.front(), in_order};
  });
  EXPECT_THAT(sums, ElementsAre(ElementsAre(1, 1), ElementsAre(0, 1)));
}

TEST_P(Messages, DoNotBlockOthersUntilReceived) {
  const auto got = on_ranks<std::int32_t>(GetParam(), 3, [](Communicator& communicator) {
    constexpr int kMany = 20'000;
    std::vector<std::int32_t> values;
    const MessageTag later{Channel::kData, 9};
    if (communicator.rank() == RankId(0))
      for (int i = 0; i < kMany; ++i) send(communicator, RankId(2), later, i);
    if (communicator.rank() != RankId(2)) send(communicator, RankId(2), {}, 5);
    if (communicator.rank() != RankId(2)) return values;
    for (const int from : {1, 0}) values.push_back(receive(communicator, RankId(from), {}));
    bool in_order = true;
    for (int i = 0; i < kMany; ++i) in_order &= receive(communicator, RankId(0), later) == i;
    values.push_back(in_order);
    return values;
  });
  EXPECT_THAT(got[2], ElementsAre(5, 5, 1));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Messages, testing::Values(RankKind::kThreads, RankKind::kProcesses),
                         kind_name);

}  // namespace
}  // namespace meshwright
