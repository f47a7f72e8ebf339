#include "simulator/variation/all_ranks.hpp"

#include "simulator/engine/replica_classes.hpp"
#include "simulator/engine/shared_links.hpp"
#include "simulator/engine/simulate.hpp"

namespace meshwright {
namespace {

/// Stragglers among the ranks that represent classes.
std::vector<Straggler> representatives_of(const ReplicatedGraph& all,
                                          std::span<const double> slowness,
                                          const SimulatedReplicas& made) {
  const std::size_t classes = made.classes.sizes.size();
  std::vector<Straggler> stragglers;
  for (std::size_t r = 0; r < made.graph.graph.ranks.size(); ++r) {
    const auto replica = static_cast<std::size_t>(made.classes.representatives[r % classes]);
    const double factor = slowness[r / classes * static_cast<std::size_t>(all.replicas) + replica];
    if (factor != 1) stragglers.push_back({made.graph.graph.ranks[r].rank, factor});
  }
  return stragglers;
}

}  // namespace

SimulatedReplicas simulate_replicas(const ReplicatedGraph& all, std::span<const WorkPrice> prices,
                                    std::span<const Straggler> stragglers,
                                    const LinkNetwork* network) {
  const std::vector<double> slowness = slowness_of(all.ranks, stragglers);
  const ReplicasOnLinks replicas(all, slowness, network);
  SimulatedReplicas made{.classes = replicas.classes(),
                         .graph = graph_of_classes(all, replicas.classes()),
                         .times = {}};
  const TaskGraph& graph = made.graph.graph;
  std::vector<Ticks> durations;
  vary_durations(graph, prices, {.stragglers = representatives_of(all, slowness, made)}, 0,
                 durations);
  if (network != nullptr)
    made.times = simulate_with_contention(graph, prices, durations, replicas.links_of(made.graph));
  else
    simulate(graph, prices, durations, made.times);
  return made;
}

TaskTimes times_of_all_ranks(const ReplicatedGraph& all, const SimulatedReplicas& simulated) {
  const TaskGraph& folded = all.folded.graph;
  const CopyOrder order(all.folded, all.replicas);
  const auto replicas = static_cast<std::size_t>(all.replicas);
  const std::size_t classes = simulated.classes.sizes.size();
  TaskTimes times;
  times.start.reserve(folded.tasks.size() * replicas);
  times.end.reserve(folded.tasks.size() * replicas);
  const auto copy_of = [&](std::size_t t, std::size_t r) {
    const auto of_class = static_cast<std::size_t>(simulated.classes.class_of[r]);
    return static_cast<std::size_t>(simulated.graph.task_of[t * classes + of_class]);
  };
  if (!all.shares.empty()) {
    const ClassGraph every = graph_of_replicas(all);
    times.start.resize(every.graph.tasks.size());
    times.end.resize(every.graph.tasks.size());
    for (std::size_t t = 0; t < folded.tasks.size(); ++t)
      for (std::size_t r = 0; r < replicas; ++r)
        if (const std::int32_t place = every.task_of[t * replicas + r]; place >= 0) {
          times.start[static_cast<std::size_t>(place)] = simulated.times.start[copy_of(t, r)];
          times.end[static_cast<std::size_t>(place)] = simulated.times.end[copy_of(t, r)];
        }
    return times;
  }
  std::vector<Ticks> starts(replicas), ends(replicas);
  for (std::size_t t = 0; t < folded.tasks.size(); ++t) {
    for (std::size_t r = 0; r < replicas; ++r) {
      const std::size_t copy = copy_of(t, r);
      starts[r] = simulated.times.start[copy];
      ends[r] = simulated.times.end[copy];
    }
    times.start.insert(times.start.end(), starts.begin(), starts.end());
    times.end.insert(times.end.end(), ends.begin(), ends.end());
  }
  for (std::size_t t = 0; t < folded.tasks.size(); ++t) {
    if (folded.tasks[t].kind != TaskKind::kCollective) continue;
    for (std::size_t r = 0; r < replicas; ++r) {
      const auto place =
          static_cast<std::size_t>(order.index_of(TaskId(t), static_cast<std::int64_t>(r)));
      times.start[place] = simulated.times.start[copy_of(t, r)];
      times.end[place] = simulated.times.end[copy_of(t, r)];
    }
  }
  return times;
}

}  // namespace meshwright
