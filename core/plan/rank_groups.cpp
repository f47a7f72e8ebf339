#include "core/plan/rank_groups.hpp"

namespace meshwright {
namespace {

/// `count` ranks `stride` apart, `rank` among them.
std::vector<RankId> ranks_along(RankId rank, std::int64_t stride, int count) {
  const std::int64_t first = rank.value - rank.value / stride % count * stride;
  std::vector<RankId> ranks;
  ranks.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) ranks.emplace_back(static_cast<std::int32_t>(first + i * stride));
  return ranks;
}

}  // namespace

AxisGroups axis_groups_of(const Strategy& strategy, RankId rank) {
  const ParallelDegrees& d = strategy.degrees;
  const RankStrides strides = strides_of(d, strategy.model_parallelism.order);
  AxisGroups groups;
  for (const ProcessGroup& group : kLayerGroups)
    groups.*group.members = ranks_along(rank, strides.*group.stride, d.*group.size);
  return groups;
}

const std::vector<RankId>& members_of(const AxisGroups& groups, const Collective& collective) {
  // Experts exchange tokens; all other collectives are between the shards of one expert.
  if (collective.axis == Axis::kExpert && collective.kind != CollectiveKind::kAllToAll)
    return groups.expert_tensor;
  for (const ProcessGroup& group : kLayerGroups)
    if (group.axis == collective.axis) return groups.*group.members;
  static const std::vector<RankId> kNobody;
  return kNobody;
}

}  // namespace meshwright
