#include "core/plan/parallel_sizes.hpp"

#include <span>

namespace meshwright {
namespace {

std::int64_t ranks_of(const ParallelDegrees& degrees, const ProcessGroup& group) {
  if (group.size != nullptr) return degrees.*group.size;
  std::int64_t rest = rank_count(degrees);
  for (const ProcessGroup& other : kExpertGroups)
    if (other.size != nullptr) rest /= degrees.*other.size;
  return rest;
}

void set_strides(std::span<const ProcessGroup> grid, const ParallelDegrees& degrees,
                 const RankOrder& order, RankStrides& strides) {
  std::int64_t stride = 1;
  for (const Axis axis : order.axes)
    for (const ProcessGroup& group : grid) {
      if (group.axis != axis) continue;
      strides.*group.stride = stride;
      stride *= ranks_of(degrees, group);
    }
}

}  // namespace

RankStrides strides_of(const ParallelDegrees& degrees, const RankOrder& order) {
  RankStrides strides;
  set_strides(kDenseGroups, degrees, order, strides);
  set_strides(kExpertGroups, degrees, order, strides);
  return strides;
}

RankId rank_at(const ParallelDegrees& degrees, const RankCoordinate& coordinate,
               const RankOrder& order) {
  const RankStrides strides = strides_of(degrees, order);
  std::int64_t rank = 0;
  for (const ProcessGroup& group : kDenseGroups)
    rank += coordinate.*group.coordinate * strides.*group.stride;
  return RankId(static_cast<std::int32_t>(rank));
}

RankCoordinate coordinate_of(const ParallelDegrees& degrees, RankId rank, const RankOrder& order) {
  const RankStrides strides = strides_of(degrees, order);
  RankCoordinate coordinate;
  for (const ProcessGroup& group : kDenseGroups)
    coordinate.*group.coordinate =
        static_cast<int>(rank.value / (strides.*group.stride) % (degrees.*group.size));
  return coordinate;
}

}  // namespace meshwright
