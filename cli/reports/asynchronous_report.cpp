#include "cli/reports/asynchronous_report.hpp"

#include <fmt/format.h>

#include "core/base/parse_quantity.hpp"
#include "simulator/variation/asynchronous_training.hpp"

namespace meshwright {
namespace {

constexpr int kTurns = 200;
constexpr double kJitter = 0.05;  ///< of the compute time, so that workers drift apart

/// One iteration of every worker: its passes, and its messages to and from one server.
AsynchronousTraining training_of(const Strategy& strategy, const TaskGraph& graph,
                                 std::span<const WorkPrice> prices) {
  AsynchronousTraining training;
  training.compute.resize(static_cast<std::size_t>(strategy.degrees.data));
  training.jitter = kJitter;
  training.turns = kTurns;
  for (const Task& task : graph.tasks) {
    const Ticks duration = prices[task.work.index()].duration;
    const CollectiveKind kind = graph.works[task.work.index()].collective.kind;
    if (task.kind == TaskKind::kOptimizer)
      training.update = duration;
    else if (task.kind == TaskKind::kCollective && kind == CollectiveKind::kPush)
      training.push = duration;
    else if (task.kind == TaskKind::kCollective && kind == CollectiveKind::kPull)
      training.pull = duration;
    else
      training.compute[static_cast<std::size_t>(task.rank)] += duration;
  }
  return training;
}

}  // namespace

std::string asynchronous_text(const Strategy& strategy, const TaskGraph& graph,
                              std::span<const WorkPrice> prices) {
  if (strategy.data_parallelism.kind != DataParallelKind::kAsyncParameterServer) return "";
  const AsynchronousTraining training = training_of(strategy, graph, prices);
  const AsynchronousResult result = simulate_asynchronous(training);
  std::string text = fmt::format(
      "\nAsynchronous training: {} iterations per worker, compute time randomly up to {:.0f} % "
      "longer\n"
      "  time per iteration   {}\n"
      "  server link busy     {:.1f} %\n"
      "  mean staleness       {:.2f} updates by other workers\n",
      training.turns, 100 * training.jitter, to_text(result.period), 100 * result.busy,
      result.mean_staleness);
  std::int64_t updates = 0;
  for (const std::int64_t count : result.staleness) updates += count;
  for (std::size_t s = 0; s < result.staleness.size(); ++s)
    if (result.staleness[s] > 0)
      text += fmt::format(
          "    {:>4} updates old   {:.1f} % of updates\n", s,
          100.0 * static_cast<double>(result.staleness[s]) / static_cast<double>(updates));
  return text;
}

}  // namespace meshwright
