#include "kernels/device_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "kernels/cuda_library.hpp"
#include "kernels/staged_kernels.hpp"
#include "tests/kernels/late_device.hpp"

namespace meshwright {
namespace {

/// Four floats in the memory of a queue.
struct Four {
  explicit Four(DeviceQueue& on) : queue(on), values(reinterpret_cast<float*>(allocate())) {}
  Vector vector() const { return {values, 4, Dtype::kFp32}; }
  std::byte* allocate() { return queue.allocate(Bytes(16)); }
  DeviceQueue& queue;
  float* values;
};

class Queue : public testing::Test {
 protected:
  DeviceQueue queue{late_kernels(), late_device(), QueueTiming::kNone};
  KernelTable kernels = queued_kernels(Backend::kCpu);
  Launch launch{.stream = &queue};
};

TEST_F(Queue, HoldsWhatItAllocatedAndNothingElse) {
  std::byte* block = queue.allocate(Bytes(100));
  EXPECT_TRUE(queue.holds(block, Bytes(100)));
  EXPECT_TRUE(queue.holds(block + 60, Bytes(40)));
  EXPECT_FALSE(queue.holds(block + 60, Bytes(41)));
  EXPECT_FALSE(queue.holds(block - 1, Bytes(1)));
  EXPECT_FALSE(queue.holds(&block, Bytes(1)));
  queue.give_back(block);
  EXPECT_FALSE(queue.holds(block, Bytes(1)));
}

TEST_F(Queue, RunsAheadOfKernelsInItsMemory) {
  const Four x(queue);
  std::fill_n(x.values, 4, 1.0F);
  kernels.fill(launch, {.y = x.vector(), .value = 2});
  EXPECT_EQ(x.values[0], 1);  // nobody has waited yet
  queue.wait();
  EXPECT_EQ(x.values[0], 2);
}

TEST_F(Queue, WaitsForResultsThatLieElsewhere) {
  const Four x(queue);
  kernels.fill(launch, {.y = x.vector(), .value = 2});
  float total = 0;
  kernels.total(launch, {.x = std::span<const float>(x.values, 4), .scale = 1, .total = &total});
  EXPECT_EQ(total, 8);
}

// The caller may let go of an input at once, though the kernel reads it later.
TEST_F(Queue, KeepsInputsThatLieElsewhere) {
  const Four y(queue);
  std::array<float, 4> x{1, 2, 3, 4};
  kernels.cast(launch, {.x = {x.data(), 4, Dtype::kFp32}, .y = y.vector()});
  x.fill(0);
  queue.wait();
  EXPECT_EQ(std::vector<float>(y.values, y.values + 4), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(Queue, IsDoneWithMemoryThatItGivesBack) {
  const Four x(queue), y(queue);
  kernels.fill(launch, {.y = x.vector(), .value = 3});
  kernels.cast(launch, {.x = x.vector(), .y = y.vector()});
  queue.give_back(reinterpret_cast<std::byte*>(x.values));
  EXPECT_EQ(y.values[3], 3);
}

TEST_F(Queue, TimesEachKernelWhereThatIsWanted) {
  DeviceQueue timed{late_kernels(), late_device(), QueueTiming::kEachKernel};
  const Four x(timed);
  const Seconds before = staged_time();
  kernels.fill({.stream = &timed}, {.y = x.vector(), .value = 2});
  EXPECT_EQ(x.values[0], 2);
  EXPECT_GT(staged_time(), before);
}

// ---- on a device ----

class CudaQueue : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_library().missing.empty()) GTEST_SKIP() << cuda_library().missing;
    device().select(0);
    if (!device().shares_memory()) GTEST_SKIP() << "host and device share no memory here";
  }
  static const DeviceTable& device() { return cuda_library().exports->device; }
  static DeviceQueue queue_with(QueueTiming timing) {
    return {cuda_library().exports->kernels, device(), timing};
  }
  KernelTable kernels = queued_kernels(Backend::kCuda);
};

TEST_F(CudaQueue, SharesItsMemoryWithTheHost) {
  DeviceQueue queue = queue_with(QueueTiming::kNone);
  const Four x(queue), y(queue);
  for (int round = 1; round <= 3; ++round) {
    std::fill_n(x.values, 4, static_cast<float>(round));
    kernels.cast({.stream = &queue}, {.x = x.vector(), .y = y.vector(), .scale = 2});
    queue.wait();
    EXPECT_EQ(y.values[3], 2 * static_cast<float>(round));
  }
}

TEST_F(CudaQueue, BringsAndKeepsWhatLiesElsewhere) {
  DeviceQueue queue = queue_with(QueueTiming::kNone);
  const Four y(queue);
  std::array<float, 4> x{1, 2, 3, 4};
  device().delay(Seconds(20e-3), queue.stream());
  kernels.cast({.stream = &queue}, {.x = {x.data(), 4, Dtype::kFp32}, .y = y.vector()});
  x.fill(0);
  float total = 0;
  kernels.total({.stream = &queue}, {.x = {y.values, 4}, .scale = 1, .total = &total});
  EXPECT_EQ(total, 10);
}

TEST_F(CudaQueue, WaitsForEventsOfAnother) {
  DeviceQueue first = queue_with(QueueTiming::kNone), second = queue_with(QueueTiming::kNone);
  const Four x(first), y(second);
  std::fill_n(x.values, 4, 1.0F);
  device().delay(Seconds(20e-3), first.stream());
  kernels.fill({.stream = &first}, {.y = x.vector(), .value = 5});
  void* filled = device().create_event();
  device().record(filled, first.stream());
  device().wait(second.stream(), filled);
  device().destroy_event(filled);
  second.copy(y.values, x.values, Bytes(16));
  second.wait();
  EXPECT_EQ(y.values[0], 5);
}

TEST_F(CudaQueue, TimesEachKernel) {
  DeviceQueue queue = queue_with(QueueTiming::kEachKernel);
  const Four x(queue);
  const Seconds before = staged_time();
  kernels.fill({.stream = &queue}, {.y = x.vector(), .value = 2});
  EXPECT_EQ(x.values[0], 2);
  EXPECT_GT(staged_time(), before);
}

// 64 MiB given back and taken again while kernels that use it are under way.
TEST_F(CudaQueue, IsDoneWithMemoryThatItGivesBack) {
  DeviceQueue queue = queue_with(QueueTiming::kNone);
  constexpr std::int64_t kCount = std::int64_t{1} << 24;
  const Four y(queue);
  for (int round = 1; round <= 4; ++round) {
    std::byte* block = queue.allocate(Bytes(4 * kCount));
    const Vector all{block, kCount, Dtype::kFp32};
    kernels.fill({.stream = &queue}, {.y = all, .value = static_cast<float>(round)});
    kernels.cast({.stream = &queue},
                 {.x = part_of(ConstVector(all), kCount - 4, 4), .y = y.vector()});
    queue.give_back(block);
    EXPECT_EQ(y.values[0], static_cast<float>(round));
  }
}

}  // namespace
}  // namespace meshwright
