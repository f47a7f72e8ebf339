/// Numbers of devices worth planning for.
#pragma once

#include <vector>

namespace meshwright {

/// Inclusive.
struct SizeRange {
  int smallest = 1, largest = 1;
  friend bool operator==(const SizeRange&, const SizeRange&) = default;
};

/// The powers of two in the range, and the powers of two times whole nodes; ascending. For nodes of
/// 72 devices 64..300 gives 64, 72, 128, 144, 256 and 288.
std::vector<int> sizes_in(const SizeRange& range, int devices_per_node);

/// Every number of whole nodes, with all or with a power of two of the devices of each, and the
/// powers of two below one node; ascending, at most `largest`.
std::vector<int> all_sizes(int largest, int devices_per_node);

}  // namespace meshwright
