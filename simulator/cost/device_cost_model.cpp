#include "simulator/cost/device_cost_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "core/base/check.hpp"
#include "simulator/cost/collective_time.hpp"
#include "simulator/cost/kernel_time.hpp"
#include "simulator/cost/mixed_cost_model.hpp"
#include "simulator/cost/nccl_model.hpp"

namespace meshwright {
namespace {

/// Approximate fraction of NCCL's local link bandwidth that sends and all-to-all reach.
constexpr double kPointToPointShare = 0.9;

/// Latency of NCCL's sends (src/graph/tuning.cc, v2.30.7: base and one hop of a ring). Messages of
/// up to channels * 16 KiB use LL (NCCL_P2P_LL_THRESHOLD), larger ones Simple.
struct SendLatency {
  Seconds ll, simple;
};
constexpr SendLatency kLocalSend = {Seconds(7.2e-6), Seconds(11.8e-6)};
constexpr SendLatency kNetworkSend = {Seconds(9.3e-6), Seconds(22.4e-6)};
constexpr std::int64_t kLlBytesPerChannel = 16384;
/// Peers that NCCL serves concurrently in one batch of sends.
constexpr int kPeersPerBatch = 8;

class DeviceCostModel final : public CostModel {
 public:
  DeviceCostModel(const Cluster& cluster, Trainer trainer)
      : trainer_(std::move(trainer)),
        conditions_{.attention = trainer_.attention},
        node_(cluster.nodes.at(cluster.groups.front().node)),
        device_(cluster.devices.at(node_.device)),
        fabric_(cluster.fabric) {
    if (device_.compute_capability) find_channels();
  }

  Seconds time_of(const Kernel& kernel) const override {
    if (kernel.on_host) return host_time(kernel);
    if (kernel.kind != KernelKind::kMemoryBound && kernel.kind != KernelKind::kOptimizer)
      return accumulates_apart(kernel) ? time_apart(kernel)
                                       : kernel_time(kernel, device_, conditions_);
    return kernel_time(as_launched(kernel), device_, conditions_);
  }

  TrainerMemory memory() const override { return trainer_.memory; }
  HostTimes host_times() const override {
    const HostCosts& host = trainer_.host;
    HostTimes times;
    times.per_step = host.per_step;
    times.messages_block = host.messages_block;
    if (host.cuda_graphs) {
      times.per_pass = host.per_kernel;  // one launch replays the whole pass
      return times;
    }
    times.reads_counts = host.reads_expert_counts;
    times.per_kernel = host.per_kernel;
    times.per_collective = host.per_collective;
    times.per_layer_forward = host.per_layer_forward;
    times.per_layer_backward = host.per_layer_backward;
    return times;
  }
  double launches_of(const Kernel& kernel) const override {
    return CostModel::launches_of(kernel) * trainer_.cost_of(kernel.routine).launches +
           (accumulates_apart(kernel) && accumulation_bytes(kernel) > 0 ? 1 : 0);
  }

  double multiprocessor_share_of(const Collective& collective) const override {
    if (collective.axis != Axis::kExpert || !collective.overlap.other_microbatch) return 0;
    return std::min(1.0, static_cast<double>(trainer_.overlap.expert_multiprocessors) /
                             device_.multiprocessors);
  }

  Seconds time_of(const Collective& collective) const override {
    MW_CHECK(collective.group.ranks >= 1);
    MW_CHECK(collective.group.nodes >= 1);
    const bool has_partner =
        collective.group.ranks > 1 || collective.servers > 0 || is_host_copy(collective.kind);
    if (!has_partner || collective.bytes.value == 0) return Seconds(0.0);
    const Seconds launch =
        includes_launch(collective.kind) ? Seconds(0.0) : device_.launch_overhead;
    if (!is_parameter_shard(collective)) return launch + running_time(collective);
    const OverlapCosts& overlap = trainer_.overlap;
    Collective message = collective;
    message.bytes = Bytes(divide_up(collective.bytes.value, overlap.messages_per_layer));
    const Seconds copies = overlap.copies_by_rank ? copying_time(message) : Seconds(0.0);
    return static_cast<double>(overlap.messages_per_layer) *
           (launch + running_time(message) + copies);
  }

  TransferCost cost_of(const Transfer& transfer) const override {
    if (!transfer.crosses_nodes)
      return {node_.local.latency, transfer.bytes / local_rate(node_.device_count)};
    return {fabric_.latency, transfer.bytes / port_rate(transfer.flows_per_node)};
  }

  std::string provenance() const override {
    return fmt::format("roofline model of {}, {}{}", device_.name,
                       is_measured()                ? "measured collectives"
                       : device_.compute_capability ? "NCCL 2.30 tuning model"
                                                    : "latency + size / bandwidth for collectives",
                       trainer_.name == Trainer().name ? "" : ", trainer " + trainer_.name);
  }

 private:
  /// Weight gradients that are not added up by their GEMM; see GradientAccumulation.
  bool accumulates_apart(const Kernel& kernel) const {
    const bool is_product =
        kernel.kind == KernelKind::kGemm || kernel.kind == KernelKind::kGroupedGemm;
    return is_product && kernel.phase == Phase::kBackwardWeight &&
           !trainer_.gradient_accumulation.is_fused;
  }
  std::int64_t accumulation_bytes(const Kernel& kernel) const {
    const GradientAccumulation& accumulation = trainer_.gradient_accumulation;
    return kernel.dtype == Dtype::kFp16 ? accumulation.fp16_bytes : accumulation.bf16_bytes;
  }
  /// A GEMM that writes 16-bit gradients, then a kernel that adds them.
  Seconds time_apart(const Kernel& kernel) const {
    constexpr std::int64_t kElement = 2;
    Kernel product = kernel;
    product.phase = Phase::kForward;
    product.memory_traffic =
        Bytes(kernel.batch * kElement *
              (kernel.m * kernel.k + kernel.k * kernel.n + kernel.m * kernel.n));
    const Seconds time = kernel_time(product, device_, conditions_);
    if (accumulation_bytes(kernel) == 0) return time;
    Kernel sum;
    sum.phase = Phase::kBackwardWeight;
    sum.routine = Routine::kResidual;
    sum.memory_traffic = Bytes(kernel.batch * kernel.m * kernel.n * accumulation_bytes(kernel));
    return time + kernel_time(sum, device_, conditions_);
  }

  /// With the trainer's memory traffic and number of kernels.
  Kernel as_launched(Kernel kernel) const {
    const RoutineCost& cost = trainer_.cost_of(kernel.routine);
    const double traffic = kernel.phase == Phase::kForward ? cost.forward : cost.backward;
    kernel.memory_traffic =
        Bytes(std::llround(static_cast<double>(kernel.memory_traffic.value) * traffic));
    kernel.launches = static_cast<int>(std::lround(kernel.launches * cost.launches));
    return kernel;
  }

  /// Gathers and reductions of sharded parameters; see core/trainer/trainer.hpp.
  static bool is_parameter_shard(const Collective& collective) {
    return collective.axis == Axis::kData && collective.parameters.part >= 0 &&
           (collective.kind == CollectiveKind::kAllGather ||
            collective.kind == CollectiveKind::kReduceScatter);
  }

  /// The host launches the copies one by one.
  Seconds copying_time(const Collective& message) const {
    const int ranks = message.group.ranks;
    Kernel copy;
    copy.routine = Routine::kResidual;
    copy.memory_traffic = Bytes(2 * divide_up(message.bytes.value, ranks));  // read and written
    return static_cast<double>(ranks) *
           std::max(trainer_.host.per_kernel, kernel_time(copy, device_, conditions_));
  }

  /// Measured parameters of rings and of all-to-all include the launch; other collectives have
  /// none.
  bool includes_launch(CollectiveKind kind) const {
    const TrafficPattern pattern = traits_of(kind).pattern;
    return is_measured() && (is_ring(pattern) || pattern == TrafficPattern::kPairs);
  }
  bool is_measured() const { return device_.collectives && device_.compute_capability; }

  Seconds running_time(const Collective& collective) const {
    switch (traits_of(collective.kind).pattern) {
      case TrafficPattern::kPairs:
        return all_to_all_time(collective);
      case TrafficPattern::kNeighbors:
        return ring_exchange_time(collective);
      case TrafficPattern::kFromFirst:
      case TrafficPattern::kToFirst:
        return rooted_time(collective);
      case TrafficPattern::kToServers:
      case TrafficPattern::kFromServers:
        return server_time(collective);
      case TrafficPattern::kHost:
        MW_CHECK(node_.host.has_value());
        return collective.bytes / node_.host->device_link;
      case TrafficPattern::kRing:
      case TrafficPattern::kPipelinedRing:
        break;
    }
    return reduction_time(collective);
  }

  /// Time of the algorithm that the plan names, or of NCCL's own choice if that algorithm does not
  /// support the collective.
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
    const std::optional<NcclAlgorithm> forced = nccl_algorithm(collective.algorithm, across);
    if (is_measured())
      return collective_time(estimate_collective(group, collective.kind, collective.bytes, forced),
                             *device_.collectives, fabric_.collectives, device_.launch_overhead);
    if (forced) {
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

  /// Reduce-scatter within each node of p ranks, p concurrent inter-node all-reduces of 1 / p of
  /// the buffer, all-gather within each node.
  Seconds hierarchical_time(const Collective& collective) const {
    const GroupShape& shape = collective.group;
    const int ppn = divide_up(shape.ranks, shape.nodes);
    Collective part = collective;
    part.algorithm = CollectiveAlgorithm::kAutomatic;
    part.kind = CollectiveKind::kReduceScatter;
    part.group = {.ranks = ppn, .nodes = 1, .groups_per_node = 1};
    const Seconds scatter = running_time(part);
    part.kind = CollectiveKind::kAllGather;
    const Seconds gather = running_time(part);
    part.kind = CollectiveKind::kAllReduce;
    part.bytes = Bytes(divide_up(collective.bytes.value, ppn));
    part.group = {
        .ranks = shape.nodes, .nodes = shape.nodes, .groups_per_node = ppn * shape.groups_per_node};
    return scatter + running_time(part) + gather;
  }

  /// Bandwidth per device of a group whose members all communicate at the same time.
  BytesPerSecond member_rate(const GroupShape& shape) const {
    if (shape.nodes == 1) return local_rate(shape.ranks);
    return port_rate(divide_up(shape.ranks, shape.nodes) * shape.groups_per_node);
  }

  /// Scatter and gather: everything but the first member's own part crosses its link.
  Seconds rooted_time(const Collective& collective) const {
    const double n = collective.group.ranks;
    const BytesPerSecond rate =
        collective.group.nodes == 1 ? local_rate(collective.group.ranks) : port_rate(1);
    return round_latency(collective, collective.bytes.value / collective.group.ranks) +
           (n - 1) / n * (collective.bytes / rate);
  }

  /// Push and pull of N workers with k servers: the busiest link carries the larger of what one
  /// worker sends, K, and what one server receives, N K / k. A colocated server receives nothing
  /// from the worker on its own device.
  Seconds server_time(const Collective& collective) const {
    const double workers = collective.group.ranks, servers = collective.servers;
    const double senders = collective.colocated ? workers - 1 : workers;
    const bool all_serve = collective.colocated && collective.servers == collective.group.ranks;
    const double sent = all_serve ? 1 - 1 / servers : 1.0;
    const BytesPerSecond rate = member_rate(collective.group);
    return round_latency(collective, collective.bytes.value / collective.servers) +
           std::max(sent, senders / servers) * (collective.bytes / rate);
  }

  /// The devices of a node share the host's memory bandwidth.
  Seconds host_time(const Kernel& kernel) const {
    MW_CHECK(node_.host.has_value());
    return static_cast<double>(node_.device_count) *
           (kernel.memory_traffic / node_.host->memory_bandwidth);
  }

  /// Channels depend on whether there are several nodes, but not on how many. So the search runs
  /// once for every shape that fits a node: by ranks per node, then by groups per node (0: a single
  /// node).
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
    const auto ppn = static_cast<std::size_t>(divide_up(shape.ranks, shape.nodes));
    const std::size_t sharing =
        shape.nodes == 1 ? 0 : static_cast<std::size_t>(std::max(1, shape.groups_per_node));
    if (ppn > groups_.size() || sharing >= groups_[ppn - 1].size())
      return nccl_group_of(device_, node_, shape);
    NcclGroup group = groups_[ppn - 1][sharing];
    group.ranks = shape.ranks;
    group.nodes = shape.nodes;
    return group;
  }

  /// Bandwidth from one device to the others in its node.
  BytesPerSecond local_rate(int ranks_per_node) const {
    if (!device_.compute_capability) return node_.local.bandwidth;
    return kPointToPointShare * nccl_local_bandwidth(device_, node_, ranks_per_node);
  }
  /// Share of the node's ports for each of `flows` equal messages: at most one port.
  BytesPerSecond port_rate(int flows) const {
    MW_CHECK(node_.ports > 0);
    const double share = static_cast<double>(node_.ports) / std::max(1, flows);
    return std::min(1.0, share) * node_.port_bandwidth;
  }

  /// Not covered by NCCL's tuning model. The busiest link sets the time: of n ranks, p per node,
  /// each sends bytes (p - 1) / n within its node and, at the same time, bytes (n - p) / n to other
  /// nodes through its share of the ports; the fabric's oversubscription slows down the latter. A
  /// two-hop all-to-all sends less between nodes, but forwards what arrives within the node: bytes
  /// (p - 1) / p.
  Seconds all_to_all_time(const Collective& collective) const {
    const GroupShape& shape = collective.group;
    const double n = shape.ranks, p = n / shape.nodes;
    const auto bytes = static_cast<double>(collective.bytes.value);
    const int ppn = divide_up(shape.ranks, shape.nodes);
    const bool two_hops = shape.nodes > 1 && collective.sent_across_nodes.value > 0;
    const int batches = (shape.ranks - 1 + kPeersPerBatch - 1) / kPeersPerBatch;
    const std::int64_t message = collective.bytes.value / shape.ranks;
    AllToAllEstimate estimate{.batches = batches,
                              .small = message <= kLlBytesPerChannel,
                              .batch_latency = round_latency(collective, message),
                              .local = {},
                              .own = {},
                              .across = {}};
    const double local_bytes = bytes * (p - 1) / (two_hops ? p : n);
    if (shape.nodes > 1) {
      const BytesPerSecond rate = port_rate(ppn * shape.groups_per_node);
      const double slowed = std::max(1.0, fabric_.oversubscription);
      const double across =
          two_hops ? static_cast<double>(collective.sent_across_nodes.value) : bytes * (n - p) / n;
      estimate.across = Seconds(across * slowed / rate.value);
    }
    if (is_measured()) {
      const bool pcie = node_.local.kind == LocalNetworkKind::kPcie;
      const BytesPerSecond link = nccl_local_bandwidth(device_, node_, pcie ? 1 : ppn);
      estimate.local = Seconds(local_bytes / link.value);
      estimate.own = Seconds(bytes / n / link.value);
      return exchange_time(estimate, *device_.collectives, fabric_.collectives,
                           device_.launch_overhead);
    }
    if (ppn > 1) estimate.local = Seconds(local_bytes / local_rate(ppn).value);
    return static_cast<double>(batches) * estimate.batch_latency +
           std::max(estimate.local, estimate.across);
  }

  /// Each rank sends to one neighbor and receives from the other. `node_exits` messages of a ring
  /// leave each node and share its ports with the other rings; the slower hop sets the pace.
  Seconds ring_exchange_time(const Collective& collective) const {
    const GroupShape& shape = collective.group;
    const int ppn = divide_up(shape.ranks, shape.nodes);
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

  /// Bandwidth of the slowest link on a ring over the group.
  BytesPerSecond slowest_rate(const GroupShape& shape) const {
    if (shape.nodes == 1) return node_.local.bandwidth;
    const BytesPerSecond port = port_rate(shape.groups_per_node);
    return shape.ranks == shape.nodes ? port : std::min(port, node_.local.bandwidth);
  }

  /// Devices without NCCL: a ring of n ranks, steps * latency + traffic / bandwidth, with 2 (n - 1)
  /// steps of bytes / n for all-reduce, n - 1 for the others (Thakur et al., 2005); broadcast and
  /// reduce move the whole buffer. The bandwidth is that of the ring's slowest link.
  Seconds plain_ring_time(const Collective& collective) const {
    const GroupShape& shape = collective.group;
    const double n = shape.ranks;
    const bool across = shape.nodes > 1;
    const BytesPerSecond rate = slowest_rate(shape);
    const Seconds hop =
        across ? std::max(fabric_.latency, node_.local.latency) : node_.local.latency;
    const bool pipelined = traits_of(collective.kind).pattern == TrafficPattern::kPipelinedRing;
    const double steps = ring_steps(collective.kind, n);
    return (pipelined ? n - 1 : steps) * hop + steps / n * (collective.bytes / rate);
  }

  /// Pipelined reduction up a binary tree and broadcast down it: ceil(log2 n) hops each way.
  Seconds plain_tree_time(const Collective& collective) const {
    const GroupShape& shape = collective.group;
    const bool across = shape.nodes > 1;
    const BytesPerSecond rate = slowest_rate(shape);
    const Seconds hop = across ? fabric_.latency : node_.local.latency;
    return 2 * std::ceil(std::log2(shape.ranks)) * hop + 2.0 * (collective.bytes / rate);
  }

  Trainer trainer_;
  KernelConditions conditions_;
  NodeModel node_;
  DeviceModel device_;
  Fabric fabric_;
  std::vector<std::vector<NcclGroup>> groups_;
};

}  // namespace

std::unique_ptr<CostModel> make_device_cost_model(const Cluster& cluster, const Trainer& trainer) {
  MW_CHECK(!cluster.groups.empty());
  if (!is_homogeneous(cluster)) return make_mixed_cost_model(cluster, trainer);
  return std::make_unique<DeviceCostModel>(cluster, trainer);
}

}  // namespace meshwright
