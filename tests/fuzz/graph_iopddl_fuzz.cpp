/// Any text as a problem of IOPDDL.
#include "fuzz_reader.hpp"
#include "models/graphs/graph_files.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view text) {
    const ShardingProblem problem =
        read_iopddl({.name = "g", .where = "g", .text = std::string(text)});
    for (const ShardingEdge& edge : problem.edges) {
      MW_CHECK(static_cast<std::size_t>(edge.first) < problem.nodes.size());
      MW_CHECK(static_cast<std::size_t>(edge.second) < problem.nodes.size());
    }
  });
}
