#include "planner/sizing/cluster_sizes.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// One group of nodes per pair: devices per node, and number of nodes.
Cluster cluster_of(const std::vector<std::pair<int, int>>& groups) {
  Cluster cluster;
  for (const auto& [devices, nodes] : groups) {
    const std::string name = fmt::format("of-{}", devices);
    cluster.nodes[name].device_count = devices;
    cluster.groups.push_back({name, nodes});
  }
  return cluster;
}

TEST(ClusterSizes, OfARangeArePowersOfTwoAndOfWholeNodes) {
  const Cluster eights = cluster_of({{8, 1}}), racks = cluster_of({{72, 1}});
  EXPECT_THAT(sizes_in({64, 1024}, eights), ElementsAre(64, 128, 256, 512, 1024));
  EXPECT_THAT(sizes_in({1, 20}, eights), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(sizes_in({64, 300}, racks), ElementsAre(64, 72, 128, 144, 256, 288));
  EXPECT_THAT(sizes_in({65, 100}, eights), IsEmpty());
  EXPECT_THAT(sizes_in({1 << 30, 0x7fffffff}, eights), ElementsAre(1 << 30));  // no overflow
}

// Three nodes of 8 and five of 4 devices: 24 and 20, together 44.
TEST(ClusterSizes, OfHeterogeneousClustersIncludeWholeTypes) {
  const Cluster mixed = cluster_of({{8, 2}, {4, 5}, {8, 1}});
  EXPECT_THAT(sizes_in({8, 64}, mixed), ElementsAre(8, 16, 20, 24, 32, 44, 64));
  EXPECT_THAT(all_sizes(cluster_of({{6, 1}, {4, 1}})), ElementsAre(1, 2, 4, 6, 8, 10));
}

TEST(ClusterSizes, AllOfThemAreWholeNodesOrPowersOfTwoOfTheirDevices) {
  EXPECT_THAT(all_sizes(cluster_of({{8, 4}})), ElementsAre(1, 2, 4, 8, 16, 24, 32));
  EXPECT_THAT(all_sizes(cluster_of({{6, 2}})), ElementsAre(1, 2, 4, 6, 8, 12));
  EXPECT_THAT(all_sizes(cluster_of({{1, 3}})), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace meshwright
