/// A flag that processes forked after its construction share.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <new>

namespace meshwright {

class SharedFlag {
 public:
  SharedFlag()
      : memory_(::mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    flag_ = new (memory_) std::atomic<bool>(false);
  }
  SharedFlag(const SharedFlag&) = delete;
  SharedFlag& operator=(const SharedFlag&) = delete;
  ~SharedFlag() { ::munmap(memory_, sizeof(std::atomic<bool>)); }
  std::atomic<bool>& get() const { return *flag_; }

 private:
  void* memory_;
  std::atomic<bool>* flag_ = nullptr;
};

}  // namespace meshwright
