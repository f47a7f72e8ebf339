/// Memory that only a device can access, on a machine without one: pages mapped twice. Allocations
/// return addresses of the second mapping, which is not accessible; the device uses the first one.
/// So host code that forgets a copy crashes at that point.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <system_error>
#include <type_traits>

#include "core/base/check.hpp"
#include "core/base/units.hpp"
#include "kernels/argument_fields.hpp"

namespace meshwright {

class HiddenMemory {
 public:
  explicit HiddenMemory(Bytes size) : size_(static_cast<std::size_t>(size.value)) {
    const int file = ::memfd_create("hidden memory", 0);
    if (file < 0 || ::ftruncate(file, size.value) != 0) fail();
    seen_ = map(file, PROT_READ | PROT_WRITE);
    hidden_ = map(file, PROT_NONE);
    ::close(file);
    free_[0] = size_;
  }
  HiddenMemory(const HiddenMemory&) = delete;
  HiddenMemory& operator=(const HiddenMemory&) = delete;
  ~HiddenMemory() {
    ::munmap(seen_, size_);
    ::munmap(hidden_, size_);
  }

  Bytes size() const { return Bytes(static_cast<std::int64_t>(size_)); }
  Bytes free() const {
    const std::lock_guard lock(mutex_);
    std::size_t all = 0;
    for (const auto& [place, size] : free_) all += size;
    return Bytes(static_cast<std::int64_t>(all));
  }

  /// First fit; filled with NaN, aligned to 256 bytes; null if there is no such piece.
  void* allocate(Bytes bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t size = std::max<std::size_t>(1, static_cast<std::size_t>(bytes.value));
    const std::size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
    for (auto piece = free_.begin(); piece != free_.end(); ++piece) {
      if (piece->second < rounded) continue;
      const std::size_t place = piece->first, left = piece->second - rounded;
      free_.erase(piece);
      if (left > 0) free_[place + rounded] = left;
      used_[place] = rounded;
      std::memset(seen_ + place, 0xFF, rounded);
      return hidden_ + place;
    }
    return nullptr;
  }
  void release(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto place = static_cast<std::size_t>(static_cast<std::byte*>(memory) - hidden_);
    const auto used = used_.find(place);
    MW_CHECK(used != used_.end());
    std::memset(seen_ + place, 0xFF, used->second);  // wrong for anything that still reads it
    auto piece = free_.emplace(place, used->second).first;
    used_.erase(used);
    if (const auto next = std::next(piece);
        next != free_.end() && place + piece->second == next->first) {
      piece->second += next->second;
      free_.erase(next);
    }
    if (piece == free_.begin()) return;
    if (const auto before = std::prev(piece); before->first + before->second == place) {
      before->second += piece->second;
      free_.erase(piece);
    }
  }

  bool holds(const void* memory) const {
    const auto* at = static_cast<const std::byte*>(memory);
    return at >= hidden_ && at < hidden_ + size_;
  }
  /// The device's address for an address; host addresses are unchanged.
  template <class T>
  T* seen(T* memory) const {
    if (!holds(memory)) return memory;
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(memory) -
                                reinterpret_cast<std::uintptr_t>(hidden_) +
                                reinterpret_cast<std::uintptr_t>(seen_));
  }

 private:
  static constexpr std::size_t kAlignment = 256;
  [[noreturn]] static void fail() {
    throw std::system_error(errno, std::system_category(), "hidden memory");
  }
  std::byte* map(int file, int protection) const {
    void* memory = ::mmap(nullptr, size_, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (memory == MAP_FAILED) fail();
    return static_cast<std::byte*>(memory);
  }

  mutable std::mutex mutex_;
  std::size_t size_;
  std::byte *seen_ = nullptr, *hidden_ = nullptr;
  std::map<std::size_t, std::size_t> free_, used_;  ///< size by place
};

/// A kernel's arguments with the device's addresses. Arguments in host memory that are not marked
/// "host" in the header are a bug: a GPU could not read them.
class AsSeen {
 public:
  explicit AsSeen(const HiddenMemory& memory) : memory_(memory) {}
  void operator()(ConstMatrix& m) { see(m.data, m.empty()); }
  void operator()(Matrix& m) { see(m.data, m.empty()); }
  void operator()(ConstVector& v) { see(v.data, v.empty()); }
  void operator()(Vector& v) { see(v.data, v.empty()); }
  void operator()(LogitShard& shard) { (*this)(shard.logits); }
  void operator()(float*& one) { see(one, false); }
  void operator()(const float*& one) { see(one, false); }
  void operator()(std::span<const BucketPart>&) {}  // a list in host memory; its vectors below
  void operator()(std::span<BucketPart> parts) {
    for (BucketPart& part : parts) (*this)(part.vector);
  }
  template <class T>
  void operator()(std::span<T>& values) {
    T* data = values.data();
    see(data, values.empty());
    values = {data, values.size()};
  }
  template <class T>
  void operator()(T&) {
    static_assert(!std::is_pointer_v<T>);
  }

 private:
  template <class Pointer>
  void see(Pointer& data, bool is_empty) {
    if (data == nullptr || is_empty) return;
    MW_CHECK(memory_.holds(data));
    data = memory_.seen(data);
  }
  const HiddenMemory& memory_;
};

}  // namespace meshwright
