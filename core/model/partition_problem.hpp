/// An operator graph with measured costs, to be partitioned over accelerators and host processors
/// so that the busiest device is as little loaded as possible (Tarnawski et al., NeurIPS 2020).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.hpp"

namespace meshwright {

struct PartitionNode {
  std::string name;
  Ticks accelerator_time;        ///< per sample
  Ticks host_time;               ///< per sample
  Ticks transfer_time;           ///< of its output, between an accelerator and host memory
  Bytes memory;                  ///< on its device
  std::int64_t colocation = -1;  ///< nodes of equal value >= 0 share a device
  bool runs_on_accelerator = true;
  bool is_backward = false;
  friend bool operator==(const PartitionNode&, const PartitionNode&) = default;
};

/// `target` reads the output of `source`; both are indices of nodes.
struct PartitionEdge {
  std::int32_t source = 0;
  std::int32_t target = 0;
  friend bool operator==(const PartitionEdge&, const PartitionEdge&) = default;
};

/// The edges form a DAG, without edges from backward to forward nodes.
struct PartitionProblem {
  std::vector<PartitionNode> nodes;
  std::vector<PartitionEdge> edges;
  int accelerators = 1;
  int hosts = 0;
  Bytes accelerator_memory;  ///< of each
  friend bool operator==(const PartitionProblem&, const PartitionProblem&) = default;
};

/// Limits of problems read from files.
inline constexpr std::size_t kMostPartitionNodes = 1'000'000;
inline constexpr std::size_t kMostPartitionEdges = 4'000'000;
inline constexpr int kMostPartitionDevices = 1 << 16;

/// A node on a cycle, or after one. Linear in the graph.
std::optional<std::size_t> find_node_after_cycle(std::size_t node_count,
                                                 const std::vector<PartitionEdge>& edges);
/// Throws InputError at "where#/nodes/3" if that node, of this name, depends on a cycle.
[[noreturn]] void refuse_cycle(const std::string& where, std::size_t node, const std::string& name);

/// Throws InputError at "where#/nodes/3" for cycles and for edges to missing nodes or from backward
/// to forward nodes. Linear in the graph.
void check_partition_problem(const PartitionProblem& problem, const std::string& where);

}  // namespace meshwright
