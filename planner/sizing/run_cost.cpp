#include "planner/sizing/run_cost.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace meshwright {
namespace {

constexpr double kSecondsPerHour = 3600;

double goodput_of(const PlannedRun& run, int devices) {
  if (!run.failures) return 1;
  FailureModel failures = *run.failures;
  failures.devices = devices;
  return goodput(failures, run.checkpoint_interval).useful;
}

/// Of each node of the group, those that the job uses.
int used_devices(const Cluster& cluster, const NodeGroup& group, int devices) {
  const int all = cluster.nodes.at(group.node).device_count;
  return is_homogeneous(cluster) ? used_devices_per_node(cluster, devices).value_or(all) : all;
}

}  // namespace

std::int64_t tokens_per_step(const Goal& goal) { return goal.global_batch * goal.sequence_length; }

std::int64_t step_count(const PlannedRun& run, const Goal& goal) {
  return (run.tokens - 1) / tokens_per_step(goal) + 1;
}

std::optional<DollarsPerHour> price_of_job(const Cluster& cluster, int devices,
                                           std::optional<DollarsPerHour> device_price) {
  if (device_price) return *device_price * devices;
  DollarsPerHour price;
  int left = devices;
  for (const NodeGroup& group : cluster.groups) {
    if (left <= 0) break;
    const auto& node_price = cluster.nodes.at(group.node).price_per_hour;
    if (!node_price) return std::nullopt;
    const int used = used_devices(cluster, group, devices);
    const int nodes = std::min(group.count, divide_up(left, used));
    price += *node_price * nodes;
    left -= nodes * used;
  }
  return price;
}

std::optional<RunCost> cost_of_run(const PlannedRun& run, const Goal& goal, const Cluster& cluster,
                                   const PlanFigures& figures) {
  RunCost result;
  result.steps = step_count(run, goal);
  result.goodput = goodput_of(run, goal.gpus);
  if (result.goodput <= 0) return std::nullopt;
  const auto time_of = [&](Ticks step) {
    return to_seconds(step) * (static_cast<double>(result.steps) / result.goodput);
  };
  result.time = time_of(figures.step_time);
  if (figures.range)
    result.range = RunTimeRange{time_of(figures.range->p10), time_of(figures.range->p90)};
  const double hours = result.time.value / kSecondsPerHour;
  result.device_hours = DeviceHours(goal.gpus * hours);
  if (const auto price = price_of_job(cluster, goal.gpus, run.device_price))
    result.cost = Dollars(price->value * hours);
  return result;
}

}  // namespace meshwright
