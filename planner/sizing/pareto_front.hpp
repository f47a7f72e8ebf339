/// Which of several plans are not beaten in time, devices and cost together.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/base/units.hpp"
#include "planner/sizing/run_cost.hpp"

namespace meshwright {

struct Tradeoff {
  Seconds time;
  int devices = 1;
  std::optional<Dollars> cost = {};
};

/// For each item: true if no other is at most equal in time, devices and cost, and less in one of
/// them. Costs count only if all items have one. O(n^2).
std::vector<bool> pareto_front(std::span<const Tradeoff> items);

}  // namespace meshwright
