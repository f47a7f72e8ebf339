/// Members of the process groups of a job, rank by rank.
#pragma once

#include <vector>

#include "core/plan/plan.hpp"

namespace meshwright {

/// The process groups of one rank (including the rank itself), in ring order.
using AxisGroups = PerGroup<std::vector<RankId>>;
AxisGroups axis_groups_of(const Strategy& strategy, RankId rank);

/// The members of a collective that is a step of a pass. Empty for the data and pipeline axes,
/// whose collectives are separate tasks.
const std::vector<RankId>& members_of(const AxisGroups& groups, const Collective& collective);
const std::vector<RankId>& members_of(AxisGroups&& groups, const Collective& collective) = delete;

}  // namespace meshwright
