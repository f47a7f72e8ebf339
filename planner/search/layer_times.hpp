/// Time of one micro-batch in every layer and stage: the input of stage partitioning and bounds.
#pragma once

#include <cstdint>
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
  PassTimes& operator+=(const PassTimes& more);
  friend PassTimes operator*(const PassTimes& once, std::int64_t count);
  friend bool operator==(const PassTimes&, const PassTimes&) = default;
};

/// Consecutive layers with equal times.
struct LayerRun {
  int count = 0;
  PassTimes plain;       ///< without recomputation, or with that of some operators
  PassTimes recomputed;  ///< the block saves only its input (kFull, kBlocks)
  friend bool operator==(const LayerRun&, const LayerRun&) = default;
};

/// Passes of every layer. The embedding and the head are never recomputed.
struct LayerPasses {
  PassTimes embedding, head;
  std::vector<LayerRun> blocks;
  friend bool operator==(const LayerPasses&, const LayerPasses&) = default;
};

/// What differs between the devices of a heterogeneous cluster. Empty on homogeneous ones.
struct MixedStages {
  std::vector<std::int32_t> kinds;  ///< by pipeline rank: the node group of its slowest nodes
  std::vector<Bytes> memory;        ///< by pipeline rank: of the device with the least memory
  std::vector<LayerPasses> passes;  ///< by node group; empty for groups that are not used
};

struct LayerCosts {
  LayerPasses passes;               ///< heterogeneous clusters: minima over the devices
  std::vector<LayerMemory> memory;  ///< on one rank, by layer class
  MixedStages mixed = {};
};

/// lower_layers() and price_works(). Exact: the work of a stage is the sum of the parts of its
/// layers. Of recomputation it only matters which operators are recomputed; the costs without it,
/// if known, save most of the work.
LayerCosts layer_costs(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster,
                       const CostModel& cost_model,
                       const LayerCosts* without_recomputation = nullptr);

/// The same for schedules that shard the embedding and the head over all pipeline ranks: they load
/// every stage alike, and are left out.
LayerPasses without_ends(LayerPasses layers);

/// Forward plus backward of every layer, the input of cut_blocks(); `recomputed`: all blocks are.
LayerTimes layer_times(const LayerPasses& layers, bool recomputed);

/// Forward plus backward of all layers.
Ticks total_time(const LayerPasses& layers, bool recomputed);

/// Passes of every part of a partitioned model: sums over its layers.
std::vector<PassTimes> stage_passes(const LayerPasses& layers,
                                    std::span<const int> blocks_per_stage,
                                    const Recompute& recompute);

}  // namespace meshwright
