#include "kernels/device/backend_plugin.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// From the directory of an installed program: see cmake/MeshwrightPackaging.cmake.
constexpr const char* kInstalledDirectory = "../lib/meshwright";

std::string place_of(const BackendTraits& backend) {
  if (const char* given = std::getenv(backend.variable); given != nullptr) return given;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return backend.plugin;
  const std::filesystem::path next_to_program = program.parent_path() / backend.plugin;
  if (std::filesystem::exists(next_to_program, error)) return next_to_program.string();
  const std::filesystem::path installed =
      program.parent_path() / kInstalledDirectory / backend.plugin;
  if (std::filesystem::exists(installed, error)) return installed.lexically_normal().string();
  return next_to_program.string();
}

BackendPlugin open(const BackendTraits& backend) {
  BackendPlugin plugin;
  plugin.path = place_of(backend);
  plugin.handle = ::dlopen(plugin.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin.handle == nullptr) {
    const char* why = ::dlerror();
    plugin.missing =
        "cannot load the GPU plug-in: " + std::string(why == nullptr ? plugin.path.c_str() : why);
    return plugin;
  }
  using Exports = const PluginExports* (*)();
  const auto exports = reinterpret_cast<Exports>(::dlsym(plugin.handle, "meshwright_exports"));
  if (exports == nullptr || !is_of_this_build(*exports())) {
    plugin.missing = "the GPU plug-in '" + plugin.path + "' is from a different build";
    return plugin;
  }
  plugin.exports = exports();
  plugin.missing = plugin.exports->device.missing();
  return plugin;
}

}  // namespace

bool is_of_this_build(const PluginExports& exports) {
  return exports.interface == kPluginInterface &&
         exports.kernel_table_size == sizeof(KernelTable) &&
         exports.device_table_size == sizeof(DeviceTable) &&
         exports.kernel_list == kernel_list_hash();
}

const BackendPlugin& backend_plugin(Backend backend) {
  MW_CHECK(has_device_memory(backend));
  static std::array<std::once_flag, kBackendCount> is_open;
  static std::array<BackendPlugin, kBackendCount> plugins;
  const auto i = static_cast<std::size_t>(backend);
  std::call_once(is_open[i], [&] { plugins[i] = open(traits_of(backend)); });
  return plugins[i];
}

void* plugin_symbol(Backend backend, const char* name) {
  const BackendPlugin& plugin = backend_plugin(backend);
  return plugin.exports == nullptr ? nullptr : ::dlsym(plugin.handle, name);
}

}  // namespace meshwright
