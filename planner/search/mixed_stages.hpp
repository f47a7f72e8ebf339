/// Layers and stages of a layout on a heterogeneous cluster: their times on the devices of their
/// pipeline ranks, the stage cut and a lower bound.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/units.hpp"
#include "planner/search/layer_times.hpp"
#include "planner/search/space.hpp"

namespace meshwright {

/// PipelineChoice::relief is in parts of this.
inline constexpr int kReliefParts = 8;
/// Reliefs that are searched where devices differ in memory, 0 included.
inline constexpr int kReliefs = 5;

/// Layers on every type of node, from their costs by type; without MixedStages::kinds and memory,
/// which depend on the pipeline.
LayerCosts on_all_kinds(std::span<const LayerCosts> by_kind);
/// The same with the types of the strategy's pipeline ranks only. LayerCosts::passes are minima.
LayerCosts mixed_layer_costs(const LayerCosts& on_all_kinds, const Strategy& strategy,
                             const Cluster& cluster);

/// The type of node of every model part, as node_kinds_of().
std::vector<std::int32_t> kinds_of_parts(const MixedStages& mixed, const Placement& placement);

/// By relief, the cut with the fastest slowest stage: with relief r, a stage on devices that have
/// less memory than others has at most 1 - r / kReliefParts of the blocks that it has without. Only
/// the first one if all devices have the same memory.
std::vector<std::vector<int>> mixed_cuts(const MixedStages& mixed,
                                         std::span<const std::int32_t> kinds_of_parts,
                                         bool recomputed, bool shares_ends);

/// stage_passes() on the devices of the parts.
std::vector<PassTimes> mixed_stage_passes(const MixedStages& mixed,
                                          std::span<const std::int32_t> kinds_of_parts,
                                          std::span<const int> cut, const Recompute& recompute,
                                          bool shares_ends);

/// Lower bound of the time of one micro-batch on the busiest pipeline rank, however layers are
/// assigned to ranks. With n_k ranks of type k, on which layer l takes t_kl and all blocks take
/// b_k, linear programming duality gives, for w_k = (1 / b_k) / sum of n_j / b_j,
///   busiest >= sum over l of min over k of w_k t_kl,
/// which is total / ranks if all types are equal.
Ticks busiest_rank_bound(const MixedStages& mixed, bool recomputed, bool shares_ends);

}  // namespace meshwright
