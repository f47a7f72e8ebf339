/// What the user asks of a search: the job, and the choices that are already made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/dtype.hpp"
#include "core/plan/plan.hpp"
#include "core/trainer/trainer.hpp"

namespace meshwright {

struct Goal {
  int gpus = 1;
  std::int64_t global_batch = 1;
  std::int64_t sequence_length = 1;
};

/// A set optional restricts the search to its value (`plan --fix`). The default dtype is bf16 if
/// the device supports it, else fp16, else fp32.
struct FixedChoices : FixedSizes {
  std::optional<int> micro_batch, zero;
  std::optional<bool> sequence_parallel;
  std::optional<std::string> schedule;
  std::optional<Recompute> recompute;
  std::optional<Dtype> dtype;
  std::optional<AttentionAlgorithm> attention;
  std::optional<OptimizerKind> optimizer;  ///< not searched: default AdamW
  // Members of DataParallelism and ModelParallelism.
  std::optional<GradientBuckets> buckets;
  std::optional<bool> overlap_gather, reshard_after_forward, offload_optimizer, tensor_overlap;
  std::optional<int> prefetch, shard_ranks;
  std::optional<ContextAlgorithm> context_algorithm;
  std::optional<RankOrder> rank_order;
  /// For every plan, except for the members above; not searched.
  DataParallelism data_parallelism = {};
  ModelParallelism model_parallelism = {};
  Precision precision = {};
  /// Restricts the search to plans that this program can run. A fixed choice that it does not have
  /// is an InputError.
  std::optional<Trainer> trainer = {};
};

/// The fixed choices, and defaults for all others.
Strategy strategy_of(const FixedChoices& fixed);
/// The fixed choices in place of those of the strategy.
Strategy with_fixed_choices(Strategy strategy, const FixedChoices& fixed);
/// Switches of tensor parallelism, unless its size is fixed, too, are for plans that have it.
bool keeps_fixed_choices(const Strategy& strategy, FixedChoices fixed);
/// One rank and one sequence of one token, with the fixed dtype, precision and attention, and
/// defaults for all others.
Strategy smallest_strategy(const FixedChoices& fixed);

}  // namespace meshwright
