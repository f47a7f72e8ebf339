/// Devices, nodes and networks. Every figure carries its source in the cluster file.
///
/// A cluster is a list of node groups; all presets have one group. A *node* is the largest set of
/// devices joined by the fast local network: a DGX box, or a whole NVL72 rack.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/units.hpp"

namespace meshwright {

/// How fast a device runs GEMMs of a given shape: peak * max_efficiency, less what tiles and
/// waves leave idle. See simulator/device_cost_model.hpp for the formula.
struct GemmEfficiency {
  double max_efficiency = 0.8;  ///< of the peak, for a large GEMM
  int tile_m = 128, tile_n = 256;
  Seconds ramp;  ///< pipeline fill and drain of a GEMM, beside the launch overhead
  friend bool operator==(const GemmEfficiency&, const GemmEfficiency&) = default;
};
struct MemoryEfficiency {
  double max_efficiency = 0.85;  ///< of the datasheet bandwidth, for large streams
  Bytes half_speed_bytes;        ///< traffic at which half of that is reached
  friend bool operator==(const MemoryEfficiency&, const MemoryEfficiency&) = default;
};
struct AttentionEfficiency {  ///< fused (flash) attention, of the peak, for long sequences
  double forward = 0.5, backward = 0.4;
  friend bool operator==(const AttentionEfficiency&, const AttentionEfficiency&) = default;
};

/// Whose kernels run on a device, and thereby which tensors are held between and beside them.
enum class KernelLibrary : std::uint8_t {
  kFrameworks,  ///< of PyTorch and Megatron-LM: by published formulas (operator_work.hpp)
  kOwn          ///< of this project's executor: buffer by buffer (activation_buffers.hpp)
};

struct DeviceModel {
  std::string name;  ///< "A100-SXM4-80GB"
  Bytes memory;
  Bytes reserved_memory;  ///< driver context, communication library, allocator slack
  std::array<std::optional<FlopsPerSecond>, kDtypeCount> peak;  ///< dense, by Dtype
  BytesPerSecond memory_bandwidth;
  Seconds launch_overhead;  ///< from the end of a kernel to the start of the next one
  int multiprocessors = 1;
  std::optional<int> compute_capability;  ///< 80, 90, 100; absent: not an NVIDIA device
  GemmEfficiency gemm;
  MemoryEfficiency memory_efficiency;
  AttentionEfficiency attention;
  KernelLibrary kernels = KernelLibrary::kFrameworks;
  friend bool operator==(const DeviceModel&, const DeviceModel&) = default;
};

enum class LocalNetworkKind : std::uint8_t {
  kNvSwitch,     ///< every pair at full speed at once
  kNvLinkMesh,   ///< direct links between some pairs (V100 hybrid cube mesh)
  kPcie,         ///< through switches and host bridges
  kSharedMemory  ///< processes on one CPU
};
/// Wires above the devices of a PCIe node. Devices are dealt to switches in order and evenly,
/// switches to sockets; what has to climb shares the way up.
struct PcieTree {
  int switches = 1;            ///< of the node; devices below one reach each other by it alone
  int sockets = 1;             ///< processors, each with its share of the switches
  BytesPerSecond uplink;       ///< switch to processor, per direction
  BytesPerSecond socket_link;  ///< processor to the other processors, per direction
  friend bool operator==(const PcieTree&, const PcieTree&) = default;
};
struct LocalNetwork {
  LocalNetworkKind kind = LocalNetworkKind::kNvSwitch;
  BytesPerSecond bandwidth;           ///< per device and direction, datasheet
  Seconds latency;                    ///< one hop, for point-to-point messages
  bool in_network_reduction = false;  ///< NVLink SHARP (NVLS)
  std::optional<PcieTree> tree = {};  ///< PCIe only; absent: devices meet nowhere but at devices
  friend bool operator==(const LocalNetwork&, const LocalNetwork&) = default;
};

enum class CpuVendor : std::uint8_t { kIntel, kAmd, kArm, kOther };

/// The processor's side of a node, for optimizer state that is kept there.
struct HostModel {
  BytesPerSecond device_link;       ///< between a device and host memory, per device and direction
  BytesPerSecond memory_bandwidth;  ///< that updates of all devices' parameters share
  friend bool operator==(const HostModel&, const HostModel&) = default;
};

struct NodeModel {
  std::string name;
  std::string device;  ///< key in Cluster::devices
  int device_count = 1;
  LocalNetwork local;
  int ports = 0;  ///< network ports (NICs) of the node for training traffic; 0: single-node only
  BytesPerSecond port_bandwidth;  ///< per port and direction
  CpuVendor cpu = CpuVendor::kIntel;
  std::optional<HostModel> host;  ///< absent: nothing can be kept in host memory
  friend bool operator==(const NodeModel&, const NodeModel&) = default;
};

struct NodeGroup {
  std::string node;  ///< key in Cluster::nodes
  int count = 1;     ///< nodes that can be had
  friend bool operator==(const NodeGroup&, const NodeGroup&) = default;
};

/// A level of switches in a fat tree: groups of nodes below one switch (or one pod of them).
struct FabricLevel {
  int nodes = 1;                  ///< below one switch, consecutive
  double oversubscription = 1.0;  ///< their ports' total : what leads up from there
  friend bool operator==(const FabricLevel&, const FabricLevel&) = default;
};
struct Fabric {                   ///< the network between nodes
  Seconds latency;                ///< end to end, for point-to-point messages
  double oversubscription = 1.0;  ///< ports' total : bisection
  /// Port k of every node hangs on rail k, a fat tree of its own. A message to a device of another
  /// rail changes rails inside the sending node, over its local network, as NCCL's PXN does.
  bool rails = false;
  std::vector<FabricLevel> levels;  ///< from the nodes up; beyond the last: full bisection
  friend bool operator==(const Fabric&, const Fabric&) = default;
};

struct Cluster {
  std::string name;
  std::map<std::string, DeviceModel> devices;
  std::map<std::string, NodeModel> nodes;
  std::vector<NodeGroup> groups;
  Fabric fabric;
  std::map<std::string, std::string> sources;  ///< "devices.a100.memory" → where the figure is from
  friend bool operator==(const Cluster&, const Cluster&) = default;
};

/// All that is wrong with it: unknown names, rates that are not positive, no network between
/// several nodes. Empty: sound. `where` is put in front of every place.
std::vector<Diagnostic> check_cluster(const Cluster& cluster, const std::string& where);

/// Devices in all groups.
int device_count(const Cluster& cluster);
/// The node that a physical device belongs to, counting groups in order.
const NodeModel& node_of(const Cluster& cluster, DeviceId device);
const DeviceModel& device_of(const Cluster& cluster, DeviceId device);
NodeId node_index_of(const Cluster& cluster, DeviceId device);
/// True if one node model serves all groups.
bool is_homogeneous(const Cluster& cluster);

}  // namespace meshwright
