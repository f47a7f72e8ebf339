/// What the lowering passes work on: the job, and all that earlier passes have found or made.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/dtype.hpp"
#include "core/base/kernel.hpp"
#include "core/cluster/cluster.hpp"
#include "core/graph/task_graph.hpp"
#include "core/lowering/layer_holdings.hpp"
#include "core/lowering/lower.hpp"
#include "core/lowering/output_layer.hpp"
#include "core/lowering/pipeline.hpp"
#include "core/lowering/replica_shares.hpp"
#include "core/lowering/step_end.hpp"
#include "core/lowering/unfold.hpp"
#include "core/lowering/units.hpp"
#include "core/lowering/work_programs.hpp"
#include "core/model/model_graph.hpp"
#include "core/operators/local_parameters.hpp"
#include "core/plan/job_groups.hpp"
#include "core/plan/plan.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

/// What layers with the same options compute and hold.
struct LayerVariant {
  Strategy strategy;           ///< see strategy_of_block()
  bool is_wide = false;        ///< GEMMs stay in 16 bits: Precision::wide_blocks
  bool shares_tokens = false;  ///< among tensor ranks: see LayerOptions::tensor
  JobGroups groups = {};       ///< if it shares tokens, with the tensor ranks as context ranks
  ShardShape shard = {};
  std::vector<LayerHoldings> classes = {};  ///< by layer class; beyond variant 0 only of blocks
};

/// A layer of a model part.
struct PlacedLayer {
  LayerId layer;
  std::int32_t layer_class = 0;
  std::int32_t variant = 0;  ///< index in LoweringContext::variants
  bool fully_recomputed = false;
  bool reshards_after_forward = true;  ///< ZeRO 3; see DataParallelism
};

/// Consecutive layers of one part, and the works of their passes: a whole stage, or a unit.
struct LayerSlice {
  int part = 0;
  int first_layer = 0, layer_count = 0;  ///< within the part
  bool is_unit = false;
  bool is_first = true, is_last = true;  ///< of the units of the part
  /// The neighboring layers are on the same device.
  bool previous_is_here = false, next_is_here = false;
  StageWorks works;
};

/// Parameters of one model part on one rank. A tied head on another device than its embedding holds
/// a copy of the table, which is included in `dense` and given by `tied_copy`.
struct PartParameters {
  LocalParameters local;
  std::int64_t tied_copy = 0;
  PartialGradients partial;
  std::int64_t gradients_with_inputs = 0;  ///< elements; see has_gradient_with_inputs()
  std::vector<WeightMatrix> matrices;      ///< of its blocks, each shape once
  std::vector<ParameterRange> quantized;   ///< the matrices of quantized GEMMs
};
/// The quantized parameters of a part; one range: those of them inside it.
std::int64_t quantized_count(const PartParameters& parameters);
std::int64_t quantized_count(const PartParameters& parameters, const ParameterRange& range);

/// Refers to its arguments. Every member names the pass that fills it.
struct LoweringContext {
  LoweringContext(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                  const LoweringOptions& options = {});

  const Plan& plan;
  const Strategy& strategy;  ///< of the plan
  const ModelGraph& model;
  const Cluster& cluster;
  LoweringOptions options;

  // stages
  Placement placement;
  JobGroups groups;
  std::vector<std::vector<PlacedLayer>> layers;  ///< by part
  std::vector<Bytes> boundary;                   ///< by part: message to the next part, per rank
  int message_slices = 1;                        ///< of a message; each tensor rank sends one
  /// The first has the options of the plan. The next pass fills groups, shards and classes.
  std::vector<LayerVariant> variants;

  // layers
  int quantized_copies = 0;  ///< of cached weights, if GEMMs are quantized

  // output layer
  VocabularyParts vocabulary;
  OutputLayerBytes output;
  std::int64_t vocabulary_parameters = 0;  ///< of every part

  // parameters, units
  std::vector<PartParameters> parameters;  ///< by part
  std::vector<PartUnits> units;            ///< by part

  // works, programs
  std::vector<LayerSlice> slices;
  std::vector<StageWorks> stages;       ///< by stage
  std::vector<SliceMemory> memory;      ///< by part; empty unless memory is counted by buffer
  std::vector<MemoryAmounts> resident;  ///< model state: by pipeline rank

  Schedule schedule;
  FoldedGraph folded;      ///< parts and works from the first passes on, tasks from pipeline on
  PipelineTasks pipeline;  ///< tasks of one pipeline in `folded`
  StepEnd step_end;        ///< gradients, optimizer
  ReplicaShares shares;    ///< batch shares

  TaskGraph& graph() { return folded.graph; }
  const TaskGraph& graph() const { return folded.graph; }
  const DeviceModel& device() const { return device_of(cluster, DeviceId(0)); }
  LayerCall call(const LayerVariant& variant) const {
    return {model,          variant.strategy,
            variant.shard,  variant.shares_tokens ? variant.groups : groups,
            options.memory, variant.shares_tokens ? Axis::kTensor : Axis::kContext};
  }
  const LayerVariant& variant_of(const PlacedLayer& layer) const {
    return variants[static_cast<std::size_t>(layer.variant)];
  }
  const LayerHoldings& held(const PlacedLayer& layer) const {
    return variant_of(layer).classes[static_cast<std::size_t>(layer.layer_class)];
  }
};

/// Calls visit(part) for the model part of every stage on the device.
template <class Visitor>
void for_each_part_on(const LoweringContext& context, PipelineRankId device, Visitor visit) {
  const Placement& placement = context.placement;
  for (std::size_t s = 0; s < placement.device_of_stage.size(); ++s)
    if (placement.device_of_stage[s] == device)
      visit(static_cast<std::size_t>(placement.part_of_stage[s]));
}

/// Fills groups and shard of a variant, without its kernels.
void shard_layers(const LoweringContext& context, LayerVariant& variant);
/// True if any pass is split into units because gradients or parameters are communicated during it.
bool has_units(const LoweringContext& context);
/// True if two model parts hold a tied table each and shard it over the data-parallel ranks.
bool shards_two_tables(const LoweringContext& context);
/// True if the replicas run their own pipelines and reduce gradients among each other: neither
/// parameter servers nor one process.
bool reduces_among_replicas(const Strategy& strategy);

/// Bytes of one gradient element: accumulated, communicated and reduced.
inline std::int64_t gradient_bytes(const Strategy& strategy) {
  return bytes_per_element(strategy.precision.gradients);
}
/// Traffic per parameter before an update: gradient norm (one read) and clipping (read and write),
/// in fp32.
inline constexpr std::int64_t kNormAndClipBytes = 3 * kFloat32Bytes;

}  // namespace meshwright
