/// The GPU part: a plug-in that is opened when it is first asked for, so that one program runs with
/// and without CUDA. It is looked for beside the program (libmeshwright_cuda.so), or where the
/// environment variable MESHWRIGHT_CUDA_LIBRARY says.
#pragma once

#include <cstddef>
#include <string>

#include "kernels/device.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// Raised whenever CudaExports or what it holds changes its meaning.
inline constexpr int kCudaInterface = 4;

/// What the plug-in's function `meshwright_cuda_exports` points to.
struct CudaExports {
  int interface = kCudaInterface;
  std::size_t kernel_table_size = 0, device_table_size = 0;  ///< of the headers it was built with
  KernelTable kernels;
  DeviceTable device;
};

struct CudaLibrary {
  const CudaExports* exports = nullptr;  ///< null: not found, or of another build
  void* handle = nullptr;  ///< of dlopen: other parts have functions of their own there
  std::string path;        ///< from where, or where it was looked for
  std::string missing;     ///< what is missing before kernels can run: plug-in, driver or device
};

/// Opened once; later calls say the same.
const CudaLibrary& cuda_library();

/// A function of the plug-in by its name; null where there is no plug-in or no such function.
void* cuda_symbol(const char* name);

}  // namespace meshwright
