/// The links that the messages and collectives of all replicas use.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/cluster/link_network.hpp"
#include "core/lowering/replicated_graph.hpp"

namespace meshwright {

/// Flows of one type differ in the replicas only. A collective's type is independent of its size:
/// on every link its bytes are `scale` times those of the type.
struct ReplicaFlows {
  struct Hop {
    LinkId link;
    double bytes = 1;  ///< messages: 1
  };
  struct Flow {
    std::int32_t type;   ///< in messages, or, behind these, in collectives
    std::int32_t owner;  ///< messages: replica; collectives: group
    std::int32_t first_hop, hop_count;
  };
  struct CollectiveUse {
    std::int32_t type = -1;
    double scale = 1;
  };

  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> messages;  ///< type by ranks
  std::vector<std::int32_t> collectives;  ///< by type: a collective of the folded graph
  std::vector<CollectiveUse> use_of;      ///< by collective of the folded graph
  std::vector<Flow> flows;                ///< all types, replicas and groups
  std::vector<Hop> hops;

  std::span<const Hop> hops_of(const Flow& flow) const {
    return std::span(hops).subspan(static_cast<std::size_t>(flow.first_hop),
                                   static_cast<std::size_t>(flow.hop_count));
  }
  bool is_message(const Flow& flow) const {
    return static_cast<std::size_t>(flow.type) < messages.size();
  }
  /// Of a flow that is no message: a collective of the folded graph.
  std::int32_t collective_of(const Flow& flow) const {
    return collectives[static_cast<std::size_t>(flow.type) - messages.size()];
  }
};

/// Without a network, messages and collectives use no links. O(replicas * types) routes.
ReplicaFlows flows_of(const ReplicatedGraph& all, const LinkNetwork* network);

}  // namespace meshwright
