/// Layers whose parameters and gradients are communicated together.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/lowering/lower.hpp"
#include "core/operators/local_parameters.hpp"
#include "core/plan/job_groups.hpp"
#include "core/plan/plan.hpp"

namespace meshwright {

/// Consecutive layers of one part. If a pass is split, each unit is a separate task.
struct ParameterUnit {
  int first_layer = 0, layer_count = 0;  ///< within the part
  LocalParameters before, parameters;    ///< of the preceding units; of this unit
  StageWorks works;
  /// Elements of the embedding table if this is a tied head on the same device: the table is
  /// gathered and reduced with this unit too (ZeRO 2 and 3).
  std::int64_t reads_table = 0;
};
/// Gradients that are reduced together after the unit's backward pass.
struct GradientBucket {
  bool expert = false;
  std::int64_t first = 0, count = 0;  ///< see ParameterRange
  int unit = 0;
  bool is_table = false;  ///< the tied table, or its copy
};
/// Location of a tied table among the parameters of a part.
struct TablePlace {
  std::size_t layer = 0, parameter = 0;
};
struct PartUnits {
  std::vector<ParameterUnit> units;     ///< in layer order; empty: passes are not split
  std::vector<GradientBucket> buckets;  ///< in backward order
};

/// The units and buckets of a part whose layers have these parameters; the caller adds the works.
///   ZeRO 0, 1   buckets collect parameters in backward order until they reach their size (as in
///               PyTorch and Megatron-LM); a unit ends where a layer completes a bucket
///   ZeRO 2      buckets are whole layers; one layer each if no size is given
///   ZeRO 3      every layer is a unit and a bucket
/// A table is a bucket of its own. Tied tables of two holders under ZeRO 1 to 3 have to be, so that
/// both shard them alike and sum gradients in the same order: Megatron-LM does so, too
/// (distributed/param_and_grad_buffer.py, _does_param_require_new_bucket).
PartUnits cut_into_units(const std::vector<std::vector<LocalParameter>>& layers,
                         const std::optional<TablePlace>& table, const Strategy& strategy,
                         const JobGroups& groups);
/// Elements with which any bucket is full; `data_ranks`: that hold the same dense parameters.
std::int64_t full_bucket_size(const Strategy& strategy, int data_ranks);

}  // namespace meshwright
