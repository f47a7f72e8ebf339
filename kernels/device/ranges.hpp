/// Named ranges of a thread, which profilers such as Nsight Systems show beside the kernels
/// launched in them (NVTX, NVIDIA Tools Extension).
#pragma once

#include "kernels/device/backend_plugin.hpp"

namespace meshwright {

/// Ranges of a thread are nested.
struct RangeTable {
  void (*begin)(const char* name) = nullptr;
  void (*end)() = nullptr;
};

/// Null without a plug-in, or if it was built without NVTX's headers.
inline const RangeTable* range_table(Backend backend) {
  using Get = const RangeTable* (*)();
  const auto get = reinterpret_cast<Get>(plugin_symbol(backend, "meshwright_ranges"));
  return get == nullptr ? nullptr : get();
}

}  // namespace meshwright
