// The command `partition`, run as a program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/program_fixture.hpp"
#include "tests/models/onnx/onnx_file.hpp"

namespace meshwright {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class PartitionProgram : public ProgramTest {
 protected:
  /// A chain of 4, 4 and 6 ms with transfers of 1 ms and 6 bytes per node.
  PartitionProgram() {
    Json nodes = Json::array(), edges = Json::array();
    for (int id = 0; id < 3; ++id)
      nodes.push_back({{"id", id},
                       {"name", std::string(1, static_cast<char>('a' + id))},
                       {"fpgaLatency", id < 2 ? 4 : 6},
                       {"cpuLatency", 90},
                       {"size", 6}});
    for (int id = 0; id < 2; ++id)
      edges.push_back({{"sourceId", id}, {"destId", id + 1}, {"cost", 1}});
    graph_ = {{"maxFPGAs", 2},
              {"maxCPUs", 0},
              {"maxSizePerFPGA", 12},
              {"nodes", nodes},
              {"edges", edges}};
    write();
  }
  void write() const { std::ofstream(path("graph.json")) << graph_; }

  Json graph_;
};

// {a, b | c} has loads 4 + 4 + 1 and 6 + 1.
TEST_F(PartitionProgram, PrintsStagesAndProof) {
  const ProgramRun text = run({"partition", "graph.json"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.standard_output, HasSubstr("graph.json: 3 nodes, 2 edges, 2 accelerators\n"
                                              "time per sample: 9.000000 ms, optimal"));
  const Json json = Json::parse(run({"partition", "graph.json", "--json"}).standard_output);
  EXPECT_EQ(json["load_ns"], 9e6);
  EXPECT_EQ(json["proved_optimal"], true);
  EXPECT_EQ(
      json["stages"][1],
      (Json{{"device", "accelerator"}, {"load_ns", 7e6}, {"memory_bytes", 6}, {"nodes", {"c"}}}));
  EXPECT_EQ(json["infeasible"], nullptr);
}

// One after the other: 4 + 4 + 1 and 1 + 6.
TEST_F(PartitionProgram, FindsTheShortestTimeOfOneSample) {
  const ProgramRun text = run({"partition", "graph.json", "--objective", "latency"});
  EXPECT_THAT(text.standard_output, HasSubstr("latency of a sample: 16.000000 ms, optimal"));
  const Json json = Json::parse(
      run({"partition", "graph.json", "--objective", "latency", "--json"}).standard_output);
  EXPECT_EQ(json["latency_ns"], 16e6);
  EXPECT_EQ(json["proved_optimal"], true);
  EXPECT_EQ(json["stages"].size(), 2U);
}

// A layer of 3 ms on one device; its 8 MB of input and output take 1 ms each.
TEST_F(PartitionProgram, FindsTheFastestStepForTablesOfAceso) {
  std::ofstream(path("gpt_tiny_mbs1_tp1_algo0.csv"))
      << "op_name,forward-compute,backward-compute,input_size,output_size,weights,activations,"
         "fwd_reserved,bwd_reserved\nenc-1st-layernorm,1000,2000,8,8,1,1,0,0\n";
  std::ofstream(path("p2p_intra_node.csv")) << "1,2,4,8\n8,8,8,8\n";
  const std::vector<std::string> job = {"partition", "gpt_tiny", "--layers",       "4",
                                        "--devices", "2",        "--global-batch", "3"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = job;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  };
  const Json json = Json::parse(with({"--memory", "1GiB", "--json"}).standard_output);
  // Two stages of two layers: 2 x 3 ms and 2 ms of transfers, for three micro-batches and once
  // more.
  EXPECT_EQ(json["step_ns"], 32e6);
  EXPECT_EQ(json["proved_optimal"], true);
  EXPECT_EQ(json["stages"][1]["operators"][0]["name"], "enc-1st-layernorm");
  EXPECT_EQ(with({"--memory", "1GiB", "-o", "config.json"}).exit_code, 0);
  const Json config = Json::parse(std::ifstream(path("config.json")));
  EXPECT_EQ(config["model_name"], "gpt");
  EXPECT_EQ(config["model_size"], "tiny");
  EXPECT_EQ(config["num_ops_in_each_stage"], (Json{2, 2}));
  EXPECT_EQ(config["recompute_ops"], (Json{{0, 0}, {0, 0}}));
  const ProgramRun small = with({"--memory", "1MiB"});
  EXPECT_EQ(small.exit_code, 1);
  EXPECT_THAT(small.standard_output, HasSubstr("No partition found"));
}

TEST_F(PartitionProgram, WritesTheNodesOfEveryStage) {
  EXPECT_EQ(run({"partition", "graph.json", "-o", "stages.json"}).exit_code, 0);
  std::ifstream file(path("stages.json"));
  EXPECT_EQ(Json::parse(file), (Json{{"0", {"a", "b"}}, {"1", {"c"}}}));
}

// Three devices take 5, 6 and 7; with 6 bytes each, two hold two nodes only.
TEST_F(PartitionProgram, TakesDevicesAndMemoryFromFlags) {
  const Json three =
      Json::parse(run({"partition", "graph.json", "--devices", "3", "--json"}).standard_output);
  EXPECT_EQ(three["load_ns"], 7e6);
  const ProgramRun small = run({"partition", "graph.json", "--memory", "6B", "-o", "stages.json"});
  EXPECT_EQ(small.exit_code, 1);
  EXPECT_THAT(small.standard_output,
              HasSubstr("the nodes need 18 B of memory together, 2 accelerators have 6 B each"));
  EXPECT_THAT(folder_.file_names(), testing::ElementsAre("graph.json"));
}

TEST_F(PartitionProgram, NamesANodeThatNoDeviceCanRun) {
  graph_["nodes"][1]["supportedOnFpga"] = false;
  write();
  const ProgramRun json = run({"partition", "graph.json", "--json"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_EQ(Json::parse(json.standard_output)["infeasible"]["reason"],
            "node 'b' runs on hosts only, and there are none");
}

/// Two nodes of 2 s and 8 bytes per micro-batch in flight, or 3 s and 1 byte.
TEST_F(PartitionProgram, FindsStagesWithDataParallelismForGraphsOfPiper) {
  const auto node = [](int id, const Json& forward, const Json& backward) {
    Json variants = Json::array();
    for (const bool is_stored : {true, false})
      variants.push_back({{"id", is_stored ? "stored" : "recomputed"},
                          {"timePerSample", is_stored ? 2 : 3},
                          {"parameterSize", 0},
                          {"memoryUsageA", is_stored ? 8 : 1},
                          {"memoryUsageB", 0},
                          {"syncTimeFw", forward},
                          {"syncTimeBw", backward}});
    return Json{{"id", id}, {"TMPCs", {{"1", variants}}}};
  };
  graph_ = {{"maxDevices", 1},
            {"maxMemoryPerDevice", 15},
            {"bandwidth", 10},
            {"mbsInBatch", 4},
            {"nodes", {node(1, Json::object(), {{"2", 0}}), node(2, {{"1", 0}}, Json::object())}},
            {"edges", {{{"sourceId", 1}, {"destId", 2}, {"communicationCost", 0}}}}};
  write();
  // Both nodes on one device need 16 bytes: one of them is recomputed.
  const ProgramRun text = run({"partition", "graph.json"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.standard_output,
              HasSubstr("graph.json: 2 nodes, 1 edge, 1 device, 4 micro-batches per batch\n"
                        "time per micro-batch: 5000 ms, optimal"));
  EXPECT_THAT(text.standard_output, HasSubstr("recomputed 1, stored 1"));
  // With 16 bytes, two replicas take half of 4 s per micro-batch.
  const Json json =
      Json::parse(run({"partition", "graph.json", "--json", "--devices", "2", "--memory", "16B"})
                      .standard_output);
  EXPECT_NEAR(json["time_per_microbatch_ns"].get<double>(), 2e9, 1);
  EXPECT_EQ(json["proved_optimal"], true);
  const ProgramRun small = run({"partition", "graph.json", "--memory", "1B"});
  EXPECT_EQ(small.exit_code, 1);
  EXPECT_THAT(small.standard_output,
              HasSubstr("no stages on at most 1 device fit in 1 B per device"));
}

/// Two nodes of 6 s with 10 bytes between them and 8 bytes of parameters, on 2 servers of 2
/// devices.
TEST_F(PartitionProgram, FindsStagesOnLevelsOfLinksForGraphsOfPipeDream) {
  std::ofstream(path("graph.txt"))
      << "node1 -- Linear -- forward_compute_time=2000, backward_compute_time=4000, "
         "activation_size=10, parameter_size=8\n"
         "node2 -- Linear -- forward_compute_time=2000, backward_compute_time=4000, "
         "activation_size=10, parameter_size=8\n"
         "\tnode1 -- node2\n";
  // Each node on the devices of a server: 3 s and a little for the all-reduce.
  const ProgramRun text = run({"partition", "graph.txt", "--devices", "2x2", "--bandwidth",
                               "1000GB/s,8B/s", "-o", "stages.json"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.standard_output, HasSubstr("graph.txt: 2 nodes, 1 edge, 2 x 2 devices\n"
                                              "time per minibatch: 3000.000000 ms, optimal"));
  std::ifstream file(path("stages.json"));
  EXPECT_EQ(Json::parse(file), (Json{{"0", {"node1"}}, {"1", {"node2"}}}));
  // One level: 6 s and a transfer of 2 * 10 / 8 s, which is hidden.
  const Json json =
      Json::parse(run({"partition", "graph.txt", "--devices", "2", "--bandwidth", "8B/s", "--json"})
                      .standard_output);
  EXPECT_NEAR(json["time_per_minibatch_ns"].get<double>(), 6e9, 1);
  EXPECT_EQ(json["proved_optimal"], true);
  EXPECT_EQ(json["stages"][1]["nodes"], Json{"node2"});
}

/// A network of two linear layers, [batch, 64] x [64, 128] x [128, 32], as ONNX.
void write_onnx(const std::string& file) {
  OnnxFile model;
  model.input("x", {"batch", 64}).weight("w", {64, 128}).weight("v", {128, 32});
  model.node({"MatMul", {"x", "w"}, {"h"}, {}, "first"});
  model.node({"Relu", {"h"}, {"r"}, {}, "activation"});
  model.node({"MatMul", {"r", "v"}, {"y"}, {}, "second"});
  std::ofstream(file, std::ios::binary) << model.bytes();
}

/// 64 * 128 + 128 * 32 weights; 2 * 256 * 12288 FLOP forward, of which the second product is
/// computed for both gradients and the first one for that of its weights.
TEST_F(PartitionProgram, ReadsOnnxModels) {
  write_onnx(path("model.onnx"));
  const ProgramRun result = run({"partition", "model.onnx", "--cluster", "dgx-a100", "--dim",
                                 "batch=256", "--devices", "1", "--json", "-o", "stages.json"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  const Json json = Json::parse(result.standard_output);
  EXPECT_EQ(json["model"]["parameters"], 12288);
  EXPECT_EQ(json["model"]["forward_flop"], 2 * 256 * 12288);
  EXPECT_EQ(json["model"]["backward_flop"], 2 * 256 * (8192 + 2 * 4096));
  std::ifstream file(path("stages.json"));
  EXPECT_EQ(Json::parse(file), (Json{{"0", {"first", "activation", "second"}}}));
}

/// One device: 4 micro-batches, forward and backward, and an update.
TEST_F(PartitionProgram, SimulatesTheTrainingStepOfAModel) {
  write_onnx(path("model.onnx"));
  const ProgramRun text = run({"partition", "model.onnx", "--cluster", "dgx-a100", "--dim",
                               "batch=256", "--devices", "1", "--timeline", "step.pftrace"});
  EXPECT_EQ(text.exit_code, 0) << text.standard_error;
  EXPECT_THAT(text.standard_output, HasSubstr("for 4 micro-batches, simulated"));
  const ProgramRun timeline = run({"show", "step.pftrace"});
  EXPECT_THAT(timeline.standard_output, HasSubstr("spans           9\n"));
  const Json json = Json::parse(run({"partition", "model.onnx", "--cluster", "dgx-a100", "--dim",
                                     "batch=256", "--devices", "1", "--json"})
                                    .standard_output);
  EXPECT_GE(json["step"]["step_ns"].get<double>(),
            4 * json["time_per_microbatch_ns"].get<double>() - 1);
  EXPECT_EQ(run({"partition", "graph.json", "--timeline", "step.pftrace"}).exit_code, 2);
}

TEST_F(PartitionProgram, PlansAModelForEveryMicroBatchSize) {
  write_onnx(path("model.onnx"));
  const std::vector<std::string> plan{"plan",      "--graph",        "model.onnx",
                                      "--cluster", "dgx-a100",       "--gpus",
                                      "2",         "--global-batch", "96"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), plan.begin(), plan.end());
    return run(more);
  };
  const ProgramRun result =
      with({"--json", "--top", "100", "-o", "stages.json", "--timeline", "step.pftrace"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  const Json plans = Json::parse(result.standard_output)["plans"];
  std::set<int> micro_batches;
  for (const Json& each : plans) micro_batches.insert(each["micro_batch"].get<int>());
  EXPECT_EQ(micro_batches, (std::set<int>{1, 2, 4, 8, 16, 32}));
  for (std::size_t i = 1; i < plans.size(); ++i)
    EXPECT_LE(plans[i - 1]["step_ns"], plans[i]["step_ns"]);
  std::ifstream file(path("stages.json"));
  EXPECT_EQ(Json::parse(file), Json::parse(result.standard_output)["stage_map"]);
  EXPECT_THAT(run({"show", "step.pftrace"}).standard_output, HasSubstr("spans"));
  const Json fixed = Json::parse(with({"--json", "--micro-batch", "48"}).standard_output)["plans"];
  EXPECT_FALSE(fixed.empty());
  for (const Json& each : fixed) EXPECT_EQ(each["micro_batch"], 48);
}

/// The first product along its columns, the second one along its depth.
TEST_F(PartitionProgram, PlansTensorParallelismOfAModel) {
  write_onnx(path("model.onnx"));
  const std::vector<std::string> plan{
      "plan", "--graph",   "model.onnx", "--cluster",      "dgx-a100", "--gpus",        "4", "--tp",
      "2",    "--trainer", "ideal",      "--global-batch", "64",       "--micro-batch", "16"};
  std::vector<std::string> json = plan;
  json.emplace_back("--json");
  const ProgramRun result = run(json);
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  const Json found = Json::parse(result.standard_output);
  for (const Json& each : found["plans"]) EXPECT_EQ(each["tensor"], 2);
  EXPECT_EQ(found["tensor_parallel"],
            (Json{{"devices", 2},
                  {"proved_optimal", true},
                  {"placements", {{"first", "Shard(1)"}, {"activation", "Shard(1)"}}}}));
  EXPECT_THAT(run(plan).standard_output,
              HasSubstr("Tensor parallelism of plan 1: outputs of operators are 2 Shard"));
}

TEST_F(PartitionProgram, NamesWhatAPlanOfAModelLacks) {
  write_onnx(path("model.onnx"));
  const auto error_of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"plan", "--graph", "model.onnx", "--cluster", "dgx-a100"};
    all.insert(all.end(), more.begin(), more.end());
    const ProgramRun result = run(all);
    EXPECT_EQ(result.exit_code, 2) << result.standard_output;
    return result.standard_error;
  };
  EXPECT_THAT(error_of({}), HasSubstr("--global-batch: missing required option"));
  EXPECT_THAT(error_of({"--global-batch", "8", "--gpus", "8192"}),
              HasSubstr("--gpus: 8192 devices on a cluster with 4480"));
  EXPECT_THAT(error_of({"--global-batch", "8", "--cp", "2"}),
              HasSubstr("--cp: cannot be used with --graph"));
  EXPECT_THAT(error_of({"--global-batch", "8", "--gpus", "6", "--tp", "4"}),
              HasSubstr("--tp: 4 tensor-parallel devices on 6 GPUs in nodes of 8"));
  EXPECT_THAT(error_of({"--global-batch", "8", "--micro-batch", "3"}),
              HasSubstr("3 does not divide the global batch size 8"));
  EXPECT_THAT(error_of({"--global-batch", "8", "--batch-dim", "n"}),
              HasSubstr("the graph has no symbolic dimension 'n'"));
}

/// Ideal kernels are launched in no time.
TEST_F(PartitionProgram, PlansAModelWithTheCostsOfATrainer) {
  write_onnx(path("model.onnx"));
  const auto best_of = [&](const std::string& trainer) {
    const ProgramRun result =
        run({"plan", "--graph", "model.onnx", "--cluster", "dgx-a100", "--gpus", "2",
             "--global-batch", "8", "--micro-batch", "4", "--json", "--trainer", trainer});
    EXPECT_EQ(result.exit_code, 0) << result.standard_error;
    return Json::parse(result.standard_output)["plans"].at(0);
  };
  const Json ideal = best_of("ideal"), megatron = best_of("megatron-core");
  EXPECT_LT(ideal["step_ns"], megatron["step_ns"]);
  EXPECT_TRUE(ideal["zero"].is_number_integer());
  for (const char* command : {"plan --graph model.onnx --global-batch 8", "partition model.onnx"})
    EXPECT_THAT(run(words_of(std::string(command) + " --cluster dgx-a100 --trainer megatron-cor")),
                fails_with(3, "did you mean 'megatron-core'"));
}

TEST_F(PartitionProgram, WritesTheCostsOfTheNodesOfAModel) {
  write_onnx(path("model.onnx"));
  const ProgramRun result =
      run({"partition", "model.onnx", "--cluster", "dgx-a100", "--dim", "batch=256", "--inference",
           "--dtype", "fp32", "--devices", "1", "--costs", "costs.csv"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_error, HasSubstr("model: 12,288 parameters, 6.29146e-06 TFLOP forward"
                                               " per micro-batch\ncosts: roofline model of A100"));
  std::ifstream file(path("costs.csv"));
  std::string line;
  std::getline(file, line);
  EXPECT_THAT(line, HasSubstr("node,operator,forward_flop,"));
  std::getline(file, line);
  // 256 * 64 + 64 * 128 + 256 * 128 elements of 4 bytes.
  EXPECT_THAT(line, HasSubstr("\"first\",\"MatMul\",4194304,0,229376,0,"));
}

TEST_F(PartitionProgram, NamesMissingOptionsOfModels) {
  write_onnx(path("model.onnx"));
  const ProgramRun no_cluster = run({"partition", "model.onnx"});
  EXPECT_EQ(no_cluster.exit_code, 2);
  EXPECT_THAT(no_cluster.standard_error, HasSubstr("error: --cluster: missing required option"));
  const ProgramRun no_size = run({"partition", "model.onnx", "--cluster", "dgx-a100"});
  EXPECT_EQ(no_size.exit_code, 3);
  EXPECT_EQ(no_size.standard_error,
            "error: model.onnx: dimension 'batch' has no value\n"
            "  hint: set it, such as with --dim batch=8\n");
  const ProgramRun wrong =
      run({"partition", "model.onnx", "--cluster", "dgx-a100", "--dim", "batch=x"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.standard_error, HasSubstr("error: --dim: invalid value 'batch=x'"));
  const ProgramRun other = run({"partition", "graph.json", "--dim", "batch=2"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.standard_error, HasSubstr("the graph has times"));
}

// Nodes of 15 and of 55 or 65, an edge of 30 or 40; the second strategy of the last needs less
// memory.
TEST_F(PartitionProgram, ChoosesStrategiesForProblemsOfIopddl) {
  std::ofstream(path("sharding.json")) << R"({"problem": {"name": "two", "nodes":
      {"intervals": [[0, 5], [3, 9]], "costs": [[15], [55, 65]], "usages": [[10240], [25600, 20480]]},
      "edges": {"nodes": [[0, 1]], "costs": [[30, 40]]}, "usage_limit": 36000}})";
  const ProgramRun text = run({"partition", "sharding.json", "-o", "chosen.json"});
  EXPECT_EQ(text.exit_code, 0) << text.standard_error;
  EXPECT_THAT(text.standard_output, HasSubstr("none: proved optimal"));
  std::ifstream file(path("chosen.json"));
  EXPECT_EQ(Json::parse(file)["strategies"], Json({0, 0}));
  const auto with = [&](const std::string& memory) {
    return run({"partition", "sharding.json", "--json", "--time-limit", "1", "--memory", memory});
  };
  const Json tight = Json::parse(with("30KiB").standard_output);
  EXPECT_EQ(tight["cost"], 15 + 65 + 40);
  EXPECT_EQ(tight["peak_usage"], 30 * 1024);
  EXPECT_EQ(with("29KiB").exit_code, 1);
  EXPECT_EQ(Json::parse(with("29KiB").standard_output)["infeasible"]["reason"],
            "no choice of strategies fits in memory");
  const ProgramRun devices = run({"partition", "sharding.json", "--devices", "4"});
  EXPECT_EQ(devices.exit_code, 2);
  EXPECT_THAT(devices.standard_error, HasSubstr("--devices"));
  EXPECT_EQ(run({"partition", "graph.json", "--time-limit", "1"}).exit_code, 2);
}

}  // namespace
}  // namespace meshwright
