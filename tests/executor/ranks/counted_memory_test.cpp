#include "executor/ranks/counted_memory.hpp"

#include <gtest/gtest.h>

namespace meshwright {
namespace {

TEST(MemoryLedger, TracksCurrentAndPeakMemory) {
  MemoryLedger ledger;
  {
    const Buffer weights(ledger, MemoryClass::kWeights, Bytes(100));
    { const Buffer working(ledger, MemoryClass::kWorking, Bytes(50)); }
    const Buffer activations(ledger, MemoryClass::kActivations, Bytes(30));
    EXPECT_EQ(total(ledger.current()), Bytes(130));
  }
  EXPECT_EQ(total(ledger.current()), Bytes(0));
  EXPECT_EQ(total(ledger.peak()), Bytes(150));
  EXPECT_EQ(ledger.peak()[MemoryClass::kWorking], Bytes(50));
}

TEST(MemoryLedger, ReusesFreedBlocks) {
  MemoryLedger ledger;
  std::byte* first = nullptr;
  {
    Buffer buffer(ledger, MemoryClass::kWorking, Bytes(1 << 20));
    first = buffer.data();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0u);
  }
  Buffer again(ledger, MemoryClass::kActivations, Bytes(1 << 20));
  EXPECT_EQ(again.data(), first);
  Buffer other(ledger, MemoryClass::kActivations, Bytes(1 << 20));
  EXPECT_NE(other.data(), first);
}

// Each part counts by itself; the memory is freed with the last part, and then reused.
TEST(MemoryLedger, CountsPartsOfSharedMemory) {
  MemoryLedger ledger;
  auto memory = std::make_shared<SharedMemory>(ledger, Bytes(6 * 4));
  const Matrix all = dense_matrix(memory->data(), 2, 3, Dtype::kFp32);
  OwnedMatrix first(ledger, MemoryClass::kActivations, memory, columns_of(all, 0, 1));
  {
    OwnedMatrix second(ledger, MemoryClass::kActivations, std::move(memory), columns_of(all, 1, 2));
    EXPECT_EQ(second.size(), Bytes(2 * 2 * 4));
    EXPECT_EQ(second.view().stride, 3);
    EXPECT_EQ(static_cast<std::byte*>(second.view().data), static_cast<std::byte*>(all.data) + 4);
    EXPECT_EQ(total(ledger.current()), Bytes(6 * 4));
  }
  EXPECT_EQ(total(ledger.current()), Bytes(2 * 4));
  EXPECT_EQ(ledger.spare(), Bytes(0));
  first = OwnedMatrix();
  EXPECT_EQ(total(ledger.current()), Bytes(0));
  EXPECT_EQ(ledger.spare(), Bytes(6 * 4));
}

// Large buffers are aligned to huge pages.
TEST(MemoryLedger, UsesHugePagesForLargeBuffers) {
  MemoryLedger ledger;
  constexpr std::int64_t kLargePage = 2 << 20;
  Buffer large(ledger, MemoryClass::kWeights, Bytes(kLargePage + 1));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.data()) % kLargePage, 0u);
  large.data()[kLargePage] = std::byte{1};
  EXPECT_EQ(total(ledger.current()), Bytes(kLargePage + 1));
}

// Buffers of 1, 2, … MiB one after another: at most one is held at a time, and the cache must not
// exceed the largest of them.
TEST(MemoryLedger, CachesAtMostThePeak) {
  MemoryLedger ledger;
  for (std::int64_t size = 1; size <= 64; ++size) {
    const Buffer buffer(ledger, MemoryClass::kWorking, Bytes(size << 20));
    EXPECT_LE(ledger.spare(), total(ledger.peak()));
  }
  EXPECT_LE(ledger.spare(), total(ledger.peak()));
  EXPECT_GT(ledger.spare(), Bytes(0));
}

TEST(Buffer, MovesWithItsMemory) {
  MemoryLedger ledger;
  Buffer a(ledger, MemoryClass::kWorking, Bytes(64));
  std::byte* memory = a.data();
  Buffer b = std::move(a);
  EXPECT_EQ(b.data(), memory);
  b = Buffer();
  EXPECT_EQ(total(ledger.current()), Bytes(0));
}

}  // namespace
}  // namespace meshwright
