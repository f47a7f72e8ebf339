/// An operator graph to be cut into pipeline stages with data and tensor parallelism in each
/// (Tarnawski et al., "Piper", NeurIPS 2021).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.hpp"

namespace meshwright {

/// One way to compute a node, such as with or without recomputation.
struct NodeVariant {
  std::string name;
  Seconds time;               ///< per micro-batch
  Bytes memory_per_inflight;  ///< per micro-batch in flight
  Bytes memory;               ///< independent of micro-batches
  friend bool operator==(const NodeVariant&, const NodeVariant&) = default;
};

/// Costs of a node on `degree` tensor-parallel devices.
struct TensorParallelNode {
  int degree = 1;
  Bytes parameters;  ///< per device, all-reduced over replicas
  std::vector<NodeVariant> variants;
  friend bool operator==(const TensorParallelNode&, const TensorParallelNode&) = default;
};

struct ReplicationNode {
  std::string name;
  std::vector<TensorParallelNode> degrees;  ///< ascending, at least one
  friend bool operator==(const ReplicationNode&, const ReplicationNode&) = default;
};

struct ReplicationEdge {
  std::int32_t source = 0, target = 0;
  Bytes transfer;  ///< between stages, per micro-batch and direction
  /// In addition, on either side, by index of the tensor-parallel degree of that node.
  std::vector<Bytes> source_sync, target_sync;
  friend bool operator==(const ReplicationEdge&, const ReplicationEdge&) = default;
};

struct ReplicationProblem {
  std::vector<ReplicationNode> nodes;
  std::vector<ReplicationEdge> edges;
  int devices = 1;
  int microbatches = 1;  ///< per batch; data-parallel degrees divide it
  Bytes device_memory;
  BytesPerSecond bandwidth;
  friend bool operator==(const ReplicationProblem&, const ReplicationProblem&) = default;
};

/// Limits of problems read from files. The search looks at all pairs of nodes of a chain.
inline constexpr std::size_t kMostReplicationNodes = 1024;
inline constexpr std::size_t kMostReplicationEdges = 16 * kMostReplicationNodes;
inline constexpr std::size_t kMostTensorDegrees = 8;  ///< different ones in a file
inline constexpr int kMostMicrobatches = 1 << 20;

/// Throws InputError for graphs without nodes and for cycles.
void check_replication_problem(const ReplicationProblem& problem, const std::string& where);

}  // namespace meshwright
