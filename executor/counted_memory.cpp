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

void Buffer::Free::operator()(std::byte* memory) const { ::operator delete[](memory, kAlignment); }

Buffer::Buffer(MemoryLedger& ledger, MemoryClass what, Bytes bytes)
    : ledger_(&ledger), what_(what), size_(bytes) {
  memory_.reset(new (kAlignment) std::byte[static_cast<std::size_t>(bytes.value)]);
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
  if (ledger_ != nullptr) ledger_->give_back(what_, size_);
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
