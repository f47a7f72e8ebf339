// Weights, gradients, optimizer state and fixed buffers of every pipeline rank.
#include "core/lowering/memory.hpp"
#include "core/lowering/passes.hpp"

namespace meshwright {

void count_model_state(LoweringContext& context) {
  context.resident = resident_memory(context, context.strategy, context.device());
  // Reserved memory differs between device types.
  const std::vector<std::int32_t>& kinds = context.groups.kind_of_position;
  for (std::size_t d = 0; d < kinds.size(); ++d) {
    const NodeGroup& group = context.cluster.groups[static_cast<std::size_t>(kinds[d])];
    const DeviceModel& device =
        context.cluster.devices.at(context.cluster.nodes.at(group.node).device);
    context.resident[d][MemoryClass::kReserved] =
        reserved_memory(context.strategy, device, context.options.memory);
  }
}

}  // namespace meshwright
