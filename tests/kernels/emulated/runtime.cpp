// What kernels/cuda/device.cpp has for a real GPU.
#include "core/base/check.hpp"
#include "kernels/cuda/kernels.hpp"

namespace meshwright::cuda {

void check_call(cudaError_t status, const char*) { MW_CHECK(status == cudaSuccess); }

}  // namespace meshwright::cuda
