// ZeRO 1 and 2: gathers of the updated parameters, unless the next step does them.
#include "core/lowering/passes.hpp"

namespace meshwright {

void gather_parameters(LoweringContext& context) {
  const Strategy& strategy = context.strategy;
  const bool is_sharded = strategy.zero == 1 || strategy.zero == 2;
  if (!has_step_end(context) || !is_sharded || strategy.data_parallelism.overlap_gather) return;
  for (const GradientReduction& reduction : context.step_end.reductions) {
    std::vector<TaskId> after;
    for (const StageId stage : reduction.stages)
      after.push_back(context.step_end.updated[device_of(context, stage).index()]);
    append_exchanges(context, reduction,
                     gather_exchanges(reduction.range, strategy, context,
                                      static_cast<int>(reduction.stages.size())),
                     after);
  }
}

}  // namespace meshwright
