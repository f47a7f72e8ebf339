#include "executor/transport/nccl_communicator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.hpp"
#include "executor/transport/collectives.hpp"
#include "kernels/device/staged_kernels.hpp"
#include "tests/executor/launch/on_ranks.hpp"
#include "tests/executor/runs/training_runs.hpp"
#include "tests/executor/transport/fake_nccl.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr MessageTag kTag{Channel::kData, 1};

NcclGroups one_group(int count) {
  NcclGroups groups;
  groups.groups.insert(all_ranks(count));
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < count; ++j)
      if (i != j) groups.directions.emplace(RankId(i), RankId(j));
  return groups;
}

Bytes bytes_of(std::span<const float> values) {
  return Bytes(static_cast<std::int64_t>(values.size_bytes()));
}

/// Numbers 10 r + i on rank r, in the memory of a queue.
std::span<float> numbers_on(DeviceQueue& queue, int rank, std::size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), static_cast<float>(10 * rank));
  auto* memory = reinterpret_cast<float*>(queue.allocate(bytes_of(numbers)));
  queue.write(memory, numbers.data(), bytes_of(numbers));
  return {memory, count};
}
std::vector<float> read(DeviceQueue& queue, std::span<const float> values) {
  std::vector<float> numbers(values.size());
  queue.read(numbers.data(), values.data(), bytes_of(values));
  return numbers;
}

/// Runs body(communicator, queue) on ranks with the fake NCCL; returns floats by rank.
template <class Body>
std::vector<std::vector<float>> on_nccl(int count, Body body) {
  return on_ranks<float>(RankKind::kThreads, count, [&](Communicator& messages) {
    DeviceQueue queue(late_kernels(), late_device(), QueueTiming::kNone);
    NcclCommunicator communicator(messages, queue, one_group(count), {.table = fake_nccl::table()});
    return read(queue, body(communicator, queue));
  });
}

class NcclOnRanks : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  std::size_t count() const { return static_cast<std::size_t>(std::get<1>(GetParam())); }
  /// Runs collective(group, values) on numbers 10 r + i; returns the values by rank.
  template <class Collective>
  std::vector<std::vector<float>> run(Collective collective) const {
    return on_nccl(ranks(), [&](Communicator& c, DeviceQueue& queue) {
      const std::span<float> values = numbers_on(queue, c.rank().value, count());
      RankGroup group(c, all_ranks(ranks()), kTag);
      collective(group, values);
      return values;
    });
  }
  /// The sum of 10 r + i over all ranks.
  float sum(std::size_t i) const {
    const int n = ranks();
    return static_cast<float>(10 * n * (n - 1) / 2) + static_cast<float>(n) * static_cast<float>(i);
  }
};

TEST_P(NcclOnRanks, AllReduceSumsEverywhere) {
  const auto results =
      run([&](RankGroup& group, std::span<float> values) { group.all_reduce(values, Ticks()); });
  for (const auto& values : results)
    for (std::size_t i = 0; i < count(); ++i) EXPECT_EQ(values[i], sum(i));
}

TEST_P(NcclOnRanks, AllReduceTakesTheMaximum) {
  const auto results = run(
      [&](RankGroup& group, std::span<float> values) { group.all_reduce_max(values, Ticks()); });
  for (const auto& values : results)
    for (std::size_t i = 0; i < count(); ++i)
      EXPECT_EQ(values[i], static_cast<float>(10 * (ranks() - 1)) + static_cast<float>(i));
}

TEST_P(NcclOnRanks, ReduceScatterLeavesTheOwnBlock) {
  const auto results = run(
      [&](RankGroup& group, std::span<float> values) { group.reduce_scatter(values, Ticks()); });
  for (int r = 0; r < ranks(); ++r) {
    const Block own = block_of(std::get<1>(GetParam()), ranks(), r);
    for (std::int64_t i = own.begin; i < own.end; ++i)
      EXPECT_EQ(results[static_cast<std::size_t>(r)][static_cast<std::size_t>(i)],
                sum(static_cast<std::size_t>(i)));
  }
}

TEST_P(NcclOnRanks, AllGatherTakesEveryBlockFromItsOwner) {
  const auto results = run([&](RankGroup& group, std::span<float> values) {
    group.all_gather(std::as_writable_bytes(values), sizeof(float), Ticks());
  });
  for (const auto& values : results)
    for (int r = 0; r < ranks(); ++r) {
      const Block own = block_of(std::get<1>(GetParam()), ranks(), r);
      for (std::int64_t i = own.begin; i < own.end; ++i)
        EXPECT_EQ(values[static_cast<std::size_t>(i)], static_cast<float>(10 * r + i));
    }
}

TEST_P(NcclOnRanks, BroadcastComesFromTheRoot) {
  const auto results = run([&](RankGroup& group, std::span<float> values) {
    group.broadcast(std::as_writable_bytes(values), ranks() - 1, Ticks());
  });
  for (const auto& values : results)
    for (std::size_t i = 0; i < count(); ++i)
      EXPECT_EQ(values[i], static_cast<float>(10 * (ranks() - 1)) + static_cast<float>(i));
}

// 7 is not a multiple of 2 to 4: blocks differ, and one of four may be empty.
INSTANTIATE_TEST_SUITE_P(Sizes, NcclOnRanks,
                         testing::Combine(testing::Values(2, 3, 4), testing::Values(0, 2, 7, 12)));

// Rank r sends r + s + 1 numbers to rank s, none to itself when r + s + 1 is a multiple of 3.
TEST(NcclAllToAll, ExchangesPartsOfAnySize) {
  constexpr int kRanks = 3;
  const auto size = [](int from, int to) { return static_cast<std::size_t>((from + to + 1) % 3); };
  const auto results = on_nccl(kRanks, [&](Communicator& c, DeviceQueue& queue) {
    const int me = c.rank().value;
    const std::span<float> out = numbers_on(queue, me, 8), in = numbers_on(queue, 9, 8);
    std::vector<std::span<const std::byte>> sent;
    std::vector<std::span<std::byte>> received;
    std::size_t first = 0, next = 0;
    for (int peer = 0; peer < kRanks; ++peer) {
      sent.push_back(std::as_bytes(out.subspan(first, size(me, peer))));
      received.push_back(std::as_writable_bytes(in.subspan(next, size(peer, me))));
      first += size(me, peer);
      next += size(peer, me);
    }
    RankGroup(c, all_ranks(kRanks), kTag).all_to_all(sent, received, Ticks());
    return in.first(next);
  });
  // Sizes by rank: 1 2 0, 2 0 1, 0 1 2. Rank 0 gets 0 of itself and 10, 11 of rank 1.
  EXPECT_THAT(results[0], ElementsAre(0, 10, 11));
  EXPECT_THAT(results[1], ElementsAre(1, 2, 20));
  EXPECT_THAT(results[2], ElementsAre(12, 21, 22));
}

TEST(NcclMessages, WorkBetweenHostAndDeviceMemory) {
  const auto results = on_nccl(2, [](Communicator& c, DeviceQueue& queue) {
    const int me = c.rank().value;
    const std::span<float> there = numbers_on(queue, me, 4);
    std::array<float, 2> here{100, 101};
    if (me == 0) {
      c.send(RankId(1), kTag, std::as_bytes(there.first(2)), {});       // 0 1
      c.send(RankId(1), kTag, std::as_bytes(std::span(here)), {});      // 100 101
      c.send(RankId(1), kTag, std::as_bytes(there.subspan(2, 2)), {});  // 2 3
      c.send(RankId(1), kTag, std::as_bytes(std::span(here)), {});      // 100 101
      c.send(RankId(1), kTag, {}, {});
      return there;
    }
    c.receive(RankId(0), kTag, std::as_writable_bytes(std::span(here)));
    c.receive(RankId(0), kTag, std::as_writable_bytes(there.first(2)));
    c.receive_into({there.data() + 2, 2, Dtype::kFp32}, {RankId(0), kTag}, Reduction::kSum);
    c.receive_into({there.data() + 2, 2, Dtype::kFp32}, {RankId(0), kTag}, Reduction::kMaximum);
    c.receive(RankId(0), kTag, {});
    std::vector<float> sums = read(queue, there);
    for (std::size_t i = 0; i < 2; ++i) sums[i] += here[i] - 100;
    queue.write(there.data(), sums.data(), bytes_of(there));
    return there;
  });
  // 100 + 0 - 100, 101 + 1 - 100; max(12 + 2, 100), max(13 + 3, 101).
  EXPECT_THAT(results[1], ElementsAre(0, 2, 100, 101));
}

// Like gradients that are summed while others are computed: kernels run concurrently and wait only
// before they read the sums.
TEST(NcclLanes, ReduceConcurrentlyWithIndependentKernels) {
  const auto results = on_nccl(2, [](Communicator& c, DeviceQueue& queue) {
    const std::span<float> all = numbers_on(queue, c.rank().value, 4);
    const std::span<float> sums = all.first(2), made = all.subspan(2);
    queue.switch_to_lane(1);
    RankGroup(c, all_ranks(2), kTag).all_reduce(sums, Ticks());
    queue.switch_to_lane(0);
    const KernelTable kernels = queued_kernels(Backend::kCpu);
    kernels.fill({.stream = &queue}, {.y = {made.data(), 2, Dtype::kFp32}, .value = 7});
    EXPECT_THAT(read(queue, made), ElementsAre(7, 7));
    EXPECT_EQ(*late::memory().seen(sums.data()), static_cast<float>(10 * c.rank().value));
    EXPECT_THAT(read(queue, sums), ElementsAre(10, 12));  // 0 + 10, 1 + 11
    return all;
  });
  EXPECT_THAT(results[1], ElementsAre(10, 12, 7, 7));
}

// Data arrive from another rank while this one computes.
TEST(NcclLanes, ReceiveConcurrentlyWithKernels) {
  const auto results = on_nccl(2, [](Communicator& c, DeviceQueue& queue) {
    const std::span<float> computed = numbers_on(queue, c.rank().value, 2);
    queue.switch_to_lane(1);
    const std::span<float> message = numbers_on(queue, c.rank().value, 2);
    if (c.rank() == RankId(0))
      c.send(RankId(1), kTag, std::as_bytes(message), {});
    else
      c.receive(RankId(0), kTag, std::as_writable_bytes(message));
    queue.switch_to_lane(0);
    EXPECT_THAT(read(queue, computed), ElementsAre(10 * c.rank().value, 10 * c.rank().value + 1));
    if (c.rank() == RankId(1)) {
      EXPECT_NE(*late::memory().seen(message.data()), 0);
    }
    return message;
  });
  EXPECT_THAT(results[1], ElementsAre(0, 1));
}

// Without ncclCommSplit groups are created one by one.
TEST(NcclGroups, WorkWithoutCommSplit) {
  static NcclTable old = fake_nccl::table();
  old.can_split = [] { return false; };
  old.split = nullptr;
  const auto results = on_ranks<float>(RankKind::kThreads, 3, [](Communicator& messages) {
    DeviceQueue queue(late_kernels(), late_device(), QueueTiming::kNone);
    NcclCommunicator c(messages, queue, one_group(3), {.table = old});
    const std::span<float> values = numbers_on(queue, c.rank().value, 2);
    RankGroup(c, all_ranks(3), kTag).all_reduce(values, Ticks());
    return read(queue, values);
  });
  for (const auto& values : results) EXPECT_THAT(values, ElementsAre(30, 33));
}

// Five groups of four ranks: one of all, and pairs, of which two at a time are disjoint.
TEST(NcclGroups, AreSplitFromTheGlobalCommunicator) {
  static std::atomic<int> joins = 0, splits = 0;
  joins = splits = 0;
  static NcclTable counted = fake_nccl::table();
  counted.make_id = [] {
    ++joins;
    return fake_nccl::table().make_id();
  };
  counted.split = [](void* all, int color, const NcclPlace& place) {
    ++splits;
    return fake_nccl::table().split(all, color, place);
  };
  const std::vector<std::vector<RankId>> pairs{{RankId(0), RankId(1)},
                                               {RankId(2), RankId(3)},
                                               {RankId(0), RankId(2)},
                                               {RankId(1), RankId(3)}};
  const auto results = on_ranks<float>(RankKind::kThreads, 4, [&](Communicator& messages) {
    DeviceQueue queue(late_kernels(), late_device(), QueueTiming::kNone);
    NcclGroups groups;
    groups.groups.insert(pairs.begin(), pairs.end());
    groups.groups.insert(all_ranks(4));
    NcclCommunicator c(messages, queue, groups, {.table = counted});
    const std::span<float> values = numbers_on(queue, c.rank().value, 1);
    for (const std::vector<RankId>& members : pairs)
      if (std::ranges::find(members, c.rank()) != members.end())
        RankGroup(c, members, kTag).all_reduce(values, Ticks());
    return read(queue, values);
  });
  // 0 + 10 and 20 + 30 first, then 10 + 50 everywhere.
  for (const auto& values : results) EXPECT_THAT(values, ElementsAre(60));
  EXPECT_EQ(joins, 1);
  EXPECT_EQ(splits, 4 * 3);  // of all; 0 1 and 2 3; 0 2 and 1 3
}

// ---- failures ----

/// A host device whose events never complete: a kernel waits for a dead peer.
const DeviceTable& stuck_device() {
  static const DeviceTable device = [] {
    DeviceTable t = host_device();
    t.is_complete = [](void*) { return false; };
    return t;
  }();
  return device;
}

TEST(NcclWait, EndsAtTheTimeout) {
  on_ranks<float>(RankKind::kThreads, 1, [](Communicator& messages) {
    DeviceQueue queue(kernel_table(Backend::kCpu), stuck_device(), QueueTiming::kNone);
    NcclCommunicator communicator(
        messages, queue, {},
        {.table = fake_nccl::table(), .watchdog_timeout = std::chrono::milliseconds(20)});
    queue.note_work();
    try {
      queue.wait();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const RuntimeFailure& failure) {
      EXPECT_THAT(failure.what(), HasSubstr("after 20 ms"));
    }
    return std::vector<float>();
  });
}

TEST(NcclWait, EndsWhenAnotherRankFails) {
  on_ranks<float>(RankKind::kThreads, 1, [](Communicator& messages) {
    const std::atomic<bool> must_stop = true;
    DeviceQueue queue(kernel_table(Backend::kCpu), stuck_device(), QueueTiming::kNone);
    NcclCommunicator communicator(messages, queue, {},
                                  {.table = fake_nccl::table(), .must_stop = &must_stop});
    queue.note_work();
    EXPECT_THROW(queue.wait(), PeerFailure);
    return std::vector<float>();
  });
}

TEST(NcclWait, AbortsPendingOperationsOfPeers) {
  const auto failure = run_ranks(RankKind::kThreads, 2, [](Communicator& messages, RankProgress&) {
    DeviceQueue queue(late_kernels(), late_device(), QueueTiming::kNone);
    NcclCommunicator communicator(messages, queue, one_group(2), {.table = fake_nccl::table()});
    if (communicator.rank() == RankId(1)) throw std::runtime_error("out of luck");
    const std::span<float> values = numbers_on(queue, 0, 4);
    RankGroup(communicator, all_ranks(2), kTag).all_reduce(values, Ticks());
  });
  ASSERT_TRUE(failure.has_value());
  EXPECT_FALSE(failure->is_stuck);
}

// ---- training ----

class NcclTraining : public testing::TestWithParam<NamedPlan> {};

/// Sums over more than two ranks have another order than in a ring: tolerance 1e-5 of the norm, as
/// three steps of fp32 sums differ by about 1e-6.
TEST_P(NcclTraining, MatchesMessages) {
  const Strategy strategy = GetParam().applied_to(tiny_strategy());
  const TrainingRun by_messages =
      run_plan(GetParam().config, strategy,
               {.kernels = kernel_table(Backend::kCpu), .clock = TimelineClock::kWall, .steps = 2});
  const TrainingRun by_nccl = run_plan(GetParam().config, strategy,
                                       {.kernels = late_kernels(),
                                        .device = &late_device(),
                                        .nccl = &fake_nccl::table(),
                                        .clock = TimelineClock::kWall,
                                        .steps = 2});
  expect_same_run(by_messages, by_nccl, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, NcclTraining,
    testing::Values(
        NamedPlan{"data_4", kTinyGpt, [](Strategy& s) { s.degrees.data = 4; }},
        NamedPlan{"zero_1", kTinyGpt, [](Strategy& s) { use_data(s, 4, 1); }},
        NamedPlan{"zero_3", kTinyLlama, [](Strategy& s) { use_data(s, 2, 3); }},
        NamedPlan{"tensor_2_sequence", kTinyGpt, [](Strategy& s) { use_sequence_parallel(s, 2); }},
        NamedPlan{"pipeline_4", kTinyGpt, [](Strategy& s) { s.degrees.pipeline = 4; }},
        NamedPlan{"dualpipe_2", kTinyGpt, [](Strategy& s) { use_pipeline(s, 2, "dualpipe"); }},
        NamedPlan{"zero_3_dualpipev", kTinyLlama,
                  [](Strategy& s) { use_data(s, 2, 3), use_pipeline(s, 2, "dualpipev", 2); }},
        NamedPlan{"context_ring", kTinyGpt,
                  [](Strategy& s) { use_context(s, 2, ContextAlgorithm::kRing); }},
        NamedPlan{"context_all_to_all", kTinyGpt,
                  [](Strategy& s) { use_context(s, 2, ContextAlgorithm::kAllToAll); }},
        NamedPlan{"shared_tokens", kTinyGpt, [](Strategy& s) { share_tokens(s, 2, "1-2:tp=1"); }},
        NamedPlan{"experts_2", kTinyMixtral,
                  [](Strategy& s) { s.degrees.data = 2, s.degrees.expert = 2; }},
        NamedPlan{
            "data_2_tensor_2_pipeline_2", kTinyLlama,
            [](Strategy& s) { s.degrees.data = 2, s.degrees.tensor = 2, s.degrees.pipeline = 2; }}),
    plan_name);

}  // namespace
}  // namespace meshwright
