/// Time of NCCL's collectives on devices whose collectives have been measured.
///
/// NCCL's tuning model (nccl_model.hpp) chooses algorithm and protocol. Its estimate
///   base + local hops + network hops + bytes / bandwidth
/// is then corrected part by part (parameters: core/cluster/collective_parameters.hpp):
///   latency  F = base + network base + hop * local hops + network hop * network hops
///   transfer X = own * bytes / (bandwidth fraction * estimated bandwidth)
///   time     (F^p + X^p)^(1/p), p the blend of the protocol
/// p = 1 adds the two. p < 1 is slower where both are about equal: channels that fill gradually. At
/// p > 1 latency hides behind the transfer; p = infinity is the larger one.
/// own: a ring within a node moves s shares of the buffer through each rank (s steps) and copies
/// or reduces one in its own memory; so own = 1 + own_part / s.
///
/// Four exceptions:
///   - Within a node NVLS is chosen and priced without the limit that the tuning model takes from
///     the network. Measured: 8 x H200 choose NVLS from 5 GPUs and 8 x B200 reach 838 GB/s
///     (stas00/ml-engineering@744d01e18b network/README.md); with the limit it would be 6 GPUs and
///     720 GB/s.
///   - NVLSTree between nodes runs at the slower of NVLS within a node and the ports. Two nodes
///     exchange the buffer once in each direction, several pass it on as well and so halve the
///     rate.
///   - Over PCIe within a node the estimate is the bandwidth of the link (NCCL assumes 3/4 of the
///     datasheet), half of it with LL, and more than two devices share it (pcie_crowding); the
///     limits that NCCL assumes between CPUs are those of old ones: eight RTX PRO 6000 reach 23
///     GB/s, the limit of AMD hosts is 16 GB/s.
///   - Across nodes the transfer is limited by the network, so its fraction replaces the device's.
///
/// Worked number: 2 x H100, all-reduce of 128 MiB with base = 12 us, hop = 0.7, bandwidth = 1.1,
/// blend = 1, own_part = 0.6. Ring, Simple: 2 steps, 3.4 us per hop, 360 GB/s times n / s = 1.
/// F = 12 + 0.7 * 2 * 3.4 = 16.76 us; X = (1 + 0.6 / 2) * 134217728 B / 396 GB/s = 440.6 us;
/// 457.4 us in total. Measured: 466 us.
#pragma once

#include "core/base/kernel.hpp"
#include "core/base/units.hpp"
#include "core/cluster/collective_parameters.hpp"
#include "simulator/cost/nccl_model.hpp"

namespace meshwright {

/// (fixed^blend + transfer^blend)^(1 / blend), blend > 0.
Seconds blended_time(Seconds fixed, Seconds transfer, double blend);

/// What the corrections of one collective start from.
struct CollectiveEstimate {
  NcclAlgorithm algorithm = NcclAlgorithm::kRing;
  NcclProtocol protocol = NcclProtocol::kSimple;
  Seconds base, local_hops, network_hops;
  double ring_steps = 0;    ///< of a ring within a node, whose own part counts; 0: not a ring
  Seconds transfer;         ///< at the estimated bandwidth; NVLSTree: through the ports
  Seconds switch_transfer;  ///< NVLSTree: NVLS within the node
  bool across_nodes = false;
  bool crowded = false;  ///< more than two devices over PCIe
};

/// `algorithm`: one that the plan names; absent or not available for `kind`: NCCL's choice.
/// group.ranks >= 2; `kind` is one that nccl_choice() accepts.
CollectiveEstimate estimate_collective(const NcclGroup& group, CollectiveKind kind, Bytes bytes,
                                       std::optional<NcclAlgorithm> algorithm = {});

/// The parameters that apply to an estimate.
const ProtocolParameters& parameters_for(const CollectiveEstimate& estimate,
                                         const CollectiveParameters& device);

/// `launch`: the device's launch overhead, for protocols without a measured base.
Seconds collective_time(const CollectiveEstimate& estimate, const CollectiveParameters& device,
                        const NetworkParameters& network, Seconds launch);

/// All-to-all: batches of concurrent sends, then the busiest of links and ports.
struct AllToAllEstimate {
  int batches = 1;        ///< of sends that follow each other
  bool small = false;     ///< messages small enough for LL
  Seconds batch_latency;  ///< NCCL's, without measured bases
  Seconds local;          ///< messages to the node's other ranks at the link's full bandwidth
  Seconds own;            ///< one message at the link's full bandwidth: a rank's own part
  Seconds across;         ///< messages to other nodes at the ports' full bandwidth
};

/// batches * base + network base, blended with the slower of local transfer (own part included) and
/// transfer between nodes.
Seconds exchange_time(const AllToAllEstimate& estimate, const CollectiveParameters& device,
                      const NetworkParameters& network, Seconds launch);

}  // namespace meshwright
