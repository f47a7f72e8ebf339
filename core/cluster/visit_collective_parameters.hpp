/// Names, bounds and members of the parameters of measured collectives, in one place for checking,
/// reading, writing and fitting, as in core/cluster/device_parameters.hpp. Members are a double,
/// Seconds or an optional of either.
#pragma once

#include <type_traits>

#include "core/cluster/device_parameters.hpp"

namespace meshwright {

inline constexpr ParameterBounds kHopBounds{0, 1000};      ///< measured / estimated latency
inline constexpr ParameterBounds kRateBounds{0, 4, true};  ///< measured / estimated bandwidth
inline constexpr ParameterBounds kBlendBounds{0, 16, true};
inline constexpr ParameterBounds kOwnPartBounds{0, 10};
inline constexpr ParameterBounds kLatencyBounds{0.0, 1.0};  ///< seconds

/// Of a ProtocolParameters or ExchangeParameters.
template <class Table, class Visit>
void visit_parameters_of_table(Table& table, Visit&& visit) {
  if constexpr (std::is_same_v<std::remove_const_t<Table>, ExchangeParameters>) {
    visit("small_base", table.small_base, kLatencyBounds);
    visit("large_base", table.large_base, kLatencyBounds);
    visit("bandwidth", table.bandwidth, kRateBounds);
    visit("own_part", table.own_part, kOwnPartBounds);
  } else {
    visit("base", table.base, kLatencyBounds);
    visit("hop", table.hop, kHopBounds);
    visit("bandwidth", table.bandwidth, kRateBounds);
  }
  visit("blend", table.blend, kBlendBounds);
}

/// Parameters outside of the tables that visit_collective_tables() goes through.
template <class Collectives, class Visit>
void visit_parameters_of_collectives(Collectives& collectives, Visit&& visit) {
  visit("own_part", collectives.own_part, kOwnPartBounds);
  visit("pcie_crowding", collectives.pcie_crowding, ParameterBounds{0, 1.5, true});
}

/// Calls visit(name, ProtocolParameters or ExchangeParameters).
template <class Collectives, class Visit>
void visit_collective_tables(Collectives& collectives, Visit&& visit) {
  visit("ll", collectives.ll);
  visit("ll128", collectives.ll128);
  visit("simple", collectives.simple);
  visit("nvls", collectives.nvls);
  visit("all_to_all", collectives.all_to_all);
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
