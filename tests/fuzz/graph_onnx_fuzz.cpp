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
    for (const KernelGraphNode& node : graph.nodes) {
      MW_CHECK(node.saved.value >= 0);
      MW_CHECK(node.output.value >= 0);
      for (const Kernel& kernel : node.forward) MW_CHECK(kernel.memory_traffic.value >= 0);
      for (const Kernel& kernel : node.backward) MW_CHECK(kernel.memory_traffic.value >= 0);
    }
    for (const KernelGraphEdge& edge : graph.edges) {
      MW_CHECK(edge.source < edge.target);
      MW_CHECK(static_cast<std::size_t>(edge.target) < graph.nodes.size());
    }
  });
}
