/// What a collective puts on the wires, so that it can share them with other traffic.
#pragma once

#include <span>
#include <vector>

#include "core/kernel.hpp"
#include "core/link_network.hpp"
#include "core/units.hpp"

namespace meshwright {

struct LinkBytes {
  LinkId link;
  double bytes = 0;
  friend bool operator==(const LinkBytes&, const LinkBytes&) = default;
};

/// Bytes over every link that the collective uses, by ascending link. `devices` are those of its
/// members, in their order. n members, p of them on one node, K = collective.bytes:
///   ring      all-reduce 2 (n - 1) / n K over every hop, all-gather and reduce-scatter
///             (n - 1) / n K, broadcast and reduce K. Hops follow the nodes, so that each is left
///             once. NCCL lays a ring through every device's port in turn (channels), so each of
///             the p members sends 1 / p of a hop to the next node, and to its neighbour on the
///             node (p - 1) / p of a hop.
///   pairs     all-to-all: K / n from each member to each other
///   root      scatter, gather: K / n between the first member and each other
///   exchange  ring exchange: rounds * K from each member to the next in order
///   servers   push, pull: K / servers between each worker and each server
///   host      copies to and from the host: none
/// The algorithm that NCCL would choose instead (tree, NVLS) moves other amounts; see
/// collective_load() for what follows from that. O(n) routes, all-to-all O(n^2).
std::vector<LinkBytes> bytes_on_links(const Collective& collective,
                                      std::span<const DeviceId> devices,
                                      const LinkNetwork& network);

/// The collective as one flow: alone it runs at `rate`, and takes shares[i] * rate of route[i].
struct CollectiveLoad {
  std::vector<LinkId> route;  ///< empty: it uses no links
  std::vector<double> shares;
  BytesPerSecond rate;
};

/// Its price is its limit: alone it takes `duration` (above zero), whatever the links could do. So
/// what it asks of a link is bytes / duration, and never more than the link has: an algorithm that
/// moves less than a ring does must not be slowed by a ring's traffic. Its rate is that on the link
/// it fills most, where it counts as one flow among the others.
CollectiveLoad collective_load(const Collective& collective, std::span<const DeviceId> devices,
                               const LinkNetwork& network, Ticks duration);

}  // namespace meshwright
