/// Any bytes as an ONNX model, in training with unknown operators and in inference without. Small
/// ones are sharded over two devices.
#include "fuzz_reader.hpp"
#include "models/onnx/onnx.hpp"
#include "planner/partition/shard_graph.hpp"

namespace {

using namespace meshwright;

/// A byte and a FLOP take a microsecond each.
class SumCost final : public CostModel {
 public:
  Seconds time_of(const Kernel& kernel) const override {
    return Seconds(1e-6 * (static_cast<double>(kernel.memory_traffic.value) + kernel.flops.value));
  }
  Seconds time_of(const Collective& collective) const override {
    return Seconds(1e-8 * static_cast<double>(collective.bytes.value));
  }
  TransferCost cost_of(const Transfer&) const override { return {}; }
  std::string provenance() const override { return "sums"; }
};

void check_units(const KernelGraph& graph) {
  std::size_t nodes = 0;
  for (const KernelUnit& unit : graph.units) {
    nodes += unit.nodes.size();
    for (const KernelSharding& sharding : unit.shardings) {
      MW_CHECK(sharding.parts >= 2);
      MW_CHECK(sharding.parameters >= 0 && sharding.parameters <= 1);
      MW_CHECK(sharding.traffic >= 0 && sharding.traffic <= 1);
      for (std::size_t i = 1; i < sharding.tensors.size(); ++i)
        MW_CHECK(sharding.tensors[i - 1].tensor < sharding.tensors[i].tensor);
    }
  }
  MW_CHECK(graph.units.empty() || nodes == graph.nodes.size());
}

void shard(const KernelGraph& graph) {
  const SumCost cost;
  const KernelGraph local = shard_graph(graph, cost, {.group = {2}}).graph;
  for (std::size_t v = 0; v < graph.nodes.size(); ++v) {
    const KernelGraphNode &whole = graph.nodes[v], &part = local.nodes[v];
    MW_CHECK(part.parameters >= 0 && part.parameters <= whole.parameters);
    MW_CHECK(part.saved >= Bytes(0) && part.saved <= whole.saved);
    for (std::size_t k = 0; k < whole.forward.size(); ++k)
      MW_CHECK(part.forward[k].memory_traffic <= whole.forward[k].memory_traffic);
    price_steps({.name = {}, .steps = forward_steps(part)}, cost);
    price_steps({.name = {}, .steps = backward_steps(part)}, cost);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_reader(data, size, [](std::string_view text) {
    const NamedText file{.name = "g", .where = "g", .text = std::string(text)};
    const bool is_training = text.size() % 2 == 0;
    const KernelGraph graph = read_onnx(file, {.dimensions = {{"batch", 2}},
                                               .is_training = is_training,
                                               .allows_unknown_operators = is_training});
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const KernelGraphNode& node = graph.nodes[n];
      if (node.fused_into >= 0) {
        const auto last = static_cast<std::size_t>(node.fused_into);
        MW_CHECK(last > n && last < graph.nodes.size() && graph.nodes[last].fused_into < 0);
        MW_CHECK(node.forward.empty() && node.backward.empty());
      }
      MW_CHECK(node.saved.value >= 0);
      MW_CHECK(node.output.value >= 0);
      for (const Kernel& kernel : node.forward) MW_CHECK(kernel.memory_traffic.value >= 0);
      for (const Kernel& kernel : node.backward) MW_CHECK(kernel.memory_traffic.value >= 0);
    }
    for (const KernelGraphEdge& edge : graph.edges) {
      MW_CHECK(edge.source < edge.target);
      MW_CHECK(static_cast<std::size_t>(edge.target) < graph.nodes.size());
      const std::int32_t last = graph.nodes[static_cast<std::size_t>(edge.source)].fused_into;
      MW_CHECK(last < 0 || last == edge.target ||
               last == graph.nodes[static_cast<std::size_t>(edge.target)].fused_into);
    }
    check_units(graph);
    constexpr std::size_t kMostNodes = 64;
    if (!graph.units.empty() && graph.nodes.size() <= kMostNodes) shard(graph);
  });
}
