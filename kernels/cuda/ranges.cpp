// NVTX; part of the plug-in. Its functions do nothing unless a profiler has set
// NVTX_INJECTION64_PATH.
#include "kernels/device/ranges.hpp"

#include <nvtx3/nvToolsExt.h>

extern "C" __attribute__((visibility("default"))) const meshwright::RangeTable*
meshwright_ranges() {
  static const meshwright::RangeTable table{.begin = [](const char* name) { nvtxRangePushA(name); },
                                            .end = [] { nvtxRangePop(); }};
  return &table;
}
