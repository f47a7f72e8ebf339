// The end of a step: gradients are reduced over the ranks that hold the same parameters, as soon as
// a part of the model has seen its last micro-batch; a tied table is reduced between its two
// holders; the gradient norm is a barrier for all ranks; every rank updates its parameters; under
// ZeRO-1 (Rajbhandari et al., arXiv 1910.02054) the new parameters are gathered.
#include <algorithm>

#include "core/check.hpp"
#include "core/lower_passes.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kFloat32Bytes = 4;  ///< gradients are accumulated and reduced in fp32

/// Stages that hold the same part of the model: one, or two in bidirectional schedules.
struct PartHolders {
  int part = 0;
  std::vector<StageId> stages;
  std::int32_t last_task = -1;  ///< when all of them have seen their last micro-batch
};

/// One kind of collective over `count` replicas, `stride` apart, of every listed stage.
struct GroupedCollective {
  Collective collective;
  std::int64_t count = 1, stride = 1;
  int stage = -1;  ///< for the tasks' names
};

class StepEnd {
 public:
  StepEnd(const StagesPass& pass, const Plan& plan, const PipelineTasks& pipeline,
          const Replication& replication, TaskGraph& graph)
      : pass_(pass),
        strategy_(plan.strategy),
        pipeline_(pipeline),
        replication_(replication),
        graph_(graph) {
    find_holders();
    ready_.assign(ranks_in_graph(), TaskId(-1));
  }

  void run(bool tied_embeddings) {
    const CollectiveKind kind =
        strategy_.zero >= 1 ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
    for (const PartHolders& holders : holders_) reduce(holders, kind, Bytes(kFloat32Bytes), true);
    if (tied_embeddings) reduce_tied_table();
    reduce_norm();
    update();
    if (strategy_.zero >= 1)
      for (const PartHolders& holders : holders_)
        reduce(holders, CollectiveKind::kAllGather, stored_element(strategy_.dtype), false);
  }

 private:
  std::size_t ranks_in_graph() const {
    return static_cast<std::size_t>(pass_.placement.devices * replication_.replicas);
  }
  PipelineRankId device(StageId stage) const {
    return pass_.placement.device_of_stage[stage.index()];
  }
  std::int32_t rank_index(PipelineRankId position, std::int64_t replica) const {
    return static_cast<std::int32_t>(position.value * replication_.replicas + replica);
  }
  TaskId in_replica(std::int32_t task, std::int64_t replica) const {
    return TaskId(static_cast<std::int32_t>(task + replica * replication_.tasks_per_pipeline));
  }

  /// Parts in the order in which their gradients are complete.
  void find_holders() {
    holders_.resize(static_cast<std::size_t>(part_count(pass_.placement)));
    for (std::size_t s = 0; s < pass_.placement.part_of_stage.size(); ++s) {
      PartHolders& holders = holders_[static_cast<std::size_t>(pass_.placement.part_of_stage[s])];
      holders.part = pass_.placement.part_of_stage[s];
      holders.stages.push_back(StageId(s));
      holders.last_task = std::max(holders.last_task, pipeline_.last_of_stage[s]);
    }
    std::stable_sort(
        holders_.begin(), holders_.end(),
        [](const PartHolders& a, const PartHolders& b) { return a.last_task < b.last_task; });
  }

  /// Dense and expert parameters have groups of their own. `after_backward`: each member waits for
  /// its stage's last backward, else for its optimizer.
  void reduce(const PartHolders& holders, CollectiveKind kind, Bytes element, bool after_backward) {
    const LocalParameters& local = pass_.parameters[static_cast<std::size_t>(holders.part)].local;
    const int copies = static_cast<int>(holders.stages.size());
    const std::int64_t tensor = strategy_.degrees.tensor;
    const std::int64_t experts =
        std::int64_t{strategy_.degrees.expert} * strategy_.degrees.expert_tensor;
    const GroupShape dense = joined(pass_.groups, pass_.groups.dense_data, copies);
    const GroupShape expert = joined(pass_.groups, pass_.groups.expert_data, copies);
    const auto append = [&](std::int64_t parameters, const GroupShape& shape, std::int64_t stride) {
      if (parameters == 0 || shape.ranks == 1) return;
      append_groups(holders.stages,
                    {.collective = {kind, Axis::kData, element * parameters, shape},
                     .count = pass_.groups.stage_ranks / stride,
                     .stride = stride,
                     .stage = holders.part},
                    after_backward);
    };
    append(local.dense, dense, tensor);
    append(local.expert, expert, experts);
  }

  /// All groups of one kind: in a folded graph the one that the representatives belong to.
  void append_groups(const std::vector<StageId>& stages, const GroupedCollective& grouped,
                     bool after_backward) {
    Work work;
    work.kind = TaskKind::kCollective;
    work.collective = grouped.collective;
    const WorkId id = append_work(graph_, std::move(work));
    const bool folded = replication_.replicas == 1;
    const std::int64_t groups = folded ? 1 : grouped.stride;
    const std::int64_t members = folded ? 1 : grouped.count;
    for (std::int64_t group = 0; group < groups; ++group) {
      open_group();
      for (const StageId stage : stages)
        for (std::int64_t i = 0; i < members; ++i) {
          const std::int64_t replica = group + i * grouped.stride;
          const TaskId after = in_replica(pipeline_.last_of_stage[stage.index()], replica);
          append_member(id, device(stage), replica, stage.value,
                        after_backward ? after : updated_[rank(device(stage), replica)]);
        }
    }
  }

  std::size_t rank(PipelineRankId position, std::int64_t replica) const {
    return static_cast<std::size_t>(rank_index(position, replica));
  }

  void open_group() {
    graph_.collectives.push_back({static_cast<std::int32_t>(graph_.tasks.size()), 0});
  }
  void append_member(WorkId work, PipelineRankId position, std::int64_t replica, int stage,
                     TaskId after) {
    Task task;
    task.work = work;
    task.rank = rank_index(position, replica);
    task.microbatch = -1;
    task.stage = static_cast<std::int16_t>(stage);
    task.kind = TaskKind::kCollective;
    task.stream = Stream::kData;
    task.partner = static_cast<std::int32_t>(graph_.collectives.size() - 1);
    ready_[rank(position, replica)] = append_task(graph_, task, {&after, 1});
    ++graph_.collectives.back().count;
  }

  /// Embedding and head on different devices hold copies of one table and sum its gradient.
  void reduce_tied_table() {
    const std::int64_t elements = pass_.parameters.back().tied_copy;
    if (elements == 0) return;
    const std::vector<StageId>& route = pass_.placement.routes.front();
    const std::vector<StageId> ends{route.front(), route.back()};
    const std::int64_t distance =
        std::abs(device(ends[1]).value - device(ends[0]).value) * pass_.groups.stage_ranks;
    const GroupShape shape =
        group_shape_of({.count = 2,
                        .stride = distance,
                        .job_ranks = pass_.placement.devices * pass_.groups.stage_ranks,
                        .devices_per_node = pass_.groups.devices_per_node});
    Work work;
    work.kind = TaskKind::kCollective;
    work.collective = {CollectiveKind::kAllReduce, Axis::kPipeline, Bytes(kFloat32Bytes) * elements,
                       shape};
    const WorkId id = append_work(graph_, std::move(work));
    for (std::int64_t replica = 0; replica < replication_.replicas; ++replica) {
      open_group();
      for (const StageId stage : ends)
        append_member(id, device(stage), replica, stage.value,
                      in_replica(pipeline_.last_of_stage[stage.index()], replica));
    }
  }

  /// Clipping needs the norm of all gradients: no rank may update before the slowest one.
  void reduce_norm() {
    if (pass_.groups.all.ranks == 1) return;
    Work work;
    work.kind = TaskKind::kCollective;
    work.collective = {CollectiveKind::kAllReduce, Axis::kData, Bytes(kFloat32Bytes),
                       pass_.groups.all};
    const WorkId id = append_work(graph_, std::move(work));
    // Members that had no gradient to reduce join after their last backward.
    const auto first = static_cast<std::int32_t>(graph_.tasks.size());
    open_group();
    graph_.collectives.back().first = first;
    for (int d = 0; d < pass_.placement.devices; ++d)
      for (std::int64_t replica = 0; replica < replication_.replicas; ++replica)
        append_member(id, PipelineRankId(d), replica, -1,
                      in_replica(pipeline_.last_of_device[static_cast<std::size_t>(d)], replica));
  }

  void update() {
    updated_.assign(ranks_in_graph(), TaskId(-1));
    for (int d = 0; d < pass_.placement.devices; ++d) {
      const WorkId id =
          append_work(graph_, optimizer_work(pass_, strategy_, PipelineRankId(d), graph_.parts));
      for (std::int64_t replica = 0; replica < replication_.replicas; ++replica) {
        const std::size_t index = rank(PipelineRankId(d), replica);
        Task task;
        task.work = id;
        task.rank = static_cast<std::int32_t>(index);
        task.microbatch = -1;
        task.stage = -1;
        task.kind = TaskKind::kOptimizer;
        const std::span<const TaskId> after(&ready_[index], ready_[index].value < 0 ? 0 : 1);
        updated_[index] = append_task(graph_, task, after);
      }
    }
  }

  const StagesPass& pass_;
  const Strategy& strategy_;
  const PipelineTasks& pipeline_;
  const Replication& replication_;
  TaskGraph& graph_;
  std::vector<PartHolders> holders_;
  std::vector<TaskId> ready_;    ///< by rank: its last collective so far
  std::vector<TaskId> updated_;  ///< by rank: its optimizer task
};

}  // namespace

void append_step_end(const StagesPass& pass, const Plan& plan, const ModelGraph& model,
                     const PipelineTasks& pipeline, const Replication& replication,
                     TaskGraph& graph) {
  StepEnd(pass, plan, pipeline, replication, graph).run(model.tied_embeddings);
}

}  // namespace meshwright
