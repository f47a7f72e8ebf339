/// Memory of one rank, accounted by memory class.
#pragma once

#include <cstddef>
#include <map>
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

/// Owned memory, aligned to 64 bytes and registered in a ledger during its lifetime. Uninitialized.
class Buffer {
 public:
  Buffer() = default;
  Buffer(MemoryLedger& ledger, MemoryClass what, Bytes bytes);
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
};

/// A matrix that owns its memory.
class OwnedMatrix {
 public:
  OwnedMatrix() = default;
  OwnedMatrix(MemoryLedger& ledger, MemoryClass what, std::int64_t rows, std::int64_t columns,
              Dtype dtype);
  bool empty() const { return buffer_.size() == Bytes(); }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  Dtype dtype() const { return dtype_; }
  Matrix view() { return dense_matrix(buffer_.data(), rows_, columns_, dtype_); }
  std::span<std::byte> bytes() { return buffer_.bytes(); }
  /// fp32 only.
  std::span<float> floats();

 private:
  Buffer buffer_;
  std::int64_t rows_ = 0, columns_ = 0;
  Dtype dtype_ = Dtype::kFp32;
};

}  // namespace meshwright
