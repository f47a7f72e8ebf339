#include "core/lowering/lower.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/lowering/data_groups.hpp"
#include "core/lowering/one_process.hpp"
#include "core/lowering/output_layer.hpp"
#include "core/lowering/parameter_server.hpp"
#include "core/lowering/schedule.hpp"
#include "core/lowering/stages.hpp"
#include "core/lowering/step_end.hpp"
#include "core/lowering/unfold.hpp"
#include "core/plan/job_groups.hpp"
#include "core/plan/weight_versions.hpp"

namespace meshwright {
namespace {

std::vector<RankInfo> ranks_of(const StagesPass& pass, const Strategy& strategy,
                               std::int64_t replicas) {
  const std::int64_t stage_ranks = pass.groups.stage_ranks;
  std::vector<RankInfo> ranks;
  ranks.reserve(static_cast<std::size_t>(pass.placement.devices * replicas));
  for (int d = 0; d < pass.placement.devices; ++d)
    for (std::int64_t replica = 0; replica < replicas; ++replica) {
      RankInfo info;
      info.rank = RankId(static_cast<std::int32_t>(rank_of(pass.groups, d, replica)));
      info.coordinate =
          coordinate_of(strategy.degrees, info.rank, strategy.model_parallelism.order);
      info.device = DeviceId(info.rank.value);  // ranks fill the devices in order
      info.multiplicity = static_cast<std::int32_t>(stage_ranks / replicas);
      info.resident = pass.lowered.resident[static_cast<std::size_t>(d)];
      info.allocator_slack = pass.trainer_memory.allocator_slack;
      ranks.push_back(info);
    }
  return ranks;
}

/// In our executor, input-gradient passes also compute the gradients of norms and sinks. If
/// gradients are sharded, these stay unsharded until the weight-gradient pass allocates its
/// buffers.
void keep_gradients_apart(const Strategy& strategy, const Schedule& schedule, StagesPass& pass) {
  if (strategy.zero < 2 || data_groups_of(strategy, pass.groups, false).shard.shape.ranks == 1)
    return;
  const auto is_split = [](const Action& action) { return action.pass == Pass::kBackwardInput; };
  for (std::size_t s = 0; s < pass.placement.device_of_stage.size(); ++s) {
    const std::size_t device = pass.placement.device_of_stage[s].index();
    const auto& order = schedule.orders[device];
    if (std::none_of(order.begin(), order.end(), is_split)) continue;
    const auto part = static_cast<std::size_t>(pass.placement.part_of_stage[s]);
    pass.lowered.resident[device][MemoryClass::kGradients] +=
        Bytes(pass.parameters[part].gradients_with_inputs * gradient_bytes(strategy));
  }
}

}  // namespace

TaskGraph lower(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                const LoweringOptions& options) {
  if (auto found = check_plan(plan, model, cluster); !found.empty())
    throw InputError(std::move(found));
  StagesPass pass = lower_stages_pass(plan, model, cluster, options.memory);
  const Strategy& strategy = plan.strategy;
  Schedule schedule = schedule_to_lower(plan, options.steps);
  if (schedule.output_barriers > 0 && plan.orders.empty())
    schedule = order_by_estimated_times(pass, strategy, device_of(cluster, DeviceId(0)));
  MW_CHECK(schedule.placement == pass.placement);

  const DataParallelKind kind = strategy.data_parallelism.kind;
  if (kind == DataParallelKind::kOneProcess)
    return lower_one_process(pass, plan, model, options.ranks);
  if (kind == DataParallelKind::kParameterServer || kind == DataParallelKind::kAsyncParameterServer)
    return lower_parameter_server(pass, plan, schedule, device_of(cluster, DeviceId(0)),
                                  options.ranks);

  if (device_of(cluster, DeviceId(0)).kernels == KernelLibrary::kOwn)
    keep_gradients_apart(strategy, schedule, pass);
  FoldedGraph folded;
  folded.graph.dependency_begin.push_back(0);
  folded.graph.works = pass.lowered.works;
  folded.graph.parts = std::move(pass.lowered.parts);
  const PipelineTasks pipeline = append_pipeline_tasks(pass, strategy, schedule, folded);
  if (!updates_without_flush(strategy)) append_step_end(pass, plan, model, pipeline, folded);

  const std::int64_t replicas = options.ranks == RankSet::kAll ? pass.groups.stage_ranks : 1;
  TaskGraph graph = replicas > 1 ? unfold(folded, replicas) : std::move(folded.graph);
  graph.ranks = ranks_of(pass, strategy, replicas);
  return graph;
}

}  // namespace meshwright
