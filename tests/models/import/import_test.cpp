#include "models/import/import.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/import/import_lines.hpp"
#include "models/load/load.hpp"
#include "tests/complaints.hpp"

namespace meshwright {
namespace {

NamedText named(std::string text) {
  return {.name = "box", .where = "box", .text = std::move(text)};
}

ImportOptions like(const std::string& preset, int nodes = 1) {
  return {.like = find_cluster(preset), .nodes = nodes};
}

const NodeModel& node_of(const ImportedCluster& imported) {
  return imported.cluster.nodes.at(imported.cluster.groups.front().node);
}

using Mistakes = std::vector<std::pair<std::string, std::string>>;  ///< text, part of the complaint

void expect_complaints(const std::function<void(const NamedText&)>& import,
                       const Mistakes& mistakes) {
  for (const auto& [text, complaint] : mistakes) {
    const NamedText source = named(text);
    EXPECT_THAT(complaints_of([&] { import(source); }), testing::HasSubstr(complaint)) << text;
  }
}

// ---- cluster files ------------------------------------------------------------------------------

TEST(ClusterFile, ComesBackAsItWasWrittenForEveryPreset) {
  for (const std::string& name : cluster_preset_names()) {
    SCOPED_TRACE(name);
    const Cluster cluster = cluster_from_toml(find_cluster(name));
    const NamedText again{.name = name, .where = name, .text = cluster_to_toml(cluster, {"note"})};
    EXPECT_EQ(cluster_from_toml(again), cluster);
  }
}

TEST(ClusterFile, ComesBackWithTreesRailsAndLevels) {
  Cluster cluster = cluster_from_toml(find_cluster("pcie-4gpu"));
  NodeModel& node = cluster.nodes.begin()->second;
  node.local.tree = PcieTree{.switches = 2,
                             .sockets = 2,
                             .uplink = BytesPerSecond(12.3456789e9),
                             .socket_link = BytesPerSecond(1e9 / 3)};
  node.ports = 4;
  node.port_bandwidth = BytesPerSecond(12.5e9);
  cluster.groups.front().count = 64;
  cluster.fabric.latency = Seconds(3.3e-6);
  cluster.fabric.rails = true;
  cluster.fabric.levels = {{.nodes = 8, .oversubscription = 1.0},
                           {.nodes = 32, .oversubscription = 3.5}};
  cluster.name = "a \"quoted\"\nname";
  cluster.devices.begin()->second.kernels = KernelLibrary::kOwn;
  EXPECT_EQ(cluster_from_toml(named(cluster_to_toml(cluster))), cluster);
}

// ---- nvidia-smi topo -m -------------------------------------------------------------------------

/// A matrix as nvidia-smi prints it: tabs between cells, colors in the header.
std::string matrix(int gpus, const std::function<std::string(int, int)>& cell, int nics = 0) {
  std::string text = "\x1b[4m";
  for (int g = 0; g < gpus; ++g) text += fmt::format("\tGPU{}", g);
  for (int n = 0; n < nics; ++n) text += fmt::format("\tNIC{}", n);
  text += "\tCPU Affinity\tNUMA Affinity\x1b[0m\n";
  for (int a = 0; a < gpus; ++a) {
    text += fmt::format("GPU{}", a);
    for (int b = 0; b < gpus; ++b) text += "\t" + (a == b ? " X " : cell(a, b));
    for (int n = 0; n < nics; ++n) text += "\tPXB";
    text += "\t0-47\t0\n";
  }
  for (int n = 0; n < nics; ++n) {
    text += fmt::format("NIC{}", n);
    for (int g = 0; g < gpus; ++g) text += "\tPXB";
    for (int m = 0; m < nics; ++m) text += m == n ? "\t X " : "\tNODE";
    text += "\t\t\n";
  }
  return text + "\nLegend:\n\n  X    = Self\n";
}

// Eight devices, every pair with 18 links: more than 18 per device in total, so there is a switch.
// 18 links of 25 GB/s: 450 GB/s.
TEST(ImportNvidiaSmi, KnowsAnNvSwitchBox) {
  const ImportedCluster box = import_nvidia_smi(named(matrix(
                                                    8, [](int, int) { return "NV18"; }, 8)),
                                                {.like = std::nullopt, .nodes = 4});
  const NodeModel& node = node_of(box);
  EXPECT_EQ(node.device_count, 8);
  EXPECT_EQ(node.local.kind, LocalNetworkKind::kNvSwitch);
  EXPECT_EQ(node.local.bandwidth, BytesPerSecond(450e9));
  EXPECT_TRUE(node.local.in_network_reduction);
  EXPECT_EQ(node.ports, 8);
  EXPECT_EQ(box.cluster.groups.front().count, 4);
  EXPECT_EQ(box.cluster.devices.begin()->second.compute_capability, 90);
}

// Four devices with 4 links to each other: 12 of 25 GB/s each, without a switch.
TEST(ImportNvidiaSmi, AddsUpTheLinksOfAMesh) {
  const ImportedCluster box =
      import_nvidia_smi(named(matrix(4, [](int, int) { return "NV4"; })), {});
  EXPECT_EQ(node_of(box).local.kind, LocalNetworkKind::kNvLinkMesh);
  EXPECT_EQ(node_of(box).local.bandwidth, BytesPerSecond(300e9));
  EXPECT_EQ(node_of(box).ports, 0);
}

// Two devices per switch, two switches per socket: 8 devices, 4 switches, 2 sockets.
TEST(ImportNvidiaSmi, DrawsTheTreeOfAPcieBox) {
  const auto cell = [](int a, int b) {
    if (a / 2 == b / 2) return "PIX";
    return a / 4 == b / 4 ? "NODE" : "SYS";
  };
  const ImportedCluster box = import_nvidia_smi(named(matrix(8, cell)), like("pcie-4gpu"));
  const LocalNetwork& local = node_of(box).local;
  EXPECT_EQ(local.kind, LocalNetworkKind::kPcie);
  ASSERT_TRUE(local.tree.has_value());
  EXPECT_EQ(local.tree->switches, 4);
  EXPECT_EQ(local.tree->sockets, 2);
  EXPECT_EQ(local.bandwidth, BytesPerSecond(31e9));
}

// Found by the fuzz target: one GPU and one port.
TEST(ImportNvidiaSmi, KnowsAGpuAloneAndItsFileGivesItBack) {
  const Cluster cluster = import_nvidia_smi(named(matrix(
                                                1, [](int, int) { return ""; }, 1)),
                                            like("dgx-h100"))
                              .cluster;
  EXPECT_EQ(cluster.nodes.at("node").device_count, 1);
  EXPECT_EQ(cluster.nodes.at("node").ports, 1);
  EXPECT_EQ(
      cluster_from_toml({.name = cluster.name, .where = "again", .text = cluster_to_toml(cluster)}),
      cluster);
}

TEST(ImportNvidiaSmi, RefusesWhatIsNoMatrix) {
  expect_complaints(
      [](const NamedText& text) { import_nvidia_smi(text, like("dgx-h100")); },
      {{"", "no header with GPU0 found"},
       {"\tGPU0\tGPU1\nGPU0\t X \tNV4\n", "header has 2 GPUs, but the matrix has 1 rows"},
       {"\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV2\t X \n",
        "box:3: GPU1 to GPU0 is NV2, but GPU0 to GPU1 is NV4"},
       {"\tGPU0\tGPU1\nGPU0\t X \tfast\nGPU1\tfast\t X \n", "box:2: invalid connection 'fast'"},
       {"\tGPU0\tGPU2\n", "expected column 2 to be 'GPU1', got 'GPU2'"}});
}

// ---- NCCL's topology ----------------------------------------------------------------------------

/// Four devices per socket, two devices per switch.
std::string topology(int gpus, int capability, int links, const std::string& net_speed) {
  std::string xml = "<system version=\"1\">\n";
  for (int g = 0; g < gpus; ++g) {
    if (g % 4 == 0)
      xml += fmt::format(
          "<cpu host_hash=\"0x1\" numaid=\"{}\" arch=\"x86_64\" "
          "vendor=\"AuthenticAMD\">\n",
          g / 4);
    if (g % 2 == 0) xml += fmt::format("<pci busid=\"0000:{:02x}:00.0\">\n", g);
    xml += fmt::format(
        "<pci busid=\"0000:{:02x}:01.0\" link_speed=\"16.0 GT/s PCIe\" "
        "link_width=\"16\"><gpu dev=\"{}\" sm=\"{}\" rank=\"{}\" gdr=\"1\">\n",
        g, g, capability, g);
    if (links > 0)
      xml += fmt::format(
          "<nvlink target=\"0000:c4:00.0\" count=\"{}\" tclass=\"0x068000\"/>\n"
          "<nvlink target=\"0000:c5:00.0\" count=\"{}\" tclass=\"0x068000\"/>\n",
          links / 2, links - links / 2);
    xml += "</gpu></pci>\n";
    if (!net_speed.empty())
      xml += fmt::format(
          "<nic><net name=\"mlx5_{}\" dev=\"{}\" speed=\"{}\" port=\"1\" "
          "latency=\"0.0\" gdr=\"1\"/></nic>\n",
          g, g, net_speed);
    if (g % 2 == 1) xml += "</pci>\n";
    if (g % 4 == 3) xml += "</cpu>\n";
  }
  return xml + "</system>\n";
}

// 12 links of 25 GB/s to switches; ports of 200,000 Mbit/s: 25 GB/s.
TEST(ImportNcclTopology, KnowsAnA100Box) {
  const ImportedCluster box = import_nccl_topology(named(topology(8, 80, 12, "200000")), {});
  const NodeModel& node = node_of(box);
  EXPECT_EQ(node.device_count, 8);
  EXPECT_EQ(node.local.kind, LocalNetworkKind::kNvSwitch);
  EXPECT_EQ(node.local.bandwidth, BytesPerSecond(300e9));
  EXPECT_FALSE(node.local.in_network_reduction);
  EXPECT_EQ(node.ports, 8);
  EXPECT_EQ(node.port_bandwidth, BytesPerSecond(25e9));
  EXPECT_EQ(node.cpu, CpuVendor::kAmd);
}

// 16 GT/s * 16 lanes / 8 * 128/130 = 31.508 GB/s; two devices per switch, four per socket.
TEST(ImportNcclTopology, DrawsTheTreeOfAPcieBox) {
  const ImportedCluster box = import_nccl_topology(named(topology(8, 80, 0, "")), {});
  const LocalNetwork& local = node_of(box).local;
  EXPECT_EQ(local.kind, LocalNetworkKind::kPcie);
  EXPECT_NEAR(local.bandwidth.value, 31.508e9, 1e6);
  ASSERT_TRUE(local.tree.has_value());
  EXPECT_EQ(local.tree->switches, 4);
  EXPECT_EQ(local.tree->sockets, 2);
}

TEST(ImportNcclTopology, RefusesWhatCannotBe) {
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "<a>";
  expect_complaints(
      [](const NamedText& text) { import_nccl_topology(text, {}); },
      {{"<system><cpu></system>", "box:1: invalid XML"},
       {"<!DOCTYPE a [<!ENTITY b \"c\">]><system/>", "document type declarations are not allowed"},
       {"<graphs/>", "expected <system> as the root element"},
       {"<system/>", "no <gpu> element found"},
       {topology(4, 80, 12, "0"), "port 'mlx5_0' has a speed of 0 Mbit/s"},
       {topology(4, 86, 4, ""), "compute capability 86"},
       {deep, "elements nested deeper than 64"}});
}

// ---- nccl-tests ---------------------------------------------------------------------------------

constexpr const char* kAllReduce =
    "# nccl-tests version 2.17.1 nccl-headers=22807\n"
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 1 minBytes 1024 maxBytes 4096 step: 2(factor)\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid    100 on  host1 device  0 [0000:18:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid    101 on  host1 device  1 [0000:2a:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  2 Group  0 Pid    200 on  host2 device  0 [0000:18:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  3 Group  0 Pid    201 on  host2 device  1 [0000:2a:00] NVIDIA H100 80GB HBM3\n"
    "#\n"
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     "
    "time\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             "
    "(us)\n"
    "        1024           256     float     sum      -1    12.50    0.08    0.14       0    "
    "11.00\n"
    "        2048           512     float     sum      -1    12.00    0.17    0.30     N/A    "
    "11.00\n"
    "        4096          1024     float     sum      -1  1.5e+01    0.27    0.48       0    "
    "11.00\n"
    "# Out of bounds values : 0 OK\n"
    "# Avg bus bandwidth    : 0.3\n";

// 12.5 us then 12 us decrease: both become sqrt(12.5 * 12) = 12.2474 us.
TEST(ImportNcclTests, ReadsTextByTheNamesOfItsColumns) {
  const ImportedCalibration imported = import_nccl_tests(named(kAllReduce), std::nullopt);
  ASSERT_EQ(imported.calibration.collectives.size(), 1u);
  const CollectiveCurve& curve = imported.calibration.collectives.front();
  EXPECT_EQ(curve.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(curve.ranks, 4);
  EXPECT_EQ(curve.nodes, 2);
  ASSERT_EQ(curve.points.size(), 3u);
  EXPECT_NEAR(curve.points[0].time.value, 12.2474e-6, 1e-10);
  EXPECT_NEAR(curve.points[2].time.value, 15e-6, 1e-15);
  ASSERT_EQ(imported.notes.size(), 1u);
  EXPECT_EQ(imported.notes.front(),
            "leveled 2 of 3 times that decreased with size, by up to 2.1 %");
  EXPECT_EQ(imported.calibration.provenance.at("device"), "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(calibration_from_json(to_json(imported.calibration), "again").collectives.front().ranks,
            4);
}

constexpr const char* kGatherJson = R"({"version": 1, "config": {"ngpus": 1, "devices": [
    {"rank": 0, "hostname": "a", "device_info": "NVIDIA B200"},
    {"rank": 1, "hostname": "a", "device_info": "NVIDIA B200"}]},
  "results": [
    {"size": 1048576, "count": 1, "out_of_place": {"time": 20.5, "nwrong": 0}, "in_place": null},
    {"size": 2097152, "out_of_place": null, "in_place": {"cpu_time": 30}}]})";

TEST(ImportNcclTests, ReadsJson) {
  const ImportedCalibration imported =
      import_nccl_tests(named(kGatherJson), CollectiveKind::kAllGather);
  const CollectiveCurve& curve = imported.calibration.collectives.front();
  EXPECT_EQ(curve.kind, CollectiveKind::kAllGather);
  EXPECT_EQ(curve.ranks, 2);
  EXPECT_EQ(curve.nodes, 1);
  EXPECT_EQ(curve.points, (std::vector<CurvePoint>{{Bytes(1048576), Seconds(20.5 * 1e-6)},
                                                   {Bytes(2097152), Seconds(30 * 1e-6)}}));
}

TEST(ImportNcclTests, RefusesWhatIsNoOutput) {
  std::string no_ranks = kAllReduce;
  for (std::size_t at = 0; (at = no_ranks.find("#  Rank", at)) != std::string::npos;)
    no_ranks.replace(at, 7, "#  Task");
  expect_complaints(
      [](const NamedText& text) { import_nccl_tests(text, std::nullopt); },
      {{"hello\n", "no rows with sizes and times found"},
       {"1024 256\n", "box:1: row before the header"},
       {"# size count time algbw\n1024 256 fast 3\n", "box:2: expected a time in us in column 3"},
       {"# size count time algbw\n1024 256 0.0 3\n", "must be positive, got 1024 bytes in 0 us"},
       {"# size count time algbw\n1024 256 7.0 3\n", "does not name its collective"},
       {kGatherJson, "does not name its collective"},
       {"{\"results\": []}", "box#/config: missing object"},
       {no_ranks, "expected at least 2 ranks, got 0"}});
}

// ---- Slurm --------------------------------------------------------------------------------------

// Two leaf switches of 16 nodes below each of two switches, all below one: 64 nodes; levels of 16
// and 32; the top switch has no uplinks.
TEST(ImportSlurm, TurnsSwitchesIntoFabricLevels) {
  const ImportedCluster cluster = import_slurm(
      named("# a comment\nSwitchName=s0 Nodes=tux[00-15]\nswitchname=s1 nodes=tux[16-31]\n"
            "SwitchName=s2 Nodes=tux[32-47] LinkSpeed=100\nSwitchName=s3 Nodes=tux[48-62],tux63\n"
            "SwitchName=m0 Switches=s[0-1]\nSwitchName=m1 Switches=s2,s3\n"
            "SwitchName=top Switches=m[0-1]\n"),
      like("dgx-h100"));
  EXPECT_EQ(device_count(cluster.cluster), 64 * 8);
  EXPECT_EQ(cluster.cluster.fabric.levels,
            (std::vector<FabricLevel>{{.nodes = 16, .oversubscription = 1.0},
                                      {.nodes = 32, .oversubscription = 1.0}}));
}

// `scontrol show topology` lists the nodes below higher switches, too.
TEST(ImportSlurm, ReadsTheOutputOfScontrol) {
  const ImportedCluster cluster =
      import_slurm(named("SwitchName=s0 Level=0 LinkSpeed=1 Nodes=tux[0-3]\n"
                         "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=tux[4-7]\n"
                         "SwitchName=top Level=1 LinkSpeed=1 Nodes=tux[0-7] Switches=s[0-1]\n"),
                   like("dgx-h100"));
  EXPECT_EQ(cluster.cluster.groups.front().count, 8);
  EXPECT_EQ(cluster.cluster.fabric.levels,
            (std::vector<FabricLevel>{{.nodes = 4, .oversubscription = 1.0}}));
}

TEST(ImportSlurm, RefusesWhatIsNoTree) {
  expect_complaints(
      [](const NamedText& text) { import_slurm(text, like("dgx-h100")); },
      {{"", "no switches found"},
       {"SwitchName=a Switches=b\nSwitchName=c Nodes=n1\n", "box:1: unknown switch 'b' below 'a'"},
       {"SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "cycle of switches"},
       {"SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n2\n",
        "node 'n2' is connected to two switches"},
       {"SwitchName=a Nodes=n[9-3]\n", "invalid host list"},
       {"SwitchName=a Nodes=n[1-999999999]\n", "more than 200000 names"},
       {"SwitchName=a\n", "has neither Nodes nor Switches"},
       {"hello\n", "expected Key=Value, got 'hello'"}});
  EXPECT_THAT(complaints_of([] { import_slurm(named("SwitchName=a Nodes=n1\n"), {}); }),
              testing::HasSubstr("does not describe its nodes"));
}

std::string_view guessed_format(std::string_view text) {
  const ImportFormat* const format = guess_import_format(text);
  return format ? format->name : "none";
}

TEST(ImportFormats, AreKnownByWhatStandsInTheFile) {
  EXPECT_EQ(guessed_format(matrix(2, [](int, int) { return "NV4"; })), "nvidia-smi");
  EXPECT_EQ(guessed_format(topology(4, 80, 12, "")), "nccl-topology");
  EXPECT_EQ(guessed_format(kAllReduce), "nccl-tests");
  EXPECT_EQ(guessed_format(kGatherJson), "nccl-tests");
  EXPECT_EQ(guessed_format("SwitchName=a Nodes=n1\n"), "slurm");
  EXPECT_EQ(guessed_format("something else"), "none");
}

// Every importer on truncated and mutated valid files: fails with InputError or returns a valid
// result.
TEST(ImportFormats, NeverFailOnDamagedFiles) {
  const std::vector<std::string> sound = {
      matrix(
          4, [](int, int) { return "NV4"; }, 2),
      topology(4, 80, 12, "100000"), kAllReduce, kGatherJson,
      "SwitchName=s0 Nodes=tux[0-3]\nSwitchName=top Switches=s[0-0]\n"};
  const ImportOptions options = like("dgx-h100");
  const auto try_all = [&](const std::string& text) {
    const NamedText source = named(text);
    complaints_of([&] { import_nvidia_smi(source, options); });
    complaints_of([&] { import_nccl_topology(source, options); });
    complaints_of([&] { import_nccl_tests(source, CollectiveKind::kAllReduce); });
    complaints_of([&] { import_slurm(source, options); });
  };
  for (const std::string& text : sound) {
    for (std::size_t cut = 0; cut < text.size(); cut += 1 + text.size() / 60)
      try_all(text.substr(0, cut));
    for (std::size_t at = 0; at < text.size(); at += 1 + text.size() / 60)
      for (const char c : {'\0', '9', '\t', '-', '"', '<', '[', '='}) {
        std::string damaged = text;
        damaged[at] = c;
        try_all(damaged);
      }
  }
}

}  // namespace
}  // namespace meshwright
