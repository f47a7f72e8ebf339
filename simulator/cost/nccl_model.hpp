/// NCCL's tuning model, by which NCCL chooses an algorithm and a protocol for every collective
/// (NVIDIA/nccl, src/graph/tuning.cc, v2.30.7; channels after src/graph/search.cc).
///
///   time = latency + bytes / bandwidth,   minimum over all enabled (algorithm, protocol)
///
/// Restates the formulas and figures of that file; nothing here is fitted to measurements. CollNet
/// is left out, since cluster files do not describe in-network reduction between nodes.
///
/// Worked number, 8 x H100, all-reduce of 256 MiB: NVLS has 8 channels of 40 GB/s within the node
/// (inter speed 60 GB/s), so min(40 * 0.85 * 7/8 * 2, 60) = 59.5 GB/s per channel, 476 in total,
/// times n / (2 (n - 1)) = 272 GB/s; 25 us + 268435456 B / 272 GB/s = 1011.9 us.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/kernel.hpp"
#include "core/base/units.hpp"
#include "core/cluster/cluster.hpp"

namespace meshwright {

/// In NCCL's order; ties go to the first.
enum class NcclAlgorithm : std::uint8_t { kTree, kRing, kNvls, kNvlsTree, kPat };
inline constexpr int kNcclAlgorithmCount = 5;
enum class NcclProtocol : std::uint8_t { kLl, kLl128, kSimple };
inline constexpr int kNcclProtocolCount = 3;
std::string_view name_of(NcclAlgorithm algorithm);  ///< "tree", "ring", "nvls", "nvlstree", "pat"
std::string_view name_of(NcclProtocol protocol);    ///< "LL", "LL128", "Simple"

/// Result of NCCL's channel search for one algorithm: equal channels, each with an intra-node and
/// an inter-node bandwidth.
struct NcclGraph {
  int channels = 0;  ///< 0: the algorithm is not available
  BytesPerSecond intra, inter;
  friend bool operator==(const NcclGraph&, const NcclGraph&) = default;
};

/// What the tuning model knows about a communicator.
struct NcclGroup {
  int compute_capability = 80;
  int ranks = 1;
  int nodes = 1;
  bool over_pcie = false;  ///< devices of a node are connected by PCIe, not NVLink
  CpuVendor cpu = CpuVendor::kIntel;
  NcclGraph ring, tree, nvls;
  NcclGraph local_nvls;      ///< NVLS on one node with as many ranks as the group has on each
  BytesPerSecond pcie_link;  ///< PCIe: what NCCL assumes of a device's link within one socket
  BytesPerSecond network;    ///< total of the ports that the group uses on each node
  friend bool operator==(const NcclGroup&, const NcclGroup&) = default;
};

/// The group on a node model, with the channels that NCCL's search would find. Each group gets 1 /
/// groups_per_node of the node's ports. The device must have a compute capability.
NcclGroup nccl_group_of(const DeviceModel& device, const NodeModel& node, const GroupShape& shape);

/// The parts of an estimate: time = base + local_hops + network_hops + bytes / bandwidth.
struct NcclEstimate {
  Seconds base;          ///< of the algorithm and protocol
  Seconds local_hops;    ///< latency of all consecutive hops within nodes
  Seconds network_hops;  ///< and between nodes
  BytesPerSecond bandwidth;
};

struct NcclChoice {
  Seconds time;
  NcclAlgorithm algorithm = NcclAlgorithm::kRing;
  NcclProtocol protocol = NcclProtocol::kSimple;
  friend bool operator==(const NcclChoice&, const NcclChoice&) = default;
};

/// Nothing if the pair is not enabled for this collective and group. `bytes` is the size of the
/// whole buffer (see Collective). All-to-all is not part of the tuning model and must not be
/// passed.
std::optional<NcclEstimate> nccl_estimate(const NcclGroup& group, CollectiveKind kind, Bytes bytes,
                                          NcclAlgorithm algorithm, NcclProtocol protocol);
/// The sum of the estimate's parts.
std::optional<Seconds> nccl_time(const NcclGroup& group, CollectiveKind kind, Bytes bytes,
                                 NcclAlgorithm algorithm, NcclProtocol protocol);
/// The fastest enabled pair. group.ranks >= 2.
NcclChoice nccl_choice(const NcclGroup& group, CollectiveKind kind, Bytes bytes);

/// Bandwidth of NVLS on one node in bytes of the buffer per second, not limited by any network.
BytesPerSecond nccl_local_nvls_bandwidth(const NcclGroup& group, CollectiveKind kind);

/// Bandwidth that NCCL assumes for a device's links, per direction; lower than the datasheet's.
/// NVLink: 20 of 25 GB/s per link up to Ampere, 20.6 on Hopper, 40.1 of 50 on Blackwell; PCIe: 12
/// of 16 (gen 3), 24 of 32, 48 of 64, limited by the CPU interconnect across sockets.
BytesPerSecond nccl_local_bandwidth(const DeviceModel& device, const NodeModel& node,
                                    int ranks_per_node);

}  // namespace meshwright
