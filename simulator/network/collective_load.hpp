/// Bytes that a collective puts on each link, so that it can share links with other traffic.
#pragma once

#include <span>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/base/units.hpp"
#include "core/cluster/link_network.hpp"

namespace meshwright {

struct LinkBytes {
  LinkId link;
  double bytes = 0;
  friend bool operator==(const LinkBytes&, const LinkBytes&) = default;
};

/// Bytes over every link that the collective uses, by ascending link. `devices` are those of its
/// members, in order. With n members, p of them on one node, and K = collective.bytes:
///   ring      all-reduce 2 (n - 1) / n K over every hop, all-gather and reduce-scatter
///             (n - 1) / n K, broadcast and reduce K. The ring visits the nodes in order and
///             leaves each node once. NCCL builds one ring (channel) per device's port, so each of
///             the p members sends 1 / p of a hop to the next node and (p - 1) / p of a hop to its
///             neighbor in the node.
///   pairs     all-to-all: K / n from each member to each other
///   root      scatter, gather: K / n between the first member and each other
///   exchange  ring exchange: rounds * K from each member to the next in order
///   servers   push, pull: K / servers between each worker and each server
///   host      copies to and from the host: none
/// NCCL may choose an algorithm that moves different amounts (tree, NVLS); see collective_load()
/// for how this is handled. O(n) routes, all-to-all O(n^2).
std::vector<LinkBytes> bytes_on_links(const Collective& collective,
                                      std::span<const DeviceId> devices,
                                      const LinkNetwork& network);

/// The collective as one flow: alone it runs at `rate` and uses shares[i] * rate of route[i].
struct CollectiveLoad {
  std::vector<LinkId> route;  ///< empty: it uses no links
  std::vector<double> shares;
  BytesPerSecond rate;
};

/// The price of the collective is its speed limit: alone it takes `duration` (above zero), whatever
/// the links could carry. So its demand on a link is bytes / duration, at most the link's capacity:
/// an algorithm that moves less than a ring must not be slowed down by a ring's traffic. `rate` is
/// the demand on the most loaded link, where the collective counts as one flow.
CollectiveLoad collective_load(const Collective& collective, std::span<const DeviceId> devices,
                               const LinkNetwork& network, Ticks duration);

}  // namespace meshwright
