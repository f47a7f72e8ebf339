/// Names, bounds and members of the parameters of measured collectives, in one place for checking,
/// reading, writing and fitting, as in core/cluster/device_parameters.hpp. Members are a double,
/// Seconds or an optional of either.
#pragma once

#include "core/cluster/device_parameters.hpp"

namespace meshwright {

inline constexpr ParameterBounds kHopBounds{0, 1000};      ///< measured / estimated latency
inline constexpr ParameterBounds kRateBounds{0, 4, true};  ///< measured / estimated bandwidth
inline constexpr ParameterBounds kBlendBounds{0, 16, true};
inline constexpr ParameterBounds kOwnPartBounds{0, 10};
inline constexpr ParameterBounds kLatencyBounds{0.0, 1.0};  ///< seconds

template <class Protocol, class Visit>
void visit_parameters_of_protocol(Protocol& protocol, Visit&& visit) {
  visit("base", protocol.base, kLatencyBounds);
  visit("hop", protocol.hop, kHopBounds);
  visit("bandwidth", protocol.bandwidth, kRateBounds);
  visit("blend", protocol.blend, kBlendBounds);
}

template <class Exchange, class Visit>
void visit_parameters_of_exchange(Exchange& exchange, Visit&& visit) {
  visit("small_base", exchange.small_base, kLatencyBounds);
  visit("large_base", exchange.large_base, kLatencyBounds);
  visit("bandwidth", exchange.bandwidth, kRateBounds);
  visit("own_part", exchange.own_part, kOwnPartBounds);
  visit("blend", exchange.blend, kBlendBounds);
}

/// Parameters outside of the tables that visit_collective_tables() goes through.
template <class Collectives, class Visit>
void visit_parameters_of_collectives(Collectives& collectives, Visit&& visit) {
  visit("own_part", collectives.own_part, kOwnPartBounds);
  visit("pcie_crowding", collectives.pcie_crowding, ParameterBounds{0, 1.5, true});
}

/// Calls protocol(name, ProtocolParameters) and exchange(name, ExchangeParameters).
template <class Collectives, class Protocol, class Exchange>
void visit_collective_tables(Collectives& collectives, Protocol&& protocol, Exchange&& exchange) {
  protocol("ll", collectives.ll);
  protocol("ll128", collectives.ll128);
  protocol("simple", collectives.simple);
  protocol("nvls", collectives.nvls);
  exchange("all_to_all", collectives.all_to_all);
}

template <class Network, class Visit>
void visit_parameters_of_network(Network& network, Visit&& visit) {
  visit("base", network.base, kLatencyBounds);
  visit("hop", network.hop, kHopBounds);
  visit("bandwidth", network.bandwidth, kRateBounds);
  visit("all_to_all", network.all_to_all, kRateBounds);
  visit("blend", network.blend, kBlendBounds);
}

}  // namespace meshwright
