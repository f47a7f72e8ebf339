/// Measured behavior of NCCL's collectives: what a device with its local network attains, and what
/// the network between nodes adds. simulator/cost/collective_time.hpp has the formulas.
///
/// NCCL's tuning model (simulator/cost/nccl_model.hpp) decides which algorithm and protocol runs;
/// its own estimate of the time leaves out launches, network software and the ramp-up of channels.
/// These parameters correct that estimate. They come from measured collectives only, never from
/// whole training steps.
#pragma once

#include <optional>

#include "core/base/units.hpp"

namespace meshwright {

/// Correction of NCCL's estimate for one protocol. The default is no correction.
struct ProtocolParameters {
  /// Launch and the protocol's base latency together; absent: the device's launch overhead plus
  /// NCCL's base latency.
  std::optional<Seconds> base = {};
  double hop = 1.0;        ///< measured / estimated latency of the hops within a node
  double bandwidth = 1.0;  ///< measured / estimated bandwidth
  double blend = 1.0;      ///< see blended_time(); 1: latency and transfer time add up
  friend bool operator==(const ProtocolParameters&, const ProtocolParameters&) = default;
};

/// Sends and all-to-all within a node, which NCCL's tuning model does not cover. With small
/// messages NCCL uses the protocol LL, with large ones Simple.
struct ExchangeParameters {
  std::optional<Seconds> small_base = {},
                         large_base = {};  ///< launch included; absent: NCCL's latencies
  double bandwidth = 0.9;                  ///< fraction of the link bandwidth that NCCL assumes
  double own_part = 0.0;                   ///< see CollectiveParameters::own_part
  double blend = 1.0;
  friend bool operator==(const ExchangeParameters&, const ExchangeParameters&) = default;
};

/// A property of a device and its local network (NVLink generation and switch, or PCIe).
struct CollectiveParameters {
  ProtocolParameters ll, ll128, simple;  ///< rings and trees
  ProtocolParameters nvls;               ///< reduction in the NVLink switch
  /// Cost of a rank's own share of the buffer, which is copied or reduced in its own memory, as a
  /// fraction of the cost of receiving a share of the same size.
  double own_part = 0.0;
  /// Rings over PCIe: fraction of the bandwidth of two devices that is left to each of more than
  /// two, which share switches and the links between CPUs.
  double pcie_crowding = 1.0;
  ExchangeParameters all_to_all;
  friend bool operator==(const CollectiveParameters&, const CollectiveParameters&) = default;
};

/// A property of the network between nodes and its software (InfiniBand, RoCE, EFA, TCPXO).
struct NetworkParameters {
  Seconds base = {};                 ///< once per collective, in addition to the device's
  double hop = 1.0;                  ///< measured / estimated latency of the hops between nodes
  double bandwidth = 1.0;            ///< fraction that rings and trees attain of NCCL's estimate
  double all_to_all = 1.0;           ///< fraction of the ports' bandwidth that all-to-all attains
  std::optional<double> blend = {};  ///< of collectives across nodes; absent: the device's
  friend bool operator==(const NetworkParameters&, const NetworkParameters&) = default;
};

}  // namespace meshwright
