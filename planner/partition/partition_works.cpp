#include "planner/partition/partition_works.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/indices.hpp"
#include "core/lowering/lowering_context.hpp"
#include "core/lowering/memory.hpp"

namespace meshwright {
namespace {

/// Products and attention count two in the forward pass, and one in the backward pass, which has
/// twice as many.
int products_of(const std::vector<Kernel>& kernels) {
  int products = 0;
  for (const Kernel& kernel : kernels) {
    if (kernel.kind == KernelKind::kMemoryBound) continue;
    products += kernel.phase == Phase::kForward || kernel.kind == KernelKind::kAttention ? 2 : 1;
  }
  return products;
}

class StageReader {
 public:
  StageReader(const LoweredPartition& partition, std::size_t s, TaskGraph& graph)
      : partition_(partition), stage_(partition.training.partition.stages[s]), graph_(graph) {}

  PartitionStageWorks read() {
    cut_units();
    count_parameters();
    list_groups();
    append_forward();
    append_backward();
    return std::move(works_);
  }

 private:
  using Tied = std::pair<std::int32_t, std::int64_t>;  ///< owner and count

  const KernelGraphNode& node(std::int32_t index) const {
    return partition_.graph.nodes[to_index(index)];
  }
  std::int32_t group_of(std::int32_t index) const {
    return partition_.priced.group[to_index(index)];
  }

  /// A block of GPT-2 has four products and attention, one of Llama seven: training programs have
  /// costs per layer, and gather the weights of a layer at once. The kernels of a node that is
  /// fused into another one are there.
  void cut_units() {
    constexpr int kProducts = 6;
    std::size_t unit = 0;
    int products = 0;
    for (const std::int32_t each : stage_.nodes) {
      if (node(each).fused_into >= 0) continue;
      if (products >= 2 * kProducts) ++unit, products = 0;
      products += products_of(node(each).forward);
      unit_of_[each] = unit;
    }
    works_.units.resize(unit + 1);
    for (const std::int32_t each : stage_.nodes)
      if (node(each).fused_into >= 0) unit_of_[each] = unit_of_[node(each).fused_into];
    for (StageUnit& made : works_.units) {
      made.forward.kind = TaskKind::kForward;
      made.backward.kind = TaskKind::kBackward;
    }
  }

  /// Tied weights of another stage are copied into this one, once; those of another unit are read
  /// there, too.
  void count_parameters() {
    std::set<Tied> copied;
    std::set<std::pair<std::size_t, Tied>> read;
    for (const std::int32_t each : stage_.nodes) {
      const std::size_t unit = unit_of_[each];
      works_.parameters += node(each).parameters;
      works_.summed_parameters += node(each).summed_parameters;
      works_.units[unit].parameters += node(each).parameters;
      for (const TiedParameters& tied : node(each).tied) {
        const auto owner = unit_of_.find(tied.owner);
        const Tied weights{tied.owner, tied.count};
        if (owner == unit_of_.end() && copied.insert(weights).second)
          works_.parameters += tied.count;
        if ((owner == unit_of_.end() || owner->second != unit) &&
            read.emplace(unit, weights).second)
          works_.units[unit].parameters += tied.count;
      }
    }
  }

  void list_groups() {
    for (std::size_t i = 0; i < stage_.nodes.size(); ++i) {
      members_[group_of(stage_.nodes[i])].push_back(stage_.nodes[i]);
      variant_[group_of(stage_.nodes[i])] = to_index(stage_.variant[i]);
    }
  }
  const std::vector<NodeVariant>& variants_of(std::int32_t index) const {
    return partition_.training.problem.nodes[to_index(index)].degrees.front().variants;
  }

  void append(Work& work, const std::string& name, const std::vector<Step>& added,
              bool recompute = false) {
    if (added.empty()) return;
    if (work.parts.empty() ||
        graph_.parts[to_index(work.parts.back().part)].recompute != recompute) {
      work.parts.push_back({static_cast<std::int32_t>(graph_.parts.size()), 1});
      graph_.parts.push_back({.name = name, .steps = {}, .recompute = recompute});
    }
    auto& steps = graph_.parts[to_index(work.parts.back().part)].steps;
    steps.insert(steps.end(), added.begin(), added.end());
  }

  /// While it runs, a work needs the largest of these buffers.
  static void need(Work& work, Bytes bytes) {
    Bytes& working = work.transient[MemoryClass::kWorking];
    working = std::max(working, bytes);
  }
  /// Tensors that are whole only until they have been read.
  static void need_gathered(Work& work, const std::vector<Collective>& collectives) {
    for (const Collective& each : collectives)
      if (each.kind == CollectiveKind::kAllGather) need(work, each.bytes);
  }

  void append_forward() {
    for (const std::int32_t each : stage_.nodes) {
      Work& work = works_.units[unit_of_[each]].forward;
      append(work, node(each).name, forward_steps(node(each)));
      need_gathered(work, node(each).forward_collectives);
    }
    // The saved tensors of a group are held from its last node on.
    for (const auto& [group, nodes] : members_) {
      StageUnit& unit = works_.units[unit_of_[nodes.back()]];
      unit.forward.acquired[MemoryClass::kActivations] +=
          variants_of(nodes.front())[variant_[group]].memory_per_inflight;
    }
    for (StageUnit& unit : works_.units) unit.backward.released = unit.forward.acquired;
  }

  /// A group is computed again, as a whole, before the gradient of its last node.
  void append_backward() {
    for (auto each = stage_.nodes.rbegin(); each != stage_.nodes.rend(); ++each) {
      Work& work = works_.units[unit_of_[*each]].backward;
      const std::int32_t group = group_of(*each);
      const std::vector<std::int32_t>& nodes = members_[group];
      if (*each == nodes.back() && variant_[group] > 0) {
        for (const std::int32_t again : nodes)
          append(work, node(again).name, forward_steps(node(again)), true);
        const std::vector<NodeVariant>& variants = variants_of(nodes.front());
        need(work, variants[variant_[group]].memory - variants[0].memory);
      }
      append(work, node(*each).name, backward_steps(node(*each)));
      need_gathered(work, node(*each).backward_collectives);
    }
  }

  const LoweredPartition& partition_;
  const ReplicatedStage& stage_;
  TaskGraph& graph_;
  PartitionStageWorks works_;
  std::map<std::int32_t, std::size_t> unit_of_;                ///< by node
  std::map<std::int32_t, std::vector<std::int32_t>> members_;  ///< by group
  std::map<std::int32_t, std::size_t> variant_;                ///< by group
};

}  // namespace

PartitionStageWorks partition_stage_works(const LoweredPartition& partition, std::size_t s,
                                          TaskGraph& graph) {
  return StageReader(partition, s, graph).read();
}

Work whole_pass(const std::vector<StageUnit>& units, bool is_forward) {
  Work work;
  work.kind = is_forward ? TaskKind::kForward : TaskKind::kBackward;
  const auto add = [&](const Work& part) {
    work.parts.insert(work.parts.end(), part.parts.begin(), part.parts.end());
    work.acquired += part.acquired;
    work.released += part.released;
    Bytes& working = work.transient[MemoryClass::kWorking];
    working = std::max(working, part.transient[MemoryClass::kWorking]);
  };
  if (is_forward)
    for (const StageUnit& unit : units) add(unit.forward);
  else
    for (auto unit = units.rbegin(); unit != units.rend(); ++unit) add(unit->backward);
  return work;
}

Work partition_update_work(const Strategy& strategy, std::int64_t updated, std::int64_t held,
                           const std::optional<Collective>& sum, TaskGraph& graph) {
  const std::int64_t traffic =
      updated * (kNormAndClipBytes + update_bytes(strategy)) + held * gradient_bytes(strategy);
  Work work = update_work(updated, traffic, strategy.dtype, /*on_host=*/false, graph.parts);
  if (sum) {
    std::vector<Step>& steps = graph.parts[to_index(work.parts.front().part)].steps;
    steps.insert(steps.begin(), *sum);
  }
  return work;
}

}  // namespace meshwright
