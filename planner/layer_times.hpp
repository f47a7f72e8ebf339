/// What one micro-batch takes in every layer and stage: the figures behind stage cuts and bounds.
#pragma once

#include <span>
#include <vector>

#include "core/cluster.hpp"
#include "core/cost_model.hpp"
#include "core/lower.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "core/units.hpp"
#include "planner/stage_partition.hpp"

namespace meshwright {

/// Blocking collectives and recomputation included.
struct PassTimes {
  Ticks forward;
  Ticks backward;        ///< input and weight gradients
  Ticks backward_input;  ///< the part that the stage in front waits for when backwards are split
  friend bool operator==(const PassTimes&, const PassTimes&) = default;
};

/// Passes of every layer [by LayerId], for each way in which a block may be treated.
struct LayerPasses {
  std::vector<PassTimes> plain;       ///< nothing done again, or the attention core (kSelective)
  std::vector<PassTimes> recomputed;  ///< blocks keep their input only (kFull, kBlocks)
  friend bool operator==(const LayerPasses&, const LayerPasses&) = default;
};

/// Passes of every layer as `strategy` shapes its local work, priced: lower_stages() and
/// price_works(), by layer class. Exact: a stage's work is the sum of its layers' parts. Schedule
/// and number of micro-batches do not matter; of the recomputation only whether it is selective.
LayerPasses layer_passes(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster,
                         const CostModel& cost_model);

/// Forward plus backward, as cut_blocks() wants it.
LayerTimes layer_times(std::span<const PassTimes> layers);

/// Passes of every part of a cut model: sums of its layers.
std::vector<PassTimes> stage_passes(const LayerPasses& layers,
                                    std::span<const int> blocks_per_stage,
                                    const Recompute& recompute);

}  // namespace meshwright
