#include "core/plan/rank_groups.hpp"

namespace meshwright {
namespace {

/// `count` ranks `stride` apart, `rank` among them.
std::vector<RankId> ranks_along(RankId rank, std::int64_t stride, int count) {
  const std::int64_t first = rank.value - rank.value / stride % count * stride;
  std::vector<RankId> ranks;
  for (int i = 0; i < count; ++i) ranks.emplace_back(static_cast<std::int32_t>(first + i * stride));
  return ranks;
}

}  // namespace

AxisGroups axis_groups_of(const Strategy& strategy, RankId rank) {
  const ParallelDegrees& d = strategy.degrees;
  const RankStrides strides = strides_of(d, strategy.model_parallelism.order);
  return {.tensor = ranks_along(rank, strides.tensor, d.tensor),
          .context = ranks_along(rank, strides.context, d.context),
          .expert = ranks_along(rank, strides.expert, d.expert),
          .expert_tensor = ranks_along(rank, strides.expert_tensor, d.expert_tensor)};
}

const std::vector<RankId>& members_of(const AxisGroups& groups, const Collective& collective) {
  static const std::vector<RankId> kNobody;
  switch (collective.axis) {
    case Axis::kTensor:
      return groups.tensor;
    case Axis::kContext:
      return groups.context;
    case Axis::kExpert:  // all-to-all between experts; otherwise between shards of one expert
      return collective.kind == CollectiveKind::kAllToAll ? groups.expert : groups.expert_tensor;
    case Axis::kData:
    case Axis::kPipeline:
      break;
  }
  return kNobody;
}

}  // namespace meshwright
