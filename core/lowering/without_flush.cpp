// Updates between the passes of flushless schedules (core/plan/weight_versions.hpp). After the
// backward pass that completes a batch of a stage, its gradients are reduced over the ranks that
// hold the stage, and its optimizer runs on the compute stream before the device's next forward
// pass. The weight version of a micro-batch therefore depends on the order only, never on times.
#include "core/lowering/without_flush.hpp"

#include <vector>

#include "core/base/check.hpp"
#include "core/lowering/data_groups.hpp"
#include "core/lowering/memory.hpp"
#include "core/lowering/stages.hpp"
#include "core/lowering/unfold.hpp"
#include "core/plan/weight_versions.hpp"

namespace meshwright {

/// Data shared by all updates of one stage.
struct UpdatesWithoutFlush::Stage {
  WeightVersions versions;
  std::vector<WorkId> reductions;
  std::vector<CollectiveSpread> spreads;  ///< of the reductions
  WorkId update{-1};
};

UpdatesWithoutFlush::UpdatesWithoutFlush(const StagesPass& pass, const Strategy& strategy,
                                         FoldedGraph& folded)
    : folded_(folded) {
  MW_CHECK(pass.placement.routes.size() == 1);
  TaskGraph& graph = folded.graph;
  for (std::size_t s = 0; s < pass.placement.device_of_stage.size(); ++s) {
    const PipelineRankId device = pass.placement.device_of_stage[s];
    const int part = pass.placement.part_of_stage[s];
    const std::int64_t parameters = pass.parameters[static_cast<std::size_t>(part)].local.dense;
    Stage stage;
    stage.versions = weight_versions_of(strategy, device);
    for (const DataExchange& exchange :
         reduce_exchanges({part, false, 0, parameters}, strategy, pass.groups, {})) {
      Work work;
      work.kind = TaskKind::kCollective;
      work.collective = exchange.collective;
      stage.reductions.push_back(append_work(graph, std::move(work)));
      stage.spreads.push_back(exchange.spread);
    }
    stage.update = append_work(graph, optimizer_work(pass, strategy, device, graph.parts));
    if (!pass.groups.kind_of_position.empty())
      graph.works[stage.update.index()].node_kind = pass.groups.kind_of_position[device.index()];
    stages_.push_back(std::move(stage));
  }
}

UpdatesWithoutFlush::~UpdatesWithoutFlush() = default;

void UpdatesWithoutFlush::append_behind(const Action& backward, int device, TaskId done) {
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
