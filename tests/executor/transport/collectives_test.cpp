#include "executor/transport/collectives.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/executor/launch/on_ranks.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;

constexpr MessageTag kTag{Channel::kData, 1};

/// Runs `body(group, rank)` on ranks that form one group; returns the results by rank.
template <class T, class Body>
std::vector<std::vector<T>> on_group(RankKind kind, int count, Body body) {
  return on_ranks<T>(kind, count, [&](Communicator& communicator) {
    RankGroup group(communicator, all_ranks(count), kTag);
    return std::vector<T>(body(group, communicator.rank().value));
  });
}

/// Element i on rank r, small integers so that sums are exact.
float element(int rank, int i) { return static_cast<float>((rank + 1) * (i % 17 + 1)); }
std::vector<float> values_of(int rank, int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(element(rank, i));
  return values;
}
float sum_over(int ranks, int i) {
  float sum = 0;
  for (int r = 0; r < ranks; ++r) sum += element(r, i);
  return sum;
}

/// Every rank holds the sums over all ranks.
void expect_sums(const std::vector<std::vector<float>>& results, int count) {
  const int ranks = static_cast<int>(results.size());
  for (const auto& values : results)
    for (int i = 0; i < count; ++i)
      ASSERT_EQ(values[static_cast<std::size_t>(i)], sum_over(ranks, i)) << "element " << i;
}

TEST(Blocks, AreEqualExceptTheLastOnes) {
  // ceil(10 / 4) = 3: 0-3, 3-6, 6-9, 9-10; ceil(2 / 4) = 1: two blocks are empty.
  EXPECT_EQ(block_of(10, 4, 0), (Block{0, 3}));
  EXPECT_EQ(block_of(10, 4, 3), (Block{9, 10}));
  EXPECT_EQ(block_of(2, 4, 1), (Block{1, 2}));
  EXPECT_EQ(block_of(2, 4, 3), (Block{2, 2}));
}

class OnRanks : public testing::TestWithParam<std::tuple<RankKind, int, int>> {};

TEST_P(OnRanks, AllReduceSumsEverywhere) {
  const auto [kind, ranks, count] = GetParam();
  const auto results = on_group<float>(kind, ranks, [count = count](RankGroup& group, int rank) {
    std::vector<float> values = values_of(rank, count);
    group.all_reduce(std::span(values), Ticks());
    return values;
  });
  expect_sums(results, count);
}

TEST_P(OnRanks, ReduceScatterThenAllGatherIsAllReduce) {
  const auto [kind, ranks, count] = GetParam();
  const auto results = on_group<float>(kind, ranks, [&, count = count](RankGroup& group, int rank) {
    std::vector<float> values = values_of(rank, count);
    group.reduce_scatter(std::span(values), Ticks());
    const Block mine = block_of(count, group.size(), group.index());
    for (std::int64_t i = 0; i < count; ++i)  // only the own block is an input
      if (i < mine.begin || i >= mine.end) values[static_cast<std::size_t>(i)] = -1;
    group.all_gather(std::as_writable_bytes(std::span(values)), sizeof(float), Ticks());
    return values;
  });
  expect_sums(results, count);
}

TEST_P(OnRanks, EveryMemberLearnsWhenTheLastWasReady) {
  const auto [kind, ranks, count] = GetParam();
  const auto results = on_group<Ticks>(kind, ranks, [count = count](RankGroup& group, int rank) {
    std::vector<float> values = values_of(rank, count);
    return std::vector{group.all_reduce(std::span(values), Ticks(rank == 0 ? 100 : rank))};
  });
  for (const auto& latest : results) EXPECT_THAT(latest, ElementsAre(Ticks(100)));
}

INSTANTIATE_TEST_SUITE_P(SizesAndCounts, OnRanks,
                         testing::Combine(testing::Values(RankKind::kThreads),
                                          testing::Values(1, 2, 3, 4, 7),
                                          testing::Values(0, 1, 2, 5, 64, 1001)));
INSTANTIATE_TEST_SUITE_P(InProcesses, OnRanks,
                         testing::Combine(testing::Values(RankKind::kProcesses),
                                          testing::Values(2, 3, 16), testing::Values(0, 5, 1001)));

class Collectives : public testing::TestWithParam<RankKind> {};

TEST_P(Collectives, AllToAllTransposes) {
  const auto results = on_group<std::uint8_t>(GetParam(), 3, [](RankGroup& group, int rank) {
    // Rank r sends byte 10 r + i to rank i.
    std::vector<std::byte> sent(3), received(3);
    std::vector<std::span<const std::byte>> out;
    std::vector<std::span<std::byte>> in;
    for (std::size_t i = 0; i < 3; ++i) {
      sent[i] = static_cast<std::byte>(10 * rank + static_cast<int>(i));
      out.push_back(std::span(sent).subspan(i, 1));
      in.push_back(std::span(received).subspan(i, 1));
    }
    group.all_to_all(out, in, Ticks());
    std::vector<std::uint8_t> values;
    for (const std::byte b : received) values.push_back(static_cast<std::uint8_t>(b));
    return values;
  });
  EXPECT_THAT(results,
              ElementsAre(ElementsAre(0, 10, 20), ElementsAre(1, 11, 21), ElementsAre(2, 12, 22)));
}

TEST_P(Collectives, BroadcastComesFromTheRootAndWaitsForAll) {
  const auto results = on_group<std::int64_t>(GetParam(), 4, [](RankGroup& group, int rank) {
    auto value = static_cast<std::byte>(rank);
    const Ticks latest = group.broadcast({&value, 1}, 2, Ticks(rank));
    return std::vector{static_cast<std::int64_t>(value), latest.value};
  });
  for (const auto& value_and_latest : results) EXPECT_THAT(value_and_latest, ElementsAre(2, 3));
}

/// 1 + 2^-9 is not representable in bf16: it is rounded to 1, ties to even. A sum of four ones is
/// exact.
TEST_P(Collectives, Bf16SumsAreRoundedToNearestEven) {
  constexpr std::uint16_t kOne = 0x3f80, kTiny = 0x3b00 /* 2^-9 */, kTwo = 0x4000;
  const auto results = on_group<std::uint16_t>(GetParam(), 2, [](RankGroup& group, int rank) {
    std::vector<std::uint16_t> values{kOne, rank == 0 ? kOne : kTiny};
    group.all_reduce(std::span(values), Ticks());
    return values;
  });
  for (const auto& values : results) EXPECT_THAT(values, ElementsAre(kTwo, kOne));
}

TEST_P(Collectives, AreBitwiseReproducible) {
  const auto once = [&] {
    return on_group<float>(GetParam(), 5, [](RankGroup& group, int rank) {
      std::vector<float> values;
      for (int i = 0; i < 103; ++i) values.push_back(1.0F / static_cast<float>(rank * 103 + i + 1));
      group.all_reduce(std::span(values), Ticks());
      return values;
    });
  };
  const auto first = once();
  EXPECT_EQ(first, once());
  for (const auto& values : first) EXPECT_EQ(values, first.front());
}

INSTANTIATE_TEST_SUITE_P(Kinds, Collectives,
                         testing::Values(RankKind::kThreads, RankKind::kProcesses), kind_name);

}  // namespace
}  // namespace meshwright
