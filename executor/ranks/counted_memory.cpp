#include "executor/ranks/counted_memory.hpp"

#include <sys/mman.h>

#include <new>
#include <utility>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kLargePage = std::int64_t{2} << 20;

std::align_val_t alignment_of(Bytes bytes) {
  return std::align_val_t{bytes.value < kLargePage ? 64 : static_cast<std::size_t>(kLargePage)};
}

/// Weights, gradients and moments are streamed in every step; huge pages, if available, reduce TLB
/// misses.
std::byte* allocate(Bytes bytes) {
  void* block = ::operator new(static_cast<std::size_t>(bytes.value), alignment_of(bytes));
  const std::int64_t whole_pages = bytes.value - bytes.value % kLargePage;
  if (whole_pages > 0)  // only a hint
    static_cast<void>(::madvise(block, static_cast<std::size_t>(whole_pages), MADV_HUGEPAGE));
  return static_cast<std::byte*>(block);
}

}  // namespace

void MemoryLedger::add(MemoryClass what, Bytes bytes) {
  current_[what] += bytes;
  if (total(current_) > total(peak_)) peak_ = current_;
}

void MemoryLedger::subtract(MemoryClass what, Bytes bytes) {
  current_[what] -= bytes;
  MW_CHECK(current_[what].value >= 0);
}

std::byte* MemoryLedger::allocate_block(Bytes bytes) {
  std::vector<std::byte*>& spare = spare_[bytes.value];
  if (spare.empty() && queue_ != nullptr) return queue_->allocate(bytes);
  if (spare.empty()) return allocate(bytes);
  std::byte* block = spare.back();
  spare.pop_back();
  spare_bytes_ -= bytes;
  return block;
}

void MemoryLedger::release_block(std::byte* block, Bytes bytes) {
  // The device of a queue has its own cache of free blocks, shared by all ranks.
  if (queue_ != nullptr || spare_bytes_ + bytes > total(peak_)) return free_block(block, bytes);
  spare_[bytes.value].push_back(block);
  spare_bytes_ += bytes;
}

MemoryLedger::~MemoryLedger() {
  for (const auto& [size, blocks] : spare_)
    for (std::byte* block : blocks) free_block(block, Bytes(size));
}

void MemoryLedger::free_block(std::byte* block, Bytes bytes) {
  if (queue_ != nullptr) return queue_->release(block);
  ::operator delete(block, alignment_of(bytes));
}

Buffer::Buffer(MemoryLedger& ledger, MemoryClass what, Bytes bytes)
    : ledger_(&ledger), what_(what), size_(bytes) {
  memory_ = ledger.allocate_block(bytes);
  ledger.add(what, bytes);
}

Buffer::Buffer(MemoryLedger& ledger, MemoryClass what, Bytes bytes,
               std::shared_ptr<SharedMemory> shared, std::byte* part)
    : ledger_(&ledger), what_(what), size_(bytes), memory_(part), shared_(std::move(shared)) {
  ledger.add(what, bytes);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(ledger_, other.ledger_);
  std::swap(what_, other.what_);
  std::swap(size_, other.size_);
  std::swap(memory_, other.memory_);
  std::swap(shared_, other.shared_);
  return *this;
}

Buffer::~Buffer() {
  if (ledger_ == nullptr) return;
  ledger_->subtract(what_, size_);
  if (shared_ == nullptr) ledger_->release_block(memory_, size_);
}

OwnedMatrix::OwnedMatrix(MemoryLedger& ledger, MemoryClass what, std::int64_t rows,
                         std::int64_t columns, Dtype dtype)
    : buffer_(ledger, what, Bytes(rows * columns * bytes_per_element(dtype))),
      rows_(rows),
      columns_(columns),
      stride_(columns),
      dtype_(dtype) {}

OwnedMatrix::OwnedMatrix(MemoryLedger& ledger, MemoryClass what,
                         std::shared_ptr<SharedMemory> shared, const Matrix& part)
    : buffer_(ledger, what, Bytes(part.rows * part.columns * bytes_per_element(part.dtype)),
              std::move(shared), static_cast<std::byte*>(part.data)),
      rows_(part.rows),
      columns_(part.columns),
      stride_(part.stride),
      dtype_(part.dtype) {}

std::span<std::byte> OwnedMatrix::bytes() {
  MW_CHECK(stride_ == columns_);
  return buffer_.bytes();
}

std::span<float> OwnedMatrix::floats() {
  MW_CHECK(dtype_ == Dtype::kFp32 && stride_ == columns_);
  return {reinterpret_cast<float*>(buffer_.data()),  // NOLINT: the buffer is made of floats
          static_cast<std::size_t>(rows_ * columns_)};
}

}  // namespace meshwright
