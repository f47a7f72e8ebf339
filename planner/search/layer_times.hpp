/// Time of one micro-batch in every layer and stage: the input of stage partitioning and bounds.
#pragma once

#include <span>
#include <vector>

#include "core/base/units.hpp"
#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/lowering/lower.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "planner/search/stage_partition.hpp"

namespace meshwright {

/// Including blocking collectives and recomputation.
struct PassTimes {
  Ticks forward;
  Ticks backward;        ///< input and weight gradients
  Ticks backward_input;  ///< the part that the previous stage waits for if backwards are split
  friend bool operator==(const PassTimes&, const PassTimes&) = default;
};

/// Passes of every layer [by LayerId], with and without recomputation of the blocks.
struct LayerPasses {
  std::vector<PassTimes> plain;       ///< no recomputation, or selective (attention core)
  std::vector<PassTimes> recomputed;  ///< blocks save only their input (kFull, kBlocks)
  friend bool operator==(const LayerPasses&, const LayerPasses&) = default;
};

/// Prices the passes of every layer under `strategy`: lower_stages() and price_works(), by layer
/// class. Exact: the work of a stage is the sum of the parts of its layers. Independent of schedule
/// and number of micro-batches, except that embedding and head are zero if the schedule shards them
/// over all pipeline ranks; of recomputation it only matters which operators are recomputed.
LayerPasses layer_passes(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster,
                         const CostModel& cost_model);

/// Forward plus backward of every layer, the input of cut_blocks().
LayerTimes layer_times(std::span<const PassTimes> layers);

/// Passes of every part of a partitioned model: sums over its layers.
std::vector<PassTimes> stage_passes(const LayerPasses& layers,
                                    std::span<const int> blocks_per_stage,
                                    const Recompute& recompute);

}  // namespace meshwright
