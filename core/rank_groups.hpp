/// Which ranks work on one thing together: the groups of a job's grid, rank by rank.
#pragma once

#include <vector>

#include "core/plan.hpp"

namespace meshwright {

/// The ranks that one shares an axis with, itself included, in ring order.
struct AxisGroups {
  std::vector<RankId> tensor, context, expert, expert_tensor;
};
AxisGroups axis_groups_of(const Strategy& strategy, RankId rank);

/// Who carries out a collective that is a step of a pass. Nobody for the data and pipeline axes,
/// whose collectives are tasks of their own.
const std::vector<RankId>& members_of(const AxisGroups& groups, const Collective& collective);
const std::vector<RankId>& members_of(AxisGroups&& groups, const Collective& collective) = delete;

}  // namespace meshwright
