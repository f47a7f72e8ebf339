#include "kernels/device/block_pool.hpp"

#include <gtest/gtest.h>

#include <map>
#include <new>
#include <vector>

#include "tests/kernels/device/late_device.hpp"

namespace meshwright {
namespace {

/// 8 MiB of plain memory, and events of the late device.
constexpr std::int64_t kAll = std::int64_t{8} << 20;
std::int64_t taken = 0;
std::map<void*, std::int64_t>& sizes() {
  static std::map<void*, std::int64_t> all;
  return all;
}

std::vector<void*>& events() {
  static std::vector<void*> all;
  return all;
}

BlockPool::Source source() {
  return {.allocate = [](Bytes bytes) -> void* {
            if (taken + bytes.value > kAll) return nullptr;
            taken += bytes.value;
            void* memory = ::operator new(static_cast<std::size_t>(bytes.value));
            sizes()[memory] = bytes.value;
            return memory;
          },
          .release =
              [](void* memory) {
                taken -= sizes().at(memory);
                sizes().erase(memory);
                ::operator delete(memory);
              },
          .wait_for_all_work = [] {},
          .create_event =
              [] {
                events().push_back(late_device().create_event());
                return events().back();
              },
          .record = late_device().record,
          .is_complete = [](void* event) { return late::event_at(event)->is_complete; }};
}

/// Pools live as long as the program: they keep their blocks and events.
class Blocks : public testing::Test {
 protected:
  void SetUp() override { taken = 0; }
  ~Blocks() override {
    for (const auto& [memory, size] : sizes()) ::operator delete(memory);
    sizes().clear();
    for (void* event : events()) late_device().destroy_event(event);
    events().clear();
    late_device().destroy_stream(one);
    late_device().destroy_stream(other);
  }
  BlockPool pool{source()};
  void* one = late_device().create_stream();
  void* other = late_device().create_stream();
};

TEST_F(Blocks, AreReusedImmediatelyInTheSameStream) {
  void* block = pool.allocate(Bytes(1000), one);
  pool.release(block, one);
  EXPECT_EQ(pool.cached(), Bytes(1024));
  EXPECT_EQ(pool.allocate(Bytes(1000), one), block);
  EXPECT_EQ(pool.cached(), Bytes(0));
}

TEST_F(Blocks, AreReusedInAnotherStreamOnceComplete) {
  void* block = pool.allocate(Bytes(1000), one);
  pool.release(block, one);
  EXPECT_NE(pool.allocate(Bytes(1000), other), block);
  late_device().wait_for_stream(one);
  EXPECT_EQ(pool.allocate(Bytes(1000), other), block);
}

// A sender's blocks are freed by receivers: a few blocks suffice for any number of messages.
TEST_F(Blocks, AlternateBetweenTwoStreams) {
  for (int message = 0; message < 100; ++message) {
    void* block = pool.allocate(Bytes(100'000), one);
    pool.release(block, other);
    if (message % 4 == 3) late_device().wait_for_stream(other);
  }
  EXPECT_LE(taken, 5 * 100'352);
}

// A block of 768 may not serve 512 bytes: more than a quarter would be wasted. 640 may.
TEST_F(Blocks, WasteAtMostAQuarter) {
  void* large = pool.allocate(Bytes(5 << 20), one);  // 6 MiB
  pool.release(large, one);
  EXPECT_NE(pool.allocate(Bytes(2 << 20), one), large);
  EXPECT_EQ(pool.allocate(Bytes(5 << 20), one), large);
}

TEST_F(Blocks, ReleaseTheCacheBeforeFailing) {
  void* first = pool.allocate(Bytes(4 << 20), one);
  pool.release(first, one);
  EXPECT_NE(pool.allocate(Bytes(kAll), one), nullptr);  // only without the first
  EXPECT_EQ(taken, kAll);
  EXPECT_EQ(pool.allocate(Bytes(1), one), nullptr);
}

}  // namespace
}  // namespace meshwright
