/// Any text as the only table of Aceso, and the fastest plan of short chains.
#include "core/formats/file.hpp"
#include "fuzz_file.hpp"
#include "fuzz_reader.hpp"
#include "models/graphs/graph_files.hpp"
#include "planner/partition/chain_partition.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  static const FuzzFile rates("p2p_intra_node.csv");
  const std::filesystem::path folder = std::filesystem::path(rates.path()).parent_path();
  rates.write("1,2,4\n4,8,16\n");
  return fuzz_reader(data, size, [&](std::string_view text) {
    write_file((folder / "m_mbs1_tp1_algo0.csv").string(), text);
    const bool has_layers = text.find("enc-") != text.npos || text.find("dec-") != text.npos;
    ChainProblem problem =
        read_aceso((folder / "m").string(), has_layers ? std::optional(2) : std::nullopt);
    constexpr std::size_t kMostOperators = 12;
    if (problem.chain.size() > kMostOperators) return;
    problem.devices_per_node = 2;
    problem.global_batch = 4;
    problem.device_memory = Bytes(std::int64_t{1} << 30);
    const auto partition = partition_chain(problem);
    if (!partition) return;
    ChainPlan plan = partition->plan;
    price_chain(problem, plan);
    MW_CHECK(plan == partition->plan);
    for (const ChainStage& stage : plan.stages) MW_CHECK(stage.memory <= problem.device_memory);
    MW_CHECK(partition->lower_bound <= plan.time);
  });
}
