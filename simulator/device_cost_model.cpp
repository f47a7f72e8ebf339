#include "simulator/device_cost_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "core/check.hpp"
#include "simulator/kernel_time.hpp"
#include "simulator/mixed_cost_model.hpp"
#include "simulator/nccl_model.hpp"

namespace meshwright {
namespace {

/// Sends and all-to-all reach about this share of what NCCL reckons the links carry.
constexpr double kPointToPointShare = 0.9;

/// Latency of NCCL's sends (src/graph/tuning.cc, v2.30.7: a ring's base and one hop); up to
/// channels * 16 KiB they go by LL (NCCL_P2P_LL_THRESHOLD), else by Simple.
struct SendLatency {
  Seconds ll, simple;
};
constexpr SendLatency kLocalSend = {Seconds(7.2e-6), Seconds(11.8e-6)};
constexpr SendLatency kNetworkSend = {Seconds(9.3e-6), Seconds(22.4e-6)};
constexpr std::int64_t kLlBytesPerChannel = 16384;
/// Peers that NCCL serves side by side in one batch of sends.
constexpr int kPeersPerBatch = 8;

class DeviceCostModel final : public CostModel {
 public:
  explicit DeviceCostModel(const Cluster& cluster)
      : node_(cluster.nodes.at(cluster.groups.front().node)),
        device_(cluster.devices.at(node_.device)),
        fabric_(cluster.fabric) {
    if (device_.compute_capability) find_channels();
  }

  Seconds time_of(const Kernel& kernel) const override {
    return kernel.on_host ? host_time(kernel) : kernel_time(kernel, device_);
  }

  Seconds time_of(const Collective& collective) const override {
    MW_CHECK(collective.group.ranks >= 1);
    MW_CHECK(collective.group.nodes >= 1);
    const bool has_partner =
        collective.group.ranks > 1 || collective.servers > 0 || is_host_copy(collective.kind);
    if (!has_partner || collective.bytes.value == 0) return Seconds(0.0);
    return device_.launch_overhead + running_time(collective);
  }

  TransferCost cost_of(const Transfer& transfer) const override {
    if (!transfer.crosses_nodes)
      return {node_.local.latency, transfer.bytes / local_rate(node_.device_count)};
    return {fabric_.latency, transfer.bytes / port_rate(transfer.flows_per_node)};
  }

  std::string provenance() const override {
    if (!device_.compute_capability)
      return fmt::format("analytic {}, latency + size / bandwidth rings", device_.name);
    return fmt::format("analytic {}, NCCL 2.30 tuner", device_.name);
  }

 private:
  static bool is_host_copy(CollectiveKind kind) {
    return kind == CollectiveKind::kCopyToHost || kind == CollectiveKind::kCopyFromHost;
  }

  Seconds running_time(const Collective& collective) const {
    switch (collective.kind) {
      case CollectiveKind::kAllToAll:
        return all_to_all_time(collective);
      case CollectiveKind::kRingExchange:
        return ring_exchange_time(collective);
      case CollectiveKind::kScatter:
      case CollectiveKind::kGather:
        return rooted_time(collective);
      case CollectiveKind::kPush:
      case CollectiveKind::kPull:
        return server_time(collective);
      case CollectiveKind::kCopyToHost:
      case CollectiveKind::kCopyFromHost:
        MW_CHECK(node_.host.has_value());
        return collective.bytes / node_.host->device_link;
      case CollectiveKind::kAllReduce:
      case CollectiveKind::kAllGather:
      case CollectiveKind::kReduceScatter:
      case CollectiveKind::kBroadcast:
      case CollectiveKind::kReduce:
        break;
    }
    return reduction_time(collective);
  }

  /// By the algorithm that the plan names; the tuner's choice where that one does not exist for the
  /// collective.
  Seconds reduction_time(const Collective& collective) const {
    const bool all_reduce = collective.kind == CollectiveKind::kAllReduce;
    const bool across = collective.group.nodes > 1;
    const bool in_node = collective.group.ranks > collective.group.nodes;
    if (collective.algorithm == CollectiveAlgorithm::kHierarchical && all_reduce && across &&
        in_node)
      return hierarchical_time(collective);
    if (!device_.compute_capability) {
      const bool tree = collective.algorithm == CollectiveAlgorithm::kTree && all_reduce;
      return tree ? plain_tree_time(collective) : plain_ring_time(collective);
    }
    const NcclGroup group = group_of(collective.group);
    if (const std::optional<NcclAlgorithm> forced = nccl_algorithm(collective.algorithm, across)) {
      std::optional<Seconds> best;
      for (int p = 0; p < kNcclProtocolCount; ++p) {
        const auto time = nccl_time(group, collective.kind, collective.bytes, *forced,
                                    static_cast<NcclProtocol>(p));
        if (time && (!best || *time < *best)) best = time;
      }
      if (best) return *best;
    }
    return nccl_choice(group, collective.kind, collective.bytes).time;
  }

  static std::optional<NcclAlgorithm> nccl_algorithm(CollectiveAlgorithm algorithm, bool across) {
    switch (algorithm) {
      case CollectiveAlgorithm::kRing:
        return NcclAlgorithm::kRing;
      case CollectiveAlgorithm::kTree:
        return NcclAlgorithm::kTree;
      case CollectiveAlgorithm::kNvls:
        return across ? NcclAlgorithm::kNvlsTree : NcclAlgorithm::kNvls;
      case CollectiveAlgorithm::kAutomatic:
      case CollectiveAlgorithm::kHierarchical:
        break;
    }
    return std::nullopt;
  }

  /// Reduce-scatter among the p ranks of every node, p all-reduces of a p-th across nodes side by
  /// side, all-gather in the nodes.
  Seconds hierarchical_time(const Collective& collective) const {
    const GroupShape& shape = collective.group;
    const int ppn = (shape.ranks + shape.nodes - 1) / shape.nodes;
    Collective part = collective;
    part.algorithm = CollectiveAlgorithm::kAutomatic;
    part.kind = CollectiveKind::kReduceScatter;
    part.group = {.ranks = ppn, .nodes = 1, .groups_per_node = 1};
    const Seconds scatter = running_time(part);
    part.kind = CollectiveKind::kAllGather;
    const Seconds gather = running_time(part);
    part.kind = CollectiveKind::kAllReduce;
    part.bytes = Bytes((collective.bytes.value + ppn - 1) / ppn);
    part.group = {
        .ranks = shape.nodes, .nodes = shape.nodes, .groups_per_node = ppn * shape.groups_per_node};
    return scatter + running_time(part) + gather;
  }

  /// What one device of a group gets of the links that its members use side by side.
  BytesPerSecond member_rate(const GroupShape& shape) const {
    if (shape.nodes == 1) return local_rate(shape.ranks);
    return port_rate((shape.ranks + shape.nodes - 1) / shape.nodes * shape.groups_per_node);
  }

  /// Scatter and gather: all but its own part passes the first member's link.
  Seconds rooted_time(const Collective& collective) const {
    const double n = collective.group.ranks;
    const BytesPerSecond rate =
        collective.group.nodes == 1 ? local_rate(collective.group.ranks) : port_rate(1);
    return round_latency(collective, collective.bytes.value / collective.group.ranks) +
           (n - 1) / n * (collective.bytes / rate);
  }

  /// Push and pull of N workers with k servers: the busiest link carries the larger of what one
  /// worker sends, K, and what one server gets, N K / k; a server on a worker's device gets nothing
  /// from itself.
  Seconds server_time(const Collective& collective) const {
    const double workers = collective.group.ranks, servers = collective.servers;
    const double senders = collective.colocated ? workers - 1 : workers;
    const bool all_serve = collective.colocated && collective.servers == collective.group.ranks;
    const double sent = all_serve ? 1 - 1 / servers : 1.0;
    const BytesPerSecond rate = member_rate(collective.group);
    return round_latency(collective, collective.bytes.value / collective.servers) +
           std::max(sent, senders / servers) * (collective.bytes / rate);
  }

  /// All devices of a node share its processor's memory.
  Seconds host_time(const Kernel& kernel) const {
    MW_CHECK(node_.host.has_value());
    return static_cast<double>(node_.device_count) *
           (kernel.memory_traffic / node_.host->memory_bandwidth);
  }

  /// Channels do not depend on the number of nodes beyond one, so the search is done beforehand for
  /// every shape that fits a node: by ranks per node, then by groups per node (0: one node only).
  void find_channels() {
    const int devices = node_.device_count;
    for (int ppn = 1; ppn <= devices; ++ppn) {
      auto& groups = groups_.emplace_back();
      groups.push_back(nccl_group_of(device_, node_, {.ranks = ppn}));
      if (node_.ports == 0) continue;
      for (int count = 1; count <= devices / ppn; ++count)
        groups.push_back(nccl_group_of(device_, node_,
                                       {.ranks = 2 * ppn, .nodes = 2, .groups_per_node = count}));
    }
  }

  NcclGroup group_of(const GroupShape& shape) const {
    const auto ppn = static_cast<std::size_t>((shape.ranks + shape.nodes - 1) / shape.nodes);
    const std::size_t sharing =
        shape.nodes == 1 ? 0 : static_cast<std::size_t>(std::max(1, shape.groups_per_node));
    if (ppn > groups_.size() || sharing >= groups_[ppn - 1].size())
      return nccl_group_of(device_, node_, shape);
    NcclGroup group = groups_[ppn - 1][sharing];
    group.ranks = shape.ranks;
    group.nodes = shape.nodes;
    return group;
  }

  /// What one device sends to others of its node.
  BytesPerSecond local_rate(int ranks_per_node) const {
    if (!device_.compute_capability) return node_.local.bandwidth;
    return kPointToPointShare * nccl_local_bandwidth(device_, node_, ranks_per_node);
  }
  /// What one of `flows` equal messages gets of the node's ports: at most one port.
  BytesPerSecond port_rate(int flows) const {
    MW_CHECK(node_.ports > 0);
    const double share = static_cast<double>(node_.ports) / std::max(1, flows);
    return std::min(1.0, share) * node_.port_bandwidth;
  }

  /// Not in NCCL's tuner. The busiest link decides: each rank sends bytes (p - 1) / n inside its
  /// node and bytes (n - p) / n to other nodes by its share of the ports (p ranks a node of n in
  /// all), both at once; the fabric's oversubscription slows the second. In two hops less crosses
  /// the network, but all that comes from elsewhere is passed on inside: bytes (p - 1) / p.
  Seconds all_to_all_time(const Collective& collective) const {
    const GroupShape& shape = collective.group;
    const double n = shape.ranks, p = n / shape.nodes;
    const auto bytes = static_cast<double>(collective.bytes.value);
    const int ppn = (shape.ranks + shape.nodes - 1) / shape.nodes;
    const bool two_hops = shape.nodes > 1 && collective.sent_across_nodes.value > 0;
    Seconds busiest;
    if (ppn > 1) busiest = Seconds(bytes * (p - 1) / (two_hops ? p : n) / local_rate(ppn).value);
    if (shape.nodes > 1) {
      const BytesPerSecond rate = port_rate(ppn * shape.groups_per_node);
      const double slowed = std::max(1.0, fabric_.oversubscription);
      const double across =
          two_hops ? static_cast<double>(collective.sent_across_nodes.value) : bytes * (n - p) / n;
      busiest = std::max(busiest, Seconds(across * slowed / rate.value));
    }
    const int batches = (shape.ranks - 1 + kPeersPerBatch - 1) / kPeersPerBatch;
    return static_cast<double>(batches) *
               round_latency(collective, collective.bytes.value / shape.ranks) +
           busiest;
  }

  /// Sends to one neighbour, receives from the other. Of a ring that leaves the node one rank's
  /// message does, and shares the ports with the rings beside it; the slower hop sets the pace.
  Seconds ring_exchange_time(const Collective& collective) const {
    const GroupShape& shape = collective.group;
    const int ppn = (shape.ranks + shape.nodes - 1) / shape.nodes;
    Seconds hop = ppn > 1 ? collective.bytes / local_rate(ppn) : Seconds(0.0);
    if (shape.nodes > 1)
      hop = std::max(hop, collective.bytes /
                              port_rate(shape.groups_per_node * collective.node_exits) *
                              std::max(1.0, fabric_.oversubscription));
    return static_cast<double>(collective.rounds) *
           (round_latency(collective, collective.bytes.value) + hop);
  }

  Seconds round_latency(const Collective& collective, std::int64_t message_bytes) const {
    const bool across = collective.group.nodes > 1;
    if (!device_.compute_capability) return across ? fabric_.latency : node_.local.latency;
    const SendLatency& latency = across ? kNetworkSend : kLocalSend;
    const bool small = message_bytes <= kLlBytesPerChannel;
    return small ? latency.ll : latency.simple;
  }

  /// Of the links that a ring over the group passes.
  BytesPerSecond slowest_rate(const GroupShape& shape) const {
    if (shape.nodes == 1) return node_.local.bandwidth;
    const BytesPerSecond port = port_rate(shape.groups_per_node);
    return shape.ranks == shape.nodes ? port : std::min(port, node_.local.bandwidth);
  }

  /// Devices without NCCL: a ring of n ranks, steps * latency + traffic / bandwidth, with 2 (n - 1)
  /// steps of bytes / n for all-reduce, n - 1 for the others (Thakur et al., 2005). The ring's
  /// slowest link decides.
  Seconds plain_ring_time(const Collective& collective) const {
    const GroupShape& shape = collective.group;
    const double n = shape.ranks;
    const bool across = shape.nodes > 1;
    const BytesPerSecond rate = slowest_rate(shape);
    const Seconds hop =
        across ? std::max(fabric_.latency, node_.local.latency) : node_.local.latency;
    const double steps = collective.kind == CollectiveKind::kAllReduce ? 2 * (n - 1) : n - 1;
    const bool to_or_from_one =
        collective.kind == CollectiveKind::kBroadcast || collective.kind == CollectiveKind::kReduce;
    const double traffic = to_or_from_one ? 1.0 : steps / n;
    return steps * hop + traffic * (collective.bytes / rate);
  }

  /// Reduced up a binary tree and handed down again, in a pipeline: ceil(log2 n) hops each way.
  Seconds plain_tree_time(const Collective& collective) const {
    const GroupShape& shape = collective.group;
    const bool across = shape.nodes > 1;
    const BytesPerSecond rate = slowest_rate(shape);
    const Seconds hop = across ? fabric_.latency : node_.local.latency;
    return 2 * std::ceil(std::log2(shape.ranks)) * hop + 2.0 * (collective.bytes / rate);
  }

  NodeModel node_;
  DeviceModel device_;
  Fabric fabric_;
  std::vector<std::vector<NcclGroup>> groups_;
};

}  // namespace

std::unique_ptr<CostModel> make_device_cost_model(const Cluster& cluster) {
  MW_CHECK(!cluster.groups.empty());
  if (!is_homogeneous(cluster)) return make_mixed_cost_model(cluster);
  return std::make_unique<DeviceCostModel>(cluster);
}

}  // namespace meshwright
