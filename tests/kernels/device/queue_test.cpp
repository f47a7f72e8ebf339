#include "kernels/device/queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "core/base/error.hpp"
#include "kernels/device/backend_plugin.hpp"
#include "kernels/device/staged_kernels.hpp"
#include "tests/kernels/device/late_device.hpp"

namespace meshwright {
namespace {

/// Four floats in the memory of a queue.
struct Four {
  explicit Four(DeviceQueue& on) : queue(on), values(reinterpret_cast<float*>(allocate())) {}
  Vector vector() const { return {values, 4, Dtype::kFp32}; }
  std::byte* allocate() { return queue.allocate(Bytes(16)); }
  void set(float value) const {
    const std::array<float, 4> all{value, value, value, value};
    queue.write(values, all.data(), Bytes(16));
  }
  std::vector<float> get() const {
    std::vector<float> all(4);
    queue.read(all.data(), values, Bytes(16));
    return all;
  }
  DeviceQueue& queue;
  float* values;
};

class Queue : public testing::Test {
 protected:
  DeviceQueue queue{late_kernels(), late_device(), QueueTiming::kNone};
  KernelTable kernels = queued_kernels(Backend::kCpu);
  Launch launch{.stream = &queue};
  /// Fits once, not twice.
  static Bytes most() { return Bytes(late_device().memory().value / 4 * 3); }
};

TEST_F(Queue, HoldsOnlyItsOwnAllocations) {
  std::byte* block = queue.allocate(Bytes(100));
  EXPECT_TRUE(queue.holds(block, Bytes(100)));
  EXPECT_TRUE(queue.holds(block + 60, Bytes(40)));
  EXPECT_FALSE(queue.holds(block + 60, Bytes(41)));
  EXPECT_FALSE(queue.holds(block - 1, Bytes(1)));
  EXPECT_FALSE(queue.holds(&block, Bytes(1)));
  queue.release(block);
  EXPECT_FALSE(queue.holds(block, Bytes(1)));
}

TEST_F(Queue, HostRunsAheadOfKernels) {
  const Four x(queue);
  x.set(1);
  queue.wait();
  kernels.fill(launch, {.y = x.vector(), .value = 2});
  EXPECT_EQ(*late::memory().seen(x.values), 1);  // not executed yet
  EXPECT_EQ(x.get()[0], 2);                      // a copy to the host waits
}

// On a GPU such an access terminates the program, too.
using QueueDeathTest = Queue;
TEST_F(QueueDeathTest, HidesItsMemoryFromTheHost) {
  const Four x(queue);
  x.set(1);
  EXPECT_DEATH(std::fill_n(x.values, 4, 2.0F), "");
}

TEST_F(Queue, ReportsRequestedAndFreeMemory) {
  const Bytes all = late_device().memory();
  try {
    queue.allocate(Bytes(all.value + 1));
    FAIL() << "there was more than there is";
  } catch (const RuntimeFailure& failure) {
    EXPECT_EQ(failure.diagnostic().where, "GPU memory");
    EXPECT_THAT(failure.diagnostic().what,
                testing::HasSubstr("out of memory: tried to allocate 0.25 GiB"));
    EXPECT_THAT(failure.diagnostic().what, testing::HasSubstr("of 0.25 GiB are free"));
  }
}

// Freed memory is available again once the work that used it is done, which requires a wait.
TEST_F(Queue, WaitsForMemoryInUse) {
  std::byte* first = queue.allocate(most());
  queue.release(first);
  EXPECT_EQ(queue.allocate(most()), first);
}

// On a shared device, memory freed by another queue becomes available once that queue's work is
// done, which this queue cannot wait for.
TEST_F(Queue, WaitsForMemoryInUseByAnotherQueue) {
  DeviceQueue other(late_kernels(), late_device(), QueueTiming::kNone);
  std::byte* first = other.allocate(most());
  other.release(first);
  EXPECT_EQ(queue.allocate(most()), first);
}

TEST_F(Queue, FailsIfNoMemoryIsReleased) {
  DeviceQueue other(late_kernels(), late_device(), QueueTiming::kNone);
  other.allocate(most());
  EXPECT_THROW(queue.allocate(most()), RuntimeFailure);
}

TEST_F(Queue, StagesWritesUntilTheyAreCopied) {
  const Four x(queue), y(queue);
  std::array<float, 4> one{1, 1, 1, 1};
  queue.write(x.values, one.data(), Bytes(16));
  one.fill(2);
  queue.write(y.values, one.data(), Bytes(16));
  one.fill(3);
  EXPECT_EQ(x.get()[0], 1);
  EXPECT_EQ(y.get()[3], 2);
}

// More than fits in the staging buffers, in pieces that do not fill a block evenly: every copy
// reads its own bytes.
TEST_F(Queue, StagesManyWrites) {
  constexpr std::int64_t kCount = 100'001;
  std::vector<std::byte*> blocks;
  std::vector<float> values(kCount);
  for (int i = 0; i < 20; ++i) {
    blocks.push_back(queue.allocate(Bytes(4 * kCount)));
    values.assign(kCount, static_cast<float>(i));
    queue.write(blocks.back(), values.data(), Bytes(4 * kCount));
  }
  for (int i = 0; i < 20; ++i) {
    queue.read(values.data(), blocks[static_cast<std::size_t>(i)], Bytes(4 * kCount));
    EXPECT_EQ(values.front(), static_cast<float>(i));
    EXPECT_EQ(values.back(), static_cast<float>(i));
  }
}

TEST_F(Queue, WaitsForResultsInHostMemory) {
  const Four x(queue);
  kernels.fill(launch, {.y = x.vector(), .value = 2});
  float total = 0;
  kernels.total(launch, {.x = std::span<const float>(x.values, 4), .scale = 1, .total = &total});
  EXPECT_EQ(total, 8);
}

// The caller may free an input immediately, although the kernel reads it later.
TEST_F(Queue, StagesInputsInHostMemory) {
  const Four y(queue);
  std::array<float, 4> x{1, 2, 3, 4};
  kernels.cast(launch, {.x = {x.data(), 4, Dtype::kFp32}, .y = y.vector()});
  x.fill(0);
  EXPECT_EQ(y.get(), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(Queue, ReleasesMemoryInStreamOrder) {
  const Four x(queue), y(queue);
  kernels.fill(launch, {.y = x.vector(), .value = 3});
  kernels.cast(launch, {.x = x.vector(), .y = y.vector()});
  queue.release(reinterpret_cast<std::byte*>(x.values));
  EXPECT_EQ(y.get()[3], 3);
}

TEST_F(Queue, TimesEachKernelOnRequest) {
  DeviceQueue timed{late_kernels(), late_device(), QueueTiming::kEachKernel};
  const Four x(timed);
  const Seconds before = staged_time();
  kernels.fill({.stream = &timed}, {.y = x.vector(), .value = 2});
  EXPECT_GT(staged_time(), before);
  EXPECT_EQ(x.get()[0], 2);
}

// The stream is held before the kernel and released after all of it is enqueued.
TEST_F(Queue, HoldsTheStreamWhileATimedKernelIsEnqueued) {
  static const std::uint32_t* gate = nullptr;
  static std::uint32_t when_held = 1;
  static const DeviceTable device = [] {
    DeviceTable t = late_device();
    t.hold = [](const std::uint32_t* of_queue, Seconds, void*) {
      gate = of_queue;
      when_held = *of_queue;
    };
    return t;
  }();
  DeviceQueue timed{late_kernels(), device, QueueTiming::kEachKernel};
  const Four x(timed);
  kernels.fill({.stream = &timed}, {.y = x.vector(), .value = 2});
  ASSERT_EQ(gate, timed.gate());
  EXPECT_EQ(when_held, 0u);
  EXPECT_EQ(*gate, 1u);
}

// A copy of another rank waits until the work of the rank whose turn it is has ended.
TEST_F(Queue, TakesTurnsOnTheDeviceIfKernelsAreTimed) {
  DeviceQueue first{late_kernels(), late_device(), QueueTiming::kEachKernel};
  std::atomic<bool> has_copied = false;
  auto turn = first.take_turn();
  std::jthread other([&] {
    DeviceQueue second{late_kernels(), late_device(), QueueTiming::kEachKernel};
    const Four x(second);
    x.set(1);
    has_copied = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(has_copied);
  turn.unlock();
  other.join();
  EXPECT_TRUE(has_copied);
  const DeviceQueue untimed{late_kernels(), late_device(), QueueTiming::kNone};
  EXPECT_FALSE(untimed.take_turn().owns_lock());
}

// ---- on a device ----

class CudaQueue : public testing::Test {
 protected:
  void SetUp() override {
    if (!backend_plugin(Backend::kCuda).missing.empty())
      GTEST_SKIP() << backend_plugin(Backend::kCuda).missing;
    device().select(0);
  }
  static const DeviceTable& device() { return backend_plugin(Backend::kCuda).exports->device; }
  static DeviceQueue queue_with(QueueTiming timing) {
    return {backend_plugin(Backend::kCuda).exports->kernels, device(), timing};
  }
  KernelTable kernels = queued_kernels(Backend::kCuda);
};

TEST_F(CudaQueue, CopiesToAndFromTheHost) {
  DeviceQueue queue = queue_with(QueueTiming::kNone);
  const Four x(queue), y(queue);
  for (int round = 1; round <= 3; ++round) {
    x.set(static_cast<float>(round));
    kernels.cast({.stream = &queue}, {.x = x.vector(), .y = y.vector(), .scale = 2});
    EXPECT_EQ(y.get()[3], 2 * static_cast<float>(round));
  }
}

// More than the card has: an error with sizes, and later work succeeds.
TEST_F(CudaQueue, ReportsRequestedAndFreeMemory) {
  DeviceQueue queue = queue_with(QueueTiming::kNone);
  EXPECT_THROW(queue.allocate(Bytes(device().memory().value * 2)), RuntimeFailure);
  const Four x(queue);
  kernels.fill({.stream = &queue}, {.y = x.vector(), .value = 4});
  EXPECT_EQ(x.get()[0], 4);
}

TEST_F(CudaQueue, CopiesArgumentsInHostMemory) {
  DeviceQueue queue = queue_with(QueueTiming::kNone);
  const Four y(queue);
  std::array<float, 4> x{1, 2, 3, 4};
  device().hold(queue.gate(), Seconds(20e-3), queue.stream());
  kernels.cast({.stream = &queue}, {.x = {x.data(), 4, Dtype::kFp32}, .y = y.vector()});
  x.fill(0);
  float total = 0;
  kernels.total({.stream = &queue}, {.x = {y.values, 4}, .scale = 1, .total = &total});
  EXPECT_EQ(total, 10);
}

TEST_F(CudaQueue, WaitsForEventsOfAnotherStream) {
  DeviceQueue first = queue_with(QueueTiming::kNone), second = queue_with(QueueTiming::kNone);
  const Four x(first), y(second);
  x.set(1);
  device().hold(first.gate(), Seconds(20e-3), first.stream());
  kernels.fill({.stream = &first}, {.y = x.vector(), .value = 5});
  void* filled = device().create_event();
  device().record(filled, first.stream());
  device().wait(second.stream(), filled);
  device().destroy_event(filled);
  second.copy(y.values, x.values, Bytes(16));
  EXPECT_EQ(y.get()[0], 5);
}

TEST_F(CudaQueue, TimesEachKernel) {
  DeviceQueue queue = queue_with(QueueTiming::kEachKernel);
  const Four x(queue);
  const Seconds before = staged_time();
  kernels.fill({.stream = &queue}, {.y = x.vector(), .value = 2});
  EXPECT_GT(staged_time(), before);
  EXPECT_EQ(x.get()[0], 2);
}

// 64 MiB freed and reused while kernels that use it are running.
TEST_F(CudaQueue, ReleasesMemoryInStreamOrder) {
  DeviceQueue queue = queue_with(QueueTiming::kNone);
  constexpr std::int64_t kCount = std::int64_t{1} << 24;
  const Four y(queue);
  for (int round = 1; round <= 4; ++round) {
    std::byte* block = queue.allocate(Bytes(4 * kCount));
    const Vector all{block, kCount, Dtype::kFp32};
    kernels.fill({.stream = &queue}, {.y = all, .value = static_cast<float>(round)});
    kernels.cast({.stream = &queue},
                 {.x = part_of(ConstVector(all), kCount - 4, 4), .y = y.vector()});
    queue.release(block);
    EXPECT_EQ(y.get()[0], static_cast<float>(round));
  }
}

}  // namespace
}  // namespace meshwright
