#include "models/load/resolve_references.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/cluster/cluster.hpp"
#include "models/import/import.hpp"
#include "models/load/load.hpp"
#include "tests/complaints.hpp"

namespace meshwright {
namespace {

using namespace literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

Cluster read(const std::string& text) { return cluster_from_toml({"x", "x.toml", text}); }
std::string complaint_about(const std::string& text) {
  return complaints_of([&] { read(text); });
}

/// Files in a folder of their own.
class ClusterFolder : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / fmt::format("mw-{}", info->name());
    std::filesystem::create_directories(folder_ / "sub");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_;
};

// ---- extends ------------------------------------------------------------------------------------

TEST(Extends, ChangesTheKeysThatAreGivenAndKeepsTheOthers) {
  const Cluster base = read("extends = \"dgx-a100\"");
  const Cluster changed = read(R"(extends = "dgx-a100"
[nodes.dgx]
ports = 4
port_bandwidth = "100 Gbit/s"
sources.ports = "their paper"
)");
  Cluster expected = base;
  expected.nodes.at("dgx").ports = 4;
  expected.nodes.at("dgx").port_bandwidth = BytesPerSecond(12.5e9);
  expected.sources["nodes.dgx.ports"] = "their paper";
  expected.sources["nodes.dgx.port_bandwidth"] = "changed in x.toml";
  EXPECT_EQ(changed, expected);
  EXPECT_EQ(base.name, "x");
  EXPECT_EQ(base.nodes, cluster_from_toml(find_cluster("dgx-a100")).nodes);
}

TEST(Extends, ChangesTheDeviceThatTheClusterRefersTo) {
  const Cluster cluster = read(R"(extends = "dgx-h100"
devices.h100-sxm5-80gb.memory = "96 GB"
devices.h100-sxm5-80gb.gemm.max_efficiency = 0.62
)");
  DeviceModel expected = cluster_from_toml(find_cluster("dgx-h100")).devices.at("h100-sxm5-80gb");
  expected.memory = Bytes(96'000'000'000);
  expected.gemm.max_efficiency = 0.62;
  EXPECT_THAT(cluster.devices, ElementsAre(Pair("h100-sxm5-80gb", expected)));
}

TEST(Extends, ReplacesArraysAndTheDeviceOfANode) {
  const Cluster cluster = read(R"(extends = "dgx-h100"
nodes.dgx.device = "h20-sxm-96gb"
groups = [{ node = "dgx", count = 3 }, { node = "dgx", count = 4 }]
)");
  EXPECT_THAT(cluster.groups, ElementsAre(NodeGroup{"dgx", 3}, NodeGroup{"dgx", 4}));
  ASSERT_EQ(cluster.devices.size(), 1u);
  EXPECT_EQ(cluster.devices.at("h20-sxm-96gb").multiprocessors, 78);
}

TEST(Extends, WritesDefaultsThatWereGivenSoThatTheyAreReadAgain) {
  const Cluster cluster = read(R"(extends = "dgx-h100"
[nodes.dgx]
device_count = 1
ports = 0
[nodes.dgx.local]
in_network_reduction = false
[[groups]]
node = "dgx"
count = 1
)");
  EXPECT_FALSE(cluster.nodes.at("dgx").local.in_network_reduction);
  EXPECT_EQ(read(cluster_to_toml(cluster)), cluster);
}

TEST_F(ClusterFolder, FollowsPathsFromFileToFileAndReturnsOneTextThatStandsForItself) {
  write("device.toml", "schema = 1\nextends = \"l4\"\nmemory = \"20 GB\"\n");
  write("sub/box.toml",
        "extends = \"l40s-8\"\n[nodes.box]\ndevice = \"../device.toml\"\ndevice_count = 4\n"
        "local.tree.switches = 2\n");
  write("mine.toml",
        "extends = \"sub/box.toml\"\ndevices.device.memory_bandwidth = \"250 GB/s\"\n");
  const NamedText found = find_cluster(path("mine.toml"));
  EXPECT_THAT(found.text, Not(HasSubstr("extends")));
  const Cluster cluster = cluster_from_toml({found.name, "plan.json#/cluster/toml", found.text});
  EXPECT_EQ(cluster.name, "mine");
  EXPECT_EQ(cluster.nodes.at("box").device_count, 4);
  const DeviceModel& device = cluster.devices.at("device");
  EXPECT_EQ(device.memory, Bytes(20'000'000'000));
  EXPECT_EQ(device.memory_bandwidth, 250_GBps);
  EXPECT_EQ(device.multiprocessors, 58);  // of the L4
  EXPECT_EQ(cluster.sources.at("devices.device.memory"), "changed in " + path("device.toml"));
  EXPECT_EQ(cluster.sources.at("devices.device.memory_bandwidth"),
            "changed in " + path("mine.toml"));
  EXPECT_THAT(cluster.sources.at("devices.device.peak.bf16"),
              StartsWith("scaled from l4 by datasheet: NVIDIA L4 datasheet"));
}

// ---- devices ------------------------------------------------------------------------------------

constexpr const char* kBox = R"(schema = 1
[nodes.box]
device = "{}"
device_count = 1
[[groups]]
node = "box"
count = 1
{}
)";

TEST(DeviceReferences, LoadEveryPreset) {
  for (const std::string& name : device_preset_names()) {
    SCOPED_TRACE(name);
    const Cluster cluster = read(fmt::format(fmt::runtime(kBox), name, ""));
    ASSERT_TRUE(cluster.devices.contains(name));
    const std::string prefix = "devices." + name + ".";
    for (const std::string figure : {"memory", "reserved_memory", "memory_bandwidth",
                                     "multiprocessors", "gemm.max_efficiency"})
      EXPECT_TRUE(cluster.sources.contains(prefix + figure)) << figure;
  }
}

TEST(DeviceReferences, TakeChangesInTheSameFile) {
  const Cluster implied =
      read(fmt::format(fmt::runtime(kBox), "l4", "[devices.l4]\nmemory = \"20 GB\""));
  EXPECT_EQ(implied.devices.at("l4").memory, Bytes(20'000'000'000));
  EXPECT_EQ(implied.devices.at("l4").multiprocessors, 58);
  const Cluster named = read(fmt::format(fmt::runtime(kBox), "mine",
                                         "[devices.mine]\nextends = \"l4\"\nmemory = \"20 GB\""));
  EXPECT_EQ(named.devices.at("mine"), implied.devices.at("l4"));
}

TEST(DeviceReferences, LeaveDevicesDescribedInFullAlone) {
  const Cluster cluster = read(fmt::format(fmt::runtime(kBox), "l4", R"([devices.l4]
memory = "1 GiB"
memory_bandwidth = "1 GB/s"
launch_overhead = "1 us"
peak = { fp32 = "1 TFLOP/s" }
)"));
  EXPECT_EQ(cluster.devices.at("l4").multiprocessors, 1);  // the default, not the 58 of an L4
}

TEST(DeviceReferences, MarkWhatIsScaledFromAnotherDevice) {
  const Cluster cluster = read(fmt::format(fmt::runtime(kBox), "h20-sxm-96gb", ""));
  const auto source = [&](const std::string& key) {
    return cluster.sources.at("devices.h20-sxm-96gb." + key);
  };
  EXPECT_THAT(source("gemm.max_efficiency"),
              StartsWith("scaled from h100-sxm5-80gb by datasheet: "));
  EXPECT_THAT(source("peak.bf16"), StartsWith("NVIDIA H20"));
}

// ---- the clusters of published runs, as changes of presets
// ----------------------------------------

TEST(Extends, ExpressesAMixedClusterOfTwoPresets) {
  const Cluster cluster = read(R"(extends = "p3.16xlarge"
[nodes.p3]
device_count = 4
port_bandwidth = "10 Gbit/s"
local.bandwidth = "21 GB/s"
[nodes.g4]
device = "t4"
device_count = 4
ports = 1
port_bandwidth = "50 Gbit/s"
local = { kind = "pcie", bandwidth = "6.25 GB/s", latency = "5 us" }
[[groups]]
node = "p3"
count = 3
[[groups]]
node = "g4"
count = 1
)");
  EXPECT_EQ(device_count(cluster), 16);
  EXPECT_EQ(device_of(cluster, DeviceId(11)).name, "V100-SXM2-16GB");
  EXPECT_EQ(device_of(cluster, DeviceId(12)).name, "T4-16GB");
}

// ---- measured collectives -----------------------------------------------------------------------

TEST(CollectivesReference, BecomesTheTablesOfTheFile) {
  const Cluster cluster = cluster_from_toml({"x", "x.toml",
                                             "extends = \"dgx-h100\"\n"
                                             "devices.h100-sxm5-80gb.collectives = \"nvlink3\"\n"
                                             "fabric.collectives = \"efa-v2\"\n"});
  const Cluster a100 = cluster_from_toml(find_cluster("dgx-a100"));
  const DeviceModel& device = device_of(cluster, DeviceId(0));
  EXPECT_TRUE(device.collectives.has_value());
  EXPECT_EQ(device.collectives->simple, device_of(a100, DeviceId(0)).collectives->simple);
  EXPECT_EQ(cluster.fabric.collectives,
            cluster_from_toml(find_cluster("p5.48xlarge")).fabric.collectives);
  EXPECT_NE(cluster.fabric.collectives, a100.fabric.collectives);
}

TEST(CollectivesReference, IsWrittenOutInFull) {
  const Cluster cluster = cluster_from_toml(find_cluster("dgx-h100"));
  const std::string text = cluster_to_toml(cluster, {});
  EXPECT_EQ(text.find("collectives = "), std::string::npos);
  EXPECT_EQ(cluster_from_toml({"x", "x.toml", text}), cluster);
}

// ---- errors -------------------------------------------------------------------------------------

TEST(ReferenceError, NamesTheNearestClusterAndDevice) {
  EXPECT_EQ(complaint_about("extends = \"dgx-a10\""),
            "error: x.toml:1:11: unknown cluster 'dgx-a10'\n"
            "  hint: did you mean 'dgx-a100', 'dgx-h100', 'dgx-v100'? (for a cluster file, give a "
            "path such as ./cluster.toml)\n");
  EXPECT_THAT(complaint_about("extends = \"dgx-a100\"\nnodes.dgx.device = \"h100-sxm-80gb\""),
              StartsWith("error: x.toml:2:20: unknown device 'h100-sxm-80gb'\n"
                         "  hint: did you mean 'h100-sxm5-80gb', "));
  EXPECT_EQ(complaint_about("extends = 3"),
            "error: x.toml:1:11: expected the name of a cluster or the path of its file\n"
            "  hint: put it in quotes\n");
}

TEST(ReferenceError, NamesTheNearestMeasuredCollectives) {
  EXPECT_THAT(complaint_about("extends = \"dgx-a100\"\nfabric.collectives = \"infinibnd\""),
              StartsWith("error: x.toml:2:22: unknown collectives 'infinibnd'\n"
                         "  hint: did you mean 'infiniband'"));
  EXPECT_THAT(complaint_about("extends = \"dgx-a100\"\nfabric.collectives.hop = -1"),
              StartsWith("error: x.toml:2:26: 'fabric.collectives.hop' must be"));
}

TEST(ReferenceError, NamesTheNodesAndDevicesThatCanBeChanged) {
  EXPECT_EQ(complaint_about("extends = \"dgx-a100\"\nnodes.dxg.ports = 4\n"
                            "devices.a100.memory = \"40 GB\""),
            "error: x.toml:2:7: unknown node 'dxg' in the extended cluster\n"
            "  hint: did you mean 'dgx'?\n"
            "error: x.toml:3:9: unknown device 'a100' in the extended cluster\n"
            "  hint: expected one of: a100-sxm4-80gb\n");
}

TEST(ReferenceError, PointsIntoTheFileThatHasTheUnknownKey) {
  EXPECT_EQ(complaint_about("extends = \"dgx-a100\"\n[nodes.dgx]\n  prots = 4"),
            "error: x.toml:3:3: unknown key 'nodes.dgx.prots'\n"
            "  hint: did you mean 'ports'?\n");
}

TEST_F(ClusterFolder, PointsIntoTheExtendedFile) {
  write("base.toml", "extends = \"dgx-a100\"\n[nodes.dgx]\nprots = 4\n");
  write("mine.toml", "extends = \"base.toml\"\n[nodes.dgx]\nports = 5\n");
  EXPECT_EQ(complaints_of([&] { find_cluster(path("mine.toml")); }),
            fmt::format("error: {}:3:1: unknown key 'nodes.dgx.prots'\n"
                        "  hint: did you mean 'ports'?\n",
                        path("base.toml")));
}

TEST_F(ClusterFolder, RefusesFilesThatExtendThemselves) {
  write("a.toml", "extends = \"b.toml\"\n");
  write("b.toml", "extends = \"a.toml\"\n");
  EXPECT_EQ(complaints_of([&] { find_cluster(path("a.toml")); }),
            fmt::format("error: {}:1:11: 'a.toml' refers back to itself\n"
                        "  hint: remove one of the references\n",
                        path("b.toml")));
  write("c.toml", "extends = \"c.toml\"\n");
  EXPECT_THAT(complaints_of([&] { find_cluster(path("c.toml")); }),
              HasSubstr("c.toml:1:11: 'c.toml' refers back to itself"));
}

TEST_F(ClusterFolder, RefusesLongChains) {
  write("0.toml", "extends = \"dgx-a100\"\n");
  for (int i = 1; i <= 20; ++i)
    write(fmt::format("{}.toml", i), fmt::format("extends = \"{}.toml\"\n", i - 1));
  EXPECT_EQ(cluster_from_toml(find_cluster(path("13.toml"))).name, "13");
  EXPECT_THAT(complaints_of([&] { find_cluster(path("20.toml")); }),
              HasSubstr("more than 16 files refer to one another"));
}

TEST_F(ClusterFolder, OpensNoFilesForTextsInPlans) {
  write("base.toml", "extends = \"dgx-a100\"\n");
  EXPECT_EQ(complaints_of([&] {
              cluster_from_toml({"x", "x.plan.json#/cluster/toml",
                                 fmt::format("extends = \"{}\"", path("base.toml"))});
            }),
            fmt::format("error: x.plan.json#/cluster/toml:1:11: cannot open '{}': this text may "
                        "refer to presets only\n"
                        "  hint: use a preset, or copy the keys of the cluster here\n",
                        path("base.toml")));
}

TEST_F(ClusterFolder, SaysWhichFileIsMissing) {
  write("mine.toml", "extends = \"absent.toml\"\n");
  EXPECT_THAT(complaints_of([&] { find_cluster(path("mine.toml")); }),
              HasSubstr(path("absent.toml")));
}

}  // namespace
}  // namespace meshwright
