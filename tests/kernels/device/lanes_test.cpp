#include "kernels/device/lanes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "kernels/device/backend_plugin.hpp"
#include "kernels/device/queue.hpp"
#include "kernels/device/staged_kernels.hpp"
#include "tests/kernels/device/late_device.hpp"

namespace meshwright {
namespace {

/// A queue of several lanes whose work is executed as late as possible.
class Lanes : public testing::Test {
 protected:
  Vector numbers(std::int64_t count) {
    return {queue.allocate(Bytes(4 * count)), count, Dtype::kFp32};
  }
  void fill(int lane, const Vector& y, float value) {
    queue.switch_to_lane(lane);
    kernels.fill({.stream = &queue}, {.y = y, .value = value});
  }
  void copy(int lane, const Vector& x, const Vector& y) {
    queue.switch_to_lane(lane);
    kernels.cast({.stream = &queue}, {.x = x, .y = y});
  }
  std::vector<float> read(int lane, const Vector& x) {
    queue.switch_to_lane(lane);
    std::vector<float> values(static_cast<std::size_t>(x.size));
    queue.read(values.data(), x.data, Bytes(4 * x.size));
    return values;
  }
  /// Current contents of the memory, without waiting for pending work.
  static float now(const Vector& x) {
    return *late::memory().seen(static_cast<const float*>(x.data));
  }
  /// Lane 1 fills both in sections of their own; reading the first does not wait for the second.
  void expect_wait_for_first_section(const Vector& first, const Vector& second) {
    queue.wait();
    fill(1, first, 1);
    fill(0, numbers(1), 0);
    fill(1, second, 2);
    EXPECT_EQ(read(0, first).front(), 1);
    EXPECT_NE(now(second), 2);
  }

  DeviceQueue queue{late_kernels(), late_device(), QueueTiming::kNone};
  KernelTable kernels = queued_kernels(Backend::kCpu);
};

TEST_F(Lanes, ReadAfterWritesOfOtherLanes) {
  const Vector x = numbers(4), y = numbers(4);
  fill(0, x, 1);
  fill(1, x, 2);
  copy(2, x, y);
  EXPECT_EQ(read(0, y).front(), 2);
}

TEST_F(Lanes, WriteAfterReadsOfOtherLanes) {
  const Vector x = numbers(4), y = numbers(4);
  fill(0, x, 1);
  copy(1, x, y);
  fill(0, x, 2);
  EXPECT_EQ(read(0, x).front(), 2);
  EXPECT_EQ(read(0, y).front(), 1);
}

// As if gradients of one layer are reduced while those of the next are computed in the same block.
TEST_F(Lanes, OverlapOnDisjointPartsOfABlock) {
  const Vector all = numbers(8), first = part_of(all, 0, 4), second = part_of(all, 4, 4);
  fill(0, all, 0);
  fill(3, first, 1);
  fill(0, second, 2);
  EXPECT_EQ(read(0, second).front(), 2);
  EXPECT_NE(now(first), 1);  // lane 3 has not been waited for
  EXPECT_EQ(read(0, first).front(), 1);
}

TEST_F(Lanes, DoNotWaitForOtherReaders) {
  const Vector x = numbers(4), y = numbers(4), z = numbers(4);
  fill(0, x, 1);
  copy(1, x, y);
  copy(0, x, z);
  EXPECT_EQ(read(0, z).front(), 1);
  EXPECT_NE(now(y), 1);
}

// Waits for a lane's section, not for the lane's later work.
TEST_F(Lanes, WaitOnlyForTheSectionTheyNeed) {
  const Vector x = numbers(4), y = numbers(4);
  expect_wait_for_first_section(x, y);
}

TEST_F(Lanes, WaitForTheSectionThatWroteTheirPartOfABlock) {
  const Vector all = numbers(8);
  expect_wait_for_first_section(part_of(all, 0, 4), part_of(all, 4, 4));
}

// Freed by the first lane while the second one still reads, and reused by the third: the device has
// no memory for another block.
TEST_F(Lanes, ReleaseMemoryAfterItsLastUse) {
  const std::int64_t most = late_device().memory().value / 4 / 4 * 3;
  const Vector y = numbers(4);
  fill(0, y, 0);
  queue.switch_to_lane(1);
  const Vector x = numbers(most);
  fill(0, part_of(x, 0, 4), 1);
  copy(1, part_of(x, 0, 4), y);
  queue.switch_to_lane(0);
  queue.release(static_cast<std::byte*>(x.data));
  queue.switch_to_lane(2);
  const Vector again = numbers(most);
  fill(2, part_of(again, 0, 4), 5);
  EXPECT_EQ(read(0, y).front(), 1);
}

TEST_F(Lanes, AreAllCompleteAfterWait) {
  const Vector x = numbers(4), y = numbers(4);
  fill(1, x, 1);
  fill(2, y, 2);
  queue.switch_to_lane(0);
  queue.wait();
  EXPECT_EQ(now(x), 1);
  EXPECT_EQ(now(y), 2);
}

/// Programs of copies, fills, reads and allocations on four lanes, compared with in-order
/// execution.
class RandomPrograms : public Lanes, public testing::WithParamInterface<unsigned> {
 protected:
  static constexpr std::int64_t kCount = 12;
  struct Block {
    Vector there;
    std::vector<float> expected;
  };
  int below(int limit) { return std::uniform_int_distribution(0, limit - 1)(random_); }
  Block new_block(int lane) {
    queue.switch_to_lane(lane);
    Block made{numbers(kCount), std::vector<float>(kCount, 0)};
    fill(lane, made.there, 0);
    return made;
  }
  void act(std::array<Block, 3>& blocks, int number) {
    const int lane = below(4), what = below(8);
    Block &to = blocks[static_cast<std::size_t>(below(3))],
          &from = blocks[static_cast<std::size_t>(below(3))];
    const int count = 1 + below(5), first = below(static_cast<int>(kCount) - count + 1),
              other = below(static_cast<int>(kCount) - count + 1);
    if (what == 0) {
      EXPECT_EQ(read(lane, to.there), to.expected) << "action " << number;
    } else if (what == 1) {
      queue.switch_to_lane(lane);
      queue.release(static_cast<std::byte*>(to.there.data));
      to = new_block(below(4));
    } else if (what < 5 || &from == &to) {
      fill(lane, part_of(to.there, first, count), static_cast<float>(number));
      std::fill_n(to.expected.begin() + first, count, static_cast<float>(number));
    } else {
      copy(lane, part_of(from.there, other, count), part_of(to.there, first, count));
      std::copy_n(from.expected.begin() + other, count, to.expected.begin() + first);
    }
  }
  std::mt19937 random_{GetParam()};
};

TEST_P(RandomPrograms, EqualExecutionInOrder) {
  std::array<Block, 3> blocks{new_block(0), new_block(1), new_block(2)};
  for (int number = 1; number <= 300; ++number) {
    act(blocks, number);
    if (below(60) == 0) queue.wait();
  }
  for (const Block& block : blocks) EXPECT_EQ(read(below(4), block.there), block.expected);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, testing::Range(1U, 41U));

// ---- on a device ----

// The second lane is delayed; the first overtakes it, and waits where it needs the result.
TEST(CudaLanes, OverlapAndWaitForDependencies) {
  if (!backend_plugin(Backend::kCuda).missing.empty())
    GTEST_SKIP() << backend_plugin(Backend::kCuda).missing;
  const DeviceTable& device = backend_plugin(Backend::kCuda).exports->device;
  device.select(0);
  DeviceQueue queue(backend_plugin(Backend::kCuda).exports->kernels, device, QueueTiming::kNone);
  const KernelTable kernels = queued_kernels(Backend::kCuda);
  const auto numbers = [&] { return Vector{queue.allocate(Bytes(16)), 4, Dtype::kFp32}; };
  const auto first_of = [&](const Vector& x) {
    float value = 0;
    queue.read(&value, x.data, Bytes(4));
    return value;
  };
  const Vector x = numbers(), y = numbers();
  for (const Vector& v : {x, y}) kernels.fill({.stream = &queue}, {.y = v, .value = 1});
  queue.switch_to_lane(1);
  device.hold(queue.gate(), Seconds(50e-3), queue.stream());
  kernels.fill({.stream = &queue}, {.y = x, .value = 2});
  void* filled = device.create_event();
  device.record(filled, queue.stream());
  queue.switch_to_lane(0);
  kernels.fill({.stream = &queue}, {.y = y, .value = 3});
  EXPECT_EQ(first_of(y), 3);
  EXPECT_FALSE(device.is_complete(filled));
  EXPECT_EQ(first_of(x), 2);
  device.destroy_event(filled);
}

}  // namespace
}  // namespace meshwright
