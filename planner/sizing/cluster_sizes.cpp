#include "planner/sizing/cluster_sizes.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

int power_of_two_below(int devices) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(devices)));
}

}  // namespace

std::vector<int> sizes_in(const SizeRange& range, int devices_per_node) {
  MW_CHECK(devices_per_node >= 1);
  std::set<int> sizes;
  for (const int unit : {1, devices_per_node})
    for (std::int64_t size = unit; size <= range.largest; size *= 2)
      if (size >= range.smallest) sizes.insert(static_cast<int>(size));
  return {sizes.begin(), sizes.end()};
}

std::vector<int> all_sizes(int largest, int devices_per_node) {
  MW_CHECK(devices_per_node >= 1);
  std::set<int> sizes;
  for (int size = 1; size <= std::min(largest, devices_per_node); size *= 2) sizes.insert(size);
  for (const int unit : {devices_per_node, power_of_two_below(devices_per_node)})
    for (std::int64_t size = unit; size <= largest; size += unit)
      sizes.insert(static_cast<int>(size));
  return {sizes.begin(), sizes.end()};
}

}  // namespace meshwright
