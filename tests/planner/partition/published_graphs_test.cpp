/// Graphs of published planners, with what these planners find. They are not part of this
/// repository: MESHWRIGHT_GRAPHS names the folder that has them, with results.csv.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "core/base/number_from_text.hpp"
#include "core/formats/file.hpp"
#include "models/graphs/graph_files.hpp"
#include "planner/partition/throughput_partition.hpp"

namespace meshwright {
namespace {

namespace fs = std::filesystem;

/// The best value that any planner in results.csv has for each instance; values are printed with
/// six digits.
std::map<std::string, double> best_known(const fs::path& graphs, const std::string& prefix) {
  std::map<std::string, double> best;
  std::ifstream file(graphs / "results.csv");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(prefix, 0) != 0) continue;
    const std::string instance = line.substr(0, line.find(','));
    // The name of the planner may be quoted; the value follows the objective, with its unit.
    const std::size_t objective = line.find(",max-load (time per sample),");
    if (objective == std::string::npos) continue;
    std::istringstream rest(
        line.substr(objective + std::string(",max-load (time per sample),").size()));
    std::string value;
    std::getline(rest, value, ',');
    const auto number = number_from_text<double>(value);
    if (!number) continue;  // did not finish
    const auto [it, is_new] = best.emplace(instance, *number);
    if (!is_new) it->second = std::min(it->second, *number);
  }
  return best;
}

TEST(PublishedGraphs, OfDnnPartitioningAreSolvedToTheBestKnownLoadsWithAProof) {
  const char* folder = std::getenv("MESHWRIGHT_GRAPHS");
  if (folder == nullptr) GTEST_SKIP() << "MESHWRIGHT_GRAPHS is not set";
  const fs::path graphs = folder;
  const std::map<std::string, double> known = best_known(graphs, "dnnp/throughput/");
  int count = 0;
  for (const auto& entry : fs::directory_iterator(graphs / "dnn-partitioning")) {
    const std::string name = entry.path().stem().string();
    if (name.rfind("throughput_", 0) != 0) continue;
    SCOPED_TRACE(name);
    std::string instance = "dnnp/throughput/" + name.substr(std::string("throughput_").size());
    ASSERT_TRUE(known.contains(instance));
    const PartitionProblem problem = read_dnn_partitioning(
        {.name = name, .where = name, .text = read_file(entry.path().string())});
    const auto best = partition_for_throughput(problem);
    ASSERT_TRUE(best.has_value());
    EXPECT_EQ(best->load, best->lower_bound);
    constexpr double kTicksPerMillisecond = 1e9, kPrinted = 5e-6;
    const double load = static_cast<double>(best->load.value) / kTicksPerMillisecond;
    EXPECT_NEAR(load, known.at(instance), kPrinted * load);
    std::vector<PartitionStage> stages = best->stages;
    price_stages(problem, stages);
    for (const PartitionStage& stage : stages) EXPECT_LE(stage.load, best->load);
    ++count;
  }
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace meshwright
