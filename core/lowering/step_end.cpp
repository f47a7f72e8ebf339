// The end of a step: gradients are reduced over the ranks that hold the same parameters, bucket by
// bucket as they become complete, or after the rank's last backward pass if there are no buckets; a
// tied table is reduced between its two holders; the gradient norm is a barrier for all ranks;
// every rank updates its parameters; under ZeRO 1 and 2 (Rajbhandari et al., arXiv 1910.02054) the
// updated parameters are gathered, unless the next step does so. ZeRO 2 and 3 reduce with every
// backward pass: see data_parallel.cpp.
#include "core/lowering/step_end.hpp"

#include <algorithm>
#include <array>

#include "core/base/check.hpp"
#include "core/base/dtype.hpp"
#include "core/lowering/data_groups.hpp"
#include "core/lowering/memory.hpp"
#include "core/lowering/schedule.hpp"
#include "core/lowering/stages.hpp"
#include "core/lowering/unfold.hpp"
#include "core/lowering/units.hpp"
#include "core/plan/job_groups.hpp"
#include "core/plan/placement.hpp"

namespace meshwright {
namespace {

/// Gradients that are reduced together, and the stages that hold them.
struct Reduction {
  ParameterRange range;
  std::vector<StageId> stages;      ///< one, or two in bidirectional schedules
  std::vector<std::int32_t> after;  ///< by stage: the task that completes its gradients, later
                                    ///< those that reduce them and copy them to the host
  std::int32_t last() const { return *std::max_element(after.begin(), after.end()); }
};

class StepEnd {
 public:
  StepEnd(const StagesPass& pass, const Plan& plan, const PipelineTasks& pipeline,
          FoldedGraph& folded)
      : pass_(pass),
        strategy_(plan.strategy),
        pipeline_(pipeline),
        folded_(folded),
        graph_(folded.graph),
        ready_(static_cast<std::size_t>(pass.placement.devices), TaskId(-1)) {}

  void run(const ModelGraph& model) {
    std::vector<Reduction> reductions = list_reductions();
    // If gradients are scattered, the two copies of a tied table are sharded differently: they are
    // summed while unsharded, and their shards are reduced afterwards.
    const bool table_first = has_tied_copy(model) && strategy_.zero == 1;
    if (strategy_.zero <= 1)
      for (Reduction& reduction : reductions)
        if (!(table_first && may_hold_table(reduction))) reduce(reduction);
    if (table_first) {
      reduce_tied_table();
      for (Reduction& reduction : reductions)
        if (may_hold_table(reduction)) reduce(reduction);
    }
    sum_partial_gradients(model);
    if (has_tied_copy(model) && !table_first) reduce_tied_table();
    const bool offloaded = strategy_.data_parallelism.offload_optimizer;
    if (offloaded)
      for (Reduction& reduction : reductions) copy_to_host(reduction);
    reduce_norm();
    update();
    returned_ = updated_;
    if (offloaded)
      for (const Reduction& reduction : reductions) update_on_host(reduction);
    const bool gathers = strategy_.zero == 1 || strategy_.zero == 2;
    if (gathers && !strategy_.data_parallelism.overlap_gather)
      for (const Reduction& reduction : reductions) gather(reduction);
  }

 private:
  PipelineRankId device(StageId stage) const {
    return pass_.placement.device_of_stage[stage.index()];
  }

  /// In the order in which gradients become complete. Parts with unsplit passes reduce all dense,
  /// then all expert gradients.
  std::vector<Reduction> list_reductions() const {
    std::vector<Reduction> list;
    for (int part = 0; part < part_count(pass_.placement); ++part) {
      const auto index = static_cast<std::size_t>(part);
      const LocalParameters& local = pass_.parameters[index].local;
      const bool cut = !pass_.units[index].units.empty() &&
                       (strategy_.data_parallelism.buckets.rule != BucketRule::kNone ||
                        strategy_.data_parallelism.offload_optimizer);
      if (cut) {
        for (const GradientBucket& bucket : pass_.units[index].buckets)
          list.push_back(
              reduction_of({part, bucket.expert, bucket.first, bucket.count}, bucket.unit));
      } else {
        if (local.dense > 0) list.push_back(reduction_of({part, false, 0, local.dense}, 0));
        if (local.expert > 0) list.push_back(reduction_of({part, true, 0, local.expert}, 0));
      }
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const Reduction& a, const Reduction& b) { return a.last() < b.last(); });
    return list;
  }

  Reduction reduction_of(const ParameterRange& range, int unit) const {
    Reduction made{.range = range, .stages = {}, .after = {}};
    for (std::size_t s = 0; s < pass_.placement.part_of_stage.size(); ++s) {
      if (pass_.placement.part_of_stage[s] != range.part) continue;
      made.stages.emplace_back(s);
      const std::vector<std::int32_t>& completes = pipeline_.completes_unit[s];
      made.after.push_back(completes.empty() ? last_backward_of(StageId(s)).value
                                             : completes[static_cast<std::size_t>(unit)]);
    }
    return made;
  }

  /// Without buckets nothing overlaps: a rank communicates the gradients of all its chunks after
  /// its last backward pass (Megatron-LM without --overlap-grad-reduce: finalize_model_grads).
  TaskId last_backward_of(StageId stage) const {
    const bool overlaps =
        strategy_.zero >= 2 || strategy_.data_parallelism.buckets.rule != BucketRule::kNone;
    return TaskId(!overlaps ? pipeline_.last_of_device[device(stage).index()]
                            : pipeline_.last_of_stage[stage.index()]);
  }

  bool has_tied_copy(const ModelGraph& model) const {
    return model.tied_embeddings && pass_.parameters.back().tied_copy > 0;
  }
  /// Dense gradients of the first and the last model part.
  bool may_hold_table(const Reduction& reduction) const {
    const int part = reduction.range.part;
    return !reduction.range.expert && (part == 0 || part + 1 == part_count(pass_.placement));
  }

  void reduce(Reduction& reduction) {
    const std::vector<DataExchange> exchanges =
        reduce_exchanges(reduction.range, strategy_, pass_.groups,
                         {.copies = static_cast<int>(reduction.stages.size())});
    append(reduction, exchanges, [&](std::size_t i) { return TaskId(reduction.after[i]); });
    if (exchanges.empty()) return;
    for (std::size_t i = 0; i < reduction.stages.size(); ++i)
      reduction.after[i] = ready_[device(reduction.stages[i]).index()].value;
  }

  // ---- optimizer state in host memory ----

  /// Number of parameters of the range that one rank updates.
  std::int64_t share_of(const Reduction& reduction) const {
    if (strategy_.zero == 0) return reduction.range.count;
    const DataGroups groups = data_groups_of(strategy_, pass_.groups, reduction.range.expert);
    const auto ranks =
        static_cast<std::int64_t>(reduction.stages.size()) * groups.shard.shape.ranks;
    return divide_up(reduction.range.count, ranks);
  }

  TaskId copy(const Reduction& reduction, std::size_t i, CollectiveKind kind, TaskId after) {
    const bool to_host = kind == CollectiveKind::kCopyToHost;
    Collective collective;
    collective.kind = kind;
    collective.bytes =
        (to_host ? Bytes(gradient_bytes(strategy_)) : stored_element(strategy_.dtype)) *
        share_of(reduction);
    collective.parameters = reduction.range;
    Task task;
    task.work = append_collective_work(collective);
    task.rank = device(reduction.stages[i]).value;
    task.microbatch = -1;
    task.stage = static_cast<std::int16_t>(reduction.stages[i].value);
    task.stream = to_host ? Stream::kToHost : Stream::kFromHost;
    open_collective(folded_, {});
    return append_member(folded_, task, {&after, 1});
  }

  void copy_to_host(Reduction& reduction) {
    copied_.resize(ready_.size(), TaskId(-1));
    for (std::size_t i = 0; i < reduction.stages.size(); ++i) {
      const TaskId copied =
          copy(reduction, i, CollectiveKind::kCopyToHost, TaskId(reduction.after[i]));
      reduction.after[i] = copied.value;
      copied_[device(reduction.stages[i]).index()] = copied;
    }
  }

  /// The CPU waits for the norm and the gradients; then the updated values are copied back.
  void update_on_host(const Reduction& reduction) {
    for (std::size_t i = 0; i < reduction.stages.size(); ++i) {
      const std::size_t d = device(reduction.stages[i]).index();
      const std::array<TaskId, 2> after{TaskId(reduction.after[i]), updated_[d]};
      Task task;
      task.work =
          append_work(graph_, host_optimizer_work(strategy_, share_of(reduction), graph_.parts));
      task.rank = static_cast<std::int32_t>(d);
      task.microbatch = -1;
      task.stage = static_cast<std::int16_t>(reduction.stages[i].value);
      task.kind = TaskKind::kOptimizer;
      task.stream = Stream::kHost;
      const TaskId done = append_task(graph_, task, after);
      returned_[d] = copy(reduction, i, CollectiveKind::kCopyFromHost, done);
    }
  }

  /// Each member waits for its optimizer.
  void gather(const Reduction& reduction) {
    append(reduction,
           gather_exchanges(reduction.range, strategy_, pass_,
                            static_cast<int>(reduction.stages.size())),
           [&](std::size_t i) { return returned_[device(reduction.stages[i]).index()]; });
  }

  template <class After>
  void append(const Reduction& reduction, const std::vector<DataExchange>& exchanges, After after) {
    for (const DataExchange& exchange : exchanges) {
      const WorkId work = append_collective_work(exchange.collective);
      open_collective(folded_, exchange.spread);
      for (std::size_t i = 0; i < reduction.stages.size(); ++i)
        append_to(work, reduction.stages[i], after(i));
    }
  }

  WorkId append_collective_work(const Collective& collective) {
    Work work;
    work.kind = TaskKind::kCollective;
    work.collective = collective;
    return append_work(graph_, std::move(work));
  }

  void append_to(WorkId work, StageId stage, TaskId after) {
    Task task;
    task.work = work;
    task.rank = device(stage).value;
    task.microbatch = -1;
    task.stage = static_cast<std::int16_t>(stage.value);
    task.stream = Stream::kData;
    ready_[device(stage).index()] = append_member(folded_, task, {&after, 1});
  }

  /// Reduces over tensor ranks that each hold a partial sum; see PartialGradients. Megatron-LM does
  /// this at the same point (finalize_model_grads).
  void sum_partial_gradients(const ModelGraph& model) {
    const std::int64_t stride = pass_.groups.tensor_stride;
    for (std::size_t s = 0; s < pass_.placement.part_of_stage.size(); ++s) {
      const auto part = static_cast<std::size_t>(pass_.placement.part_of_stage[s]);
      const PartialGradients& partial = pass_.parameters[part].partial;
      if (partial.over_tensor > 0)
        sum_over_tensor(StageId(s), partial.over_tensor, pass_.groups.tensor,
                        {.stride = stride, .count = strategy_.degrees.tensor});
      if (partial.over_copies == 0) continue;
      const int copies = strategy_.degrees.tensor / *traits_of(model).key_value_heads;
      const GroupShape shape = group_shape_of({.count = copies,
                                               .stride = rank_stride(pass_.groups, stride),
                                               .job_ranks = pass_.groups.all.ranks,
                                               .devices_per_node = pass_.groups.devices_per_node});
      sum_over_tensor(StageId(s), partial.over_copies, shape, {.stride = stride, .count = copies});
    }
  }

  void sum_over_tensor(StageId stage, std::int64_t elements, const GroupShape& shape,
                       const CollectiveSpread& spread) {
    const WorkId work =
        append_collective_work({CollectiveKind::kAllReduce, Axis::kTensor,
                                Bytes(gradient_bytes(strategy_)) * elements, shape});
    open_collective(folded_, spread);
    append_to(work, stage, last_backward_of(stage));
  }

  /// Embedding and head on different devices hold copies of one table and sum its gradients; under
  /// ZeRO 2 and 3 each sums the same shard.
  void reduce_tied_table() {
    const std::int64_t shares =
        strategy_.zero >= 2 ? data_groups_of(strategy_, pass_.groups, false).shard.shape.ranks : 1;
    const std::int64_t elements = divide_up(pass_.parameters.back().tied_copy, shares);
    const std::vector<StageId>& route = pass_.placement.routes.front();
    const std::vector<StageId> ends{route.front(), route.back()};
    const std::int64_t distance =
        std::abs(device(ends[1]).value - device(ends[0]).value) * pass_.groups.pipeline_stride;
    const GroupShape shape =
        group_shape_of({.count = 2,
                        .stride = distance,
                        .job_ranks = pass_.placement.devices * pass_.groups.stage_ranks,
                        .devices_per_node = pass_.groups.devices_per_node});
    const WorkId work =
        append_collective_work({CollectiveKind::kAllReduce, Axis::kPipeline,
                                Bytes(gradient_bytes(strategy_)) * elements, shape});
    open_collective(folded_, {});
    for (const StageId stage : ends) append_to(work, stage, last_backward_of(stage));
  }

  /// Clipping needs the global gradient norm, so no rank can update before the slowest one. Members
  /// without gradients to reduce join after their last backward pass.
  void reduce_norm() {
    if (pass_.groups.all.ranks == 1) return;
    const WorkId work = append_collective_work(
        {CollectiveKind::kAllReduce, Axis::kData, Bytes(kFloat32Bytes), pass_.groups.all});
    open_collective(folded_, {.stride = 1, .count = pass_.groups.stage_ranks});
    for (std::size_t d = 0; d < ready_.size(); ++d) {
      Task task;
      task.work = work;
      task.rank = static_cast<std::int32_t>(d);
      task.microbatch = -1;
      task.stage = -1;
      task.stream = Stream::kData;
      const TaskId after(pipeline_.last_of_device[d]);
      ready_[d] = append_member(folded_, task, {&after, 1});
    }
  }

  void update() {
    updated_.assign(ready_.size(), TaskId(-1));
    for (std::size_t d = 0; d < ready_.size(); ++d) {
      Task task;
      task.work =
          append_work(graph_, optimizer_work(pass_, strategy_, PipelineRankId(d), graph_.parts));
      if (!pass_.groups.kind_of_position.empty())
        graph_.works[task.work.index()].node_kind = pass_.groups.kind_of_position[d];
      task.rank = static_cast<std::int32_t>(d);
      task.microbatch = -1;
      task.stage = -1;
      task.kind = TaskKind::kOptimizer;
      std::vector<TaskId> after;
      if (ready_[d].value >= 0) after.push_back(ready_[d]);
      if (!copied_.empty()) after.push_back(copied_[d]);  // before gradients are cleared
      updated_[d] = append_task(graph_, task, after);
    }
  }

  const StagesPass& pass_;
  const Strategy& strategy_;
  const PipelineTasks& pipeline_;
  FoldedGraph& folded_;
  TaskGraph& graph_;
  std::vector<TaskId> ready_;     ///< by device: its last collective so far
  std::vector<TaskId> updated_;   ///< by device: its optimizer task
  std::vector<TaskId> returned_;  ///< by device: the copy of its updated parameters from the host
  std::vector<TaskId> copied_;    ///< by device: its last copy of gradients to the host
};

}  // namespace

void append_step_end(const StagesPass& pass, const Plan& plan, const ModelGraph& model,
                     const PipelineTasks& pipeline, FoldedGraph& folded) {
  StepEnd(pass, plan, pipeline, folded).run(model);
}

}  // namespace meshwright
