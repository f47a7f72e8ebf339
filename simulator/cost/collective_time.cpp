#include "simulator/cost/collective_time.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// On one node no network limits NVLS.
NcclGroup without_network_limit(NcclGroup group) {
  if (group.nodes == 1) group.nvls.inter = 2.0 * group.nvls.intra;
  return group;
}

struct Pair {
  NcclAlgorithm algorithm;
  NcclProtocol protocol;
};
Pair choose_pair(const NcclGroup& group, CollectiveKind kind, Bytes bytes,
                 std::optional<NcclAlgorithm> wanted) {
  std::optional<Seconds> least;
  Pair pair{};
  for (int p = 0; wanted && p < kNcclProtocolCount; ++p) {
    const auto protocol = static_cast<NcclProtocol>(p);
    const std::optional<Seconds> time = nccl_time(group, kind, bytes, *wanted, protocol);
    if (!time || (least && *least <= *time)) continue;
    least = time;
    pair = {*wanted, protocol};
  }
  if (least) return pair;
  const NcclChoice choice = nccl_choice(group, kind, bytes);
  return {choice.algorithm, choice.protocol};
}

}  // namespace

Seconds blended_time(Seconds fixed, Seconds transfer, double blend) {
  MW_CHECK(blend > 0);
  const double larger = std::max(fixed.value, transfer.value);
  if (blend == 1.0 || larger == 0.0) return fixed + transfer;
  const double smaller = std::min(fixed.value, transfer.value);
  return Seconds(larger * std::pow(1 + std::pow(smaller / larger, blend), 1 / blend));
}

CollectiveEstimate estimate_collective(const NcclGroup& tuner_group, CollectiveKind kind,
                                       Bytes bytes, std::optional<NcclAlgorithm> algorithm) {
  const NcclGroup group = without_network_limit(tuner_group);
  const Pair pair = choose_pair(group, kind, bytes, algorithm);
  const std::optional<NcclEstimate> nccl =
      nccl_estimate(group, kind, bytes, pair.algorithm, pair.protocol);
  MW_CHECK(nccl.has_value());
  CollectiveEstimate estimate{.algorithm = pair.algorithm,
                              .protocol = pair.protocol,
                              .base = nccl->base,
                              .local_hops = nccl->local_hops,
                              .network_hops = nccl->network_hops,
                              .transfer = bytes / nccl->bandwidth,
                              .switch_transfer = {},
                              .across_nodes = group.nodes > 1};
  const bool moves_shards = traits_of(kind).pattern == TrafficPattern::kRing;
  if (pair.algorithm == NcclAlgorithm::kRing && !estimate.across_nodes && moves_shards)
    estimate.ring_steps = ring_steps(kind, group.ranks);
  if (group.over_pcie && !estimate.across_nodes) {
    const double half = pair.protocol == NcclProtocol::kLl ? 0.5 : 1.0;
    const double conversion = group.ranks / ring_steps(kind, group.ranks);
    estimate.transfer = bytes / (half * conversion * group.pcie_link);
    estimate.crowded = group.ranks > 2;
  }
  if (pair.algorithm == NcclAlgorithm::kNvlsTree) {
    const double ports = group.nodes == 2 ? 2.0 : 1.0;
    const double conversion = group.ranks / ring_steps(kind, group.ranks);
    estimate.transfer = bytes / (ports * conversion * group.network);
    estimate.switch_transfer = bytes / nccl_local_nvls_bandwidth(group, kind);
  }
  return estimate;
}

const ProtocolParameters& parameters_for(const CollectiveEstimate& estimate,
                                         const CollectiveParameters& device) {
  if (estimate.algorithm == NcclAlgorithm::kNvls || estimate.algorithm == NcclAlgorithm::kNvlsTree)
    return device.nvls;
  switch (estimate.protocol) {
    case NcclProtocol::kLl:
      return device.ll;
    case NcclProtocol::kLl128:
      return device.ll128;
    case NcclProtocol::kSimple:
      break;
  }
  return device.simple;
}

Seconds collective_time(const CollectiveEstimate& estimate, const CollectiveParameters& device,
                        const NetworkParameters& network, Seconds launch) {
  const ProtocolParameters& protocol = parameters_for(estimate, device);
  Seconds fixed =
      protocol.base.value_or(launch + estimate.base) + protocol.hop * estimate.local_hops;
  if (!estimate.across_nodes) {
    const double own = estimate.ring_steps > 0 ? 1 + device.own_part / estimate.ring_steps : 1.0;
    const double crowding = estimate.crowded ? device.pcie_crowding : 1.0;
    const Seconds transfer = own / (crowding * protocol.bandwidth) * estimate.transfer;
    return blended_time(fixed, transfer, protocol.blend);
  }
  fixed = fixed + network.base + network.hop * estimate.network_hops;
  const Seconds transfer = std::max(1 / network.bandwidth * estimate.transfer,
                                    1 / protocol.bandwidth * estimate.switch_transfer);
  return blended_time(fixed, transfer, network.blend.value_or(protocol.blend));
}

Seconds exchange_time(const AllToAllEstimate& estimate, const CollectiveParameters& device,
                      const NetworkParameters& network, Seconds launch) {
  const ExchangeParameters& exchange = device.all_to_all;
  const std::optional<Seconds>& base = estimate.small ? exchange.small_base : exchange.large_base;
  Seconds fixed =
      base ? estimate.batches * *base : launch + estimate.batches * estimate.batch_latency;
  Seconds transfer = 1 / exchange.bandwidth * (estimate.local + exchange.own_part * estimate.own);
  double blend = exchange.blend;
  if (estimate.across > Seconds(0.0)) {
    fixed = fixed + network.base;
    transfer = std::max(transfer, 1 / network.all_to_all * estimate.across);
    blend = network.blend.value_or(blend);
  }
  return blended_time(fixed, transfer, blend);
}

}  // namespace meshwright
