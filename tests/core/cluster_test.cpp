#include "core/cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/link_network.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_models::cluster_of;

std::vector<std::string> places(const std::function<void(Cluster&)>& damage) {
  Cluster cluster = cluster_of(2, 4);
  damage(cluster);
  std::vector<std::string> found;
  for (const Diagnostic& d : check_cluster(cluster, "c.toml: ")) found.push_back(d.where);
  return found;
}
DeviceModel& device(Cluster& c) { return c.devices.begin()->second; }
NodeModel& node(Cluster& c) { return c.nodes.begin()->second; }

TEST(CheckCluster, FindsNothingInASoundCluster) {
  EXPECT_THAT(places([](Cluster&) {}), IsEmpty());
}

TEST(CheckCluster, FindsRatesThatAreNotPositive) {
  EXPECT_THAT(places([](Cluster& c) { device(c).memory_bandwidth = BytesPerSecond(std::nan("")); }),
              ElementsAre("c.toml: devices.test-device.memory_bandwidth"));
  EXPECT_THAT(places([](Cluster& c) { device(c).peak[2] = FlopsPerSecond(-1); }),
              ElementsAre("c.toml: devices.test-device.peak.bf16"));
  EXPECT_THAT(places([](Cluster& c) { node(c).port_bandwidth = BytesPerSecond(0); }),
              ElementsAre("c.toml: nodes.test-node.port_bandwidth"));
  EXPECT_THAT(places([](Cluster& c) { c.fabric.oversubscription = 0.5; }),
              ElementsAre("c.toml: fabric.oversubscription"));
}

TEST(CheckCluster, FindsUnknownNames) {
  EXPECT_THAT(places([](Cluster& c) { node(c).device = "a100"; }),
              ElementsAre("c.toml: nodes.test-node.device"));
  EXPECT_THAT(places([](Cluster& c) { c.groups[0].node = "dgx"; }),
              ElementsAre("c.toml: groups[0].node"));
}

TEST(CheckCluster, WantsANetworkBetweenSeveralNodes) {
  EXPECT_THAT(places([](Cluster& c) { node(c).ports = 0; }),
              ElementsAre("c.toml: nodes.test-node.ports"));
  EXPECT_THAT(places([](Cluster& c) {
                node(c).ports = 0;
                c.groups[0].count = 1;
              }),
              IsEmpty());
}

TEST(CheckCluster, CapsWhatItIsGiven) {
  EXPECT_THAT(places([](Cluster& c) { c.groups[0].count = 2'000'000'000; }),
              ElementsAre("c.toml: groups"));
  EXPECT_THAT(places([](Cluster& c) { c.groups.clear(); }), ElementsAre("c.toml: groups"));
}

/// Two nodes of four devices, then one of two.
Cluster mixed_cluster() {
  Cluster cluster = cluster_of(2, 4);
  NodeModel small = node(cluster);
  small.name = "small";
  small.device_count = 2;
  small.ports = 1;
  cluster.nodes["small"] = small;
  cluster.groups.push_back({"small", 1});
  return cluster;
}

TEST(Cluster, PlacesDevicesInGroupsInOrder) {
  const Cluster cluster = mixed_cluster();
  EXPECT_EQ(device_count(cluster), 10);
  EXPECT_FALSE(is_homogeneous(cluster));
  EXPECT_TRUE(is_homogeneous(cluster_of(3, 2)));
  EXPECT_EQ(node_index_of(cluster, DeviceId(3)), NodeId(0));
  EXPECT_EQ(node_index_of(cluster, DeviceId(4)), NodeId(1));
  EXPECT_EQ(node_index_of(cluster, DeviceId(9)), NodeId(2));
  EXPECT_EQ(node_of(cluster, DeviceId(8)).name, "small");
  EXPECT_EQ(device_of(cluster, DeviceId(8)).name, "test-device");
  EXPECT_THROW(node_of(cluster, DeviceId(10)), InternalError);
}

std::vector<std::string> route_names(const LinkNetwork& network, int from, int to) {
  std::vector<std::string> names;
  for (const LinkId id : network.route(DeviceId(from), DeviceId(to)))
    names.push_back(network.links()[id.index()].name);
  return names;
}

TEST(LinkNetwork, RoutesThroughLocalPortsInsideANodeAndNetworkPortsBetween) {
  const LinkNetwork network(mixed_cluster(), 10);
  EXPECT_THAT(route_names(network, 1, 2),
              ElementsAre("node0.device1.local.out", "node0.device2.local.in"));
  EXPECT_THAT(route_names(network, 1, 6), ElementsAre("node0.port1.out", "node1.port2.in"));
  EXPECT_THAT(route_names(network, 9, 8),
              ElementsAre("node2.device1.local.out", "node2.device0.local.in"));
  EXPECT_THAT(route_names(network, 9, 0), ElementsAre("node2.port0.out", "node0.port0.in"));
  EXPECT_THAT(route_names(network, 5, 5), IsEmpty());
}

// 8 ports of 25 GB/s, oversubscribed 4:1: 50 GB/s across.
TEST(LinkNetwork, SharesAnOversubscribedFabric) {
  Cluster cluster = cluster_of(2, 4);
  cluster.fabric.oversubscription = 4;
  const LinkNetwork network(cluster, 8);
  EXPECT_THAT(route_names(network, 0, 7),
              ElementsAre("node0.port0.out", "fabric", "node1.port3.in"));
  EXPECT_EQ(network.links().back(), (Link{"fabric", BytesPerSecond(50e9)}));
}

TEST(LinkNetwork, HoldsOnlyNodesThatAreUsed) {
  EXPECT_EQ(LinkNetwork(cluster_of(100, 4), 4).links().size(), 16u);  // 4 devices, 4 ports, 2 ways
}

}  // namespace
}  // namespace meshwright
