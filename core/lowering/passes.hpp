/// The lowering passes of lower() (core/lowering/lower.hpp), one file each. Internal to lower().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/graph/activation_buffers.hpp"
#include "core/graph/task_graph.hpp"
#include "core/lowering/lower.hpp"
#include "core/model/model_graph.hpp"
#include "core/operators/operator_work.hpp"
#include "core/plan/plan.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

// ---- lower_groups.cpp: process groups and the nodes of their ranks --------------------------

/// A group of `count` ranks, `stride` apart; all groups of this kind tile the job in rank order.
struct GroupLayout {
  std::int64_t count = 1, stride = 1;
  std::int64_t job_ranks = 1;
  int devices_per_node = 1;
};
/// The shape of the group that spans the most nodes.
GroupShape group_shape_of(const GroupLayout& layout);

/// `count` ranks, `stride` apart: one axis of a group.
struct AxisExtent {
  std::int64_t count = 1, stride = 1;
};

/// The ranks of the job in RankOrder, and the groups of each axis. Ranks with the same pipeline
/// rank are *replicas* of each other, numbered in rank order; expert ranks are folded into them. If
/// the pipeline axis is not the slowest one, strides among replicas are smaller than among ranks.
struct JobGroups {
  GroupShape tensor, context, expert, expert_tensor;
  GroupShape dense_data;       ///< ranks holding the same dense parameters: data x context
  GroupShape expert_data;      ///< ranks holding the same experts
  GroupShape all;              ///< the whole job
  std::int64_t stage_ranks{};  ///< ranks per pipeline rank: data x context x tensor
  int devices_per_node = 1;    ///< that the job uses; the largest node if they differ
  int pipeline = 1;
  std::int64_t pipeline_stride = 1;            ///< among ranks
  std::int64_t tensor_stride = 1;              ///< of tensor, among replicas
  std::int64_t dense_stride = 1;               ///< of dense_data, among replicas
  std::int64_t expert_stride = 1;              ///< of expert_data, among replicas
  std::vector<std::int32_t> node_of_rank;      ///< empty if all nodes have the same size
  std::vector<std::int32_t> kind_of_position;  ///< see Work::node_kind; empty if homogeneous
};
JobGroups job_groups_of(const Strategy& strategy, const Cluster& cluster);
/// The rank of a replica of a pipeline rank.
std::int64_t rank_of(const JobGroups& groups, std::int64_t position, std::int64_t replica);
/// Converts a stride among replicas to a stride among ranks.
std::int64_t rank_stride(const JobGroups& groups, std::int64_t stride);
std::int64_t node_of_rank(const JobGroups& groups, std::int64_t rank);
/// Extent of the dense data-parallel group among the replicas; empty if the tensor axis is between
/// the context and data axes.
std::optional<AxisExtent> dense_data_extent(const ParallelDegrees& degrees, const RankOrder& order);

/// Messages from each rank of one pipeline rank to its peer in another.
struct Crossing {
  bool crosses_nodes = false;
  int flows_per_node = 1;  ///< maximum number leaving one node concurrently
};
Crossing crossing_of(const JobGroups& groups, int from, int to);

/// The union of `copies` equal groups of different pipeline ranks, on different nodes if the job
/// has several.
GroupShape joined(const JobGroups& groups, const GroupShape& shape, int copies);

// ---- lower_layers.cpp: a layer class → kernels and collectives per pass ---------------------

/// Indices into the list of parts; `recompute` is -1 if the class has none.
struct LayerParts {
  std::int32_t forward = 0, backward = 0, backward_input = 0, backward_weight = 0;
  std::int32_t recompute = -1;
};
LayerParts append_layer_parts(const ModelGraph& model, LayerId layer, const Strategy& strategy,
                              const ShardShape& shard, const JobGroups& groups,
                              const TrainerMemory& memory, std::vector<WorkPart>& parts);

/// The site of a collective inside a layer.
struct Served {
  OperatorId op;
  Phase phase = Phase::kForward;
  TensorId tensor{-1};
};
/// Appends nothing for a group of one.
void append_collective(const Collective& collective, const Served& served,
                       std::vector<Step>& steps);

// ---- lower_context.cpp: attention under context parallelism ----------------------------------

/// The kernels of one phase of an attention operator, and the context-parallel communication
/// before, during and after them.
struct AttentionCall {
  const Attention& attention;
  Served served;
  const ShardShape& shard;
  const GroupShape& context;
};
void append_attention(const AttentionCall& call, std::span<const Kernel> kernels,
                      std::vector<Step>& steps);

// ---- lower_experts.cpp: token dispatch and combine -------------------------------------------

/// `rows` is the routed tensor that is communicated (backward: its gradient). Reaching means
/// towards the expert ranks, leaving means back to the token's own rank.
struct ExpertCall {
  const ActivationTensor& rows;
  Served served;
  const ShardShape& shard;
  const JobGroups& groups;
};
void append_reach_experts(const ExpertCall& call, std::vector<Step>& steps);
void append_leave_experts(const ExpertCall& call, std::vector<Step>& steps);

// ---- lower_stages.cpp: stages and their memory ----------------------------------------------

ScheduleRequest schedule_request_of(const Strategy& strategy);
/// Number of model parts (see Placement::part_of_stage).
int part_count(const Placement& placement);

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

// ---- lower_by_hand.cpp: manual stage placement -------------------------------------------------

/// The placement given by Plan::device_of_stage.
Placement hand_placement(const Plan& plan);
/// naive: a micro-batch runs forward and backward through all stages before the next one starts.
/// gpipe: each device runs all forwards of its first stage, then of its next, and so on, then the
/// backwards in reverse order.
Schedule hand_schedule(const Plan& plan);

// ---- lower_units.cpp: layers whose parameters and gradients are communicated together -------

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

/// Everything that is independent of the micro-batch count and the schedule.
struct StagesPass {
  Placement placement;
  JobGroups groups;
  LoweredStages lowered;
  std::vector<PartParameters> parameters;  ///< by part
  std::vector<PartUnits> units;            ///< by part
  std::vector<Bytes> boundary;             ///< by part: message to the next part, per rank
  Bytes output_input;                      ///< sharded output layer: its input, per rank
  std::vector<SliceMemory> memory;         ///< by part; empty unless memory is counted by buffer
  int message_slices = 1;                  ///< of a message; each tensor rank sends one
  TrainerMemory trainer_memory;
  int quantized_copies = 0;  ///< of cached weights, if GEMMs are quantized
};
/// True if any pass is split into units because gradients or parameters are communicated during it.
bool has_units(const Strategy& strategy, const StagesPass& pass);
/// The units and buckets of a part whose layers have these parameters; the caller adds the works.
///   ZeRO 0, 1   buckets collect parameters in backward order until they reach their size (as in
///               PyTorch and Megatron-LM); a unit ends where a layer completes a bucket
///   ZeRO 2      buckets are whole layers; one layer each if no size is given
///   ZeRO 3      every layer is a unit and a bucket
/// Under ZeRO 2 and 3 a tied table is a bucket of its own, so that both holders shard it alike.
PartUnits cut_into_units(const std::vector<std::vector<LocalParameter>>& layers,
                         const std::optional<TablePlace>& table, const Strategy& strategy,
                         const JobGroups& groups);

StagesPass lower_stages_pass(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                             const TrainerMemory& memory = {});

/// Bytes of one gradient element: accumulated, communicated and reduced.
inline std::int64_t gradient_bytes(const Strategy& strategy) {
  return bytes_per_element(strategy.precision.gradients);
}
/// Traffic per parameter before an update: gradient norm (one read) and clipping (read and write),
/// in fp32.
inline constexpr std::int64_t kNormAndClipBytes = 3 * kFloat32Bytes;

// ---- lower_memory.cpp: resident bytes and the optimizer -------------------------------------

/// Number of parameters that a rank of this pipeline rank updates (its shard under ZeRO).
std::int64_t updated_parameters(const StagesPass& pass, const Strategy& strategy,
                                PipelineRankId device);
std::vector<MemoryAmounts> resident_memory(const StagesPass& pass, const Strategy& strategy,
                                           const DeviceModel& device);
/// Device memory outside of tensors: CUDA context and communicators, or DeviceModel's figure.
Bytes reserved_memory(const StagesPass& pass, const Strategy& strategy, const DeviceModel& device);
/// AdamW, then the casts of updated weights (see precision.hpp).
Work optimizer_work(const StagesPass& pass, const Strategy& strategy, PipelineRankId device,
                    std::vector<WorkPart>& parts);
/// The update of a parameter server's shard; `before`: bytes per parameter of traffic before it.
Work server_update_work(const Strategy& strategy, std::int64_t share, std::int64_t before,
                        std::vector<WorkPart>& parts);
/// The sum over all workers' gradients of a parameter server's shard.
Work server_sum_work(std::int64_t share, int workers, std::vector<WorkPart>& parts);
/// Bytes of optimizer state per parameter.
Bytes optimizer_state_bytes(const Strategy& strategy);
/// With optimizer state in host memory: the device computes the norm and clears its gradients, and
/// the CPU updates a shard of `parameters` elements.
Work host_optimizer_work(const Strategy& strategy, std::int64_t parameters,
                         std::vector<WorkPart>& parts);

// ---- lower_unfold.cpp: all ranks ------------------------------------------------------------

/// The replicas of a pipeline rank that join one collective: `count` of them, `stride` apart;
/// groups of this shape tile all replicas.
struct CollectiveSpread {
  std::int64_t stride = 1, count = 1;
  /// Ranks of the group per node, if the group starts with the first ranks of all nodes.
  std::int64_t alternates_over = 1;
};

/// A graph of one representative per pipeline rank, and how its collectives expand to all ranks.
struct FoldedGraph {
  TaskGraph graph;
  std::vector<CollectiveSpread> spreads;  ///< indexed by collective of `graph`
};

/// Expands the graph to all ranks; leaves TaskGraph::ranks empty. O(tasks).
TaskGraph unfold(const FoldedGraph& folded, std::int64_t replicas);

/// Appends a task and its dependencies.
TaskId append_task(TaskGraph& graph, const Task& task, std::span<const TaskId> dependencies);
WorkId append_work(TaskGraph& graph, Work work);

/// Begins a collective; its members are appended next.
void open_collective(FoldedGraph& folded, const CollectiveSpread& spread);
/// Appends a member of the open collective. `task` must have its work, kind, stream, stage and
/// micro-batch set.
TaskId append_member(FoldedGraph& folded, Task task, std::span<const TaskId> dependencies);

// ---- lower_data_groups.cpp: data-parallel groups and collectives -----------------------------

/// A group of ranks holding the same parameters, and its location among the replicas.
struct DataGroup {
  GroupShape shape;
  CollectiveSpread spread;
};
struct DataGroups {
  DataGroup all;     ///< all ranks holding the same parameters
  DataGroup shard;   ///< ranks that state is sharded over: all, or neighbors (hybrid sharding)
  DataGroup across;  ///< ranks holding the same shard in different shard groups
};
/// `expert`: the groups for expert parameters.
DataGroups data_groups_of(const Strategy& strategy, const JobGroups& groups, bool expert);

/// One data-parallel collective; runs after the previous one in its list.
struct DataExchange {
  Collective collective;
  CollectiveSpread spread;
  Stream stream = Stream::kData;
};
struct ReductionWish {
  int copies = 1;           ///< stages that hold the part
  bool sums_groups = true;  ///< hybrid sharding: also reduce across the shard groups
};
/// The collectives that reduce the gradients of a range: all-reduce (ZeRO 0) or reduce-scatter,
/// with the plan's algorithm. Empty if the group has one rank.
std::vector<DataExchange> reduce_exchanges(const ParameterRange& range, const Strategy& strategy,
                                           const JobGroups& groups, const ReductionWish& wish);
/// The collectives that gather the updated values of a range sharded over its shard group; those of
/// quantized parameters in fp8 if the plan says so.
std::vector<DataExchange> gather_exchanges(const ParameterRange& range, const Strategy& strategy,
                                           const StagesPass& pass, int copies);

// ---- lower_output_layer.cpp: vocabulary layers sharded over the pipeline ranks ----------------

/// Barriers of the sharded output layer (see Schedule::output_barriers); 0: it is not sharded.
int output_barriers_of(const Strategy& strategy);
/// The strategy whose tensor-parallel size yields the shapes of one shard of the token table and
/// of the logits: they are sharded over tensor and pipeline ranks together (Yeung et al., arXiv
/// 2411.05288, section 4).
Strategy vocabulary_strategy(const Strategy& strategy);
/// True if the model has a token table and logits that can be sharded by vocabulary; the logits and
/// the loss are then the last two operators of the head.
bool has_vocabulary_layers(const ModelGraph& model);
inline constexpr int kOutputOperators = 2;  ///< logits and loss

/// Work of one device for one micro-batch, in addition to its transformer layers. Lookups of its
/// shard of the token table, and their gradients, run with its F and B; as each device looks up the
/// tokens of a later micro-batch, the sums over the devices are assumed to be hidden.
struct VocabularyParts {
  std::int32_t lookup = -1, lookup_backward = -1;
  std::int32_t scores = -1, gradient = -1;  ///< S and T
};
VocabularyParts append_vocabulary_parts(const ModelGraph& model, const Strategy& strategy,
                                        const JobGroups& groups, std::vector<WorkPart>& parts);
/// Memory of S and T. The copy of the output layer's input and the logits are held from S to T;
/// with one barrier, the partial gradient of the input too.
struct OutputLayerBytes {
  Bytes input;  ///< of the output layer, and its gradient, on one rank
  LogitBytes logits;
};
OutputLayerBytes output_layer_bytes(const ModelGraph& model, const Strategy& strategy);

/// The plan's schedule, ordered for the proportions of its passes: where S and T fit between F and
/// B depends on them. Every kernel is estimated by the larger of its arithmetic at the device's
/// peak and its traffic at the memory bandwidth.
Schedule order_by_estimated_times(const StagesPass& pass, const Strategy& strategy,
                                  const DeviceModel& device);

/// Appends the collectives of the sharded output layer, on their own streams:
///   after the last stage's F   broadcast of its output
///   after S on all devices     all-reduce of the softmax statistics (fp32 maximum, sum and target
///                              logit per token); with one barrier also of the input gradient
///   after T on all devices     with two barriers: all-reduce of the input gradient
/// Tasks are -1 until they have been appended.
class OutputLayerEmission {
 public:
  OutputLayerEmission(const StagesPass& pass, const Strategy& strategy, const Schedule& schedule,
                      FoldedGraph& folded);
  ~OutputLayerEmission();
  /// The task that S or T waits for.
  std::int32_t input_of(const Action& action) const;
  /// The task that provides the gradient of the output layer's input on the last stage.
  std::int32_t gradient_of(MicrobatchId microbatch) const;
  /// Schedule::output_layer_blocks: the barrier of this T on its own device.
  std::int32_t barrier_after(const Action& gradient) const;
  /// `done` is the task of the last stage's F, or of an S or T.
  void append_behind(const Action& action, TaskId done);

 private:
  class State;
  std::unique_ptr<State> state_;
};

// ---- lower_data_parallel.cpp: passes split into units -----------------------------------------

/// Appends the unit tasks of split passes, with the gathers and reductions that overlap them. The
/// actions of a device must be passed in its order.
class UnitEmission {
 public:
  UnitEmission(const StagesPass& pass, const Strategy& strategy, const Schedule& schedule,
               FoldedGraph& folded);
  ~UnitEmission();
  bool cuts(const Action& action, int device) const;
  /// `prototype` has everything but the work; the first task depends on `inputs`. Returns the last
  /// task. In the stage's last backward pass, stores in `completes_unit` the task that completes
  /// each unit's gradients.
  TaskId append(const Action& action, const Task& prototype, std::span<const TaskId> inputs,
                std::vector<std::int32_t>& completes_unit);

 private:
  class State;
  std::unique_ptr<State> state_;
};

// ---- lower_without_flush.cpp: updates between passes -------------------------------------------

/// Appends the reductions and the update of every batch (core/plan/weight_versions.hpp), both
/// tagged with the micro-batch that completes the batch.
class UpdatesWithoutFlush {
 public:
  UpdatesWithoutFlush(const StagesPass& pass, const Strategy& strategy, FoldedGraph& folded);
  ~UpdatesWithoutFlush();
  /// Appends nothing unless `backward` (task `done`) completes a batch.
  void append_behind(const Action& backward, int device, TaskId done);

 private:
  struct Stage;
  FoldedGraph& folded_;
  std::vector<Stage> stages_;
};

// ---- lower_schedule.cpp: one pipeline's tasks -----------------------------------------------

/// Tasks of one pipeline in topological order; Task::rank is the pipeline rank.
struct PipelineTasks {
  std::vector<std::int32_t> last_of_stage;   ///< by stage: its last compute task
  std::vector<std::int32_t> last_of_device;  ///< by pipeline rank
  /// By stage, then unit: the task that completes the unit's gradients: its backward pass, or the
  /// reduction after it (ZeRO 2, 3). Empty for stages whose last backward pass is a single task.
  std::vector<std::vector<std::int32_t>> completes_unit;
};
WorkId work_of(const StageWorks& works, Pass pass);
TaskKind task_kind_of(Pass pass);
PipelineTasks append_pipeline_tasks(const StagesPass& pass, const Strategy& strategy,
                                    const Schedule& schedule, FoldedGraph& folded);

// ---- lower_parameter_server.cpp, lower_one_process.cpp: a full replica on every device ----------

/// The complete graph including ranks: workers first, then servers.
TaskGraph lower_parameter_server(const StagesPass& pass, const Plan& plan, const Schedule& schedule,
                                 const DeviceModel& device, RankSet ranks);
/// PyTorch's DataParallel: the complete graph including ranks.
TaskGraph lower_one_process(const StagesPass& pass, const Plan& plan, const ModelGraph& model,
                            RankSet ranks);

// ---- lower_step_end.cpp: gradients, optimizer, parameters -----------------------------------

void append_step_end(const StagesPass& pass, const Plan& plan, const ModelGraph& model,
                     const PipelineTasks& pipeline, FoldedGraph& folded);

}  // namespace meshwright
