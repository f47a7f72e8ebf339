#include "simulator/cost/nccl_model.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "core/base/check.hpp"
#include "core/base/value_named.hpp"

namespace meshwright {
namespace {

// Units inside this file: GB/s and microseconds, as in NCCL's tables.

enum Generation { kVolta, kAmpere, kHopper, kBlackwell };
Generation generation_of(int compute_capability) {
  if (compute_capability >= 100) return kBlackwell;
  if (compute_capability >= 90) return kHopper;
  return compute_capability >= 80 ? kAmpere : kVolta;
}

/// Columns: one node, two nodes, more than two.
using ByNodes = std::array<double, 3>;
using ByGeneration = std::array<ByNodes, 4>;
std::size_t node_column(const NcclGroup& group) {
  return static_cast<std::size_t>(std::min(group.nodes, 3) - 1);
}

// Bandwidth limits. LL: total of all channels; on one node by GPU generation, across nodes by CPU
// vendor.
constexpr std::array<double, 4> kLlMaxOneNode = {39.0, 87.7, 141.0, 282.0};
constexpr ByNodes kLlMaxAcrossIntel = {39.0, 39.0, 20.4};
constexpr ByNodes kLlMaxAcrossAmd = {22.5, 22.5, 19.0};
// The other limits are per channel.
constexpr ByGeneration kRingLl128Max = {
    {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 36.7}, {40.0, 40.0, 40.0}}};
constexpr ByGeneration kTreeLl128Max = {
    {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}};
constexpr ByGeneration kTreeMax = {
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}};
constexpr ByGeneration kNvlsTreeMax = {
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0.0, 57.7, 45.5}, {0.0, 96.0, 80.0}}};

/// LL, LL128, Simple.
using ByProtocol = std::array<double, kNcclProtocolCount>;
/// In the order of NcclAlgorithm.
using LatencyTable = std::array<ByProtocol, kNcclAlgorithmCount>;
constexpr LatencyTable kBase = {
    {{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}, {0, 0, 0}, {0, 0, 0}, {8.0, 8.0, 8.0}}};
constexpr LatencyTable kNvLinkHop = {
    {{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}, {0, 0, 25.0}, {0, 0, 25.0}, {0, 0, 4.0}}};
constexpr LatencyTable kPcieHop = {
    {{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, {0, 0, 0}, {0, 0, 0}, {0, 0, 4.0}}};
constexpr LatencyTable kNetworkHop = {
    {{5.0, 8.5, 14.0}, {2.7, 4.0, 14.0}, {0, 0, 18.0}, {0, 0, 20.9}, {0, 0, 14.0}}};

// Fraction of their bandwidth that trees reach, by size class floor(log2(bytes / 64)).
constexpr std::size_t kSizeClasses = 23;
constexpr std::array<std::array<double, kSizeClasses>, kNcclProtocolCount> kTreeBySize = {
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};

double tree_by_size(NcclProtocol protocol, double bytes) {
  const auto blocks = static_cast<std::uint64_t>(bytes / 64.0);
  const auto size_class = static_cast<std::size_t>(blocks == 0 ? 0 : std::bit_width(blocks) - 1);
  if (size_class >= kSizeClasses) return 1.0;
  return kTreeBySize[static_cast<std::size_t>(protocol)][size_class];
}

double in_gbps(BytesPerSecond rate) { return rate.value * 1e-9; }
int floor_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1; }
double ranks_per_node(const NcclGroup& group) {
  return static_cast<double>(group.ranks) / group.nodes;
}

double total_bandwidth(const NcclGroup& group, const NcclGraph& graph) {
  return graph.channels * in_gbps(group.nodes <= 2 ? graph.intra : graph.inter);
}

double ll_max(const NcclGroup& group) {
  if (group.nodes == 1)
    return kLlMaxOneNode[static_cast<std::size_t>(generation_of(group.compute_capability))];
  const ByNodes& row = group.cpu == CpuVendor::kAmd ? kLlMaxAcrossAmd : kLlMaxAcrossIntel;
  return row[node_column(group)];
}

double ring_bandwidth(const NcclGroup& group, CollectiveKind kind, NcclProtocol protocol) {
  const double bus = total_bandwidth(group, group.ring);
  const auto generation = static_cast<std::size_t>(generation_of(group.compute_capability));
  const double conversion = group.ranks / ring_steps(kind, group.ranks);
  switch (protocol) {
    case NcclProtocol::kLl:
      return std::min(ll_max(group), 0.5 * bus) * conversion;
    case NcclProtocol::kLl128:
      return std::min(0.92 * bus,
                      group.ring.channels * kRingLl128Max[generation][node_column(group)]) *
             conversion;
    case NcclProtocol::kSimple:
      return bus * conversion;
  }
  return 0;
}

double tree_bandwidth(const NcclGroup& group, NcclProtocol protocol, double bytes) {
  const auto generation = static_cast<std::size_t>(generation_of(group.compute_capability));
  const std::size_t column = node_column(group);
  const double channels = group.tree.channels;
  double bus =
      std::min(0.92 * total_bandwidth(group, group.tree), channels * kTreeMax[generation][column]);
  if (protocol == NcclProtocol::kLl) bus = std::min(bus / 3.8, ll_max(group));
  if (protocol == NcclProtocol::kLl128)
    bus = std::min(bus * (group.nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                   channels * kTreeLl128Max[generation][column]);
  // With one device per node the search falls back to a plain tree, whose traffic shares one port.
  if (group.nodes > 1 && group.ranks == group.nodes) bus *= 0.85;
  return 0.5 * bus * tree_by_size(protocol, bytes);
}

/// Of one channel, GB/s, before a reduction in the switch halves the traffic.
double nvls_channel_rate(const NcclGraph& graph, int compute_capability) {
  const double efficiency = generation_of(compute_capability) == kBlackwell ? 0.74 : 0.85;
  return in_gbps(graph.intra) * efficiency * (graph.channels - 1) / graph.channels;
}

/// NVLS in one node, NVLSTree across nodes: the switch does the reduction.
double nvls_bandwidth(const NcclGroup& group, CollectiveKind kind, double bytes) {
  const Generation generation = generation_of(group.compute_capability);
  const double channels = group.nvls.channels, ppn = ranks_per_node(group);
  const bool all_reduce = kind == CollectiveKind::kAllReduce;
  double intra = nvls_channel_rate(group.nvls, group.compute_capability);
  intra *= all_reduce ? 2.0 : (ppn - 1) / ppn;
  double inter = in_gbps(group.nvls.inter);
  if (group.nodes == 1) {
    const double bus = channels * std::min(intra, inter);
    return all_reduce ? bus * group.ranks / ring_steps(kind, group.ranks) : bus;
  }
  if (group.nodes == 2) inter *= 2.0;
  const double most = kNvlsTreeMax[static_cast<std::size_t>(generation)][node_column(group)];
  double bus = channels * std::min({intra, inter, most});
  if (generation == kBlackwell && group.cpu != CpuVendor::kArm)
    bus *= tree_by_size(NcclProtocol::kSimple, bytes);
  return bus * group.ranks / ring_steps(kind, group.ranks);
}

double bandwidth(const NcclGroup& group, CollectiveKind kind, double bytes, NcclAlgorithm algorithm,
                 NcclProtocol protocol) {
  switch (algorithm) {
    case NcclAlgorithm::kTree:
      return tree_bandwidth(group, protocol, bytes);
    case NcclAlgorithm::kRing:
      return ring_bandwidth(group, kind, protocol);
    case NcclAlgorithm::kNvls:
    case NcclAlgorithm::kNvlsTree:
      return nvls_bandwidth(group, kind, bytes);
    case NcclAlgorithm::kPat:
      return 0.75 * total_bandwidth(group, group.ring);
  }
  return 0;
}

struct Hops {
  double base = 0, intra = 0, inter = 0;  ///< us
};

/// Latency in us: the base, and all consecutive hops within and between nodes.
struct Latency {
  double base = 0, local = 0, network = 0;
};

Latency ring_latency(const NcclGroup& group, CollectiveKind kind, NcclProtocol protocol,
                     const Hops& hop, double bytes) {
  if (traits_of(kind).pattern == TrafficPattern::kPipelinedRing) {  // only the first hop is visible
    if (group.nodes > 1) return {hop.base, 0, hop.inter};
    return {hop.base, hop.intra, 0};
  }
  const double all = ring_steps(kind, group.ranks), across = ring_steps(kind, group.nodes);
  double inside = hop.intra;
  if (group.nodes > 1) {  // CPU overhead of driving the network
    const double overhead = group.cpu == CpuVendor::kAmd ? 2.0 : 1.0;
    inside = std::max(inside, protocol == NcclProtocol::kSimple ? 3 * overhead : overhead);
  }
  Latency latency = {hop.base, (all - across) * inside, across * hop.inter};
  // Large rings with Simple have a plateau until the channels are full.
  const double bytes_per_step = bytes / (group.ring.channels * group.ranks);
  if (protocol == NcclProtocol::kSimple && kind == CollectiveKind::kAllReduce && group.nodes > 1 &&
      bytes_per_step >= 64.0) {
    const double plateau = group.compute_capability >= 80 ? 1.4 : 1.9;
    latency = {latency.base * plateau, latency.local * plateau, latency.network * plateau};
  }
  return latency;
}

Latency latency(const NcclGroup& group, CollectiveKind kind, double bytes, NcclAlgorithm algorithm,
                NcclProtocol protocol) {
  const auto a = static_cast<std::size_t>(algorithm);
  const auto p = static_cast<std::size_t>(protocol);
  const double ppn = ranks_per_node(group), levels = floor_log2(group.nodes);
  const bool alone_on_node = group.ranks == group.nodes;
  Hops hop = {kBase[a][p], (group.over_pcie ? kPcieHop : kNvLinkHop)[a][p], kNetworkHop[a][p]};
  if (algorithm == NcclAlgorithm::kRing && alone_on_node)
    hop.inter = kNetworkHop[static_cast<std::size_t>(NcclAlgorithm::kTree)][p];
  switch (algorithm) {
    case NcclAlgorithm::kTree:
      return {hop.base, 2 * (ppn - 1) * hop.intra, 2 * levels * hop.inter};
    case NcclAlgorithm::kRing:
      return ring_latency(group, kind, protocol, hop, bytes);
    case NcclAlgorithm::kNvls:
      return {hop.base, hop.intra, 0};
    case NcclAlgorithm::kNvlsTree:
      return {hop.base, hop.intra, 2 * levels * hop.inter};
    case NcclAlgorithm::kPat:
      return {hop.base + 2.8 * group.ranks, 0, levels * hop.inter / 3.5};
  }
  return {};
}

bool enabled(const NcclGroup& group, CollectiveKind kind, NcclAlgorithm algorithm,
             NcclProtocol protocol) {
  const bool simple = protocol == NcclProtocol::kSimple;
  const bool all_reduce = kind == CollectiveKind::kAllReduce;
  const bool gathers = kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter;
  switch (algorithm) {
    case NcclAlgorithm::kTree:
      if (!all_reduce || group.tree.channels == 0) return false;
      break;
    case NcclAlgorithm::kRing:
      break;
    case NcclAlgorithm::kNvls:
      return simple && group.nodes == 1 && (all_reduce || gathers) && group.nvls.channels >= 2;
    case NcclAlgorithm::kNvlsTree:
      return simple && group.nodes > 1 && all_reduce && group.nvls.channels >= 2;
    case NcclAlgorithm::kPat:
      return simple && group.nodes > 1 && gathers && group.ranks == group.nodes;
  }
  return protocol != NcclProtocol::kLl128 || (!group.over_pcie && group.compute_capability >= 70);
}

}  // namespace

std::string_view name_of(NcclAlgorithm algorithm) {
  constexpr std::array<std::string_view, kNcclAlgorithmCount> kNames{"tree", "ring", "nvls",
                                                                     "nvlstree", "pat"};
  return entry_of(kNames, algorithm);
}

std::string_view name_of(NcclProtocol protocol) {
  constexpr std::array<std::string_view, kNcclProtocolCount> kNames{"LL", "LL128", "Simple"};
  return entry_of(kNames, protocol);
}

std::optional<NcclEstimate> nccl_estimate(const NcclGroup& group, CollectiveKind kind, Bytes bytes,
                                          NcclAlgorithm algorithm, NcclProtocol protocol) {
  if (!enabled(group, kind, algorithm, protocol)) return std::nullopt;
  const auto size = static_cast<double>(bytes.value);
  const Latency us = latency(group, kind, size, algorithm, protocol);
  return NcclEstimate{Seconds(1e-6 * us.base), Seconds(1e-6 * us.local), Seconds(1e-6 * us.network),
                      BytesPerSecond(1e9 * bandwidth(group, kind, size, algorithm, protocol))};
}

std::optional<Seconds> nccl_time(const NcclGroup& group, CollectiveKind kind, Bytes bytes,
                                 NcclAlgorithm algorithm, NcclProtocol protocol) {
  if (!enabled(group, kind, algorithm, protocol)) return std::nullopt;
  const auto size = static_cast<double>(bytes.value);
  const Latency fixed = latency(group, kind, size, algorithm, protocol);
  const double us = fixed.base + fixed.local + fixed.network +
                    size / (1000.0 * bandwidth(group, kind, size, algorithm, protocol));
  return Seconds(1e-6 * us);
}

NcclChoice nccl_choice(const NcclGroup& group, CollectiveKind kind, Bytes bytes) {
  MW_CHECK(group.ranks >= 2);
  std::optional<NcclChoice> best;
  for (int a = 0; a < kNcclAlgorithmCount; ++a)
    for (int p = 0; p < kNcclProtocolCount; ++p) {
      const auto algorithm = static_cast<NcclAlgorithm>(a);
      const auto protocol = static_cast<NcclProtocol>(p);
      const std::optional<Seconds> time = nccl_time(group, kind, bytes, algorithm, protocol);
      if (time && (!best || *time < best->time)) best = {*time, algorithm, protocol};
    }
  MW_CHECK(best.has_value());
  return *best;
}

BytesPerSecond nccl_local_nvls_bandwidth(const NcclGroup& group, CollectiveKind kind) {
  const NcclGraph& graph = group.local_nvls;
  const double ppn = ranks_per_node(group);
  double bus = graph.channels * nvls_channel_rate(graph, group.compute_capability);
  if (kind != CollectiveKind::kAllReduce) return BytesPerSecond(1e9 * bus * (ppn - 1) / ppn);
  bus *= 2.0 * group.ranks / ring_steps(kind, group.ranks);
  return BytesPerSecond(1e9 * bus);
}

}  // namespace meshwright
