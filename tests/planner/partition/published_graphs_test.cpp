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
#include "planner/partition/chain_partition.hpp"
#include "planner/partition/latency_partition.hpp"
#include "planner/partition/pipedream_partition.hpp"
#include "planner/partition/replication_partition.hpp"
#include "planner/partition/throughput_partition.hpp"

namespace meshwright {
namespace {

namespace fs = std::filesystem;

struct PublishedValue {
  std::string instance;
  double value = 0;
  std::string rest;  ///< of the row, after the value
};

/// All values of results.csv for instances with this prefix, where `marker` has the objective, and
/// the planner if it matters; the value follows. Planners that did not finish have none.
std::vector<PublishedValue> published_values(const fs::path& graphs, const std::string& prefix,
                                             const std::string& marker) {
  std::vector<PublishedValue> values;
  std::ifstream file(graphs / "results.csv");
  for (std::string line; std::getline(file, line);) {
    const std::size_t at = line.find(marker);
    if (line.rfind(prefix, 0) != 0 || at == std::string::npos) continue;
    const std::string rest = line.substr(at + marker.size());
    if (const auto value = number_from_text<double>(rest.substr(0, rest.find(','))))
      values.push_back({.instance = line.substr(0, line.find(',')), .value = *value, .rest = rest});
  }
  return values;
}

/// The best value that any planner has for each instance; values are printed with six digits.
std::map<std::string, double> best_known(const fs::path& graphs, const std::string& prefix) {
  std::map<std::string, double> best;
  for (const auto& [instance, value, rest] :
       published_values(graphs, prefix, ",max-load (time per sample),")) {
    const auto [it, is_new] = best.emplace(instance, value);
    if (!is_new) it->second = std::min(it->second, value);
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

/// "piper/bert_8_512_1920_25": memory in GiB, devices, micro-batches (0: of the file), GiB/s; a
/// further number is of layers that the planner adds to the file.
TEST(PublishedGraphs, OfPiperHaveItsTimesToNineDigits) {
  const char* folder = std::getenv("MESHWRIGHT_GRAPHS");
  if (folder == nullptr) GTEST_SKIP() << "MESHWRIGHT_GRAPHS is not set";
  const fs::path graphs = folder;
  const std::map<std::string, std::string> files = {{"bert", "bert32a100"}, {"resnet", "resnet"}};
  int count = 0;
  for (const auto& [instance, value, rest] :
       published_values(graphs, "piper/", ",Piper DP,TPS (max stage time per microbatch),")) {
    SCOPED_TRACE(instance);
    std::vector<std::string> parts;
    std::istringstream name(instance.substr(instance.find('/') + 1));
    for (std::string part; std::getline(name, part, '_');) parts.push_back(part);
    ASSERT_GE(parts.size(), 5U);
    if (parts.size() > 5 || !files.contains(parts[0])) continue;
    const std::string path = (graphs / "piper" / (files.at(parts[0]) + ".json")).string();
    ReplicationProblem problem =
        read_piper({.name = parts[0], .where = path, .text = read_file(path)});
    problem.device_memory = Bytes(std::int64_t{std::stoi(parts[1])} << 30);
    problem.devices = std::stoi(parts[2]);
    if (parts[3] != "0") problem.microbatches = std::stoi(parts[3]);
    problem.bandwidth =
        BytesPerSecond(static_cast<double>(std::int64_t{std::stoi(parts[4])} << 30));
    const auto best = partition_with_replication(problem);
    ASSERT_TRUE(best.has_value());
    constexpr double kPrinted = 5e-9;
    EXPECT_NEAR(best->time.value, value, kPrinted * value);
    EXPECT_TRUE(best->is_optimal());
    ++count;
  }
  EXPECT_EQ(count, 11);
}

/// The words after an option of PipeDream's optimizer, up to the next one.
std::vector<double> numbers_after(const std::string& option, const std::string& settings) {
  std::vector<double> numbers;
  const std::size_t at = settings.find(option);
  std::istringstream words(at == std::string::npos ? "" : settings.substr(at + option.size()));
  for (std::string word; words >> word;) {
    const auto number = number_from_text<double>(word);
    if (!number) break;
    numbers.push_back(*number);
  }
  return numbers;
}

/// PipeDream uses all devices, counts some outputs that no later stage reads, and leaves out
/// down-sets without its first node, so that the values here may be lower.
TEST(PublishedGraphs, OfPipeDreamAreCutAtLeastAsWellWithAProof) {
  const char* folder = std::getenv("MESHWRIGHT_GRAPHS");
  if (folder == nullptr) GTEST_SKIP() << "MESHWRIGHT_GRAPHS is not set";
  const fs::path graphs = folder;
  int count = 0;
  for (const auto& [instance, value, rest] :
       published_values(graphs, "pipedream/", "\"time per stage (steady state, s/minibatch)\",")) {
    const std::string path = (graphs / (instance + ".txt")).string();
    if (!fs::exists(path)) continue;
    SCOPED_TRACE(instance + rest);
    PipeDreamProblem problem =
        read_pipedream({.name = instance, .where = path, .text = read_file(path)});
    std::vector<double> sizes = numbers_after("-n ", rest), rates = numbers_after("-b ", rest);
    ASSERT_FALSE(sizes.empty());
    constexpr double kDefaultBandwidth = 1e9;
    rates.resize(sizes.size(), kDefaultBandwidth);
    for (std::size_t level = 0; level < sizes.size(); ++level)
      problem.levels.push_back(
          {.size = static_cast<int>(sizes[level]), .bandwidth = BytesPerSecond(rates[level])});
    const PipeDreamPartition best = partition_as_pipedream(problem);
    constexpr double kRounding = 1e-9;
    EXPECT_LE(best.time.value, value * (1 + kRounding));
    EXPECT_EQ(best.lower_bound, best.time);
    ++count;
  }
  EXPECT_GT(count, 0);
}

/// The greedy search of dnn-partitioning finds 100.219 ms, printed with six digits.
TEST(PublishedGraphs, OfDnnPartitioningHaveTheShortestLatencies) {
  const char* folder = std::getenv("MESHWRIGHT_GRAPHS");
  if (folder == nullptr) GTEST_SKIP() << "MESHWRIGHT_GRAPHS is not set";
  const std::string name = "bert24_inference";
  const std::string path =
      (fs::path(folder) / "dnn-partitioning" / ("latency_LayerGraphs_" + name + ".json")).string();
  const auto published =
      published_values(folder, "dnnp/latency/LayerGraphs_" + name, ",single-sample latency,");
  ASSERT_EQ(published.size(), 2U);
  const auto partition = partition_for_latency(
      read_dnn_partitioning({.name = name, .where = path, .text = read_file(path)}));
  ASSERT_TRUE(partition);
  EXPECT_EQ(partition->latency, partition->lower_bound);
  for (const PublishedValue& value : published)
    EXPECT_LE(to_seconds(partition->latency).value * 1e3, value.value * (1 + 1e-5));
}

/// Experiments of Aceso: layers and servers of eight V100 with 28000 MB, 1,024 samples per step.
TEST(PublishedGraphs, OfAcesoHaveFasterStepsThanItsSearchFinds) {
  const char* folder = std::getenv("MESHWRIGHT_GRAPHS");
  if (folder == nullptr) GTEST_SKIP() << "MESHWRIGHT_GRAPHS is not set";
  const fs::path graphs = folder;
  const struct {
    const char* model;
    int layers, servers;
  } experiments[] = {{"gpt_6_7B", 32, 2}, {"gpt_13B", 40, 4}};
  for (const auto& [model, layers, servers] : experiments) {
    SCOPED_TRACE(model);
    const auto published = published_values(graphs, std::string("aceso/") + model,
                                            ",Aceso search,estimated iteration time,");
    ASSERT_EQ(published.size(), 1U);
    ChainProblem problem =
        read_aceso((graphs / "aceso/profiled-time-eurosys" / model).string(), layers);
    problem.devices_per_node = 8;
    problem.nodes = servers;
    problem.global_batch = 1024;
    problem.device_memory = Bytes(std::int64_t{28000} << 20);
    const auto partition = partition_chain(problem);
    ASSERT_TRUE(partition);
    EXPECT_LE(partition->plan.time.value, published[0].value);
    EXPECT_LE(partition->plan.time.value, partition->lower_bound.value * 1.02);
  }
}

}  // namespace
}  // namespace meshwright
