/// The compiler from Plan to TaskGraph: a list of lowering passes over one context; the list is in
/// lower.cpp, `meshwright show --lowering PLAN` prints what each pass changes.
///
/// Assumptions of the graph: expert rows follow ExpertRouting, and every rank does the work of the
/// busiest one. Collectives of tensor, context and expert parallelism are steps of a task and block
/// it, except for what their Overlap hides. Data-parallel collectives overlap the compute stream
/// bucket by bucket; without buckets they follow the last backward pass of a rank. On heterogeneous
/// clusters a pipeline rank is as slow as its slowest device. Gradients are accumulated and reduced
/// in Precision::gradients. The global gradient norm is a barrier before the optimizer, except for
/// flushless schedules, whose stages update between passes and whose graph covers several steps.
///
/// Throws InputError with check_plan()'s diagnostics if the plan is invalid. O(tasks); 14 us for
/// the stages of a 96-block GPT, 0.3 s and 0.3 GiB for the 12 million tasks of 16,384 ranks.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/graph/task_graph.hpp"
#include "core/model/model_graph.hpp"
#include "core/operators/local_parameters.hpp"
#include "core/plan/plan.hpp"
#include "core/schedule/schedule.hpp"
#include "core/trainer/trainer_memory.hpp"

namespace meshwright {

enum class RankSet : std::uint8_t {
  kRepresentatives,  ///< one rank per pipeline rank, with its multiplicity
  kAll
};

struct LoweringOptions {
  RankSet ranks = RankSet::kRepresentatives;
  /// Flushless schedules: number of steps in the graph (core/plan/weight_versions.hpp); 0: as many
  /// as steady_window() returns. All other schedules have one.
  int steps = 0;
  TrainerMemory memory = {};
  /// Run check_task_graph() after every pass; debug builds always do.
  bool check_each_pass = false;
  /// Describe the passes step by step with their buffers (TaskGraph::programs), as the executor
  /// needs them. Always with own kernels, whose memory is that of the buffers.
  bool programs = false;
  friend bool operator==(const LoweringOptions&, const LoweringOptions&) = default;
};

TaskGraph lower(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                const LoweringOptions& options = {});

/// What one pass changed: figures of the job and its graph before and after it.
struct FigureChange {
  std::string_view name;  ///< "tasks"; "resident bytes"
  std::int64_t before = 0, after = 0;
  friend bool operator==(const FigureChange&, const FigureChange&) = default;
};
struct PassReport {
  std::string_view pass;
  std::vector<FigureChange> changes;  ///< empty: the pass does not concern this plan
  friend bool operator==(const PassReport&, const PassReport&) = default;
};
/// Runs lower() and reports on every pass, in order.
std::vector<PassReport> report_lowering(const Plan& plan, const ModelGraph& model,
                                        const Cluster& cluster,
                                        const LoweringOptions& options = {});

/// True for a block at the ends of the model whose GEMMs stay in 16 bits (Precision::wide_blocks):
/// its passes differ from those of other layers of its class.
bool is_wide_block(const ModelGraph& model, LayerId layer, const Strategy& strategy);

/// The part of lower() that is independent of the micro-batch count and schedule: resident memory,
/// parts and works of every stage. For planners that bound memory and work before scheduling. The
/// caller must have called check_plan().
struct StageWorks {
  WorkId forward, backward;                ///< index in `works`
  WorkId backward_input, backward_weight;  ///< the split backward pass
  /// S and T of an output layer sharded over the pipeline ranks; -1: not sharded.
  WorkId output_scores{-1}, output_gradient{-1};
  friend bool operator==(const StageWorks&, const StageWorks&) = default;
};
WorkId work_of(const StageWorks& works, Pass pass);
struct LoweredStages {
  std::vector<WorkPart> parts;
  std::vector<Work> works;
  std::vector<WorkProgram> programs;
  std::vector<StageWorks> stages;       ///< by stage
  std::vector<MemoryAmounts> resident;  ///< by pipeline rank
  friend bool operator==(const LoweredStages&, const LoweredStages&) = default;
};
LoweredStages lower_stages(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                           const TrainerMemory& memory = {});

/// What a rank sends to the next stage in a forward pass, and receives in a backward pass, if this
/// is the last layer of its stage.
Bytes message_bytes(const Strategy& strategy, const ModelGraph& model, LayerId last,
                    const TrainerMemory& memory);

/// The passes of a layer class, as indices in a list of parts; `recompute` is -1 if the class has
/// none.
struct LayerParts {
  std::int32_t forward = 0, backward = 0, backward_input = 0, backward_weight = 0;
  std::int32_t recompute = -1;
};
/// What one layer of a class holds on one rank.
struct LayerMemory {
  Bytes saved;  ///< from its forward to its backward pass, with the strategy's recomputation
  Bytes saved_if_full;    ///< under full recomputation of the layer
  Bytes saved_to_weight;  ///< between its I and W passes if the backward pass is split
  /// Beside what is saved, while a pass runs; B and I alike.
  Bytes in_forward, in_backward, in_backward_if_full;
  LocalParameters parameters;
  friend bool operator==(const LayerMemory&, const LayerMemory&) = default;
};
/// Which passes of a layer are listed. The others are -1.
enum class WantedPasses : std::uint8_t {
  kAll,
  kWithoutWeights,    ///< all but LayerParts::backward_weight
  kRecomputationOnly  ///< LayerParts::recompute
};
/// Layers before stages are cut: the parts of their passes, and what they hold.
struct LoweredLayers {
  std::vector<WorkPart> parts;
  std::vector<LayerParts> classes;       ///< by layer class
  std::vector<LayerParts> wide_classes;  ///< of blocks in 16 bits (is_wide_block()); may be empty
  std::vector<LayerMemory> memory;       ///< by layer class; with wide blocks the smaller figures
};
/// Independent of schedule, micro-batches and recomputation of whole layers: LayerParts::recompute
/// is that of whole layers unless the strategy recomputes operators. kRecomputationOnly: without
/// LayerMemory::parameters. The caller must have called check_plan().
LoweredLayers lower_layers(const Strategy& strategy, const ModelGraph& model,
                           const Cluster& cluster, const TrainerMemory& memory = {},
                           WantedPasses wanted = WantedPasses::kAll);

/// Bytes per parameter that a rank holds (weights, gradients) or updates (optimizer state): all, or
/// its shard under ZeRO 3, ZeRO 2 and ZeRO 1.
struct ModelStateBytes {
  std::int64_t weights = 0, gradients = 0, optimizer = 0;
  std::int64_t unreduced = 0;  ///< ZeRO 2 and 3: gradients of a unit before they are reduced
  friend bool operator==(const ModelStateBytes&, const ModelStateBytes&) = default;
};
ModelStateBytes model_state_bytes(const Strategy& strategy, const TrainerMemory& memory);
/// What a rank needs whatever its stage: CUDA context, communicators, the trainer's workspace.
Bytes fixed_memory(const Strategy& strategy, const DeviceModel& device,
                   const TrainerMemory& memory);

/// For each pipeline rank, the index in Cluster::groups of its slowest nodes. Empty on homogeneous
/// clusters.
std::vector<std::int32_t> node_kinds_of(const Strategy& strategy, const Cluster& cluster);

}  // namespace meshwright
