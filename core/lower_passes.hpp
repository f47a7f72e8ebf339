/// Passes of lower() (core/lower.hpp), one file each. Not for other callers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/activation_buffers.hpp"
#include "core/cluster.hpp"
#include "core/lower.hpp"
#include "core/model_graph.hpp"
#include "core/operator_work.hpp"
#include "core/plan.hpp"
#include "core/schedule.hpp"
#include "core/task_graph.hpp"

namespace meshwright {

// ---- lower_groups.cpp: where the ranks of each group sit ------------------------------------

/// `count` ranks, `stride` apart, with all their sister groups side by side in rank order.
struct GroupLayout {
  std::int64_t count = 1, stride = 1;
  std::int64_t job_ranks = 1;
  int devices_per_node = 1;
};
/// Of the sister group that touches most nodes.
GroupShape group_shape_of(const GroupLayout& layout);

/// `count` ranks, `stride` apart: one axis of a group.
struct AxisExtent {
  std::int64_t count = 1, stride = 1;
};

/// The ranks of the job by RankOrder, the groups of each axis and where they sit. Ranks of one
/// pipeline position are *replicas* of each other, numbered in rank order; expert ranks are folded
/// into them. Where an axis of fewer steps than the pipeline's lies between replicas, strides among
/// replicas are smaller than among ranks.
struct JobGroups {
  GroupShape tensor, context, expert, expert_tensor;
  GroupShape dense_data;       ///< ranks with the same dense parameters: data x context
  GroupShape expert_data;      ///< ranks with the same experts
  GroupShape all;              ///< the whole job
  std::int64_t stage_ranks{};  ///< ranks of one pipeline position: data x context x tensor
  int devices_per_node = 1;
  int pipeline = 1;
  std::int64_t pipeline_stride = 1;            ///< among ranks
  std::int64_t tensor_stride = 1;              ///< of tensor, among replicas
  std::int64_t dense_stride = 1;               ///< of dense_data, among replicas
  std::int64_t expert_stride = 1;              ///< of expert_data, among replicas
  std::vector<std::int32_t> node_of_rank;      ///< where nodes differ in size; empty: all equal
  std::vector<std::int32_t> kind_of_position;  ///< see Work::node_kind; empty: one kind
};
JobGroups job_groups_of(const Strategy& strategy, const Cluster& cluster);
/// The rank of a replica at a pipeline position.
std::int64_t rank_of(const JobGroups& groups, std::int64_t position, std::int64_t replica);
/// A stride among replicas as one among ranks.
std::int64_t rank_stride(const JobGroups& groups, std::int64_t stride);
std::int64_t node_of_rank(const JobGroups& groups, std::int64_t rank);
/// Extent of the ranks with the same dense parameters among the replicas; nothing if tensor ranks
/// stand between context and data ranks.
std::optional<AxisExtent> dense_data_extent(const ParallelDegrees& degrees, const RankOrder& order);

/// Messages from each rank of one position to its partner at another.
struct Crossing {
  bool crosses_nodes = false;
  int flows_per_node = 1;  ///< most that leave one node at once
};
Crossing crossing_of(const JobGroups& groups, int from, int to);

/// The group of `copies` equal groups at pipeline positions that lie apart, on other nodes if the
/// job has them.
GroupShape joined(const JobGroups& groups, const GroupShape& shape, int copies);

// ---- lower_layers.cpp: a layer class → kernels and collectives per pass ---------------------

/// Indices in the list of parts; recomputation is absent (-1) where a class has none.
struct LayerParts {
  std::int32_t forward = 0, backward = 0, backward_input = 0, backward_weight = 0;
  std::int32_t recompute = -1;
};
LayerParts append_layer_parts(const ModelGraph& model, LayerId layer, const Strategy& strategy,
                              const JobGroups& groups, std::vector<WorkPart>& parts);

/// Whom a collective inside a layer serves.
struct Served {
  OperatorId op;
  Phase phase = Phase::kForward;
  TensorId tensor{-1};
};
/// Appends nothing for a group of one.
void append_collective(const Collective& collective, const Served& served,
                       std::vector<Step>& steps);

// ---- lower_context.cpp: attention of a part of the sequence ----------------------------------

/// The kernels of one phase of an attention operator, and what context ranks exchange in front of,
/// beside and behind them.
struct AttentionCall {
  const Attention& attention;
  Served served;
  const ShardShape& shard;
  const GroupShape& context;
};
void append_attention(const AttentionCall& call, std::span<const Kernel> kernels,
                      std::vector<Step>& steps);

// ---- lower_experts.cpp: tokens on their way to experts and back ------------------------------

/// `rows` is the routed tensor that travels. Towards the experts, or (backward) its gradient to
/// the ranks that compute the experts' gradients.
struct ExpertCall {
  const ActivationTensor& rows;
  Served served;
  const ShardShape& shard;
  const JobGroups& groups;
};
void append_reach_experts(const ExpertCall& call, std::vector<Step>& steps);
void append_leave_experts(const ExpertCall& call, std::vector<Step>& steps);

// ---- lower_stages.cpp: stages and what they hold --------------------------------------------

ScheduleRequest schedule_request_of(const Strategy& strategy);
/// Parts of the model (see Placement::part_of_stage).
int part_count(const Placement& placement);

/// Parameters of one part of the model on one rank. A tied head that lies apart from its embedding
/// holds a copy of the table, which is counted in `dense` and named here.
struct PartParameters {
  LocalParameters local;
  std::int64_t tied_copy = 0;
  PartialGradients partial;
  std::int64_t gradients_with_inputs = 0;  ///< elements: has_gradient_with_inputs()
};

// ---- lower_by_hand.cpp: layers placed by hand --------------------------------------------------

/// Of a plan whose stages have their devices from Plan::device_of_stage.
Placement hand_placement(const Plan& plan);
/// naive: a micro-batch passes all stages forward and backward before the next one enters. gpipe:
/// every device does all forwards of its first stage, of its next one and so on, then backwards the
/// other way round.
Schedule hand_schedule(const Plan& plan);

// ---- lower_units.cpp: layers whose parameters and gradients travel together -----------------

/// Neighbouring layers of one part. Where a pass is cut, each unit's is a task of its own.
struct ParameterUnit {
  int first_layer = 0, layer_count = 0;  ///< within the part
  LocalParameters before, parameters;    ///< of the units in front of it, and its own
  StageWorks works;
  /// Elements of the embedding's table, if this is a head that reads it on the same device: they
  /// are gathered and reduced with this unit too (ZeRO 2 and 3).
  std::int64_t reads_table = 0;
};
/// Gradients that are reduced together, once the unit's backward pass is done.
struct GradientBucket {
  bool expert = false;
  std::int64_t first = 0, count = 0;  ///< see ParameterRange
  int unit = 0;
  bool is_table = false;  ///< the tied table, or its copy
};
/// Where a tied table stands among the parameters of a part.
struct TablePlace {
  std::size_t layer = 0, parameter = 0;
};
struct PartUnits {
  std::vector<ParameterUnit> units;     ///< in the order of the layers; none: passes are whole
  std::vector<GradientBucket> buckets;  ///< in the order of the backward pass
};

/// All that does not depend on micro-batch count and order of work.
struct StagesPass {
  Placement placement;
  JobGroups groups;
  LoweredStages lowered;
  std::vector<PartParameters> parameters;  ///< by part
  std::vector<PartUnits> units;            ///< by part
  std::vector<Bytes> boundary;             ///< by part: message to the next one, on one rank
  std::vector<SliceMemory> memory;         ///< by part; empty unless buffers are counted
};
/// True if some pass is cut into units: gradients or parameters travel beside it.
bool has_units(const Strategy& strategy, const StagesPass& pass);
/// Units and buckets of a part whose layers have these parameters; works are left to the caller.
///   ZeRO 0, 1   buckets are parameters in backward order, closed when they reach their size
///               (PyTorch and Megatron-LM alike); a unit ends where a layer completes a bucket
///   ZeRO 2      buckets are whole layers; one layer each if no size is given
///   ZeRO 3      every layer is a unit and a bucket
/// Under ZeRO 2 and 3 a tied table is a bucket of its own: its two holders cut it alike.
PartUnits cut_into_units(const std::vector<std::vector<LocalParameter>>& layers,
                         const std::optional<TablePlace>& table, const Strategy& strategy,
                         const JobGroups& groups);

StagesPass lower_stages_pass(const Plan& plan, const ModelGraph& model, const Cluster& cluster);

/// Gradients are accumulated, travel and are summed in fp32.
inline constexpr std::int64_t kGradientBytes = 4;
/// Before an update, a parameter: their norm (a read) and clipping (a read and a write).
inline constexpr std::int64_t kNormAndClipBytes = 3 * kGradientBytes;

// ---- lower_memory.cpp: resident bytes and the optimizer -------------------------------------

/// Parameters whose optimizer state a rank of this pipeline position updates (its share under
/// ZeRO-1).
std::int64_t updated_parameters(const StagesPass& pass, const Strategy& strategy,
                                PipelineRankId device);
std::vector<MemoryAmounts> resident_memory(const StagesPass& pass, const Strategy& strategy,
                                           const DeviceModel& device);
Work optimizer_work(const StagesPass& pass, const Strategy& strategy, PipelineRankId device,
                    std::vector<WorkPart>& parts);
/// A parameter server updates its share; `before` bytes per parameter are read and written first.
Work server_update_work(const Strategy& strategy, std::int64_t share, std::int64_t before,
                        std::vector<WorkPart>& parts);
/// A parameter server adds up the gradients of all workers in its share.
Work server_sum_work(std::int64_t share, int workers, std::vector<WorkPart>& parts);
/// Bytes of optimizer state per parameter.
Bytes optimizer_state_bytes(Dtype dtype);
/// With the state in host memory the device only takes the norm and clears its gradients; the
/// processor updates a share of `parameters`.
Work host_optimizer_work(const Strategy& strategy, std::int64_t parameters,
                         std::vector<WorkPart>& parts);

// ---- lower_unfold.cpp: all ranks ------------------------------------------------------------

/// Which replicas of a pipeline position take part in one collective: `count` of them, `stride`
/// apart, with all groups like it side by side until all replicas are in one.
struct CollectiveSpread {
  std::int64_t stride = 1, count = 1;
  /// Ranks of a group in one node, if the group is to begin with the first ranks of all nodes.
  std::int64_t alternates_over = 1;
};

/// A graph of one representative per pipeline position, and how its collectives spread.
struct FoldedGraph {
  TaskGraph graph;
  std::vector<CollectiveSpread> spreads;  ///< by collective of `graph`
};

/// All ranks; TaskGraph::ranks is left empty. O(tasks).
TaskGraph unfold(const FoldedGraph& folded, std::int64_t replicas);

/// Appends a task and its dependencies.
TaskId append_task(TaskGraph& graph, const Task& task, std::span<const TaskId> dependencies);
WorkId append_work(TaskGraph& graph, Work work);

/// Opens a collective whose members are appended next.
void open_collective(FoldedGraph& folded, const CollectiveSpread& spread);
/// `task` with the work, kind and stream set; the stage and micro-batch are the caller's.
TaskId append_member(FoldedGraph& folded, Task task, std::span<const TaskId> dependencies);

// ---- lower_data_groups.cpp: who exchanges what on the data axis ------------------------------

/// A group of ranks with the same parameters, and where it stands among the replicas.
struct DataGroup {
  GroupShape shape;
  CollectiveSpread spread;
};
struct DataGroups {
  DataGroup all;     ///< all ranks with the same parameters
  DataGroup shard;   ///< those among which state is cut: all, or neighbours (hybrid sharding)
  DataGroup across;  ///< those with the same share in all shard groups
};
/// `expert`: of the ranks with the same experts.
DataGroups data_groups_of(const Strategy& strategy, const JobGroups& groups, bool expert);

/// One collective of the data axis, to be appended behind the one before it.
struct DataExchange {
  Collective collective;
  CollectiveSpread spread;
  Stream stream = Stream::kData;
};
struct ReductionWish {
  int copies = 1;           ///< stages that hold the part
  bool sums_groups = true;  ///< hybrid sharding: over the shard groups too
};
/// Sums the gradients of a range: all-reduce (ZeRO 0) or reduce-scatter, by the plan's algorithm;
/// none if there is nothing to sum.
std::vector<DataExchange> reduce_exchanges(const ParameterRange& range, const Strategy& strategy,
                                           const JobGroups& groups, const ReductionWish& wish);
/// Gathers the new values of a range that is cut over its shard group.
std::vector<DataExchange> gather_exchanges(const ParameterRange& range, const Strategy& strategy,
                                           const JobGroups& groups, int copies);

// ---- lower_data_parallel.cpp: passes cut into units -------------------------------------------

/// Appends the unit tasks of passes that are cut, with the gathers and reductions beside them.
/// Actions of a device must come in its order.
class UnitEmission {
 public:
  UnitEmission(const StagesPass& pass, const Strategy& strategy, const Schedule& schedule,
               FoldedGraph& folded);
  ~UnitEmission();
  bool cuts(const Action& action, int device) const;
  /// `prototype` has all but the work; the first task waits for `inputs`. Returns the last task,
  /// and notes which task completes each unit's gradients if this is the stage's last backward
  /// pass.
  TaskId append(const Action& action, const Task& prototype, std::span<const TaskId> inputs,
                std::vector<std::int32_t>& completes_unit);

 private:
  class State;
  std::unique_ptr<State> state_;
};

// ---- lower_without_flush.cpp: updates between passes -------------------------------------------

/// Appends the reductions and the update of every batch (core/weight_versions.hpp). Both carry the
/// micro-batch that completes it.
class UpdatesWithoutFlush {
 public:
  UpdatesWithoutFlush(const StagesPass& pass, const Strategy& strategy, FoldedGraph& folded);
  ~UpdatesWithoutFlush();
  /// Nothing unless the backward pass, task `done`, completes a batch.
  void append_behind(const Action& backward, int device, TaskId done);

 private:
  struct Stage;
  FoldedGraph& folded_;
  std::vector<Stage> stages_;
};

// ---- lower_schedule.cpp: one pipeline's tasks -----------------------------------------------

/// Tasks of one pipeline in topological order; Task::rank is the pipeline position.
struct PipelineTasks {
  std::vector<std::int32_t> last_of_stage;   ///< by stage: its last compute task
  std::vector<std::int32_t> last_of_device;  ///< by pipeline position
  /// By stage, then unit: the task that completes the unit's gradients, its backward pass or the
  /// reduction behind it (ZeRO 2, 3); empty for stages whose last backward pass is one task.
  std::vector<std::vector<std::int32_t>> completes_unit;
};
WorkId work_of(const StageWorks& works, Pass pass);
TaskKind task_kind_of(Pass pass);
PipelineTasks append_pipeline_tasks(const StagesPass& pass, const Strategy& strategy,
                                    const Schedule& schedule, FoldedGraph& folded);

// ---- lower_parameter_server.cpp, lower_one_process.cpp: whole models on every device ------------

/// Workers and servers: the whole graph, ranks included. Servers stand behind the workers.
TaskGraph lower_parameter_server(const StagesPass& pass, const Plan& plan, const Schedule& schedule,
                                 const DeviceModel& device, RankSet ranks);
/// PyTorch's DataParallel: the whole graph, ranks included.
TaskGraph lower_one_process(const StagesPass& pass, const Plan& plan, const ModelGraph& model,
                            RankSet ranks);

// ---- lower_step_end.cpp: gradients, optimizer, parameters -----------------------------------

void append_step_end(const StagesPass& pass, const Plan& plan, const ModelGraph& model,
                     const PipelineTasks& pipeline, FoldedGraph& folded);

}  // namespace meshwright
