#include "core/cluster/cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "models/load/load.hpp"
#include "tests/complaints.hpp"
#include "tests/replaced.hpp"

namespace meshwright {
namespace {

using namespace literals;

/// A small valid file; each test breaks one line of it.
const std::string kSmall = R"(schema = 1

[devices.gpu]
memory = "16 GiB"
memory_bandwidth = "900 GB/s"
launch_overhead = "2 us"
peak = { fp16 = "125 TFLOP/s" }

[nodes.box]
device = "gpu"
device_count = 4
ports = 1
port_bandwidth = "100 Gbit/s"
local = { kind = "pcie", bandwidth = "31 GB/s", latency = "5 us" }

[[groups]]
node = "box"
count = 2

[fabric]
latency = "10 us"
)";

std::string spoiled(const std::string& from, const std::string& to) {
  return replaced(kSmall, from, to);
}

std::string complaint_about(const std::string& text) {
  return complaints_of([&] { cluster_from_toml({"x", "x.toml", text}); });
}

TEST(ClusterFile, IsReadWithItsUnits) {
  const Cluster cluster = cluster_from_toml({"x", "x.toml", kSmall});
  const DeviceModel& device = cluster.devices.at("gpu");
  EXPECT_EQ(device.memory, 16_GiB);
  EXPECT_EQ(device.peak[static_cast<std::size_t>(Dtype::kFp16)], 125_TFLOPps);
  EXPECT_EQ(device.peak[static_cast<std::size_t>(Dtype::kBf16)], std::nullopt);
  EXPECT_EQ(device.compute_capability, std::nullopt);
  const NodeModel& node = cluster.nodes.at("box");
  EXPECT_EQ(node.port_bandwidth, BytesPerSecond(12.5e9));  // 100 Gbit/s / 8
  EXPECT_EQ(node.local.kind, LocalNetworkKind::kPcie);
  EXPECT_EQ(cluster.fabric.latency, Seconds(10e-6));
  EXPECT_EQ(device_count(cluster), 8);
  EXPECT_EQ(cluster.name, "x");
}

TEST(ClusterFile, TakesSourcesForATableAndForOneKey) {
  const std::string text = spoiled("[nodes.box]",
                                   "source = \"a datasheet\"\n"
                                   "sources.launch_overhead = \"a guess\"\n\n[nodes.box]");
  const Cluster cluster = cluster_from_toml({"x", "x.toml", text});
  EXPECT_EQ(cluster.sources.at("devices.gpu.memory"), "a datasheet");
  EXPECT_EQ(cluster.sources.at("devices.gpu.memory_bandwidth"), "a datasheet");
  EXPECT_EQ(cluster.sources.at("devices.gpu.launch_overhead"), "a guess");
  EXPECT_FALSE(cluster.sources.contains("nodes.box.ports"));
}

// ---- every kind of bad input, with its full message -----------------------------------------

TEST(ClusterFileError, PointsAtTheMistakeAndSaysHowToCorrectIt) {
  const struct {
    const char *from, *to, *complaint;
  } mistakes[] = {
      // not TOML
      {"memory = \"16 GiB\"", "memory = 16 GiB",
       "4:13: invalid TOML: Error while parsing key-value pair: expected a comment "
       "or whitespace, saw 'G'\n"
       "  hint: pass a cluster file (TOML)\n"},
      // a bare number
      {"\"16 GiB\"", "16",
       "4:10: missing unit in 'devices.gpu.memory = 16'\n"
       "  hint: write a string with a unit, such as \"16 GiB\"\n"},
      {"\"900 GB/s\"", "\"900\"",
       "5:20: missing unit in '900'\n"
       "  hint: write \"900 GB/s\" or \"900 Gbit/s\"\n"},
      // an unknown unit
      {"\"100 Gbit/s\"", "\"100 Gbps\"",
       "13:18: invalid unit 'Gbps' in '100 Gbps': expected a bandwidth\n"
       "  hint: did you mean 'Gbit/s'?\n"},
      // zero and negative rates
      {"\"900 GB/s\"", "\"0 GB/s\"",
       "5:20: must be positive, got 0 GB/s\n"
       "  hint: write a bandwidth as \"1.5 GB/s\" or \"2 Gbit/s\"\n"},
      {"\"125 TFLOP/s\"", "\"-1 TFLOP/s\"",
       "7:17: must be positive, got -1 TFLOP/s\n"
       "  hint: write a FLOP rate as \"1.5 TFLOP/s\" or \"2 PFLOP/s\"\n"},
      // an unknown key
      {"launch_overhead = \"2 us\"", "launch_overhead = \"2 us\"\nlaunch_overheat = \"2 us\"",
       "7:1: unknown key 'devices.gpu.launch_overheat'\n"
       "  hint: did you mean 'launch_overhead'?\n"},
      // a missing key
      {"memory = \"16 GiB\"\n", "",
       "3:1: missing key 'devices.gpu.memory'\n"
       "  hint: add memory = \"80 GiB\"\n"},
      {"schema = 1", "",
       "1:1: missing key 'schema'\n"
       "  hint: add schema = 1\n"},
      // another schema
      {"schema = 1", "schema = 2", "1:10: 'schema = 2' is out of range: expected 1\n"},
      // wrong types
      {"device = \"gpu\"", "device = 3",
       "10:10: invalid value 3 for 'nodes.box.device': expected a string\n"
       "  hint: put the text in quotes\n"},
      {"device_count = 4", "device_count = \"four\"",
       "11:16: invalid value \"four\" for 'nodes.box.device_count': expected a whole "
       "number from 1 to 16777216\n"},
      {"\"pcie\"", "\"pci\"",
       "14:18: invalid value \"pci\" for 'nodes.box.local.kind'\n"
       "  hint: did you mean 'pcie'?\n"},
      {"[[groups]]", "[groups]",
       "16:1: expected an array of tables at 'groups', got a table\n"
       "  hint: start each entry with [[groups]]\n"},
      // a name that points nowhere
      {"device = \"gpu\"", "device = \"gqu\"",
       "10:10: unknown device 'gqu'\n"
       "  hint: did you mean 'gpu'? (for a device file, give a path such as ./device.toml)\n"},
  };
  for (const auto& [from, to, complaint] : mistakes)
    EXPECT_EQ(complaint_about(spoiled(from, to)), std::string("error: x.toml:") + complaint);
}

TEST(ClusterFileError, ReportsAllComplaintsAtOnce) {
  EXPECT_EQ(complaint_about(replaced(spoiled("\"16 GiB\"", "16"), "\"5 us\"", "5")),
            "error: x.toml:4:10: missing unit in 'devices.gpu.memory = 16'\n"
            "  hint: write a string with a unit, such as \"16 GiB\"\n"
            "error: x.toml:14:59: missing unit in 'nodes.box.local.latency = 5'\n"
            "  hint: write a string with a unit, such as \"5 us\"\n");
}

// ---- presets --------------------------------------------------------------------------------

TEST(ClusterPresets, AreSoundAndSayWhereTheirFiguresAreFrom) {
  for (const std::string& name : cluster_preset_names()) {
    SCOPED_TRACE(name);
    const Cluster cluster = cluster_from_toml(find_cluster(name));
    EXPECT_EQ(cluster.name, name);
    EXPECT_TRUE(check_cluster(cluster, "").empty());
    EXPECT_TRUE(is_homogeneous(cluster));
    for (const auto& [key, device] : cluster.devices)
      for (const std::string figure :
           {"memory", "reserved_memory", "memory_bandwidth", "launch_overhead", "multiprocessors",
            "gemm.max_efficiency", "gemm.tile_m", "memory_efficiency.max_efficiency",
            "attention.forward", "attention.backward"})
        EXPECT_TRUE(cluster.sources.contains("devices." + key + "." + figure)) << figure;
    for (const auto& [key, node] : cluster.nodes)
      for (const std::string figure : {"device_count", "ports", "local.bandwidth", "local.latency"})
        EXPECT_TRUE(cluster.sources.contains("nodes." + key + "." + figure)) << figure;
    EXPECT_TRUE(cluster.sources.contains("groups[0].count"));
  }
}

TEST(ClusterPresets, AreTheOnesThatUsersAreTold) {
  EXPECT_THAT(
      cluster_preset_names(),
      testing::ElementsAre("a10g-8", "a3-megagpu-8g", "a4-highgpu-8g", "cpu-laptop", "dgx-a100",
                           "dgx-a100-40gb", "dgx-b200", "dgx-b300", "dgx-h100", "dgx-h100-superpod",
                           "dgx-h200", "dgx-h800", "dgx-v100", "gb200-nvl72", "gb300-nvl72",
                           "gh200-quad", "gh200-single", "hgx-h20", "l4-8", "l40s-8", "llama3-h100",
                           "mi300x-8", "mi355x-8", "nd-h100-v5", "p3.16xlarge", "p4d.24xlarge",
                           "p5.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge", "p6e-gb200",
                           "pcie-4gpu", "pcie-8gpu", "rtx-4090-8", "rtx-5090-8"));
}

// 560 nodes of 8; NVLink 600 GB/s bidirectional; 200 Gbit/s per port.
TEST(ClusterPresets, DescribeSelene) {
  const Cluster cluster = cluster_from_toml(find_cluster("dgx-a100"));
  EXPECT_EQ(device_count(cluster), 4480);
  const NodeModel& node = node_of(cluster, DeviceId(std::int32_t{0}));
  EXPECT_EQ(node.local.bandwidth, 300_GBps);
  EXPECT_EQ(node.port_bandwidth, 25_GBps);
  EXPECT_EQ(node.ports, 8);
}

TEST(FindCluster, NamesTheNearestPresetAndHowToPassAFile) {
  EXPECT_EQ(complaints_of([] { find_cluster("dgx-a10"); }),
            "error: dgx-a10: unknown cluster 'dgx-a10'\n"
            "  hint: did you mean 'dgx-a100', 'dgx-h100', 'dgx-v100'? (for a cluster file, give a "
            "path such as ./cluster.toml)\n");
}

}  // namespace
}  // namespace meshwright
