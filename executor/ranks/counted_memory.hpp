/// Memory of one rank, accounted by memory class.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/base/memory_amounts.hpp"
#include "core/base/units.hpp"
#include "kernels/device/queue.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

/// Current and peak memory by class, and a caching allocator: freed blocks are reused for the next
/// buffer of the same size, up to the peak in total, because every training step allocates the same
/// sizes and page faults cost more than many kernels. Must outlive its buffers.
class MemoryLedger {
 public:
  MemoryLedger() = default;
  /// Allocates from the queue's device; null: on the host. The queue must outlive the ledger.
  explicit MemoryLedger(DeviceQueue* queue) : queue_(queue) {}
  MemoryLedger(const MemoryLedger&) = delete;
  MemoryLedger& operator=(const MemoryLedger&) = delete;
  ~MemoryLedger();
  void add(MemoryClass what, Bytes bytes);
  void subtract(MemoryClass what, Bytes bytes);
  std::byte* allocate_block(Bytes bytes);  ///< aligned to 64 bytes, uninitialized
  void release_block(std::byte* block, Bytes bytes);
  Bytes spare() const { return spare_bytes_; }  ///< cached for later buffers
  const MemoryAmounts& current() const { return current_; }
  const MemoryAmounts& peak() const {
    return peak_;
  }  ///< by class, at the moment of the largest total

 private:
  void free_block(std::byte* block, Bytes bytes);
  DeviceQueue* queue_ = nullptr;
  MemoryAmounts current_, peak_;
  std::map<std::int64_t, std::vector<std::byte*>> spare_;  ///< by size
  Bytes spare_bytes_;
};

/// Memory that several buffers share, aligned to 64 bytes. Uninitialized, and not registered
/// itself.
class SharedMemory {
 public:
  SharedMemory(MemoryLedger& ledger, Bytes bytes)
      : ledger_(ledger), size_(bytes), memory_(ledger.allocate_block(bytes)) {}
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() { ledger_.release_block(memory_, size_); }
  std::byte* data() const { return memory_; }
  Bytes size() const { return size_; }

 private:
  MemoryLedger& ledger_;
  Bytes size_;
  std::byte* memory_;
};

/// Owned memory, aligned to 64 bytes and registered in a ledger during its lifetime. Uninitialized.
class Buffer {
 public:
  Buffer() = default;
  Buffer(MemoryLedger& ledger, MemoryClass what, Bytes bytes);
  /// A part of shared memory, which is freed with its last part; registers `bytes` for this part.
  Buffer(MemoryLedger& ledger, MemoryClass what, Bytes bytes, std::shared_ptr<SharedMemory> shared,
         std::byte* part);
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();
  std::byte* data() { return memory_; }
  std::span<std::byte> bytes() { return {memory_, static_cast<std::size_t>(size_.value)}; }
  Bytes size() const { return size_; }

 private:
  MemoryLedger* ledger_ = nullptr;
  MemoryClass what_ = MemoryClass::kWorking;
  Bytes size_;
  std::byte* memory_ = nullptr;
  std::shared_ptr<SharedMemory> shared_;  ///< null: the memory is this buffer's own
};

/// A matrix that owns its memory, or some columns of one whose memory it shares.
class OwnedMatrix {
 public:
  OwnedMatrix() = default;
  OwnedMatrix(MemoryLedger& ledger, MemoryClass what, std::int64_t rows, std::int64_t columns,
              Dtype dtype);
  /// `part`: columns of a matrix that fills `shared`.
  OwnedMatrix(MemoryLedger& ledger, MemoryClass what, std::shared_ptr<SharedMemory> shared,
              const Matrix& part);
  bool empty() const { return buffer_.size() == Bytes(); }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  Dtype dtype() const { return dtype_; }
  Matrix view() { return {buffer_.data(), rows_, columns_, stride_, dtype_}; }
  Bytes size() const { return buffer_.size(); }
  /// Not of columns of a shared matrix, whose rows have gaps.
  std::span<std::byte> bytes();
  /// fp32 only.
  std::span<float> floats();

 private:
  Buffer buffer_;
  std::int64_t rows_ = 0, columns_ = 0, stride_ = 0;
  Dtype dtype_ = Dtype::kFp32;
};

}  // namespace meshwright
