#include "simulator/cost/nccl_model.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/simulator/csv_rows.hpp"
#include "tests/simulator/reference_systems.hpp"

namespace meshwright {
namespace {

using namespace meshwright::testing;

NcclGroup group_on(const ReferenceSystem& system, const GroupShape& shape) {
  return nccl_group_of(system.device, system.node, shape);
}

NcclGroup oracle_group(const std::string& name) {
  if (name == "8xV100") return group_on(v100_switch(), {.ranks = 8});
  if (name == "8xA100") return group_on(dgx_a100(), {.ranks = 8});
  if (name == "8xH100") return group_on(dgx_h100(), {.ranks = 8});
  if (name == "8xB200") return group_on(dgx_b200(), {.ranks = 8});
  if (name == "4x8xH100") return group_on(dgx_h100(), {.ranks = 32, .nodes = 4});
  throw std::runtime_error(name);
}

// 230 predictions of an independent restatement of the tuning model, rounded to 10 ns.
TEST(NcclTuner, AgreesWithTheRestatedTuner) {
  const std::vector<CsvRow> rows = csv_rows("nccl_model.csv");
  ASSERT_EQ(rows.size(), 230u);
  for (const CsvRow& row : rows) {
    const CollectiveKind kind =
        row.at("collective") == "ar" ? CollectiveKind::kAllReduce : CollectiveKind::kAllGather;
    const Bytes bytes(std::stoll(row.at("bytes")));
    const NcclChoice choice = nccl_choice(oracle_group(row.at("system")), kind, bytes);
    const double expected = 1e-6 * std::stod(row.at("time_us"));
    SCOPED_TRACE(::testing::Message()
                 << row.at("system") << " " << row.at("collective") << " " << row.at("bytes"));
    EXPECT_NEAR(choice.time.value / expected, 1.0, 0.001);
    EXPECT_EQ(name_of(choice.algorithm), row.at("algorithm"));
    EXPECT_EQ(name_of(choice.protocol), row.at("protocol"));
  }
}

NcclGraph graph(int channels, double intra, double inter) {
  return {channels, BytesPerSecond(intra * 1e9), BytesPerSecond(inter * 1e9)};
}

// Channels that NCCL logs (NCCL_DEBUG_SUBSYS=GRAPH); 8 x H100 as in NVIDIA/nccl issue 1197.
TEST(NcclGraphSearch, FindsTheChannelsOfKnownNodes) {
  EXPECT_EQ(oracle_group("8xH100").ring, graph(12, 30, 30));
  EXPECT_EQ(oracle_group("8xH100").tree, graph(12, 30, 30));
  EXPECT_EQ(oracle_group("8xH100").nvls, graph(8, 40, 60));
  EXPECT_EQ(oracle_group("8xA100").ring, graph(12, 20, 20));
  EXPECT_EQ(oracle_group("8xV100").ring, graph(6, 20, 20));
  EXPECT_EQ(oracle_group("8xB200").ring, graph(16, 45, 45));
  EXPECT_EQ(oracle_group("8xB200").nvls, graph(8, 80, 90));
  EXPECT_EQ(oracle_group("8xA100").nvls.channels, 0);
}

// 8 ports of 50 GB/s carry one channel of 48 each; NVLS needs 9 times its speed out of the 370.8
// GB/s of a device: 40, and 48 between nodes.
TEST(NcclGraphSearch, KeepsToThePortsBetweenNodes) {
  const NcclGroup group = oracle_group("4x8xH100");
  EXPECT_EQ(group.ring, graph(8, 48, 48));
  EXPECT_EQ(group.nvls, graph(8, 40, 48));
}

// Eight groups of one device per node get one of the eight ports each: one channel of 48, doubled
// to two of 24. With four ports for eight groups each gets half a port: 25 GB/s, 24 in one channel.
TEST(NcclGraphSearch, SharesThePortsAmongTheGroupsOfANode) {
  const GroupShape shape{.ranks = 4, .nodes = 4, .groups_per_node = 8};
  EXPECT_EQ(group_on(dgx_h100(), shape).ring, graph(2, 24, 24));
  ReferenceSystem half = dgx_h100();
  half.node.ports = 4;
  EXPECT_EQ(group_on(half, shape).ring, graph(1, 24, 24));
}

// Four ports of 12.5 GB/s: 12 a channel; inside the node the tree runs at 24, the last speed of the
// list that is reached from below twice 12.
TEST(NcclGraphSearch, RaisesATreeInsideTheNode) {
  const NcclGroup group = group_on(p4de(), {.ranks = 16, .nodes = 2});
  EXPECT_EQ(group.ring, graph(4, 12, 12));
  EXPECT_EQ(group.tree, graph(4, 24, 12));
}

// 2 x 8 A100 with 4 ports of 12.5 GB/s, all-reduce of 1 GiB, tree, Simple: 4 * 24 = 96 GB/s, times
// 0.92 = 88.32, below 4 * 23.6 = 94.4; half of it 44.16, above 64 MiB times the size's 0.9 = 39.744
// (floor(log2(2^30 / 64)) = 24 is beyond the table, so 1). Latency 8.4 + 2 (7 * 4 + 14) = 92.4 us.
TEST(NcclTuner, PricesATreeOverTwoNodes) {
  const NcclGroup group = group_on(p4de(), {.ranks = 16, .nodes = 2});
  const auto time = nccl_time(group, CollectiveKind::kAllReduce, Bytes(1LL << 30),
                              NcclAlgorithm::kTree, NcclProtocol::kSimple);
  ASSERT_TRUE(time.has_value());
  EXPECT_NEAR(time->value, 92.4e-6 + 1073741824 / 44.16e9, 1e-9);
}

// One device on each of 4 nodes, 2 channels of 24: PAT 8 + 2 * 14 / 3.5 + 2.8 * 4 = 27.2 us and
// 0.75 * 48 = 36 GB/s: 1 MiB in 27.2 + 29.1 us.
TEST(NcclTuner, PricesPatWithOneDeviceANode) {
  const NcclGroup group = group_on(dgx_h100(), {.ranks = 4, .nodes = 4, .groups_per_node = 8});
  const auto time = nccl_time(group, CollectiveKind::kAllGather, Bytes(1 << 20),
                              NcclAlgorithm::kPat, NcclProtocol::kSimple);
  ASSERT_TRUE(time.has_value());
  EXPECT_NEAR(time->value, 27.2e-6 + 1048576 / 36e9, 1e-12);
  EXPECT_FALSE(nccl_time(oracle_group("4x8xH100"), CollectiveKind::kAllGather, Bytes(1 << 20),
                         NcclAlgorithm::kPat, NcclProtocol::kSimple));
}

// Broadcast by ring, Simple, 8 x A100: 8.4 + 3.4 us and 240 GB/s.
TEST(NcclTuner, PricesABroadcast) {
  const auto time = nccl_time(oracle_group("8xA100"), CollectiveKind::kBroadcast,
                              Bytes(240'000'000), NcclAlgorithm::kRing, NcclProtocol::kSimple);
  ASSERT_TRUE(time.has_value());
  EXPECT_NEAR(time->value, 11.8e-6 + 1e-3, 1e-12);
}

TEST(NcclTuner, DoesNotUseLl128OverPcie) {
  ReferenceSystem system = dgx_a100();
  system.node.local.kind = LocalNetworkKind::kPcie;
  system.node.local.bandwidth = BytesPerSecond(32e9);
  const NcclGroup group = group_on(system, {.ranks = 8});
  EXPECT_EQ(group.ring, graph(1, 15, 15));  // AMD: 16 GB/s between sockets
  for (const NcclAlgorithm algorithm : {NcclAlgorithm::kRing, NcclAlgorithm::kTree})
    EXPECT_FALSE(nccl_time(group, CollectiveKind::kAllReduce, Bytes(1 << 20), algorithm,
                           NcclProtocol::kLl128));
}

// No enabled pair is faster than the choice, and the choice is one of them.
TEST(NcclTuner, ChoosesTheLeastOfAllEnabledPairs) {
  for (const char* name : {"8xV100", "8xA100", "8xH100", "8xB200", "4x8xH100"})
    for (int exponent = 6; exponent <= 34; ++exponent)
      for (const CollectiveKind kind :
           {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
            CollectiveKind::kBroadcast}) {
        const NcclGroup group = oracle_group(name);
        const Bytes bytes(std::int64_t{1} << exponent);
        const NcclChoice choice = nccl_choice(group, kind, bytes);
        int equal = 0;
        for (int a = 0; a < kNcclAlgorithmCount; ++a)
          for (int p = 0; p < kNcclProtocolCount; ++p) {
            const auto time = nccl_time(group, kind, bytes, static_cast<NcclAlgorithm>(a),
                                        static_cast<NcclProtocol>(p));
            if (!time) continue;
            EXPECT_GE(*time, choice.time);
            equal += *time == choice.time;
          }
        EXPECT_GE(equal, 1);
      }
}

// Edge-disjoint rings of the mesh, counted by brute force over its links (nvidia-smi topo -m on a
// p3.16xlarge): 1, 2, 4, none, 2, 4, 6 for 2 to 8 devices; on 25 GB/s links at 20.
constexpr int kMesh[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0},
                             {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
                             {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                             {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};
struct RingPacking {
  int n;
  int free[8][8] = {};
  int best = 0;

  void extend(int rings, int at, unsigned seen, int bound) {
    if (best >= bound) return;
    if (seen == (1u << n) - 1) {
      if (free[at][0] == 0) return;
      --free[at][0];
      best = std::max(best, rings + 1);
      extend(rings + 1, 0, 1u, bound);
      ++free[at][0];
      return;
    }
    for (int next = 1; next < n; ++next) {
      if ((seen >> next & 1u) != 0 || free[at][next] == 0) continue;
      --free[at][next];
      extend(rings, next, seen | 1u << next, bound);
      ++free[at][next];
    }
  }
};

TEST(NcclGraphSearch, CountsTheRingsOfTheCubeMesh) {
  for (const int n : {2, 3, 4, 6, 7, 8}) {
    RingPacking packing{.n = n};
    std::copy(&kMesh[0][0], &kMesh[0][0] + 64, &packing.free[0][0]);
    int bound = 6;  // no ring beyond the links of the poorest device
    for (int i = 0; i < n; ++i) {
      int links = 0;
      for (int j = 0; j < n; ++j) links += kMesh[i][j];
      bound = std::min(bound, links);
    }
    packing.extend(0, 0, 1u, bound);
    const ReferenceSystem system = v100_mesh();
    SCOPED_TRACE(n);
    EXPECT_NEAR(nccl_local_bandwidth(system.device, system.node, n).value, packing.best * 20e9,
                1.0);
  }
}

}  // namespace
}  // namespace meshwright
