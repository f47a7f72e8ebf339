#include "planner/sizing/cluster_sizes.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace meshwright {
namespace {

int power_of_two_below(int devices) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(devices)));
}

/// All devices of every type of node, and of the cluster; of homogeneous clusters none.
std::set<int> whole_types(const Cluster& cluster) {
  if (is_homogeneous(cluster)) return {};
  std::map<std::string, int> devices;
  for (const NodeGroup& group : cluster.groups)
    devices[group.node] += group.count * cluster.nodes.at(group.node).device_count;
  std::set<int> sizes{device_count(cluster)};
  for (const auto& [node, count] : devices) sizes.insert(count);
  return sizes;
}

}  // namespace

std::vector<int> node_sizes(const Cluster& cluster) {
  std::set<int> sizes;
  for (const NodeGroup& group : cluster.groups)
    sizes.insert(cluster.nodes.at(group.node).device_count);
  return {sizes.begin(), sizes.end()};
}

std::vector<int> sizes_in(const SizeRange& range, const Cluster& cluster) {
  std::vector<int> units = node_sizes(cluster);
  units.push_back(1);
  std::set<int> sizes = whole_types(cluster);
  for (const int unit : units)
    for (std::int64_t size = unit; size <= range.largest; size *= 2)
      sizes.insert(static_cast<int>(size));
  return {sizes.lower_bound(range.smallest), sizes.upper_bound(range.largest)};
}

std::vector<int> all_sizes(const Cluster& cluster) {
  const int largest = device_count(cluster);
  std::set<int> sizes = whole_types(cluster);
  for (const int devices : node_sizes(cluster)) {
    for (int size = 1; size <= std::min(largest, devices); size *= 2) sizes.insert(size);
    for (const int unit : {devices, power_of_two_below(devices)})
      for (std::int64_t size = unit; size <= largest; size += unit)
        sizes.insert(static_cast<int>(size));
  }
  return {sizes.begin(), sizes.end()};
}

}  // namespace meshwright
