#include "core/lower.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "core/check.hpp"
#include "core/lower_passes.hpp"

namespace meshwright {
namespace {

std::vector<RankInfo> ranks_of(const StagesPass& pass, const ParallelDegrees& degrees,
                               std::int64_t replicas) {
  const std::int64_t stage_ranks = pass.groups.stage_ranks;
  std::vector<RankInfo> ranks;
  ranks.reserve(static_cast<std::size_t>(pass.placement.devices * replicas));
  for (int d = 0; d < pass.placement.devices; ++d)
    for (std::int64_t replica = 0; replica < replicas; ++replica) {
      RankInfo info;
      info.rank = RankId(static_cast<std::int32_t>(d * stage_ranks + replica));
      info.coordinate = coordinate_of(degrees, info.rank);
      info.device = DeviceId(info.rank.value);  // ranks fill the devices in order
      info.multiplicity = static_cast<std::int32_t>(stage_ranks / replicas);
      info.resident = pass.lowered.resident[static_cast<std::size_t>(d)];
      ranks.push_back(info);
    }
  return ranks;
}

/// Turns one pipeline's tasks into those of `replicas` pipelines that do not know of each other.
void replicate(std::int64_t replicas, TaskGraph& graph) {
  const std::size_t tasks = graph.tasks.size(), edges = graph.dependencies.size();
  const auto copies = static_cast<std::size_t>(replicas);
  const std::size_t tail = 8 * graph.ranks.size();
  graph.tasks.reserve(tasks * copies + tail);
  graph.dependency_begin.reserve(tasks * copies + tail + 1);
  graph.dependencies.reserve(edges * copies + tail);
  for (std::size_t r = 1; r < copies; ++r) {
    const auto task_shift = static_cast<std::int32_t>(r * tasks);
    const auto edge_shift = static_cast<std::int32_t>(r * edges);
    for (std::size_t t = 0; t < tasks; ++t) {
      Task task = graph.tasks[t];
      task.rank = static_cast<std::int32_t>(task.rank * replicas + static_cast<std::int64_t>(r));
      if (task.partner >= 0) task.partner += task_shift;
      graph.tasks.push_back(task);
      graph.dependency_begin.push_back(graph.dependency_begin[t + 1] + edge_shift);
    }
    for (std::size_t e = 0; e < edges; ++e)
      graph.dependencies.push_back(TaskId(graph.dependencies[e].value + task_shift));
  }
  for (std::size_t t = 0; t < tasks; ++t)
    graph.tasks[t].rank = static_cast<std::int32_t>(graph.tasks[t].rank * replicas);
}

void check_size(const TaskGraph& pipeline, std::int64_t replicas) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() / 2;
  const auto tasks = static_cast<std::int64_t>(pipeline.tasks.size());
  if (tasks <= kMost / replicas) return;
  throw InputError(Diagnostic{
      "--all-ranks",
      fmt::format("{} pipelines of {} tasks are more than the {} tasks that a graph "
                  "can hold",
                  replicas, tasks, kMost),
      "lower one representative per pipeline position instead: it gives the same step time"});
}

}  // namespace

TaskGraph lower(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                const LoweringOptions& options) {
  if (auto found = check_plan(plan, model, cluster); !found.empty())
    throw InputError(std::move(found));
  StagesPass pass = lower_stages_pass(plan, model, cluster);
  const Strategy& strategy = plan.strategy;
  const ScheduleRule* rule = find_schedule_rule(strategy.schedule);
  MW_CHECK(rule != nullptr);
  const Schedule schedule = rule->generate(schedule_request_of(strategy));
  MW_CHECK(schedule.placement == pass.placement);

  TaskGraph graph;
  graph.dependency_begin.push_back(0);
  graph.works = pass.lowered.works;
  graph.parts = std::move(pass.lowered.parts);
  const PipelineTasks pipeline = append_pipeline_tasks(pass, schedule, graph);

  const bool all = options.ranks == RankSet::kAll;
  const Replication replication{
      .replicas = all ? pass.groups.stage_ranks : 1,
      .tasks_per_pipeline = static_cast<std::int64_t>(graph.tasks.size())};
  check_size(graph, replication.replicas);
  graph.ranks = ranks_of(pass, strategy.degrees, replication.replicas);
  if (replication.replicas > 1) replicate(replication.replicas, graph);
  append_step_end(pass, plan, model, pipeline, replication, graph);
  return graph;
}

}  // namespace meshwright
