/// Any text as graph.txt of PipeDream.
#include "fuzz_reader.hpp"
#include "models/graphs/graph_files.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view text) {
    const NamedText file{.name = "g", .where = "g", .text = std::string(text)};
    const PipeDreamProblem problem = read_pipedream(file);
    check_pipedream_problem(problem, file.where);
    for (const auto& edge : problem.edges) {
      MW_CHECK(static_cast<std::size_t>(edge.source) < problem.nodes.size());
      MW_CHECK(static_cast<std::size_t>(edge.target) < problem.nodes.size());
    }
  });
}
