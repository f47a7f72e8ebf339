#include "executor/tasks/sharded_lifetimes.hpp"

#include <algorithm>
#include <tuple>

#include "executor/tasks/runnable_graph.hpp"

namespace meshwright {
namespace {

constexpr int kMostLayers = 1 << 16;  ///< of a model

/// Whether the task is a collective of weights or gradients for one pass of some layers.
bool is_of_pass(const Task& task, const Collective& collective) {
  return task.kind == TaskKind::kCollective && collective.axis == Axis::kData &&
         collective.parameters.part >= 0 && task.microbatch >= 0;
}

/// The gathers among `tasks`, in their order. A ring of the second half of rounds may also end an
/// all-reduce across shard groups, which is of a part of what starts at the same parameter.
std::vector<TaskId> gathers_among(const TaskGraph& graph, const std::vector<TaskId>& tasks) {
  const auto collective_of = [&](TaskId id) -> const Collective& {
    return graph.works[graph.tasks[id.index()].work.index()].collective;
  };
  using Start = std::tuple<std::int32_t, bool, std::int64_t>;
  const auto start_of = [](const ParameterRange& r) { return Start(r.part, r.expert, r.first); };
  std::map<Start, std::int64_t> largest;
  for (const TaskId id : tasks) {
    const Collective& collective = collective_of(id);
    if (!is_of_pass(graph.tasks[id.index()], collective)) continue;
    std::int64_t& count = largest[start_of(collective.parameters)];
    count = std::max(count, collective.parameters.count);
  }
  std::vector<TaskId> gathers;
  for (const TaskId id : tasks) {
    const Collective& c = collective_of(id);
    if (!is_of_pass(graph.tasks[id.index()], c)) continue;
    const bool is_second_half = c.kind == CollectiveKind::kRingExchange &&
                                c.first_round >= c.group.ranks - 1 &&
                                c.parameters.count == largest[start_of(c.parameters)];
    if (c.kind == CollectiveKind::kAllGather || is_second_half) gathers.push_back(id);
  }
  return gathers;
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

/// Gathers are in the order of the passes that need them, and a pass depends on its last ones.
GatheredWeights::GatheredWeights(const RunnableGraph& runnable, std::vector<TaskId> tasks) {
  const TaskGraph& graph = runnable.graph();
  std::sort(tasks.begin(), tasks.end());
  const std::vector<TaskId> gathers = gathers_among(graph, tasks);
  std::size_t next = 0;      // gather: those before it are of passes so far
  std::map<int, Held> held;  // by use
  const auto close = [&](Held& of) {
    if (!of.pieces.empty()) last_used_[of.last.value] = std::move(of.pieces);
    of.pieces.clear();
  };
  for (const TaskId id : tasks) {
    const Task& task = graph.tasks[id.index()];
    if (!needs_weights(task.kind)) continue;
    const int use = task.stage * kMostLayers + runnable.lowest_layer(task).value;
    Held& mine = held[use];
    TaskId last(-1);
    for (const TaskId before : graph.dependencies_of(id))
      if (std::binary_search(gathers.begin(), gathers.end(), before)) last = std::max(last, before);
    if (last.value >= 0) close(mine);
    for (; next < gathers.size() && gathers[next] <= last; ++next) {
      const TaskId gather = gathers[next];
      gathers_[gather.value] = {use, id};
      const Work& work = graph.works[graph.tasks[gather.index()].work.index()];
      const ParameterRange& range = work.collective.parameters;
      const bool is_known = std::any_of(mine.pieces.begin(), mine.pieces.end(),
                                        [&](const Piece& p) { return p.range == range; });
      if (!is_known) mine.pieces.push_back({range, use});  // the rounds of a ring share one range
    }
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
    const Collective& collective = graph.works[task.work.index()].collective;
    if (!is_of_pass(task, collective)) continue;
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
  const auto found = gathers_.find(gather.value);
  return found == gathers_.end() ? -1 : found->second.use;
}

TaskId GatheredWeights::pass_of(TaskId gather) const {
  const auto found = gathers_.find(gather.value);
  return found == gathers_.end() ? TaskId(-1) : found->second.pass;
}

std::span<const GatheredWeights::Piece> GatheredWeights::last_used_by(TaskId pass) const {
  const auto found = last_used_.find(pass.value);
  if (found == last_used_.end()) return {};
  return found->second;
}

}  // namespace meshwright
