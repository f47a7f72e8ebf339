// Updates between the passes of flushless schedules (core/plan/weight_versions.hpp). After the
// backward pass that completes a batch of a stage, its gradients are reduced over the ranks that
// hold the stage, and its optimizer runs on the compute stream before the device's next forward
// pass. The weight version of a micro-batch therefore depends on the order only, never on times.
#include "core/lowering/without_flush.hpp"

#include <vector>

#include "core/base/check.hpp"
#include "core/lowering/lowering_context.hpp"
#include "core/lowering/memory.hpp"
#include "core/plan/weight_versions.hpp"

namespace meshwright {

/// Data shared by all updates of one stage.
struct UpdatesWithoutFlush::Stage {
  WeightVersions versions;
  std::vector<WorkId> reductions;
  std::vector<CollectiveSpread> spreads;  ///< of the reductions
  WorkId update{-1};
};

UpdatesWithoutFlush::UpdatesWithoutFlush(LoweringContext& context) : folded_(context.folded) {
  MW_CHECK(context.placement.routes.size() == 1);
  const Strategy& strategy = context.strategy;
  TaskGraph& graph = context.graph();
  for (std::size_t s = 0; s < context.placement.device_of_stage.size(); ++s) {
    const PipelineRankId device = context.placement.device_of_stage[s];
    const int part = context.placement.part_of_stage[s];
    const std::int64_t parameters = context.parameters[static_cast<std::size_t>(part)].local.dense;
    Stage stage;
    stage.versions = weight_versions_of(strategy, device);
    for (const DataExchange& exchange :
         reduce_exchanges({part, false, 0, parameters}, strategy, context.groups, {})) {
      stage.reductions.push_back(append_collective_work(graph, exchange.collective));
      stage.spreads.push_back(exchange.spread);
    }
    stage.update = append_work(graph, optimizer_work(context, strategy, device, graph.parts));
    if (!context.groups.kind_of_position.empty())
      graph.works[stage.update.index()].node_kind = context.groups.kind_of_position[device.index()];
    stages_.push_back(std::move(stage));
  }
}

UpdatesWithoutFlush::~UpdatesWithoutFlush() = default;

void UpdatesWithoutFlush::append_after(const Action& backward, int device, TaskId done) {
  const Stage& stage = stages_[backward.stage.index()];
  if (!stage.versions.completes_batch(backward.microbatch.value)) return;
  Task task;
  task.rank = device;
  task.microbatch = backward.microbatch.value;
  task.stage = static_cast<std::int16_t>(backward.stage.value);
  task.stream = Stream::kData;
  for (std::size_t i = 0; i < stage.reductions.size(); ++i) {
    task.work = stage.reductions[i];
    open_collective(folded_, stage.spreads[i]);
    done = append_member(folded_, task, {&done, 1});
  }
  task.work = stage.update;
  task.kind = TaskKind::kOptimizer;
  task.stream = Stream::kCompute;
  append_task(folded_.graph, task, {&done, 1});
}

}  // namespace meshwright
