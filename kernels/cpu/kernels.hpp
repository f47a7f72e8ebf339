/// CPU kernels of one instruction-set level (vector.hpp) and their scratch sizes. Internal.
#pragma once

#include "kernels/cpu/vector.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {

MESHWRIGHT_KERNELS(MESHWRIGHT_DECLARE_RUN)

Bytes scratch(const Gemm& a);
Bytes scratch(const GroupedGemm& a);
Bytes scratch(const GroupedGemmWeight& a);
Bytes scratch(const AttentionForward& a);
Bytes scratch(const AttentionBackward& a);

KernelTable table();

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
