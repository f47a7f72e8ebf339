/// Products of all experts by CUTLASS, in builds that define MESHWRIGHT_CUTLASS. Internal; for .cu
/// files only.
#pragma once

#include "kernels/cuda/kernels.hpp"

namespace meshwright::cuda {

/// Whether CUTLASS has a kernel: Hopper, bf16, aligned rows, no bias.
bool fits_cutlass(const GroupedGemm& g);
bool fits_cutlass(const GroupedGemmWeight& g);
Bytes scratch_of_cutlass(const GroupedGemm& g);
Bytes scratch_of_cutlass(const GroupedGemmWeight& g);
void run_by_cutlass(const Launch& launch, const GroupedGemm& g);
void run_by_cutlass(const Launch& launch, const GroupedGemmWeight& g);

}  // namespace meshwright::cuda
