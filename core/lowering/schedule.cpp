// The order of passes on every pipeline rank.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/lowering/passes.hpp"
#include "core/plan/weight_versions.hpp"

namespace meshwright {

void order_microbatches(LoweringContext& context) {
  context.schedule = schedule_to_lower(context.plan, context.options.steps);
  if (context.schedule.output_barriers > 0 && context.plan.orders.empty())
    context.schedule = order_by_estimated_times(context);
  MW_CHECK(context.schedule.placement == context.placement);
}

/// In our executor, input-gradient passes also compute the gradients of norms and sinks. If
/// gradients are sharded, these stay unsharded until the weight-gradient pass allocates its
/// buffers.
void count_unsharded_gradients(LoweringContext& context) {
  const Strategy& strategy = context.strategy;
  if (context.device().kernels != KernelLibrary::kOwn || strategy.zero < 2 ||
      data_groups_of(strategy, context.groups, false).shard.shape.ranks == 1)
    return;
  const auto is_split = [](const Action& action) { return action.pass == Pass::kBackwardInput; };
  for (std::size_t s = 0; s < context.placement.device_of_stage.size(); ++s) {
    const std::size_t device = context.placement.device_of_stage[s].index();
    const auto& order = context.schedule.orders[device];
    if (std::none_of(order.begin(), order.end(), is_split)) continue;
    const auto part = static_cast<std::size_t>(context.placement.part_of_stage[s]);
    context.resident[device][MemoryClass::kGradients] +=
        Bytes(context.parameters[part].gradients_with_inputs * gradient_bytes(strategy));
  }
}

}  // namespace meshwright
