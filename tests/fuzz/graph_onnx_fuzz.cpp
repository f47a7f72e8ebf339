/// Any bytes as an ONNX model, in training with unknown operators and in inference without.
#include "fuzz_reader.hpp"
#include "models/onnx/onnx.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
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
  });
}
