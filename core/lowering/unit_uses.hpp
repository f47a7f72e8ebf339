/// The uses of parameter units by a device, in the order of its passes.
#pragma once

#include <vector>

#include "core/graph/task_graph.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

struct LoweringContext;

/// One pass of one unit on a device.
struct UnitUse {
  Action action;
  int unit = 0;
  bool gathers = false, reduces = false;
  bool completes_gradients = false;  ///< within the stage's last backward pass
  bool completes_table = false;      ///< no later use adds to the tied table's gradients
  int gather_after = -1;             ///< use that ends before the gather starts
  int after_reduction_of = -1;       ///< use whose reduction ends before this one starts
  MemoryAmounts acquired, released;  ///< in addition to those of the pass itself
};

/// By device: the uses in passes that are split into units, with the buffers that they hold. Empty
/// for a device whose passes are single tasks.
std::vector<std::vector<UnitUse>> list_unit_uses(const LoweringContext& context);

}  // namespace meshwright
