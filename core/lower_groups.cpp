#include <algorithm>

#include "core/lower_passes.hpp"

namespace meshwright {
namespace {
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Nodes of the group that touches most of them. A block of `count * stride` neighbouring ranks
/// holds `stride` sister groups.
std::int64_t nodes_of(const GroupLayout& layout) {
  const std::int64_t node = layout.devices_per_node;
  const std::int64_t block = layout.count * layout.stride;
  if (layout.stride >= node) return layout.count;
  if (layout.job_ranks <= node || node % block == 0) return 1;
  if (block % node == 0) return node % layout.stride == 0 ? block / node : layout.count;
  // Blocks do not line up with nodes: the worst one starts on a node's last device.
  const std::int64_t span = (layout.count - 1) * layout.stride + 1;
  return std::min(layout.count, (span + node - 2) / node + 1);
}
}  // namespace

GroupShape group_shape_of(const GroupLayout& layout) {
  if (layout.count == 1) return {};
  const std::int64_t nodes = std::min(layout.count, nodes_of(layout));
  const std::int64_t ranks_in_node = divide_up(layout.count, nodes);
  const std::int64_t used = std::min<std::int64_t>(layout.devices_per_node, layout.job_ranks);
  return {.ranks = static_cast<int>(layout.count),
          .nodes = static_cast<int>(nodes),
          .groups_per_node =
              nodes == 1 ? 1 : static_cast<int>(std::max<std::int64_t>(1, used / ranks_in_node))};
}

JobGroups job_groups_of(const Strategy& strategy, const Cluster& cluster) {
  const ParallelDegrees& d = strategy.degrees;
  const int devices_per_node = node_of(cluster, DeviceId(0)).device_count;
  const auto shape = [&](std::int64_t count, std::int64_t stride) {
    return group_shape_of({.count = count,
                           .stride = stride,
                           .job_ranks = rank_count(d),
                           .devices_per_node = devices_per_node});
  };
  const std::int64_t stage_ranks = std::int64_t{d.tensor} * d.context * d.data;
  const std::int64_t expert_ranks = std::int64_t{d.expert} * d.expert_tensor;
  return {.tensor = shape(d.tensor, 1),
          .context = shape(d.context, d.tensor),
          .expert = shape(d.expert, d.expert_tensor),
          .expert_tensor = shape(d.expert_tensor, 1),
          .dense_data = shape(std::int64_t{d.data} * d.context, d.tensor),
          .expert_data = shape(stage_ranks / expert_ranks, expert_ranks),
          .all = shape(rank_count(d), 1),
          .stage_ranks = stage_ranks,
          .devices_per_node = devices_per_node};
}

GroupShape joined(const JobGroups& groups, const GroupShape& shape, int copies) {
  if (copies == 1) return shape;
  const int ranks = shape.ranks * copies;
  const int nodes = std::min({shape.nodes * copies, groups.all.nodes, ranks});
  const int ranks_in_node = static_cast<int>(divide_up(ranks, nodes));
  const int used = std::min(groups.devices_per_node, groups.all.ranks);
  return {.ranks = ranks,
          .nodes = nodes,
          .groups_per_node = nodes == 1 ? 1 : std::max(1, used / ranks_in_node)};
}

}  // namespace meshwright
