/// Matrix products by cuBLASLt, as far as it supports the dtypes. Internal to the GPU plug-in.
#pragma once

#include "kernels/cuda/kernels.hpp"

namespace meshwright::cuda {

/// Working memory of every product: NVIDIA's recommendation for Hopper (cuBLAS documentation,
/// cublasSetWorkspace); used for all devices.
constexpr std::int64_t kWorkspace = std::int64_t{32} << 20;

/// Elements between rows, at least one row.
std::int64_t leading_dimension(const ConstMatrix& m);
/// Largest power of two up to 256 that divides an address.
std::uint32_t alignment_of(const void* data);

/// The result that cuBLASLt writes, and the auxiliary matrix that its GELU writes or reads.
const Matrix& result_of(const Gemm& g);
ConstMatrix auxiliary_of(const Gemm& g);

/// c = op(a) op(b) + beta c + bias, with dtypes that cuBLASLt can combine and nothing empty.
/// Returns false without any effect if it has no algorithm.
bool multiply_by_cublas(cudaStream_t stream, const Gemm& g, std::byte* workspace);

/// The same, but throws RuntimeFailure if it has no algorithm.
void multiply_by_cublas_or_throw(cudaStream_t stream, const Gemm& g, std::byte* workspace);

}  // namespace meshwright::cuda
