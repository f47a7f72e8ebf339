#include "simulator/network/collective_load.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/simulator/reference_systems.hpp"

namespace meshwright {
namespace {

/// Nodes of 4 devices with 2 ports; device links 300 GB/s, ports 25 GB/s.
LinkNetwork two_nodes() {
  testing::ReferenceSystem system = testing::dgx_a100();
  system.node.device_count = 4;
  system.node.ports = 2;
  return LinkNetwork(testing::cluster_of(system, 2), 8);
}

std::vector<DeviceId> devices(std::initializer_list<int> numbers) {
  std::vector<DeviceId> ids;
  for (const int number : numbers) ids.emplace_back(number);
  return ids;
}

std::map<std::string, double> named_bytes(const Collective& collective,
                                          const std::vector<DeviceId>& members) {
  const LinkNetwork network = two_nodes();
  std::map<std::string, double> named;
  for (const LinkBytes& use : bytes_on_links(collective, members, network))
    named[network.links()[use.link.index()].name] = use.bytes;
  return named;
}

using Named = std::map<std::string, double>;

// Two devices of a node, all-reduce of 100: 2 (2 - 1) / 2 * 100 = 100 over each of the two hops.
TEST(BytesOnLinks, OfARingInANodeLoadEveryDeviceAlike) {
  EXPECT_EQ(named_bytes({.kind = CollectiveKind::kAllReduce, .bytes = Bytes(100), .group = {}},
                        devices({1, 3})),
            (Named{{"node0.device1.local.out", 100},
                   {"node0.device1.local.in", 100},
                   {"node0.device3.local.out", 100},
                   {"node0.device3.local.in", 100}}));
}

// All-gather of 160 over devices 0, 2 | 4, 6: a hop has 3/4 * 160 = 120 bytes. Each of a node's two
// devices sends (2 - 1) / 2 of it within the node and the other half to the next node; devices 0
// and 2 have separate ports.
TEST(BytesOnLinks, OfARingAcrossNodesAreSpreadOverThePortsOfItsMembers) {
  const Named bytes =
      named_bytes({.kind = CollectiveKind::kAllGather, .bytes = Bytes(160), .group = {}},
                  devices({0, 2, 4, 6}));
  ASSERT_EQ(bytes.size(), 16u);  // 4 devices, 4 ports, in and out
  for (const auto& [link, count] : bytes) EXPECT_EQ(count, 60) << link;
}

// Members are grouped by node, in whatever order they are given: the ring leaves each node once.
TEST(BytesOnLinks, OfARingDoNotDependOnTheOrderOfItsMembers) {
  const Collective gather{.kind = CollectiveKind::kAllGather, .bytes = Bytes(160), .group = {}};
  EXPECT_EQ(named_bytes(gather, devices({6, 0, 4, 2})), named_bytes(gather, devices({0, 2, 4, 6})));
}

// A ring exchange follows the order given: 0 → 4 → 1 → 5 → 0 leaves a node four times. Devices 0
// and 1 share port 0, so 2 * 7 bytes leave by it, three times in a row.
TEST(BytesOnLinks, OfARingExchangeFollowTheOrderOfTheMembers) {
  const Named bytes = named_bytes(
      {.kind = CollectiveKind::kRingExchange, .bytes = Bytes(7), .group = {}, .rounds = 3},
      devices({0, 4, 1, 5}));
  EXPECT_EQ(bytes, (Named{{"node0.port0.out", 42},
                          {"node0.port0.in", 42},
                          {"node1.port0.out", 42},
                          {"node1.port0.in", 42}}));
}

// All-to-all of 30 between 3: each sends 10 to each other. Devices 0 and 1 exchange 10 inside; both
// send 10 to device 4 by port 0 and get as much.
TEST(BytesOnLinks, OfAnAllToAllGoBetweenAllPairs) {
  EXPECT_EQ(named_bytes({.kind = CollectiveKind::kAllToAll, .bytes = Bytes(30), .group = {}},
                        devices({0, 1, 4})),
            (Named{{"node0.device0.local.out", 10},
                   {"node0.device0.local.in", 10},
                   {"node0.device1.local.out", 10},
                   {"node0.device1.local.in", 10},
                   {"node0.port0.out", 20},
                   {"node0.port0.in", 20},
                   {"node1.port0.out", 20},
                   {"node1.port0.in", 20}}));
}

// Three workers push 100 each to one server: all 300 enter by its link.
TEST(BytesOnLinks, OfAPushMeetAtTheServer) {
  const Named bytes =
      named_bytes({.kind = CollectiveKind::kPush, .bytes = Bytes(100), .group = {}, .servers = 1},
                  devices({0, 1, 2, 3}));
  EXPECT_EQ(bytes.at("node0.device3.local.in"), 300);
  EXPECT_EQ(bytes.at("node0.device0.local.out"), 100);
  EXPECT_EQ(bytes.count("node0.device3.local.out"), 0u);
}

TEST(BytesOnLinks, OfCopiesToTheHostAreNone) {
  EXPECT_TRUE(named_bytes({.kind = CollectiveKind::kCopyToHost, .bytes = Bytes(100), .group = {}},
                          devices({0}))
                  .empty());
}

CollectiveLoad load_of(CollectiveKind kind, Bytes bytes, const std::vector<DeviceId>& members,
                       Seconds price) {
  return collective_load({.kind = kind, .bytes = bytes, .group = {}}, members, two_nodes(),
                         to_ticks(price));
}

// All-reduce of 4 GB between devices 0 and 4: a hop of 4 GB by ports of 25 GB/s takes 160 ms at
// least. Priced at 320 ms it asks for half a port: 12.5 GB/s.
TEST(CollectiveLoad, AsksForNoMoreThanItsPrice) {
  const CollectiveLoad load =
      load_of(CollectiveKind::kAllReduce, Bytes(4'000'000'000), devices({0, 4}), Seconds(0.32));
  EXPECT_NEAR(load.rate.value, 12.5e9, 1);
  EXPECT_EQ(load.shares, std::vector<double>(4, 1.0));
}

// Priced faster than the links allow, it just fills them: its price remains its limit.
TEST(CollectiveLoad, NeverAsksForMoreThanALinkHas) {
  EXPECT_EQ(load_of(CollectiveKind::kAllReduce, Bytes(4'000'000'000), devices({0, 4}), Seconds(0.1))
                .rate.value,
            25e9);
}

// Devices 0, 2 | 4, 6: 60 bytes over links of 300 GB/s and over ports of 25: the ports are fullest,
// so the rate is that of a port; the others carry as much.
TEST(CollectiveLoad, CountsAsOneFlowOnItsFullestLink) {
  const CollectiveLoad load = load_of(CollectiveKind::kAllGather, Bytes(160'000'000'000),
                                      devices({0, 2, 4, 6}), Seconds(2.4));
  EXPECT_NEAR(load.rate.value, 25e9, 1);
  EXPECT_EQ(load.route.size(), 16u);
  for (const double share : load.shares) EXPECT_NEAR(share, 1, 1e-12);
}

}  // namespace
}  // namespace meshwright
