#include "core/lowering/step_end.hpp"

#include "core/lowering/lowering_context.hpp"
#include "core/plan/weight_versions.hpp"

namespace meshwright {

bool has_step_end(const LoweringContext& context) {
  return reduces_among_replicas(context.strategy) && !updates_without_flush(context.strategy);
}

PipelineRankId device_of(const LoweringContext& context, StageId stage) {
  return context.placement.device_of_stage[stage.index()];
}

TaskId last_backward_of(const LoweringContext& context, StageId stage) {
  const bool overlaps = context.strategy.zero >= 2 ||
                        context.strategy.data_parallelism.buckets.rule != BucketRule::kNone;
  return TaskId(!overlaps ? context.pipeline.last_of_device[device_of(context, stage).index()]
                          : context.pipeline.last_of_stage[stage.index()]);
}

WorkId append_collective_work(TaskGraph& graph, const Collective& collective) {
  Work work;
  work.kind = TaskKind::kCollective;
  work.collective = collective;
  return append_work(graph, std::move(work));
}

void append_to_step_end(LoweringContext& context, WorkId work, StageId stage, TaskId after) {
  const PipelineRankId device = device_of(context, stage);
  Task task;
  task.work = work;
  task.rank = device.value;
  task.microbatch = -1;
  task.stage = static_cast<std::int16_t>(stage.value);
  task.stream = Stream::kData;
  context.step_end.ready[device.index()] = append_member(context.folded, task, {&after, 1});
}

void append_exchanges(LoweringContext& context, const GradientReduction& reduction,
                      const std::vector<DataExchange>& exchanges,
                      const std::vector<TaskId>& after) {
  std::vector<int> devices;
  for (const StageId stage : reduction.stages) devices.push_back(device_of(context, stage).value);
  for (const DataExchange& exchange : exchanges) {
    const WorkId work = append_collective_work(context.graph(), exchange.collective);
    context.graph().works[work.index()].node_kind = shared_kind_of(context.groups, devices);
    open_collective(context.folded, exchange.spread);
    for (std::size_t i = 0; i < reduction.stages.size(); ++i)
      append_to_step_end(context, work, reduction.stages[i], after[i]);
  }
}

}  // namespace meshwright
