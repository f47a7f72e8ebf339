#include "simulator/cost/mixed_cost_model.hpp"

#include <gtest/gtest.h>

#include "simulator/cost/device_cost_model.hpp"
#include "tests/simulator/reference_systems.hpp"

namespace meshwright {
namespace {

using namespace meshwright::testing;

/// Half a DGX A100: four devices and four ports.
ReferenceSystem half_a100() {
  ReferenceSystem half = dgx_a100();
  half.node.device_count = half.node.ports = 4;
  return half;
}

Cluster whole_and_half() {
  Cluster cluster = cluster_of(dgx_a100(), 2);
  cluster.nodes["half"] = half_a100().node;
  cluster.groups.push_back({.node = "half", .count = 4});
  return cluster;
}

Collective all_reduce(GroupShape group) {
  return {.kind = CollectiveKind::kAllReduce, .bytes = Bytes(1 << 26), .group = group};
}

// Four groups of two devices in a node of eight are two groups in a node of four; eight devices are
// one node or two.
TEST(MixedCostModel, FitsGroupsIntoSmallerNodes) {
  const auto mixed = make_device_cost_model(whole_and_half());
  const auto half = make_device_cost_model(cluster_of(half_a100(), 4));
  EXPECT_EQ(mixed->on_nodes(1).time_of(all_reduce({8, 4, 4})),
            half->time_of(all_reduce({8, 4, 2})));
  EXPECT_EQ(mixed->on_nodes(1).time_of(all_reduce({8, 1, 1})),
            half->time_of(all_reduce({8, 2, 1})));
  const auto whole = make_device_cost_model(cluster_of(dgx_a100(), 2));
  EXPECT_EQ(mixed->on_nodes(0).time_of(all_reduce({8, 4, 4})),
            whole->time_of(all_reduce({8, 4, 4})));
  EXPECT_EQ(mixed->time_of(all_reduce({8, 1, 1})), half->time_of(all_reduce({8, 2, 1})));
}

// Eight messages leave a node by eight ports, four by four: each has a port of 25 GB/s.
TEST(MixedCostModel, SendsNoMoreMessagesThanANodeHasDevices) {
  const auto mixed = make_device_cost_model(whole_and_half());
  const Transfer transfer{.bytes = Bytes(25'000'000), .crosses_nodes = true, .flows_per_node = 8};
  for (const std::int32_t kind : {0, 1, -1})
    EXPECT_NEAR(mixed->on_nodes(kind).cost_of(transfer).occupancy.value, 1e-3, 1e-12);
}

}  // namespace
}  // namespace meshwright
