#include "executor/tasks/sharded_lifetimes.hpp"

#include <algorithm>

#include "executor/tasks/runnable_graph.hpp"

namespace meshwright {
namespace {

constexpr int kMostLayers = 1 << 16;  ///< of a model

/// Whether the task gathers weights for one pass of some layers.
bool is_gather(const Task& task) {
  return task.kind == TaskKind::kCollective && task.stream == Stream::kParameters &&
         task.microbatch >= 0;
}
bool needs_weights(TaskKind kind) {
  return kind == TaskKind::kForward || kind == TaskKind::kBackward ||
         kind == TaskKind::kBackwardInput;
}

/// The gathered weights of one use, and the last pass so far that used them.
struct Held {
  std::vector<GatheredWeights::Piece> pieces;
  TaskId last{-1};
};

}  // namespace

std::vector<TaskId> with_prefetched_gathers(const TaskGraph& graph, std::span<const TaskId> tasks) {
  std::vector<TaskId> order;
  std::map<std::int32_t, std::vector<TaskId>> after;  // gathers by the task they wait for
  for (const TaskId id : tasks) {
    if (!is_gather(graph.tasks[id.index()])) continue;
    const std::span<const TaskId> before = graph.dependencies_of(id);
    if (before.empty())
      order.push_back(id);
    else
      after[before.back().value].push_back(id);
  }
  for (const TaskId id : tasks) {
    if (is_gather(graph.tasks[id.index()])) continue;
    order.push_back(id);
    if (const auto found = after.find(id.value); found != after.end())
      order.insert(order.end(), found->second.begin(), found->second.end());
  }
  return order;
}

/// In graph order the gathers of a pass come before it.
GatheredWeights::GatheredWeights(const RunnableGraph& runnable, RankId rank) {
  const TaskGraph& graph = runnable.graph();
  std::vector<TaskId> tasks = runnable.tasks_of(rank);
  std::sort(tasks.begin(), tasks.end());
  std::map<int, Held> held;  // by use
  std::vector<TaskId> gathers;
  const auto close = [&](Held& of) {
    if (!of.pieces.empty()) last_used_[of.last.value] = std::move(of.pieces);
    of.pieces.clear();
  };
  for (const TaskId id : tasks) {
    const Task& task = graph.tasks[id.index()];
    if (is_gather(task)) gathers.push_back(id);
    if (!needs_weights(task.kind)) continue;
    const int use = task.stage * kMostLayers + runnable.lowest_layer(task).value;
    Held& mine = held[use];
    if (!gathers.empty()) close(mine);
    for (const TaskId gather : gathers) {
      use_of_gather_[gather.value] = use;
      const Work& work = graph.works[graph.tasks[gather.index()].work.index()];
      const ParameterRange& range = work.collective.parameters;
      const bool is_known = std::any_of(mine.pieces.begin(), mine.pieces.end(),
                                        [&](const Piece& p) { return p.range == range; });
      if (!is_known) mine.pieces.push_back({range, use});  // the rounds of a ring share one range
    }
    gathers.clear();
    mine.last = id;
  }
  for (auto& [use, of] : held) close(of);
}

std::map<std::int32_t, std::vector<ParameterRange>> reduced_after(const RunnableGraph& runnable,
                                                                  RankId rank) {
  const TaskGraph& graph = runnable.graph();
  std::map<std::int32_t, std::vector<ParameterRange>> reduced;
  for (const TaskId id : runnable.tasks_of(rank)) {
    const Task& task = graph.tasks[id.index()];
    if (task.kind != TaskKind::kCollective || task.stream != Stream::kData || task.microbatch < 0)
      continue;
    const Collective& collective = graph.works[task.work.index()].collective;
    const bool reduces =
        collective.kind == CollectiveKind::kReduceScatter ||
        (collective.kind == CollectiveKind::kRingExchange && collective.first_round == 0);
    for (const TaskId before : graph.dependencies_of(id)) {
      const TaskKind kind = graph.tasks[before.index()].kind;
      if (reduces && (kind == TaskKind::kBackward || kind == TaskKind::kBackwardWeight))
        reduced[before.value].push_back(collective.parameters);
    }
  }
  return reduced;
}

int GatheredWeights::use_of(TaskId gather) const {
  const auto found = use_of_gather_.find(gather.value);
  return found == use_of_gather_.end() ? -1 : found->second;
}

std::span<const GatheredWeights::Piece> GatheredWeights::last_used_by(TaskId pass) const {
  const auto found = last_used_.find(pass.value);
  if (found == last_used_.end()) return {};
  return found->second;
}

}  // namespace meshwright
