#include "executor/counted_memory.hpp"

#include <new>
#include <utility>

#include "core/check.hpp"

namespace meshwright {
namespace {
constexpr std::align_val_t kAlignment{64};
}

void MemoryLedger::hold(MemoryClass what, Bytes bytes) {
  held_[what] += bytes;
  if (total(held_) > total(peak_)) peak_ = held_;
}

void MemoryLedger::give_back(MemoryClass what, Bytes bytes) {
  held_[what] -= bytes;
  MW_CHECK(held_[what].value >= 0);
}

std::byte* MemoryLedger::take_block(Bytes bytes) {
  std::vector<std::byte*>& spare = spare_[bytes.value];
  if (spare.empty() && queue_ != nullptr) return queue_->allocate(bytes);
  if (spare.empty())
    return static_cast<std::byte*>(
        ::operator new(static_cast<std::size_t>(bytes.value), kAlignment));
  std::byte* block = spare.back();
  spare.pop_back();
  spare_bytes_ -= bytes;
  return block;
}

void MemoryLedger::give_back_block(std::byte* block, Bytes bytes) {
  // A queue's device keeps what was given back itself, and has it for all that ask.
  if (queue_ != nullptr || spare_bytes_ + bytes > total(peak_)) return let_go(block);
  spare_[bytes.value].push_back(block);
  spare_bytes_ += bytes;
}

MemoryLedger::~MemoryLedger() {
  for (const auto& [size, blocks] : spare_)
    for (std::byte* block : blocks) let_go(block);
}

void MemoryLedger::let_go(std::byte* block) {
  if (queue_ != nullptr) return queue_->give_back(block);
  ::operator delete(block, kAlignment);
}

Buffer::Buffer(MemoryLedger& ledger, MemoryClass what, Bytes bytes)
    : ledger_(&ledger), what_(what), size_(bytes) {
  memory_ = ledger.take_block(bytes);
  ledger.hold(what, bytes);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(ledger_, other.ledger_);
  std::swap(what_, other.what_);
  std::swap(size_, other.size_);
  std::swap(memory_, other.memory_);
  return *this;
}

Buffer::~Buffer() {
  if (ledger_ == nullptr) return;
  ledger_->give_back(what_, size_);
  ledger_->give_back_block(memory_, size_);
}

OwnedMatrix::OwnedMatrix(MemoryLedger& ledger, MemoryClass what, std::int64_t rows,
                         std::int64_t columns, Dtype dtype)
    : buffer_(ledger, what, Bytes(rows * columns * bytes_per_element(dtype))),
      rows_(rows),
      columns_(columns),
      dtype_(dtype) {}

std::span<float> OwnedMatrix::floats() {
  MW_CHECK(dtype_ == Dtype::kFp32);
  return {reinterpret_cast<float*>(buffer_.data()),  // NOLINT: the buffer is made of floats
          static_cast<std::size_t>(rows_ * columns_)};
}

}  // namespace meshwright
