/// The ranks of a job as process groups, and the nodes that they are on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/cluster/cluster.hpp"
#include "core/plan/plan.hpp"

namespace meshwright {

/// A group of `count` ranks, `stride` apart; all groups of this kind tile the job in rank order.
struct GroupLayout {
  std::int64_t count = 1, stride = 1;
  std::int64_t job_ranks = 1;
  int devices_per_node = 1;
};
/// The shape of the group that spans the most nodes.
GroupShape group_shape_of(const GroupLayout& layout);

/// `count` ranks, `stride` apart: one axis of a group.
struct AxisExtent {
  std::int64_t count = 1, stride = 1;
};

/// The ranks of the job in RankOrder, and the groups of each axis. Ranks with the same pipeline
/// rank are *replicas* of each other, numbered in rank order; expert ranks are folded into them. If
/// the pipeline axis is not the slowest one, strides among replicas are smaller than among ranks.
struct JobGroups : PerGroup<GroupShape> {
  GroupShape dense_data;       ///< ranks holding the same dense parameters: data x context
  GroupShape expert_data;      ///< ranks holding the same experts
  GroupShape all;              ///< the whole job
  std::int64_t stage_ranks{};  ///< ranks per pipeline rank: data x context x tensor
  int devices_per_node = 1;    ///< that the job uses; the largest node if they differ
  int pipeline = 1;
  std::int64_t pipeline_stride = 1;            ///< among ranks
  std::int64_t tensor_stride = 1;              ///< of tensor, among replicas
  std::int64_t dense_stride = 1;               ///< of dense_data, among replicas
  std::int64_t expert_stride = 1;              ///< of expert_data, among replicas
  std::vector<std::int32_t> node_of_rank;      ///< empty if all nodes have the same size
  std::vector<std::int32_t> kind_of_position;  ///< of the slowest nodes; empty if homogeneous
  /// See Work::node_kind: -1 if the ranks are on nodes of several types; empty if homogeneous.
  std::vector<std::int32_t> shared_kind_of_position;
  /// Of the device with the least memory, by pipeline rank; empty if homogeneous.
  std::vector<Bytes> memory_of_position;
};
JobGroups job_groups_of(const Strategy& strategy, const Cluster& cluster);
/// kind_of_position of the ranks of each data-parallel rank: [data-parallel rank, pipeline rank].
/// Empty if homogeneous.
std::vector<std::int32_t> kinds_of_data_ranks(const Strategy& strategy, const Cluster& cluster);
/// The data-parallel rank of a replica.
int data_rank_of(const Strategy& strategy, const JobGroups& groups, std::int64_t replica);
/// Its PerGroup on homogeneous clusters: O(1).
PerGroup<GroupShape> layer_groups_of(const ParallelDegrees& degrees, const RankOrder& order,
                                     const Cluster& cluster);
/// Work::node_kind of works in which all ranks of these pipeline ranks take part.
std::int32_t shared_kind_of(const JobGroups& groups, std::span<const int> positions);
/// The rank of a replica of a pipeline rank.
std::int64_t rank_of(const JobGroups& groups, std::int64_t position, std::int64_t replica);
/// Converts a stride among replicas to a stride among ranks.
std::int64_t rank_stride(const JobGroups& groups, std::int64_t stride);
std::int64_t node_of_rank(const JobGroups& groups, std::int64_t rank);
/// Extent of the dense data-parallel group among the replicas; empty if the tensor axis is between
/// the context and data axes.
std::optional<AxisExtent> dense_data_extent(const ParallelDegrees& degrees, const RankOrder& order);

/// Messages from each rank of one pipeline rank to its peer in another.
struct Crossing {
  bool crosses_nodes = false;
  int flows_per_node = 1;  ///< maximum number leaving one node concurrently
};
Crossing crossing_of(const JobGroups& groups, int from, int to);

/// The union of `copies` equal groups of different pipeline ranks, on different nodes if the job
/// has several.
GroupShape joined(const JobGroups& groups, const GroupShape& shape, int copies);

}  // namespace meshwright
