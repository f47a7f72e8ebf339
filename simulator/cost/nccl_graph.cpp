// Channels and their bandwidth, after NCCL's search (src/graph/search.cc, v2.30.7).
//
// NCCL tries the speeds of a list, highest first, and counts how many channels of that speed the
// links can carry; the first speed is chosen unless a lower one (down to half of it) gives more
// total bandwidth. Then, at 25 GB/s and above, channels are doubled at half the speed; on devices
// newer than Ampere with more than four channels only at 50 GB/s and above.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/base/check.hpp"
#include "simulator/cost/nccl_model.hpp"

namespace meshwright {
namespace {

constexpr double kGiga = 1e9;
constexpr int kMaxChannels = 32;

// Speeds that the search tries, GB/s.
constexpr std::array kIntraSpeeds = {40., 30., 20., 18., 15., 12., 10., 9., 7., 6., 5., 4., 3.};
constexpr std::array kInterSpeeds = {48., 30., 28., 24., 20., 18., 15., 12., 10., 9.,
                                     7.,  6.,  5.,  4.,  3.,  2.4, 1.2, .24, .12};
constexpr std::array kHopperIntraSpeeds = {60., 50., 40., 30., 24., 20., 15., 12., 11., 6., 3.};
constexpr std::array kHopperInterSpeeds = {48., 45., 42., 40., 30., 24., 22., 20., 17.5,
                                           15., 12., 6.,  3.,  2.4, 1.2, .24, .12};
constexpr std::array kBlackwellIntraSpeeds = {90., 80., 70., 60., 50., 45.,
                                              40., 30., 24., 20., 19., 18.};
constexpr std::array kBlackwellInterSpeeds = {96., 86.,  80., 48., 45.1, 42., 40., 30., 24., 22.,
                                              20., 17.5, 15., 12., 6.,   3.,  2.4, 1.2, .24, .12};

std::span<const double> speeds(int compute_capability, bool across_nodes) {
  if (compute_capability >= 100) {
    if (across_nodes) return kBlackwellInterSpeeds;
    return kBlackwellIntraSpeeds;
  }
  if (compute_capability >= 90) {
    if (across_nodes) return kHopperInterSpeeds;
    return kHopperIntraSpeeds;
  }
  if (across_nodes) return kInterSpeeds;
  return kIntraSpeeds;
}

/// What the links of one group can carry.
struct LinkBudget {
  int compute_capability = 80;
  int ranks_per_node = 1;
  bool across_nodes = false;
  double local = 0;  ///< GB/s per device
  int ports = 0;     ///< network ports that the group may use in each node
  double port = 0;   ///< GB/s per port
};

/// Number of link-disjoint rings through the first n devices of the hybrid cube mesh of eight V100s
/// with six links each (DGX-1, p3.16xlarge). With five devices none exists, since device 4 is
/// connected to device 0 only; NCCL then builds two rings that pass through a device twice.
constexpr std::array<double, 9> kMeshRings = {6, 6, 1, 2, 4, 2, 2, 4, 6};

int whole(double quotient) {
  constexpr double kSlack = 1e-9;  // 240 / 20 must count as 12
  return static_cast<int>(std::min(1e6, std::floor(quotient + kSlack)));
}

/// Channels of a ring or a tree at this speed. An inter-node channel leaves each node once, through
/// a port, so it loads a device's local links only (ranks - 1) / ranks of the time on average.
int channels_at(double speed, const LinkBudget& budget) {
  int channels = kMaxChannels;
  const double ppn = budget.ranks_per_node;
  if (budget.across_nodes) channels = std::min(channels, budget.ports * whole(budget.port / speed));
  if (budget.ranks_per_node > 1) {
    const double load = budget.across_nodes ? (ppn - 1) / ppn : 1.0;
    channels = std::min(channels, whole(budget.local / (speed * load)));
  }
  return channels;
}

NcclGraph doubled(NcclGraph graph, int compute_capability) {
  constexpr double kWorthDoubling = 25.0, kWorthDoublingMany = 50.0;
  const double speed = graph.intra.value / kGiga;
  const bool many = compute_capability > 80 && graph.channels > 4;
  if (speed < kWorthDoubling || (many && speed < kWorthDoublingMany)) return graph;
  if (2 * graph.channels > kMaxChannels) return graph;
  return {2 * graph.channels, graph.intra / 2.0, graph.inter / 2.0};
}

NcclGraph search_ring(const LinkBudget& budget) {
  constexpr double kLeastShareOfFirst = 0.49;
  double first = 0, best = 0;
  int best_channels = 0;
  for (const double speed : speeds(budget.compute_capability, budget.across_nodes)) {
    if (best_channels > 0 && speed < kLeastShareOfFirst * first) break;
    const int channels = channels_at(speed, budget);
    if (channels == 0) continue;
    if (best_channels == 0) first = speed;
    if (channels * speed <= best_channels * best) continue;
    best = speed;
    best_channels = channels;
  }
  if (best_channels == 0) {  // links slower than every listed speed: one channel at link speed
    best = budget.across_nodes ? budget.port : budget.local;
    best_channels = 1;
  }
  const BytesPerSecond rate(best * kGiga);
  return doubled({best_channels, rate, rate}, budget.compute_capability);
}

/// Inter-node tree: the ring's channels, with the intra-node speed raised as far as the local links
/// allow, up to about twice the inter-node speed.
NcclGraph search_tree(const LinkBudget& budget) {
  NcclGraph tree = search_ring(budget);
  if (!budget.across_nodes || budget.ranks_per_node == 1) return tree;
  const std::span<const double> list = speeds(budget.compute_capability, true);
  const double inter = tree.inter.value / kGiga;
  const double ppn = budget.ranks_per_node;
  for (std::size_t i = list.size(); i-- > 0;) {
    if (list[i] <= tree.intra.value / kGiga) continue;
    const bool fits = tree.channels * list[i] * (ppn - 1) / ppn <= budget.local;
    if (!fits || tree.intra.value / kGiga >= 2 * inter) break;
    tree.intra = BytesPerSecond(list[i] * kGiga);
  }
  return tree;
}

/// NVLS: every device is the head of one channel and takes part in all; a head carries twice the
/// traffic. The inter speed is then raised, up to about twice the intra speed, as far as the ports
/// allow.
NcclGraph search_nvls(const LinkBudget& budget) {
  const std::span<const double> list = speeds(budget.compute_capability, budget.across_nodes);
  int channels = std::min(kMaxChannels, budget.ranks_per_node);
  if (budget.across_nodes) channels = std::min(channels, budget.ports);
  if (channels < 2) return {};
  const auto fits_ports = [&](double speed) {
    return !budget.across_nodes || speed * channels <= budget.port * budget.ports;
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    if ((channels + 1) * list[i] > budget.local || !fits_ports(list[i])) continue;
    double inter = list[i];
    for (std::size_t j = i; j-- > 0 && inter < 2 * list[i] && fits_ports(list[j]);) inter = list[j];
    return {channels, BytesPerSecond(list[i] * kGiga), BytesPerSecond(inter * kGiga)};
  }
  return {};
}

}  // namespace

BytesPerSecond nccl_local_bandwidth(const DeviceModel& device, const NodeModel& node,
                                    int ranks_per_node) {
  const double datasheet = node.local.bandwidth.value;
  const int capability = device.compute_capability.value_or(0);
  if (node.local.kind == LocalNetworkKind::kPcie) {
    constexpr double kOfDatasheet = 0.75, kGeneration5 = 48e9;
    constexpr BytesPerSecond kAmd(16e9), kIntel(10e9), kIntelGeneration5(22e9);
    const BytesPerSecond link(kOfDatasheet * datasheet);
    if (2 * ranks_per_node <= node.device_count) return link;  // within one socket
    if (node.cpu == CpuVendor::kAmd) return std::min(link, kAmd);
    if (node.cpu != CpuVendor::kIntel) return link;
    return std::min(link, link.value >= kGeneration5 ? kIntelGeneration5 : kIntel);
  }
  double share = 20.0 / 25.0;
  if (capability >= 90) share = 20.6 / 25.0;
  if (capability >= 100) share = 40.1 / 50.0;
  if (node.local.kind == LocalNetworkKind::kNvLinkMesh && ranks_per_node <= 8)
    share *= kMeshRings[static_cast<std::size_t>(ranks_per_node)] / 6.0;
  return BytesPerSecond(share * datasheet);
}

NcclGroup nccl_group_of(const DeviceModel& device, const NodeModel& node, const GroupShape& shape) {
  MW_CHECK(device.compute_capability.has_value());
  MW_CHECK(shape.nodes >= 1);
  MW_CHECK(shape.ranks >= shape.nodes);
  NcclGroup group;
  group.compute_capability = *device.compute_capability;
  group.ranks = shape.ranks;
  group.nodes = shape.nodes;
  group.over_pcie = node.local.kind == LocalNetworkKind::kPcie;
  group.cpu = node.cpu;
  if (group.over_pcie) group.pcie_link = nccl_local_bandwidth(device, node, 1);

  LinkBudget budget;
  budget.compute_capability = group.compute_capability;
  budget.ranks_per_node = divide_up(shape.ranks, shape.nodes);
  budget.across_nodes = shape.nodes > 1;
  budget.local = nccl_local_bandwidth(device, node, budget.ranks_per_node).value / kGiga;
  if (budget.across_nodes) {
    MW_CHECK(node.ports > 0);
    const double share = static_cast<double>(node.ports) / std::max(1, shape.groups_per_node);
    // Each device uses the ports close to it.
    const int near = (budget.ranks_per_node * node.ports + node.device_count - 1) /
                     std::max(1, node.device_count);
    budget.ports = std::clamp(whole(share), 1, std::max(1, near));
    budget.port = node.port_bandwidth.value / kGiga * std::min(1.0, share);
    group.network = BytesPerSecond(budget.ports * budget.port * kGiga);
  }
  group.ring = search_ring(budget);
  group.tree = search_tree(budget);
  constexpr int kFirstWithNvls = 90;
  if (node.local.in_network_reduction && group.compute_capability >= kFirstWithNvls) {
    group.nvls = search_nvls(budget);
    budget.across_nodes = false;
    group.local_nvls = search_nvls(budget);
  }
  return group;
}

}  // namespace meshwright
