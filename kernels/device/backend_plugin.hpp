/// The plug-ins of GPU back ends, loaded on first use, so that the same program runs with and
/// without them. A plug-in is next to the program or, once installed, in lib/meshwright; or the
/// file named by an environment variable (kBackends).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/device.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// Interface version; incremented whenever PluginExports or anything in it changes its meaning.
inline constexpr int kPluginInterface = 8;

/// Returned by a plug-in's function `meshwright_exports`.
struct PluginExports {
  // Of the headers that it was built with:
  int interface = kPluginInterface;
  std::size_t kernel_table_size = sizeof(KernelTable), device_table_size = sizeof(DeviceTable);
  std::uint64_t kernel_list = kernel_list_hash();
  KernelTable kernels;
  DeviceTable device;
};
/// Whether this program may call the plug-in's functions.
bool is_of_this_build(const PluginExports& exports);

struct BackendPlugin {
  const PluginExports* exports = nullptr;  ///< null: not found, or from a different build
  void* handle = nullptr;                  ///< from dlopen()
  std::string path;                        ///< where it was loaded from or searched for
  std::string missing;  ///< why kernels cannot run (plug-in, driver or device); empty: they can
};

/// Loads the plug-in of a back end with device memory on the first call; later calls return the
/// same result.
const BackendPlugin& backend_plugin(Backend backend);

/// The address of a function that the plug-in exports; null if the plug-in or the function is
/// missing.
void* plugin_symbol(Backend backend, const char* name);

}  // namespace meshwright
