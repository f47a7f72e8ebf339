#include "kernels/device/cuda_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace meshwright {
namespace {

constexpr const char* kFileName = "libmeshwright_cuda.so";

/// From the directory of an installed program: see cmake/MeshwrightPackaging.cmake.
constexpr const char* kInstalledDirectory = "../lib/meshwright";

std::string place_of_plugin() {
  if (const char* given = std::getenv("MESHWRIGHT_CUDA_LIBRARY"); given != nullptr) return given;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return kFileName;
  const std::filesystem::path next_to_program = program.parent_path() / kFileName;
  if (std::filesystem::exists(next_to_program, error)) return next_to_program.string();
  const std::filesystem::path installed = program.parent_path() / kInstalledDirectory / kFileName;
  if (std::filesystem::exists(installed, error)) return installed.lexically_normal().string();
  return next_to_program.string();
}

CudaLibrary open() {
  CudaLibrary library;
  library.path = place_of_plugin();
  library.handle = ::dlopen(library.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library.handle == nullptr) {
    const char* why = ::dlerror();
    library.missing =
        "cannot load the GPU plug-in: " + std::string(why == nullptr ? library.path.c_str() : why);
    return library;
  }
  using Exports = const CudaExports* (*)();
  const auto exports =
      reinterpret_cast<Exports>(::dlsym(library.handle, "meshwright_cuda_exports"));
  if (exports == nullptr || !is_of_this_build(*exports())) {
    library.missing = "the GPU plug-in '" + library.path + "' is from a different build";
    return library;
  }
  library.exports = exports();
  library.missing = library.exports->device.missing();
  return library;
}

}  // namespace

bool is_of_this_build(const CudaExports& exports) {
  return exports.interface == kCudaInterface && exports.kernel_table_size == sizeof(KernelTable) &&
         exports.device_table_size == sizeof(DeviceTable) &&
         exports.kernel_list == kernel_list_hash();
}

const CudaLibrary& cuda_library() {
  static const CudaLibrary library = open();
  return library;
}

void* cuda_symbol(const char* name) {
  const CudaLibrary& library = cuda_library();
  return library.exports == nullptr ? nullptr : ::dlsym(library.handle, name);
}

}  // namespace meshwright
