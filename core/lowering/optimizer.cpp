// The gradient norm and the update of the parameters, on the devices or, with optimizer state in
// host memory, on the CPU.
#include <array>

#include "core/lowering/memory.hpp"
#include "core/lowering/passes.hpp"

namespace meshwright {
namespace {

class ParameterUpdate {
 public:
  explicit ParameterUpdate(LoweringContext& context)
      : context_(context), strategy_(context.strategy), end_(context.step_end) {}

  void run() {
    const bool offloaded = strategy_.data_parallelism.offload_optimizer;
    if (offloaded)
      for (GradientReduction& reduction : end_.reductions) copy_to_host(reduction);
    reduce_norm();
    update();
    if (!offloaded) return;
    const std::vector<TaskId> on_devices = end_.updated;
    for (const GradientReduction& reduction : end_.reductions)
      update_on_host(reduction, on_devices);
  }

 private:
  PipelineRankId device(StageId stage) const { return device_of(context_, stage); }

  /// Number of parameters of the range that one rank updates.
  std::int64_t share_of(const GradientReduction& reduction) const {
    if (strategy_.zero == 0) return reduction.range.count;
    const DataGroups groups = data_groups_of(strategy_, context_.groups, reduction.range.expert);
    const auto ranks =
        static_cast<std::int64_t>(reduction.stages.size()) * groups.shard.shape.ranks;
    return divide_up(reduction.range.count, ranks);
  }

  TaskId copy(const GradientReduction& reduction, std::size_t i, CollectiveKind kind,
              TaskId after) {
    const bool to_host = kind == CollectiveKind::kCopyToHost;
    Collective collective;
    collective.kind = kind;
    collective.bytes =
        (to_host ? Bytes(gradient_bytes(strategy_)) : stored_element(strategy_.dtype)) *
        share_of(reduction);
    collective.parameters = reduction.range;
    Task task;
    task.work = append_collective_work(context_.graph(), collective);
    task.rank = device(reduction.stages[i]).value;
    task.microbatch = -1;
    task.stage = static_cast<std::int16_t>(reduction.stages[i].value);
    task.stream = to_host ? Stream::kToHost : Stream::kFromHost;
    open_collective(context_.folded, {});
    return append_member(context_.folded, task, {&after, 1});
  }

  void copy_to_host(GradientReduction& reduction) {
    end_.copied.resize(end_.ready.size(), TaskId(-1));
    for (std::size_t i = 0; i < reduction.stages.size(); ++i) {
      const TaskId copied =
          copy(reduction, i, CollectiveKind::kCopyToHost, TaskId(reduction.after[i]));
      reduction.after[i] = copied.value;
      end_.copied[device(reduction.stages[i]).index()] = copied;
    }
  }

  /// Clipping needs the global gradient norm, so no rank can update before the slowest one. Members
  /// without gradients to reduce join after their last backward pass.
  void reduce_norm() {
    if (context_.groups.all.ranks == 1) return;
    const WorkId work = append_collective_work(
        context_.graph(),
        {CollectiveKind::kAllReduce, Axis::kData, Bytes(kFloat32Bytes), context_.groups.all});
    open_collective(context_.folded, {.stride = 1, .count = context_.groups.stage_ranks});
    for (std::size_t d = 0; d < end_.ready.size(); ++d) {
      Task task;
      task.work = work;
      task.rank = static_cast<std::int32_t>(d);
      task.microbatch = -1;
      task.stage = -1;
      task.stream = Stream::kData;
      const TaskId after(context_.pipeline.last_of_device[d]);
      end_.ready[d] = append_member(context_.folded, task, {&after, 1});
    }
  }

  void update() {
    TaskGraph& graph = context_.graph();
    end_.updated.assign(end_.ready.size(), TaskId(-1));
    for (std::size_t d = 0; d < end_.ready.size(); ++d) {
      Task task;
      task.work =
          append_work(graph, optimizer_work(context_, strategy_, PipelineRankId(d), graph.parts));
      if (!context_.groups.kind_of_position.empty())
        graph.works[task.work.index()].node_kind = context_.groups.kind_of_position[d];
      task.rank = static_cast<std::int32_t>(d);
      task.microbatch = -1;
      task.stage = -1;
      task.kind = TaskKind::kOptimizer;
      std::vector<TaskId> after;
      if (end_.ready[d].value >= 0) after.push_back(end_.ready[d]);
      if (!end_.copied.empty()) after.push_back(end_.copied[d]);  // before gradients are cleared
      end_.updated[d] = append_task(graph, task, after);
    }
  }

  /// The CPU waits for the norm and the gradients; then the updated values are copied back.
  void update_on_host(const GradientReduction& reduction, const std::vector<TaskId>& on_devices) {
    TaskGraph& graph = context_.graph();
    for (std::size_t i = 0; i < reduction.stages.size(); ++i) {
      const std::size_t d = device(reduction.stages[i]).index();
      const std::array<TaskId, 2> after{TaskId(reduction.after[i]), on_devices[d]};
      Task task;
      task.work =
          append_work(graph, host_optimizer_work(strategy_, share_of(reduction), graph.parts));
      task.rank = static_cast<std::int32_t>(d);
      task.microbatch = -1;
      task.stage = static_cast<std::int16_t>(reduction.stages[i].value);
      task.kind = TaskKind::kOptimizer;
      task.stream = Stream::kHost;
      const TaskId done = append_task(graph, task, after);
      end_.updated[d] = copy(reduction, i, CollectiveKind::kCopyFromHost, done);
    }
  }

  LoweringContext& context_;
  const Strategy& strategy_;
  StepEnd& end_;
};

}  // namespace

void update_parameters(LoweringContext& context) {
  if (has_step_end(context)) ParameterUpdate(context).run();
}

}  // namespace meshwright
