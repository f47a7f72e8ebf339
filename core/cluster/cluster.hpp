/// Devices, nodes and networks. Every figure carries its source in the cluster file.
///
/// A cluster is a list of node groups; all presets have one group. A *node* is the largest set of
/// devices joined by the fast local network: a DGX box, or a whole NVL72 rack.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/ids.hpp"
#include "core/base/units.hpp"
#include "core/cluster/collective_parameters.hpp"
#include "core/cluster/device.hpp"

namespace meshwright {

enum class LocalNetworkKind : std::uint8_t {
  kNvSwitch,     ///< all pairs at full speed concurrently
  kNvLinkMesh,   ///< direct links between some pairs (V100 hybrid cube mesh)
  kPcie,         ///< through switches and host bridges
  kSharedMemory  ///< processes on one CPU
};
/// PCIe topology of a node. Devices are assigned to switches in order and evenly, switches to
/// sockets likewise; traffic that leaves a switch or socket shares its uplink.
struct PcieTree {
  int switches = 1;            ///< per node; devices on one switch communicate through it only
  int sockets = 1;             ///< CPUs; the switches are divided evenly among them
  BytesPerSecond uplink;       ///< switch to CPU, per direction
  BytesPerSecond socket_link;  ///< CPU to the other CPUs, per direction
  friend bool operator==(const PcieTree&, const PcieTree&) = default;
};
struct LocalNetwork {
  LocalNetworkKind kind = LocalNetworkKind::kNvSwitch;
  BytesPerSecond bandwidth;           ///< per device and direction, datasheet
  Seconds latency;                    ///< one hop, for point-to-point messages
  bool in_network_reduction = false;  ///< NVLink SHARP (NVLS)
  std::optional<PcieTree> tree = {};  ///< PCIe only; absent: no shared links between the devices
  friend bool operator==(const LocalNetwork&, const LocalNetwork&) = default;
};

enum class CpuVendor : std::uint8_t { kIntel, kAmd, kArm, kOther };

/// The host side of a node, for offloaded optimizer state.
struct HostModel {
  BytesPerSecond device_link;       ///< device to host memory, per device and direction
  BytesPerSecond memory_bandwidth;  ///< shared by the parameter updates of all devices
  friend bool operator==(const HostModel&, const HostModel&) = default;
};

struct NodeModel {
  std::string name;
  std::string device;  ///< key in Cluster::devices
  int device_count = 1;
  LocalNetwork local;
  int ports = 0;  ///< network ports (NICs) for training traffic; 0: single-node only
  BytesPerSecond port_bandwidth;  ///< per port and direction
  CpuVendor cpu = CpuVendor::kIntel;
  std::optional<HostModel> host;  ///< absent: offloading to host memory is not possible
  /// List price of the node on demand; its source names date and region. Absent: not for rent.
  std::optional<DollarsPerHour> price_per_hour = {};
  friend bool operator==(const NodeModel&, const NodeModel&) = default;
};

struct NodeGroup {
  std::string node;  ///< key in Cluster::nodes
  int count = 1;     ///< available nodes
  friend bool operator==(const NodeGroup&, const NodeGroup&) = default;
};

/// One switch level of a fat tree.
struct FabricLevel {
  int nodes = 1;                  ///< consecutive nodes below one switch (or pod of switches)
  double oversubscription = 1.0;  ///< total port bandwidth of those nodes / uplink bandwidth
  friend bool operator==(const FabricLevel&, const FabricLevel&) = default;
};
struct Fabric {                   ///< the network between nodes
  Seconds latency;                ///< end to end, for point-to-point messages
  double oversubscription = 1.0;  ///< total port bandwidth / bisection bandwidth
  /// Rail-optimized: port k of every node connects to rail k, a fat tree of its own. A message to a
  /// device on another rail changes rails inside the sending node, over its local network (NCCL
  /// PXN).
  bool rails = false;
  std::vector<FabricLevel> levels;     ///< from the nodes up; above the last: full bisection
  NetworkParameters collectives = {};  ///< used only if the devices have measured collectives
  friend bool operator==(const Fabric&, const Fabric&) = default;
};

struct Cluster {
  std::string name;
  std::map<std::string, DeviceModel> devices;
  std::map<std::string, NodeModel> nodes;
  std::vector<NodeGroup> groups;
  Fabric fabric;
  std::map<std::string, std::string> sources;  ///< "devices.a100.memory" → source of the figure
  friend bool operator==(const Cluster&, const Cluster&) = default;
};

/// Reports all problems: unknown names, rates that are not positive, several nodes without a
/// network. Empty if the cluster is valid. `where` prefixes every diagnostic's `where`.
std::vector<Diagnostic> check_cluster(const Cluster& cluster, const std::string& where);

/// Number of devices over all groups.
int device_count(const Cluster& cluster);
/// The node of a physical device; devices are numbered group by group.
const NodeModel& node_of(const Cluster& cluster, DeviceId device);
const DeviceModel& device_of(const Cluster& cluster, DeviceId device);
NodeId node_index_of(const Cluster& cluster, DeviceId device);
/// True if all groups use the same node model.
bool is_homogeneous(const Cluster& cluster);

/// Devices of each node that a job of `ranks` ranks uses: all of them if the job fits in one node
/// or fills whole nodes, else the largest even number that divides `ranks` (64 of the 72 devices of
/// an NVL72 rack for 128 ranks). Empty if no such number exists or the nodes are too few.
/// Heterogeneous clusters: all devices of the first node.
std::optional<int> used_devices_per_node(const Cluster& cluster, std::int64_t ranks);
/// The node of a device of such a job. A job numbers only the devices that it uses, so that rank r
/// runs on device r.
NodeId node_index_in_job(const Cluster& cluster, std::int64_t ranks, DeviceId device);

}  // namespace meshwright
