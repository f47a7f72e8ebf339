/// Time, device-hours and cost of a training run, from the step time of its plan.
///
///   steps        = ceil(tokens / (global batch x sequence length))
///   time         = steps x step time / goodput
///   device-hours = devices x time
///   cost         = price of the job per hour x time
///
/// Worked number: 1e9 tokens in batches of 64 x 1,024: 15,258.8, thus 15,259 steps. At 2 s each
/// they take 30,518 s = 8.477 h, on 16 devices 135.6 device-hours; at 55.04 USD for each of the two
/// nodes per hour 933.17 USD.
#pragma once

#include <cstdint>
#include <optional>

#include "core/cluster/cluster.hpp"
#include "core/formats/plan.hpp"
#include "planner/search/fixed_choices.hpp"
#include "simulator/variation/goodput.hpp"

namespace meshwright {

using Dollars = Quantity<struct CostDimension>;  ///< US dollars
using DeviceHours = Quantity<struct DeviceTimeDimension>;

struct PlannedRun {
  std::int64_t tokens = 1;
  /// Of one device, instead of the price of the cluster's nodes.
  std::optional<DollarsPerHour> device_price = {};
  /// For any number of devices; absent: neither failures nor checkpoints.
  std::optional<FailureModel> failures = {};
  std::optional<Seconds> checkpoint_interval = {};  ///< absent: the best one
};

struct RunTimeRange {
  Seconds p10, p90;
  friend bool operator==(const RunTimeRange&, const RunTimeRange&) = default;
};

struct RunCost {
  std::int64_t steps = 0;
  double goodput = 1;  ///< share of the time spent on steps that are not lost
  Seconds time;
  std::optional<RunTimeRange> range = {};  ///< of `time`, if the step time has one
  DeviceHours device_hours;
  std::optional<Dollars> cost = {};  ///< absent: neither nodes nor devices have a price
};

std::int64_t tokens_per_step(const Goal& goal);
std::int64_t step_count(const PlannedRun& run, const Goal& goal);

/// Price of a job per hour. Nodes are billed whole, also if the job uses only some of their
/// devices.
std::optional<DollarsPerHour> price_of_job(const Cluster& cluster, int devices,
                                           std::optional<DollarsPerHour> device_price);

/// nullopt if failures are so frequent that the run never completes (goodput 0).
std::optional<RunCost> cost_of_run(const PlannedRun& run, const Goal& goal, const Cluster& cluster,
                                   const PlanFigures& figures);

}  // namespace meshwright
