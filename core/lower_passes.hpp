/// Passes of lower() (core/lower.hpp), one file each. Not for other callers.
#pragma once

#include <cstdint>
#include <vector>

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

/// Rank order tp-cp-dp-pp. Expert ranks are folded into the tensor x context x data ranks of a
/// stage: expert-tensor fastest, then expert, then the replicas of the experts.
struct JobGroups {
  GroupShape tensor, context, expert, expert_tensor;
  GroupShape dense_data;       ///< ranks with the same dense parameters: data x context
  GroupShape expert_data;      ///< ranks with the same experts
  GroupShape all;              ///< the whole job
  std::int64_t stage_ranks{};  ///< ranks of one pipeline position: data x context x tensor
  int devices_per_node = 1;
};
JobGroups job_groups_of(const Strategy& strategy, const Cluster& cluster);
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

// ---- lower_stages.cpp: stages and what they hold --------------------------------------------

ScheduleRequest schedule_request_of(const Strategy& strategy);
Placement placement_of(const Strategy& strategy);
/// Parts of the model (see Placement::part_of_stage).
int part_count(const Placement& placement);

/// Parameters of one part of the model on one rank. A tied head that lies apart from its embedding
/// holds a copy of the table, which is counted in `dense` and named here.
struct PartParameters {
  LocalParameters local;
  std::int64_t tied_copy = 0;
};

/// All that does not depend on micro-batch count and order of work.
struct StagesPass {
  Placement placement;
  JobGroups groups;
  LoweredStages lowered;
  std::vector<PartParameters> parameters;  ///< by part
  std::vector<Bytes> boundary;             ///< by part: message to the next one, on one rank
};
StagesPass lower_stages_pass(const Plan& plan, const ModelGraph& model, const Cluster& cluster);

// ---- lower_memory.cpp: resident bytes and the optimizer -------------------------------------

/// Parameters whose optimizer state a rank of this pipeline position updates (its share under
/// ZeRO-1).
std::int64_t updated_parameters(const StagesPass& pass, const Strategy& strategy,
                                PipelineRankId device);
std::vector<MemoryAmounts> resident_memory(const StagesPass& pass, const Strategy& strategy,
                                           const DeviceModel& device);
Work optimizer_work(const StagesPass& pass, const Strategy& strategy, PipelineRankId device,
                    std::vector<WorkPart>& parts);

// ---- lower_schedule.cpp: one pipeline's tasks -----------------------------------------------

/// Tasks of one pipeline in topological order; Task::rank is the pipeline position.
struct PipelineTasks {
  std::vector<std::int32_t> last_of_stage;   ///< by stage: its last compute task
  std::vector<std::int32_t> last_of_device;  ///< by pipeline position
};
PipelineTasks append_pipeline_tasks(const StagesPass& pass, const Schedule& schedule,
                                    TaskGraph& graph);

// ---- lower_step_end.cpp: gradients, optimizer, parameters -----------------------------------

/// How one pipeline's tasks stand for the ranks of the job.
struct Replication {
  std::int64_t replicas = 1;            ///< ranks per pipeline position in the graph
  std::int64_t tasks_per_pipeline = 0;  ///< task of replica r: first + r * this
};
void append_step_end(const StagesPass& pass, const Plan& plan, const ModelGraph& model,
                     const PipelineTasks& pipeline, const Replication& replication,
                     TaskGraph& graph);

/// Appends a task and its dependencies.
TaskId append_task(TaskGraph& graph, const Task& task, std::span<const TaskId> dependencies);
WorkId append_work(TaskGraph& graph, Work work);

}  // namespace meshwright
