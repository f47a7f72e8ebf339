#include "planner/search/fixed_choices.hpp"

#include <utility>

#include "core/plan/parallel_sizes.hpp"

namespace meshwright {
namespace {

template <class Value>
void take(const std::optional<Value>& fixed, Value& value) {
  if (fixed) value = *fixed;
}

}  // namespace

Strategy strategy_of(const FixedChoices& fixed) {
  Strategy s;
  s.degrees = degrees_of(fixed);
  s.data_parallelism = fixed.data_parallelism;
  s.model_parallelism = fixed.model_parallelism;
  s.precision = fixed.precision;
  s.schedule = std::string(default_schedule(s.degrees.chunks));
  return with_fixed_choices(std::move(s), fixed);
}

Strategy with_fixed_choices(Strategy s, const FixedChoices& fixed) {
  for (const ParallelSize& size : kParallelSizes) take(fixed.*size.fixed, s.degrees.*size.size);
  take(fixed.micro_batch, s.micro_batch);
  take(fixed.zero, s.zero);
  take(fixed.sequence_parallel, s.sequence_parallel);
  take(fixed.schedule, s.schedule);
  take(fixed.recompute, s.recompute);
  take(fixed.dtype, s.dtype);
  take(fixed.attention, s.attention);
  take(fixed.optimizer, s.optimizer);
  DataParallelism& d = s.data_parallelism;
  take(fixed.buckets, d.buckets);
  take(fixed.overlap_gather, d.overlap_gather);
  take(fixed.reshard_after_forward, d.reshard_after_forward);
  take(fixed.offload_optimizer, d.offload_optimizer);
  take(fixed.prefetch, d.prefetch);
  take(fixed.shard_ranks, d.shard_ranks);
  ModelParallelism& m = s.model_parallelism;
  take(fixed.tensor_overlap, m.tensor_overlap);
  take(fixed.context_algorithm, m.context);
  take(fixed.rank_order, m.order);
  return s;
}

bool keeps_fixed_choices(const Strategy& strategy, FixedChoices fixed) {
  if (strategy.degrees.tensor == 1 && !fixed.tensor)
    fixed.sequence_parallel = fixed.tensor_overlap = false;
  return strategy == with_fixed_choices(strategy, fixed);
}

Strategy smallest_strategy(const FixedChoices& fixed) {
  Strategy s;
  s.micro_batch = 1;
  s.global_batch = s.sequence_length = 1;
  s.schedule = kDefaultSchedule;
  s.precision = fixed.precision;
  take(fixed.dtype, s.dtype);
  take(fixed.attention, s.attention);
  take(fixed.optimizer, s.optimizer);
  return s;
}

}  // namespace meshwright
