/// CPU kernels of one instruction-set level (vector.hpp) and their scratch sizes. Internal.
#pragma once

#include "kernels/cpu/vector.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {

MESHWRIGHT_KERNELS(MESHWRIGHT_DECLARE_RUN)
MESHWRIGHT_KERNELS(MESHWRIGHT_DECLARE_SCRATCH)

KernelTable table();

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
