#include "planner/partition/kernel_graph_partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/indices.hpp"
#include "core/lowering/lower.hpp"
#include "planner/partition/merge_nodes.hpp"

namespace meshwright {
namespace {

constexpr double kLongestSeconds = 1e6;  ///< per micro-batch

void check_times(const std::vector<Seconds>& times, const std::string& where) {
  Seconds total;
  for (const Seconds time : times) total += time;
  if (!(total.value <= kLongestSeconds))
    throw InputError({where, fmt::format("one micro-batch takes {:.3g} s", total.value),
                      "use smaller dimensions"});
}

std::vector<PartitionEdge> edges_of(const KernelGraph& graph) {
  std::vector<PartitionEdge> edges;
  for (const KernelGraphEdge& edge : graph.edges) edges.push_back({edge.source, edge.target});
  return edges;
}

TransferCost transfer_cost(Bytes bytes, const CostModel& cost, const GraphDevices& devices) {
  return cost.cost_of(Transfer{.bytes = bytes,
                               .crosses_nodes = devices.crosses_nodes,
                               .flows_per_node = devices.flows_per_node});
}

/// Of large messages.
BytesPerSecond bandwidth_of(const CostModel& cost, const GraphDevices& devices) {
  constexpr Bytes kLargeMessage(1'000'000'000);
  return kLargeMessage / transfer_cost(kLargeMessage, cost, devices).occupancy;
}

Bytes trained_bytes(std::int64_t parameters, Dtype dtype) {
  const ModelStateBytes state = model_state_bytes(trained_in(dtype), {});
  return Bytes(parameters * (state.weights + state.gradients + state.optimizer));
}

/// Costs of a group of nodes.
struct GroupCost {
  std::string name;
  Seconds forward, backward;
  std::int64_t parameters = 0;
  Bytes saved, read;  ///< read: outputs of other groups
};

/// A tensor between groups.
struct GroupTensor {
  std::int32_t source = 0;
  Bytes bytes;
  std::vector<std::int32_t> readers;  ///< ascending
};

/// Nodes grouped with the node that does their work, and with the views of their outputs, numbered
/// in topological order. A node without kernels whose output is as large as its only input is a
/// view: it can always be where that input is computed, if its readers are sent the input.
struct NodeGroups {
  std::vector<std::int32_t> group;
  std::vector<std::int32_t> shown;  ///< by node: the tensor that a view shows; -1: no view
  std::size_t count = 0;
};

NodeGroups group_views(const KernelGraph& graph) {
  constexpr std::int32_t kNone = -1;
  const std::size_t count = graph.nodes.size();
  std::vector<const KernelGraphEdge*> input(count, nullptr);
  std::vector<int> inputs(count, 0);
  for (const KernelGraphEdge& edge : graph.edges) {
    input[to_index(edge.target)] = &edge;
    ++inputs[to_index(edge.target)];
  }
  NodeGroups groups{.group = std::vector<std::int32_t>(count), .shown = std::vector(count, kNone)};
  for (std::size_t v = 0; v < count; ++v) {
    const KernelGraphNode& node = graph.nodes[v];
    if (node.fused_into >= 0) continue;
    const bool is_view = node.forward.empty() && node.backward.empty() && inputs[v] == 1 &&
                         node.output == input[v]->bytes && node.saved == Bytes(0) &&
                         node.parameters == 0 && node.tied.empty() &&
                         node.forward_collectives.empty() && node.backward_collectives.empty();
    groups.group[v] = is_view ? groups.group[to_index(input[v]->source)]
                              : static_cast<std::int32_t>(groups.count++);
    if (!is_view) continue;
    const std::int32_t shown = groups.shown[to_index(input[v]->source)];
    groups.shown[v] = shown == kNone ? input[v]->tensor : shown;
  }
  // Only the last node of a fused kernel is read by others, so that its place is that of all.
  for (std::size_t v = count; v-- > 0;)
    if (const std::int32_t last = graph.nodes[v].fused_into; last >= 0)
      groups.group[v] = groups.group[to_index(last)];
  return groups;
}

/// Groups merged until there are at most `most` of them.
std::vector<std::int32_t> merge_groups(const KernelGraph& graph, const NodeGroups& groups,
                                       const std::vector<Seconds>& times, std::size_t most) {
  std::vector<Seconds> sums(groups.count);
  for (std::size_t v = 0; v < times.size(); ++v) sums[to_index(groups.group[v])] += times[v];
  std::vector<PartitionEdge> edges;
  for (const KernelGraphEdge& edge : graph.edges) {
    const PartitionEdge between{groups.group[to_index(edge.source)],
                                groups.group[to_index(edge.target)]};
    if (between.source != between.target) edges.push_back(between);
  }
  const std::vector<std::int32_t> merged = merge_nodes(sums, edges, most);
  std::vector<std::int32_t> group;
  for (const std::int32_t each : groups.group) group.push_back(merged[to_index(each)]);
  return group;
}

std::vector<GroupTensor> tensors_between(const KernelGraph& graph,
                                         const std::vector<std::int32_t>& group,
                                         const std::vector<std::int32_t>& shown) {
  std::map<std::int32_t, GroupTensor> by_id;
  for (const KernelGraphEdge& edge : graph.edges) {
    const std::int32_t source = group[to_index(edge.source)], target = group[to_index(edge.target)];
    if (source == target) continue;
    const std::int32_t seen = shown[to_index(edge.source)];
    GroupTensor& tensor = by_id[seen < 0 ? edge.tensor : seen];
    tensor.source = source;
    tensor.bytes = edge.bytes;
    tensor.readers.push_back(target);
  }
  std::vector<GroupTensor> tensors;
  for (auto& [id, tensor] : by_id) {
    std::ranges::sort(tensor.readers);
    tensor.readers.erase(std::unique(tensor.readers.begin(), tensor.readers.end()),
                         tensor.readers.end());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

ReplicationNode replication_node(const GroupCost& cost, Dtype dtype, int shards) {
  const Seconds stored = cost.forward + cost.backward;
  const Bytes state =
      Bytes(divide_up(trained_bytes(cost.parameters, dtype).value, std::int64_t{shards}));
  TensorParallelNode alone{.degree = 1,
                           .parameters = Bytes(cost.parameters * kFloat32Bytes),
                           .variants = {{"stored", stored, cost.saved, state}}};
  if (cost.read < cost.saved)
    alone.variants.push_back({"recomputed", stored + cost.forward, cost.read, state + cost.saved});
  return {.name = cost.name, .degrees = {std::move(alone)}};
}

/// Between the nodes of a problem; edges of the same pair are added up.
class EdgeSum {
 public:
  void add(std::int32_t source, std::int32_t target, Bytes bytes) {
    bytes_[{source, target}] += bytes;
  }
  std::vector<ReplicationEdge> edges() const {
    std::vector<ReplicationEdge> edges;
    for (const auto& [ends, bytes] : bytes_)
      edges.push_back({.source = ends.first,
                       .target = ends.second,
                       .transfer = bytes,
                       .source_sync = {Bytes(0)},
                       .target_sync = {Bytes(0)}});
    return edges;
  }

 private:
  std::map<std::pair<std::int32_t, std::int32_t>, Bytes> bytes_;
};

/// A tensor with several readers is passed on from one to the next, by nodes that cost nothing:
/// each but the last reader has one next to it. So a stage receives it once, and sends it once at
/// most.
void add_tensors(std::vector<GroupTensor> tensors, ReplicationProblem& problem) {
  std::ranges::stable_sort(tensors, std::greater<>(), &GroupTensor::bytes);
  EdgeSum sum;
  for (const GroupTensor& tensor : tensors) {
    std::int32_t source = tensor.source;
    for (std::size_t i = 0; i < tensor.readers.size(); ++i) {
      const bool is_passed_on = i + 1 < tensor.readers.size();
      if (is_passed_on && problem.nodes.size() < kMostReplicationNodes) {
        const auto next = static_cast<std::int32_t>(problem.nodes.size());
        problem.nodes.push_back(replication_node({}, Dtype::kFp32, 1));
        sum.add(source, next, tensor.bytes);
        source = next;
      }
      sum.add(source, tensor.readers[i], tensor.bytes);
    }
  }
  problem.edges = sum.edges();
}

/// As far as collectives are not hidden behind kernels.
Seconds backward_time(const KernelGraphNode& node, const CostModel& cost) {
  if (node.backward_collectives.empty()) return time_of(node.backward, cost);
  Ticks sum;
  for (const Ticks step : price_steps({.name = {}, .steps = backward_steps(node)}, cost))
    sum += step;
  return to_seconds(sum);
}

}  // namespace

GraphDevices graph_devices(const Cluster& cluster, int count) {
  GraphDevices devices{.count = count, .memory = Bytes::max()};
  for (const auto& [name, device] : cluster.devices)
    devices.memory = std::min(devices.memory, device.memory);
  // Neighboring stages are on the same node except the last one of each node.
  devices.crosses_nodes = count > node_of(cluster, DeviceId(0)).device_count;
  return devices;
}

Strategy trained_in(Dtype dtype) {
  Strategy strategy;
  strategy.dtype = dtype;
  return strategy;
}

Seconds time_of(const std::vector<Kernel>& kernels, const CostModel& cost) {
  Seconds sum;
  for (const Kernel& kernel : kernels) sum += cost.time_of(kernel);
  return sum;
}

Seconds time_of(const std::vector<Collective>& collectives, const CostModel& cost) {
  Seconds sum;
  for (const Collective& collective : collectives) sum += cost.time_of(collective);
  return sum;
}

PartitionProblem price_inference(const KernelGraph& graph, const CostModel& cost,
                                 const GraphDevices& devices, const std::string& where) {
  std::vector<Seconds> times;
  for (const KernelGraphNode& node : graph.nodes) times.push_back(time_of(node.forward, cost));
  check_times(times, where);
  PartitionProblem problem;
  problem.accelerators = devices.count;
  problem.accelerator_memory = devices.memory;
  problem.edges = edges_of(graph);
  const std::vector<std::int32_t> group =
      merge_groups(graph, group_views(graph), times, kMostInferenceGroups);
  for (std::size_t v = 0; v < graph.nodes.size(); ++v) {
    const KernelGraphNode& node = graph.nodes[v];
    const TransferCost transfer = transfer_cost(node.output, cost, devices);
    const Bytes weights((node.parameters + tied_parameters(node)) * bytes_per_element(graph.dtype));
    problem.nodes.push_back({.name = node.name,
                             .accelerator_time = to_ticks(times[v]),
                             .host_time = to_ticks(times[v]),
                             .transfer_time = to_ticks(transfer.latency + transfer.occupancy),
                             .memory = weights + (node.fused_into < 0 ? node.output : Bytes()),
                             .colocation = group[v]});
  }
  return problem;
}

ThroughputPartition expand(const KernelGraph& graph, const PartitionProblem& problem,
                           ThroughputPartition partition) {
  if (group_views(graph).count <= kMostInferenceGroups) return partition;
  Ticks work;
  for (const PartitionNode& node : problem.nodes) work += node.accelerator_time;
  partition.lower_bound =
      std::min(partition.lower_bound, Ticks(divide_up(work.value, problem.accelerators)));
  return partition;
}

PricedKernelGraph<ReplicationProblem> price_training(const KernelGraph& graph,
                                                     const CostModel& cost,
                                                     const GraphDevices& devices,
                                                     const std::string& where) {
  std::vector<Seconds> forward, backward, times;
  for (const KernelGraphNode& node : graph.nodes) {
    forward.push_back(time_of(node.forward, cost) + time_of(node.forward_collectives, cost));
    backward.push_back(backward_time(node, cost));
    times.push_back(2 * forward.back() + backward.back());
  }
  check_times(times, where);
  PricedKernelGraph<ReplicationProblem> priced;
  const NodeGroups groups = group_views(graph);
  priced.group = merge_groups(graph, groups, times, kMostTrainingGroups);
  priced.is_exact = groups.count <= kMostTrainingGroups;
  std::vector<GroupCost> costs(
      1 + to_index(*std::max_element(priced.group.begin(), priced.group.end())));
  for (std::size_t v = 0; v < graph.nodes.size(); ++v) {
    GroupCost& group = costs[to_index(priced.group[v])];
    if (group.name.empty()) group.name = graph.nodes[v].name;
    group.forward += forward[v];
    group.backward += backward[v];
    group.parameters += graph.nodes[v].parameters + tied_parameters(graph.nodes[v]);
    group.saved += graph.nodes[v].saved;
  }
  std::vector<GroupTensor> tensors = tensors_between(graph, priced.group, groups.shown);
  for (const GroupTensor& tensor : tensors)
    for (const std::int32_t reader : tensor.readers) costs[to_index(reader)].read += tensor.bytes;
  ReplicationProblem& problem = priced.problem;
  for (const GroupCost& group : costs)
    problem.nodes.push_back(replication_node(group, graph.dtype, devices.shards));
  add_tensors(std::move(tensors), problem);
  if (problem.edges.size() > kMostReplicationEdges)
    throw InputError(
        {where,
         fmt::format("{} pairs of operators pass on tensors, after merging them to {}; "
                     "at most {} are supported",
                     problem.edges.size(), costs.size(), kMostReplicationEdges),
         "use a graph with fewer connections, or --inference"});
  problem.devices = devices.count;
  problem.microbatches = devices.microbatches;
  problem.device_memory = std::max(Bytes(0), devices.memory - devices.reserved);
  problem.bandwidth = bandwidth_of(cost, devices);
  return priced;
}

Seconds work_bound(const ReplicationProblem& problem) {
  Seconds work;
  for (const ReplicationNode& node : problem.nodes) work += node.degrees[0].variants[0].time;
  return work / problem.devices;
}

TrainingPartition expand(const KernelGraph& graph,
                         const PricedKernelGraph<ReplicationProblem>& priced,
                         const ReplicationPartition& partition) {
  TrainingPartition result{.problem = priced.problem, .partition = partition};
  result.problem.nodes.clear();
  for (std::size_t v = 0; v < graph.nodes.size(); ++v) {
    result.problem.nodes.push_back(priced.problem.nodes[to_index(priced.group[v])]);
    result.problem.nodes.back().name = graph.nodes[v].name;
  }
  result.problem.edges.clear();
  for (const KernelGraphEdge& edge : graph.edges)
    result.problem.edges.push_back({.source = edge.source,
                                    .target = edge.target,
                                    .transfer = edge.bytes,
                                    .source_sync = {Bytes(0)},
                                    .target_sync = {Bytes(0)}});
  std::vector<std::int32_t> stage_of(priced.problem.nodes.size(), -1);
  std::vector<std::int32_t> variant_of(priced.problem.nodes.size(), 0);
  for (std::size_t s = 0; s < partition.stages.size(); ++s)
    for (std::size_t i = 0; i < partition.stages[s].nodes.size(); ++i) {
      const std::size_t node = to_index(partition.stages[s].nodes[i]);
      stage_of[node] = static_cast<std::int32_t>(s);
      variant_of[node] = partition.stages[s].variant[i];
    }
  for (ReplicatedStage& stage : result.partition.stages) stage.nodes.clear(), stage.variant.clear();
  for (std::size_t v = 0; v < graph.nodes.size(); ++v) {
    const std::size_t group = to_index(priced.group[v]);
    ReplicatedStage& stage = result.partition.stages[to_index(stage_of[group])];
    stage.nodes.push_back(static_cast<std::int32_t>(v));
    stage.variant.push_back(variant_of[group]);
  }
  if (!priced.is_exact)
    result.partition.lower_bound =
        std::min(result.partition.lower_bound, work_bound(priced.problem));
  // A stage may hold only tensors that it passes on.
  std::erase_if(result.partition.stages, [](const auto& stage) { return stage.nodes.empty(); });
  result.partition.devices = 0;
  for (const ReplicatedStage& stage : result.partition.stages)
    result.partition.devices += stage.data * stage.tensor;
  return result;
}

}  // namespace meshwright
