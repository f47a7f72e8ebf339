#include "core/cluster/cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/cluster/link_network.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using namespace testing_models;

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

TEST(Cluster, UsesTheLargestEvenNumberOfDevicesThatDividesTheRanks) {
  const auto used = [](int nodes, int devices, std::int64_t ranks) {
    return used_devices_per_node(cluster_of(nodes, devices), ranks);
  };
  EXPECT_EQ(used(4, 72, 144), 72);
  EXPECT_EQ(used(4, 72, 64), 72);   // fits in one rack
  EXPECT_EQ(used(4, 72, 128), 64);  // 2 racks
  EXPECT_EQ(used(4, 72, 96), 48);   // 2 racks; 72 > 64 > 54 > 50 do not divide 96
  EXPECT_EQ(used(3, 8, 12), 6);
  EXPECT_EQ(used(9, 9, 16), 8);               // the rack itself may be odd
  EXPECT_EQ(used(4, 8, 9), std::nullopt);     // odd
  EXPECT_EQ(used(4, 8, 22), std::nullopt);    // 2 on each of 11 nodes, but there are 4
  EXPECT_EQ(used(2, 72, 256), std::nullopt);  // 64 on each of 4 racks
  EXPECT_EQ(used_devices_per_node(mixed_cluster(), 9), 4);
}

TEST(Cluster, NumbersOnlyTheDevicesThatAJobUses) {
  const Cluster racks = cluster_of(2, 72);
  EXPECT_EQ(node_index_in_job(racks, 128, DeviceId(63)), NodeId(0));
  EXPECT_EQ(node_index_in_job(racks, 128, DeviceId(64)), NodeId(1));
  EXPECT_EQ(node_index_in_job(racks, 144, DeviceId(71)), NodeId(0));
  EXPECT_EQ(node_index_in_job(mixed_cluster(), 10, DeviceId(9)), NodeId(2));
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

// Four devices on two switches, one switch per socket: traffic between switches goes up, across the
// sockets, and down.
TEST(LinkNetwork, ClimbsAPcieTreeOnlyAsFarAsItMust) {
  Cluster cluster = cluster_of(1, 4);
  node(cluster).local.kind = LocalNetworkKind::kPcie;
  node(cluster).local.tree = PcieTree{.switches = 2,
                                      .sockets = 2,
                                      .uplink = BytesPerSecond(20e9),
                                      .socket_link = BytesPerSecond(10e9)};
  const LinkNetwork network(cluster, 4);
  EXPECT_THAT(route_names(network, 0, 1),
              ElementsAre("node0.device0.local.out", "node0.device1.local.in"));
  EXPECT_THAT(route_names(network, 1, 2),
              ElementsAre("node0.device1.local.out", "node0.switch0.out", "node0.socket0.out",
                          "node0.socket1.in", "node0.switch1.in", "node0.device2.local.in"));
}

// 8 nodes of 4 ports of 25 GB/s; two nodes below a leaf, four below a pod, 2:1 above the leaf: 2 *
// 4 * 25 / 2 = 100 GB/s up from a leaf.
TEST(LinkNetwork, ClimbsAFatTreeOnlyAsFarAsItMust) {
  Cluster cluster = cluster_of(8, 4);
  cluster.fabric.levels = {{.nodes = 2, .oversubscription = 2.0},
                           {.nodes = 4, .oversubscription = 1.0}};
  const LinkNetwork network(cluster, 32);
  EXPECT_THAT(route_names(network, 0, 4), ElementsAre("node0.port0.out", "node1.port0.in"));
  EXPECT_THAT(route_names(network, 0, 8), ElementsAre("node0.port0.out", "level0.group0.out",
                                                      "level0.group1.in", "node2.port0.in"));
  EXPECT_THAT(route_names(network, 0, 31),
              ElementsAre("node0.port0.out", "level0.group0.out", "level1.group0.out",
                          "level1.group1.in", "level0.group3.in", "node7.port3.in"));
  for (const Link& link : network.links())
    if (link.name == "level0.group0.out") {
      EXPECT_EQ(link.capacity, BytesPerSecond(100e9));
    }
}

// Port k is on rail k: device 0 reaches device 2 of the other node through device 2 of its own
// node. Each rail has its own uplinks: 25 GB/s per node below.
TEST(LinkNetwork, ChangesRailsInsideTheSendingNode) {
  Cluster cluster = cluster_of(4, 4);
  cluster.fabric.rails = true;
  cluster.fabric.levels = {{.nodes = 2, .oversubscription = 1.0}};
  const LinkNetwork network(cluster, 16);
  EXPECT_THAT(route_names(network, 1, 5), ElementsAre("node0.port1.out", "node1.port1.in"));
  EXPECT_THAT(route_names(network, 0, 6),
              ElementsAre("node0.device0.local.out", "node0.device2.local.in", "node0.port2.out",
                          "node1.port2.in"));
  EXPECT_THAT(route_names(network, 3, 15), ElementsAre("node0.port3.out", "level0.group0.rail3.out",
                                                       "level0.group1.rail3.in", "node3.port3.in"));
  for (const Link& link : network.links())
    if (link.name == "level0.group0.rail3.out") {
      EXPECT_EQ(link.capacity, BytesPerSecond(50e9));
    }
}

// Two of the four devices of each node: device 2 of the job is the first one of the second node.
TEST(LinkNetwork, SkipsDevicesThatTheJobDoesNotUse) {
  const LinkNetwork network(cluster_of(3, 4), 6, 2);
  EXPECT_THAT(route_names(network, 0, 1),
              ElementsAre("node0.device0.local.out", "node0.device1.local.in"));
  EXPECT_THAT(route_names(network, 1, 2), ElementsAre("node0.port1.out", "node1.port0.in"));
  EXPECT_THAT(route_names(network, 5, 0), ElementsAre("node2.port1.out", "node0.port0.in"));
}

TEST(CheckCluster, FindsTreesAndLevelsThatCannotBe) {
  EXPECT_THAT(places([](Cluster& c) {
                node(c).local.kind = LocalNetworkKind::kPcie;
                node(c).local.tree = PcieTree{3, 2, {}, {}};
              }),
              ElementsAre("c.toml: nodes.test-node.local.tree.switches",
                          "c.toml: nodes.test-node.local.tree.sockets",
                          "c.toml: nodes.test-node.local.tree.uplink",
                          "c.toml: nodes.test-node.local.tree.socket_link"));
  EXPECT_THAT(
      places([](Cluster& c) {
        c.fabric.levels = {{.nodes = 4, .oversubscription = 0.5}, {.nodes = 6}};
      }),
      ElementsAre("c.toml: fabric.levels[0].oversubscription", "c.toml: fabric.levels[1].nodes"));
}

TEST(LinkNetwork, HoldsOnlyNodesThatAreUsed) {
  EXPECT_EQ(LinkNetwork(cluster_of(100, 4), 4).links().size(), 16u);  // 4 devices, 4 ports, 2 ways
}

}  // namespace
}  // namespace meshwright
