/// Replicas with unequal shares of the batch: how their tasks differ from those of the folded
/// graph, which has the micro-batches of the largest share.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.hpp"

namespace meshwright {

/// Of all replicas with equally many micro-batches on nodes of the same types.
struct ReplicaShare {
  std::int32_t first_microbatch = 0;  ///< tasks of earlier ones do not exist
  /// By task of the folded graph, on the node types of these replicas; empty: as they are there.
  std::vector<WorkId> works;
};
struct ReplicaShares {
  std::vector<ReplicaShare> shares;
  std::vector<std::int32_t> share_of;  ///< by replica: index in `shares`; empty: equal shares
  bool empty() const { return share_of.empty(); }
};

}  // namespace meshwright
