/// Collectives of a Kineto trace as curves of time over size.
#pragma once

#include <string>
#include <vector>

#include "core/cost/calibration.hpp"
#include "models/kineto/import_kineto.hpp"
#include "models/kineto/kineto_kernels.hpp"

namespace meshwright {

struct KinetoCommunication {
  std::vector<CollectiveCurve> curves;
  std::vector<ImportedFamily> families;
  double total = 0, waiting = 0;  ///< seconds over all steps
  std::vector<std::string> notes;
};
/// PyTorch's names of collectives are those of ProcessGroupNCCL.cpp ("allreduce",
/// "_allgather_base", "reduce_scatter_tensor_coalesced", …).
KinetoCommunication measure_collectives(const KinetoTrace& trace, const KinetoWindow& window,
                                        const KinetoImportOptions& options);

}  // namespace meshwright
