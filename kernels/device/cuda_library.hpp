/// The GPU plug-in, loaded on first use, so that the same program runs with and without CUDA. It is
/// libmeshwright_cuda.so next to the program or, once installed, in lib/meshwright; or the file
/// named by the environment variable MESHWRIGHT_CUDA_LIBRARY.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/device.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// Interface version; incremented whenever CudaExports or anything in it changes its meaning.
inline constexpr int kCudaInterface = 5;

/// Returned by the plug-in's function `meshwright_cuda_exports`.
struct CudaExports {
  // Of the headers that it was built with:
  int interface = kCudaInterface;
  std::size_t kernel_table_size = sizeof(KernelTable), device_table_size = sizeof(DeviceTable);
  std::uint64_t kernel_list = kernel_list_hash();
  KernelTable kernels;
  DeviceTable device;
};
/// Whether this program may call the plug-in's functions.
bool is_of_this_build(const CudaExports& exports);

struct CudaLibrary {
  const CudaExports* exports = nullptr;  ///< null: not found, or from a different build
  void* handle = nullptr;                ///< from dlopen()
  std::string path;                      ///< where it was loaded from or searched for
  std::string missing;  ///< why kernels cannot run (plug-in, driver or device); empty: they can
};

/// Loads the plug-in on the first call; later calls return the same result.
const CudaLibrary& cuda_library();

/// A function of the plug-in by name; null if there is no plug-in or no such function.
void* cuda_symbol(const char* name);

}  // namespace meshwright
