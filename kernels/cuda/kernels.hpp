/// CUDA kernels and their scratch sizes. Internal to the GPU plug-in.
///
/// A kernel enqueues all of its work on Launch::stream and does not wait. Launch::scratch is device
/// memory, aligned to 256 bytes. CUDA errors are thrown as RuntimeFailure.
#pragma once

#include <cuda_runtime.h>

#include "kernels/kernel_table.hpp"

namespace meshwright::cuda {

MESHWRIGHT_KERNELS(MESHWRIGHT_DECLARE_RUN)

Bytes scratch(const Gemm& a);
Bytes scratch(const GroupedGemm& a);
Bytes scratch(const GroupedGemmWeight& a);
Bytes scratch(const NormBackwardWeight& a);
Bytes scratch(const EmbeddingBackward& a);
Bytes scratch(const BiasGradient& a);
Bytes scratch(const Total& a);
Bytes scratch(const GateLoad& a);
Bytes scratch(const SortByExpert& a);
Bytes scratch(const SquaredNorm& a);

KernelTable table();

/// Names and versions of the libraries in use, or why one is not used.
std::string cublas_version();
std::string cudnn_version();
std::string cutlass_version();

// ---- shared by all kernels ----------------------------------------------------------------

/// Implements DeviceTable::hold by a single thread. Defined in elementwise.cu.
void hold(const std::uint32_t* gate, Seconds limit, void* stream);
/// Whether the plug-in contains code for the current device. Defined in elementwise.cu.
bool has_code_for_device();

inline cudaStream_t stream_of(const Launch& launch) {
  return static_cast<cudaStream_t>(launch.stream);
}

/// Throws RuntimeFailure with the call and CUDA's error message unless it succeeded.
void check_call(cudaError_t status, const char* call);
#define MESHWRIGHT_CUDA(call) ::meshwright::cuda::check_call((call), #call)

/// Must follow every kernel launch: throws if the launch failed.
inline void check_launch() { check_call(cudaGetLastError(), "kernel launch"); }

/// value / step rounded up; the smallest multiple of `step` that is at least `value`.
constexpr std::int64_t ceil_divide(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step;
}
constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return ceil_divide(value, step) * step;
}

/// Whether every row starts at a multiple of 16 bytes, as the libraries' fast kernels require.
inline bool has_aligned_rows(const ConstMatrix& m) {
  return reinterpret_cast<std::uintptr_t>(m.data) % 16 == 0 &&
         m.stride * bytes_per_element(m.dtype) % 16 == 0;
}

/// Grid size in x. Exceeding CUDA's limit is a bug.
inline unsigned grid_of(std::int64_t blocks) {
  MW_CHECK(blocks > 0 && blocks < (std::int64_t{1} << 31));
  return static_cast<unsigned>(blocks);
}

/// Splits the working memory into pieces aligned to 256 bytes; without a launch it only counts.
class Pieces {
 public:
  Pieces() = default;
  explicit Pieces(const Launch& launch)
      : memory_(static_cast<std::byte*>(launch.scratch)),
        size_(launch.scratch_size.value),
        counts_(false) {}
  template <class T>
  T* take(std::int64_t count) {
    std::byte* piece = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += round_up(count * static_cast<std::int64_t>(sizeof(T)), 256);
    MW_CHECK(counts_ || used_ <= size_);
    return reinterpret_cast<T*>(piece);
  }
  Bytes bytes() const { return Bytes(used_); }

 private:
  std::byte* memory_ = nullptr;
  std::int64_t size_ = 0, used_ = 0;
  bool counts_ = true;
};

/// Stable sort of `count` items by key; writes the item indices in sorted order. Items with a key
/// outside [first_key, first_key + key_count) come last. O(count) per eight bits of key_count.
/// Defined in permute.cu.
struct SortedItems {
  const std::int32_t* keys = nullptr;  ///< [count]
  std::int64_t first_key = 0;          ///< subtracted from every key
  std::int64_t count = 0, key_count = 0;
  std::int32_t* order = nullptr;  ///< [count] out
};
Bytes sort_scratch(std::int64_t count, std::int64_t key_count);
void sort_items(cudaStream_t stream, const SortedItems& items, Pieces& scratch);

}  // namespace meshwright::cuda
