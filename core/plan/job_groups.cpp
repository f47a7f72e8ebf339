#include "core/plan/job_groups.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace meshwright {
namespace {

/// Number of nodes of the group that spans the most nodes. A block of `count * stride` consecutive
/// ranks contains `stride` groups.
std::int64_t nodes_of(const GroupLayout& layout) {
  const std::int64_t node = layout.devices_per_node;
  const std::int64_t block = layout.count * layout.stride;
  if (layout.stride >= node) return layout.count;
  if (layout.job_ranks <= node || node % block == 0) return 1;
  if (block % node == 0) return node % layout.stride == 0 ? block / node : layout.count;
  // Blocks are not aligned with nodes: the worst one starts on the last device of a node.
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

std::int64_t rank_stride(const JobGroups& groups, std::int64_t stride) {
  return stride < groups.pipeline_stride ? stride : stride * groups.pipeline;
}

std::int64_t rank_of(const JobGroups& groups, std::int64_t position, std::int64_t replica) {
  const std::int64_t inner = groups.pipeline_stride;
  return replica % inner + position * inner + replica / inner * inner * groups.pipeline;
}

std::int32_t shared_kind_of(const JobGroups& groups, std::span<const int> positions) {
  const std::vector<std::int32_t>& kinds = groups.shared_kind_of_position;
  if (kinds.empty()) return -1;
  const auto kind_of = [&](int position) { return kinds[static_cast<std::size_t>(position)]; };
  const std::int32_t first = kind_of(positions.front());
  return std::ranges::all_of(positions, [&](int p) { return kind_of(p) == first; }) ? first : -1;
}

std::int64_t node_of_rank(const JobGroups& groups, std::int64_t rank) {
  return groups.node_of_rank.empty() ? rank / groups.devices_per_node
                                     : groups.node_of_rank[static_cast<std::size_t>(rank)];
}

namespace {

/// Merges two axes into one if they are contiguous.
std::optional<AxisExtent> merged(AxisExtent a, AxisExtent b) {
  if (a.count == 1) return b;
  if (b.count == 1) return a;
  if (a.stride > b.stride) std::swap(a, b);
  if (b.stride != a.stride * a.count) return std::nullopt;
  return AxisExtent{a.count * b.count, a.stride};
}

/// Handles any rank order and any nodes by visiting every group: O(ranks).
class GroupSurvey {
 public:
  GroupSurvey(const JobGroups& groups, std::int64_t job_ranks)
      : groups_(groups), job_ranks_(job_ranks) {}

  GroupShape shape_of(AxisExtent inner, AxisExtent outer) const {
    const std::int64_t count = inner.count * outer.count;
    if (count == 1) return {};
    std::int64_t most_nodes = 1;
    std::vector<std::int64_t> nodes;
    for (std::int64_t first = 0; first < job_ranks_; ++first) {
      if (first / inner.stride % inner.count != 0 || first / outer.stride % outer.count != 0)
        continue;  // not a first member
      nodes.clear();
      for (std::int64_t j = 0; j < outer.count; ++j)
        for (std::int64_t i = 0; i < inner.count; ++i)
          nodes.push_back(node_of_rank(groups_, first + i * inner.stride + j * outer.stride));
      std::sort(nodes.begin(), nodes.end());
      most_nodes = std::max<std::int64_t>(most_nodes,
                                          std::unique(nodes.begin(), nodes.end()) - nodes.begin());
    }
    const std::int64_t ranks_in_node = divide_up(count, most_nodes);
    const std::int64_t used = std::min<std::int64_t>(groups_.devices_per_node, job_ranks_);
    return {.ranks = static_cast<int>(count),
            .nodes = static_cast<int>(most_nodes),
            .groups_per_node = most_nodes == 1 ? 1
                                               : static_cast<int>(std::max<std::int64_t>(
                                                     1, used / ranks_in_node))};
  }

 private:
  const JobGroups& groups_;
  std::int64_t job_ranks_;
};

/// The node of every rank if nodes differ in size; devices_per_node is that of the largest node.
void survey_nodes(const Cluster& cluster, std::int64_t ranks, JobGroups& groups) {
  if (is_homogeneous(cluster)) return;
  bool equal = true;
  std::int64_t first = 0;
  for (const NodeGroup& group : cluster.groups) {
    const int devices = cluster.nodes.at(group.node).device_count;
    if (first >= ranks) break;
    equal = equal && devices == groups.devices_per_node;
    groups.devices_per_node = std::max(groups.devices_per_node, devices);
    first += std::int64_t{devices} * group.count;
  }
  if (equal) return;
  groups.node_of_rank.reserve(static_cast<std::size_t>(ranks));
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    groups.node_of_rank.push_back(
        node_index_of(cluster, DeviceId(static_cast<std::int32_t>(rank))).value);
}

/// What pipeline ranks need to know about a node group.
struct GroupFacts {
  std::int64_t end = 0;  ///< first rank after the group
  FlopsPerSecond peak;
  Bytes memory;
};

std::vector<GroupFacts> facts_of_groups(const Cluster& cluster, Dtype dtype) {
  std::vector<GroupFacts> facts;
  std::int64_t end = 0;
  for (const NodeGroup& group : cluster.groups) {
    const NodeModel& node = cluster.nodes.at(group.node);
    const DeviceModel& device = cluster.devices.at(node.device);
    end += std::int64_t{node.device_count} * group.count;
    facts.push_back({end, device.peak[static_cast<std::size_t>(dtype)].value_or(FlopsPerSecond()),
                     device.memory});
  }
  return facts;
}

std::size_t kind_of_rank(std::span<const GroupFacts> facts, std::int64_t rank) {
  std::size_t kind = 0;
  while (kind + 1 < facts.size() && rank >= facts[kind].end) ++kind;
  return kind;
}

/// The node group and memory of every pipeline rank. If its ranks are in several groups, the one
/// with the lowest peak rate decides, because the step waits for all replicas.
void survey_kinds(const Cluster& cluster, Dtype dtype, JobGroups& groups) {
  if (is_homogeneous(cluster)) return;
  const std::vector<GroupFacts> facts = facts_of_groups(cluster, dtype);
  const bool is_contiguous = groups.pipeline_stride == groups.stage_ranks;
  for (int position = 0; position < groups.pipeline; ++position) {
    std::int32_t slowest = -1, shared = -1;
    Bytes memory;
    for (std::int64_t replica = 0; replica < groups.stage_ranks;) {
      const std::int64_t rank = rank_of(groups, position, replica);
      const std::size_t kind = kind_of_rank(facts, rank);
      const bool is_first = slowest < 0;
      if (is_first || facts[kind].peak < facts[static_cast<std::size_t>(slowest)].peak)
        slowest = static_cast<std::int32_t>(kind);
      shared = is_first || shared == static_cast<std::int32_t>(kind)
                   ? static_cast<std::int32_t>(kind)
                   : -1;
      memory = is_first ? facts[kind].memory : std::min(memory, facts[kind].memory);
      replica += is_contiguous ? std::max<std::int64_t>(1, facts[kind].end - rank) : 1;
    }
    groups.kind_of_position.push_back(slowest);
    groups.shared_kind_of_position.push_back(shared);
    groups.memory_of_position.push_back(memory);
  }
}

}  // namespace

std::optional<AxisExtent> dense_data_extent(const ParallelDegrees& d, const RankOrder& order) {
  const RankStrides strides = strides_of(d, order);
  const auto among_replicas = [&](std::int64_t stride) {
    return stride > strides.pipeline ? stride / d.pipeline : stride;
  };
  return merged({d.context, among_replicas(strides.context)},
                {d.data, among_replicas(strides.data)});
}

PerGroup<GroupShape> layer_groups_of(const ParallelDegrees& d, const RankOrder& order,
                                     const Cluster& cluster) {
  const RankStrides strides = strides_of(d, order);
  const std::int64_t ranks = rank_count(d);
  const int devices = used_devices_per_node(cluster, ranks).value_or(1);
  PerGroup<GroupShape> groups;
  for (const ProcessGroup& group : kLayerGroups)
    groups.*group.shape = group_shape_of({.count = d.*group.size,
                                          .stride = strides.*group.stride,
                                          .job_ranks = ranks,
                                          .devices_per_node = devices});
  return groups;
}

JobGroups job_groups_of(const Strategy& strategy, const Cluster& cluster) {
  const ParallelDegrees& d = strategy.degrees;
  const RankStrides strides = strides_of(d, strategy.model_parallelism.order);
  JobGroups made;
  made.stage_ranks = stage_rank_count(d);
  made.pipeline = d.pipeline;
  made.pipeline_stride = strides.pipeline;
  made.devices_per_node = used_devices_per_node(cluster, rank_count(d)).value_or(1);
  survey_nodes(cluster, rank_count(d), made);
  const auto shape = [&](AxisExtent a, AxisExtent b = {}) {
    const std::optional<AxisExtent> one = merged(a, b);
    if (!one || !made.node_of_rank.empty()) return GroupSurvey(made, rank_count(d)).shape_of(a, b);
    return group_shape_of({.count = one->count,
                           .stride = one->stride,
                           .job_ranks = rank_count(d),
                           .devices_per_node = made.devices_per_node});
  };
  const std::int64_t expert_ranks = std::int64_t{d.expert} * d.expert_tensor;
  if (is_homogeneous(cluster))
    static_cast<PerGroup<GroupShape>&>(made) =
        layer_groups_of(d, strategy.model_parallelism.order, cluster);
  else
    for (const ProcessGroup& group : kLayerGroups)
      made.*group.shape = shape({d.*group.size, strides.*group.stride});
  made.dense_data = shape({d.context, strides.context}, {d.data, strides.data});
  made.expert_data = shape({made.stage_ranks / expert_ranks, strides.expert_data});
  made.all = shape({rank_count(d), 1});
  if (const auto dense = dense_data_extent(d, strategy.model_parallelism.order))
    made.dense_stride = dense->stride;
  const auto among_replicas = [&](std::int64_t stride) {
    return stride > strides.pipeline ? stride / d.pipeline : stride;
  };
  made.tensor_stride = among_replicas(strides.tensor);
  made.expert_stride = among_replicas(strides.expert_data);
  survey_kinds(cluster, strategy.dtype, made);
  return made;
}

int data_rank_of(const Strategy& strategy, const JobGroups& groups, std::int64_t replica) {
  const RankId rank(static_cast<std::int32_t>(rank_of(groups, 0, replica)));
  return coordinate_of(strategy.degrees, rank, strategy.model_parallelism.order).data;
}

std::vector<std::int32_t> kinds_of_data_ranks(const Strategy& strategy, const Cluster& cluster) {
  if (is_homogeneous(cluster)) return {};
  const std::vector<GroupFacts> facts = facts_of_groups(cluster, strategy.dtype);
  const JobGroups groups = job_groups_of(strategy, cluster);
  const auto positions = static_cast<std::size_t>(groups.pipeline);
  std::vector<std::int32_t> kinds(static_cast<std::size_t>(strategy.degrees.data) * positions, -1);
  for (std::int64_t replica = 0; replica < groups.stage_ranks; ++replica) {
    const auto data = static_cast<std::size_t>(data_rank_of(strategy, groups, replica));
    for (std::size_t position = 0; position < positions; ++position) {
      const std::int64_t rank = rank_of(groups, static_cast<std::int64_t>(position), replica);
      const std::size_t kind = kind_of_rank(facts, rank);
      std::int32_t& slowest = kinds[data * positions + position];
      if (slowest < 0 || facts[kind].peak < facts[static_cast<std::size_t>(slowest)].peak)
        slowest = static_cast<std::int32_t>(kind);
    }
  }
  return kinds;
}

std::vector<std::int32_t> node_kinds_of(const Strategy& strategy, const Cluster& cluster) {
  return job_groups_of(strategy, cluster).kind_of_position;
}

Crossing crossing_of(const JobGroups& groups, int from, int to) {
  const std::int64_t node = groups.devices_per_node, ranks = groups.stage_ranks;
  const bool lined_up = ranks % node == 0 || node % ranks == 0;
  if (groups.pipeline_stride == ranks && lined_up && groups.node_of_rank.empty()) {
    const bool crosses = from * ranks / node != to * ranks / node;
    return {crosses, crosses ? static_cast<int>(std::min(node, ranks)) : 1};
  }
  std::map<std::int64_t, int> leaving;  // by node
  for (std::int64_t replica = 0; replica < ranks; ++replica) {
    const std::int64_t sender = node_of_rank(groups, rank_of(groups, from, replica));
    if (sender != node_of_rank(groups, rank_of(groups, to, replica))) ++leaving[sender];
  }
  Crossing made{.crosses_nodes = !leaving.empty(), .flows_per_node = 1};
  for (const auto& [sender, flows] : leaving)
    made.flows_per_node = std::max(made.flows_per_node, flows);
  return made;
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
