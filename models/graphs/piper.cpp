#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/error.hpp"
#include "core/base/number_from_text.hpp"
#include "models/graphs/graph_files.hpp"
#include "models/graphs/graph_scanner.hpp"

namespace meshwright {
namespace {

constexpr double kLargestSize = 1e15;    ///< of one figure; sums over all nodes fit int64
constexpr double kLongestSeconds = 1e6;  ///< of one figure
constexpr double kFastestBandwidth = 1e18;
constexpr std::size_t kMostNodeVariants = 2;  ///< Piper's choice of variants is defined for two

using SyncByNode = std::map<std::int64_t, Bytes>;  ///< by the id of the node at the other end

/// Of one node on one tensor-parallel degree.
struct Sync {
  SyncByNode forward, backward;
  friend bool operator==(const Sync&, const Sync&) = default;
};

struct PiperReader : GraphScanner {
  using GraphScanner::GraphScanner;
  ReplicationProblem problem;
  std::vector<std::int64_t> ids;
  std::vector<std::map<int, Sync>> syncs;  ///< by node, degree
  struct Edge {
    std::int64_t source, target;
    Bytes transfer;
  };
  std::vector<Edge> edges;
  std::set<int> degrees;

  double number_up_to(double most, const char* unit) {
    const double value = number();
    if (value > most)
      refuse(fmt::format("{:g} {} is more than {:g}", value, unit, most), "check the unit");
    return value;
  }
  Bytes bytes() {
    return Bytes(static_cast<std::int64_t>(std::llround(number_up_to(kLargestSize, "bytes"))));
  }
  std::int64_t key_number(std::string_view key, std::int64_t smallest, std::int64_t largest) const {
    const auto value = number_from_text<std::int64_t>(key);
    if (!value || *value < smallest || *value > largest)
      scanner.fail(fmt::format("expected a whole number from {} to {} as key, got '{}'", smallest,
                               largest, key));
    return *value;
  }
  SyncByNode sync_by_node();
  void read_variant(TensorParallelNode& node, Sync& sync, const std::string& where);
  void read_degree(ReplicationNode& node, std::map<int, Sync>& sync, int degree);
  void read_node();
  void read_edge();
  void read_all();
  void connect();
  void check_sync_counts() const;
  std::vector<Bytes> sync_of(std::int32_t node, std::int64_t other, bool is_target) const;
};

SyncByNode PiperReader::sync_by_node() {
  SyncByNode sync;
  scanner.for_each_member([&](std::string_view key) {
    constexpr std::int64_t kLargestId = 1'000'000'000'000;
    const std::int64_t id = key_number(key, -kLargestId, kLargestId);
    sync[id] = bytes();
    if (sync.size() > kMostReplicationEdges)
      refuse("more entries than edges are supported", "merge nodes");
  });
  return sync;
}

void PiperReader::read_variant(TensorParallelNode& node, Sync& sync, const std::string& where) {
  NodeVariant variant;
  Sync own;
  std::optional<Bytes> parameters;
  bool has_time = false;
  scanner.for_each_member([&](std::string_view key) {
    if (key == "id")
      variant.name = scanner.text();
    else if (key == "timePerSample")
      variant.time = Seconds(number_up_to(kLongestSeconds, "s")), has_time = true;
    else if (key == "parameterSize")
      parameters = bytes();
    else if (key == "memoryUsageA")
      variant.memory_per_inflight = bytes();
    else if (key == "memoryUsageB")
      variant.memory = bytes();
    else if (key == "syncTimeFw")
      own.forward = sync_by_node();
    else if (key == "syncTimeBw")
      own.backward = sync_by_node();
    else
      scanner.skip();
  });
  if (!has_time || !parameters)
    throw InputError({where, "missing key 'timePerSample' or 'parameterSize'",
                      "give every variant its time in s and its parameters in bytes"});
  if (node.variants.empty()) {
    node.parameters = *parameters;
    sync = std::move(own);
  } else if (node.parameters != *parameters || sync != own) {
    throw InputError({where, "parameters or sync sizes differ between the variants of a degree",
                      "give all variants of a degree the same ones"});
  }
  node.variants.push_back(std::move(variant));
}

void PiperReader::read_degree(ReplicationNode& node, std::map<int, Sync>& sync, int degree) {
  const std::string where =
      fmt::format("{}/TMPCs/{}", place("nodes", problem.nodes.size()), degree);
  TensorParallelNode costs{.degree = degree, .parameters = {}, .variants = {}};
  scanner.for_each_object([&] {
    if (costs.variants.size() == kMostNodeVariants)
      throw InputError({where, fmt::format("more than {} variants", kMostNodeVariants),
                        "keep one with and one without recomputation"});
    read_variant(costs, sync[degree], where);
  });
  if (costs.variants.empty()) return;
  const bool is_new = std::none_of(node.degrees.begin(), node.degrees.end(),
                                   [&](const auto& other) { return other.degree == degree; });
  if (!is_new) throw InputError({where, "degree given twice", "remove one"});
  node.degrees.push_back(std::move(costs));
  degrees.insert(degree);
  if (degrees.size() > kMostTensorDegrees)
    throw InputError({where,
                      fmt::format("more than {} tensor-parallel degrees", kMostTensorDegrees),
                      "remove degrees that are not of use"});
}

void PiperReader::read_node() {
  const std::size_t index = problem.nodes.size();
  if (index == kMostReplicationNodes)
    refuse(fmt::format("more than {} nodes", kMostReplicationNodes), "merge nodes");
  ReplicationNode node;
  std::map<int, Sync> sync;
  std::optional<std::int64_t> id;
  scanner.for_each_member([&](std::string_view key) {
    if (key == "id")
      id = whole();
    else if (key == "name")
      node.name = scanner.text();
    else if (key == "TMPCs")
      scanner.for_each_member([&](std::string_view degree) {
        read_degree(node, sync, static_cast<int>(key_number(degree, 1, kMostPartitionDevices)));
      });
    else
      scanner.skip();
  });
  if (!id || node.degrees.empty())
    throw InputError({place("nodes", index), "missing key 'id', or no variants in 'TMPCs'",
                      "give every node an id and at least one variant for a number of devices"});
  node.name = node.name.empty() ? fmt::format("{}", *id) : fmt::format("{}:{}", *id, node.name);
  std::sort(node.degrees.begin(), node.degrees.end(),
            [](const auto& a, const auto& b) { return a.degree < b.degree; });
  ids.push_back(*id);
  syncs.push_back(std::move(sync));
  problem.nodes.push_back(std::move(node));
}

void PiperReader::read_edge() {
  if (edges.size() == kMostReplicationEdges)
    refuse(fmt::format("more than {} edges", kMostReplicationEdges), "merge nodes");
  Edge edge{-1, -1, {}};
  scanner.for_each_member([&](std::string_view key) {
    if (key == "sourceId")
      edge.source = whole();
    else if (key == "destId")
      edge.target = whole();
    else if (key == "communicationCost")
      edge.transfer = bytes();
    else
      scanner.skip();
  });
  edges.push_back(edge);
}

void PiperReader::read_all() {
  bool has_bandwidth = false;
  scanner.for_each_member([&](std::string_view key) {
    if (key == "maxDevices")
      problem.devices = count("maxDevices", 1, kMostPartitionDevices);
    else if (key == "mbsInBatch")
      problem.microbatches = count("mbsInBatch", 1, kMostMicrobatches);
    else if (key == "maxMemoryPerDevice")
      problem.device_memory = bytes();
    else if (key == "bandwidth")
      problem.bandwidth = BytesPerSecond(number_up_to(kFastestBandwidth, "B/s")),
      has_bandwidth = true;
    else if (key == "nodes")
      scanner.for_each_object([&] { read_node(); });
    else if (key == "edges")
      scanner.for_each_object([&] { read_edge(); });
    else
      scanner.skip();
  });
  scanner.expect_end();
  if (!has_bandwidth || problem.bandwidth.value < 1)
    throw InputError({fmt::format("{}#/bandwidth", file.where),
                      "missing bandwidth, or less than 1 byte per second",
                      "set the bandwidth between devices in bytes per second"});
}

std::vector<Bytes> PiperReader::sync_of(std::int32_t node, std::int64_t other,
                                        bool is_target) const {
  std::vector<Bytes> result;
  const auto v = static_cast<std::size_t>(node);
  for (const TensorParallelNode& degree : problem.nodes[v].degrees) {
    const Sync& sync = syncs[v].at(degree.degree);
    const SyncByNode& by_node = is_target ? sync.forward : sync.backward;
    const auto found = by_node.find(other);
    if (found == by_node.end())
      throw InputError({fmt::format("{}/TMPCs/{}", place("nodes", v), degree.degree),
                        fmt::format("'{}' has no entry for node {}, which an edge connects",
                                    is_target ? "syncTimeFw" : "syncTimeBw", other),
                        "give an entry for every edge of the node; 0 is valid"});
    result.push_back(found->second);
  }
  return result;
}

void PiperReader::connect() {
  const NodeIds nodes(ids, *this);
  std::set<std::pair<std::int32_t, std::int32_t>> seen;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const auto [source, target] = nodes.ends(edges[e].source, edges[e].target, e);
    if (!seen.emplace(source, target).second)
      throw InputError(
          {place("edges", e),
           fmt::format("second edge from node {} to node {}", edges[e].source, edges[e].target),
           "merge the edges"});
    problem.edges.push_back({.source = source,
                             .target = target,
                             .transfer = edges[e].transfer,
                             .source_sync = sync_of(source, edges[e].target, false),
                             .target_sync = sync_of(target, edges[e].source, true)});
  }
  check_sync_counts();
}

/// Every edge has entries, so that entries without an edge show in the counts.
void PiperReader::check_sync_counts() const {
  std::vector<std::size_t> incoming(ids.size(), 0), outgoing(ids.size(), 0);
  for (const ReplicationEdge& edge : problem.edges) {
    ++outgoing[static_cast<std::size_t>(edge.source)];
    ++incoming[static_cast<std::size_t>(edge.target)];
  }
  for (std::size_t v = 0; v < ids.size(); ++v)
    for (const auto& [degree, sync] : syncs[v])
      if (sync.forward.size() != incoming[v] || sync.backward.size() != outgoing[v])
        throw InputError({fmt::format("{}/TMPCs/{}", place("nodes", v), degree),
                          "'syncTimeFw' or 'syncTimeBw' has an entry for a node without an edge",
                          "remove the entry, or add the edge"});
}

}  // namespace

ReplicationProblem read_piper(const NamedText& file) {
  PiperReader reader(file);
  reader.read_all();
  reader.connect();
  check_replication_problem(reader.problem, file.where);
  return std::move(reader.problem);
}

}  // namespace meshwright
