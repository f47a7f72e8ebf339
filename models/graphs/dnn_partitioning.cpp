#include <fmt/format.h>

#include <cmath>

#include "core/base/error.hpp"
#include "models/graphs/graph_files.hpp"
#include "models/graphs/graph_scanner.hpp"

namespace meshwright {
namespace {

constexpr double kTicksPerMillisecond = 1e9;
constexpr double kLongestTotal = 1e15;  ///< picoseconds; sums over thousands of items fit int64
constexpr double kMostMemory = 1e18;    ///< bytes

struct DnnPartitioningReader : GraphScanner {
  using GraphScanner::GraphScanner;
  PartitionProblem problem;
  std::vector<std::int64_t> ids;
  struct Edge {
    std::int64_t source, target;
    double cost;
  };
  std::vector<Edge> edges;
  double total_time = 0, total_memory = 0;

  void add_time(double ticks) {
    total_time += ticks;
    if (total_time > kLongestTotal)
      refuse("the times add up to more than 1,000 s", "give times per sample, in milliseconds");
  }
  /// true, false, 0 or 1.
  bool flag() {
    if (scanner.next() == JsonScanner::Kind::kNumber) return number() != 0;
    const std::size_t begin = scanner.position();
    scanner.skip();
    return file.text.compare(begin, 4, "true") == 0;
  }
  Ticks milliseconds() {
    const double ticks = number() * kTicksPerMillisecond;
    add_time(ticks);
    return Ticks(static_cast<std::int64_t>(std::llround(ticks)));
  }
  Bytes bytes() {
    const double value = number();
    total_memory += value;
    if (total_memory > kMostMemory)
      refuse("the sizes add up to more than 1e18 bytes", "give sizes in bytes");
    return Bytes(static_cast<std::int64_t>(value));
  }
  void read_node();
  void read_edge();
  void read_all();
  void connect();
};

void DnnPartitioningReader::read_node() {
  const std::size_t index = problem.nodes.size();
  if (index == kMostPartitionNodes)
    refuse(fmt::format("more than {} nodes", kMostPartitionNodes), "merge nodes");
  PartitionNode node;
  bool has_id = false, has_time = false;
  scanner.for_each_member([&](std::string_view key) {
    if (key == "id")
      ids.push_back(whole()), has_id = true;
    else if (key == "name")
      node.name = scanner.text();
    else if (key == "fpgaLatency")
      node.accelerator_time = milliseconds(), has_time = true;
    else if (key == "cpuLatency")
      node.host_time = milliseconds();
    else if (key == "size")
      node.memory = bytes();
    else if (key == "colorClass")
      node.colocation = whole();
    else if (key == "supportedOnFpga")
      node.runs_on_accelerator = flag();
    else if (key == "isBackwardNode")
      node.is_backward = flag();
    else
      scanner.skip();
  });
  if (!has_id || !has_time)
    throw InputError({place("nodes", index), "missing key 'id' or 'fpgaLatency'",
                      "give every node an id and its time in ms"});
  ids.resize(index + 1);  // a repeated key "id" counts once
  if (node.name.empty()) node.name = fmt::format("{}", ids[index]);
  problem.nodes.push_back(std::move(node));
}

void DnnPartitioningReader::read_edge() {
  if (edges.size() == kMostPartitionEdges)
    refuse(fmt::format("more than {} edges", kMostPartitionEdges), "merge nodes");
  Edge edge{-1, -1, 0};
  scanner.for_each_member([&](std::string_view key) {
    if (key == "sourceId")
      edge.source = whole();
    else if (key == "destId")
      edge.target = whole();
    else if (key == "cost")
      edge.cost = number();
    else
      scanner.skip();
  });
  edges.push_back(edge);
}

void DnnPartitioningReader::read_all() {
  problem.accelerators = 0;
  scanner.for_each_member([&](std::string_view key) {
    if (key == "maxFPGAs")
      problem.accelerators = count("maxFPGAs", 0, kMostPartitionDevices);
    else if (key == "maxCPUs")
      problem.hosts = count("maxCPUs", 0, kMostPartitionDevices);
    else if (key == "maxSizePerFPGA")
      problem.accelerator_memory = bytes();
    else if (key == "nodes")
      scanner.for_each_object([&] { read_node(); });
    else if (key == "edges")
      scanner.for_each_object([&] { read_edge(); });
    else
      scanner.skip();
  });
  scanner.expect_end();
}

void DnnPartitioningReader::connect() {
  const NodeIds nodes(ids, *this);
  std::vector<double> cost(ids.size(), -1);
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const auto [source, target] = nodes.ends(edges[e].source, edges[e].target, e);
    double& of_source = cost[static_cast<std::size_t>(source)];
    constexpr double kSameCost = 1e-6;  // milliseconds, as in the planner that defines the format
    if (of_source >= 0 && std::abs(of_source - edges[e].cost) > kSameCost)
      throw InputError({place("edges", e),
                        fmt::format("cost {} ms differs from the {} ms of another edge of node {}",
                                    edges[e].cost, of_source, edges[e].source),
                        "give all edges of a source the same cost"});
    if (of_source < 0) {
      of_source = edges[e].cost;
      add_time(of_source * kTicksPerMillisecond);
      problem.nodes[static_cast<std::size_t>(source)].transfer_time =
          Ticks(static_cast<std::int64_t>(std::llround(of_source * kTicksPerMillisecond)));
    }
    problem.edges.push_back({source, target});
  }
}

}  // namespace

PartitionProblem read_dnn_partitioning(const NamedText& file) {
  DnnPartitioningReader reader(file);
  reader.read_all();
  reader.connect();
  check_partition_problem(reader.problem, file.where);
  return std::move(reader.problem);
}

}  // namespace meshwright
