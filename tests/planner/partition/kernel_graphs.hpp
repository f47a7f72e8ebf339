/// Small graphs of kernels, and a cost model with round figures.
#pragma once

#include <string>

#include "core/base/random.hpp"
#include "core/cost/cost_model.hpp"
#include "core/model/kernel_graph.hpp"

namespace meshwright {

/// A kernel takes a microsecond per byte, a message a microsecond per byte and two more.
class ByteCost final : public CostModel {
 public:
  Seconds time_of(const Kernel& kernel) const override {
    return Seconds(1e-6 * static_cast<double>(kernel.memory_traffic.value));
  }
  Seconds time_of(const Collective&) const override { return {}; }
  TransferCost cost_of(const Transfer& transfer) const override {
    return {Seconds(2e-6), Seconds(1e-6 * static_cast<double>(transfer.bytes.value))};
  }
  std::string provenance() const override { return "bytes"; }
};

inline Kernel kernel(Phase phase, std::int64_t bytes) {
  Kernel made;
  made.phase = phase;
  made.memory_traffic = Bytes(bytes);
  return made;
}

/// Tied to one parameter of the first node.
inline KernelGraphNode node(const std::string& name, std::int64_t forward, std::int64_t backward) {
  return {.name = name,
          .operation = "op",
          .forward = {kernel(Phase::kForward, forward)},
          .backward = {kernel(Phase::kBackwardInput, backward)},
          .output = Bytes(10),
          .saved = Bytes(50),
          .parameters = 2,
          .tied = {{0, 1}}};
}

/// a -> b, a -> c, b -> c: a residual connection. Tensor 0 is read twice.
inline KernelGraph residual() {
  return {.nodes = {node("a", 100, 200), node("b", 40, 60), node("c", 30, 70)},
          .edges = {{0, 1, 0, Bytes(10)}, {0, 2, 0, Bytes(10)}, {1, 2, 1, Bytes(20)}},
          .dtype = Dtype::kBf16};
}

/// A chain with skip connections.
inline KernelGraph random_kernel_graph(std::uint32_t& state) {
  const auto below = [&](std::uint32_t n) {
    return static_cast<std::int32_t>(xorshift32(state) % n);
  };
  KernelGraph graph;
  const std::int32_t count = 3 + below(6);
  for (std::int32_t v = 0; v < count; ++v) {
    KernelGraphNode each = node("n" + std::to_string(v), 10 + below(90), 10 + below(90));
    each.output = Bytes(1 + below(40));
    each.parameters = below(20);
    each.tied.clear();
    for (int i = 0; v > 0 && i < 2; ++i) {
      const std::int32_t source = i == 0 ? v - 1 : below(static_cast<std::uint32_t>(v));
      if (i == 1 && source == v - 1) break;
      graph.edges.push_back(
          {source, v, source, graph.nodes[static_cast<std::size_t>(source)].output});
    }
    graph.nodes.push_back(each);
  }
  return graph;
}

}  // namespace meshwright
