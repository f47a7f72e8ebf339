/// Numbers of devices worth planning for.
#pragma once

#include <vector>

#include "core/cluster/cluster.hpp"

namespace meshwright {

/// Inclusive.
struct SizeRange {
  int smallest = 1, largest = 1;
  friend bool operator==(const SizeRange&, const SizeRange&) = default;
};

/// Devices per node of every type of node, ascending.
std::vector<int> node_sizes(const Cluster& cluster);

/// The powers of two in the range, and the powers of two times whole nodes; on heterogeneous
/// clusters also all devices of every type of node, and all devices; ascending. For nodes of 72
/// devices 64..300 gives 64, 72, 128, 144, 256 and 288.
std::vector<int> sizes_in(const SizeRange& range, const Cluster& cluster);

/// Every number of whole nodes of one type, with all or with a power of two of the devices of each,
/// and the powers of two below one node; all devices, as above; ascending, at most all devices.
std::vector<int> all_sizes(const Cluster& cluster);

}  // namespace meshwright
