#include "models/launch/export_launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "models/launch/megatron.hpp"
#include "tests/complaints.hpp"
#include "tests/golden.hpp"
#include "tests/models/launch/random_jobs.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// 64 GPUs: 4 tensor, 4 pipeline, 4 data ranks; 80 layers: 20 per stage.
Plan plan_of_64(int zero = 1, int pipeline = 4) {
  Plan plan;
  Strategy& s = plan.strategy;
  s.degrees = {.data = 16 / pipeline, .pipeline = pipeline, .tensor = 4};
  s.sequence_parallel = true;
  s.global_batch = 128;
  s.sequence_length = 8192;
  s.zero = zero;
  plan.blocks_per_stage.assign(static_cast<std::size_t>(pipeline), 80 / pipeline);
  return plan;
}

LaunchJob job_of(const Plan& plan, const std::string& model = "llama-3.1-70b",
                 const std::string& cluster = "dgx-h100") {
  return launch_job(plan, launch_model(find_model(model)), cluster_from_toml(find_cluster(cluster)),
                    cluster);
}

LaunchText exported(std::string_view word, const LaunchJob& job) {
  return export_launch(*find_export_target(word), job);
}

std::vector<std::string> refusals(std::string_view word, const Plan& plan) {
  std::vector<std::string> texts;
  for (const Diagnostic& d : export_problems(*find_export_target(word), plan, "x#/"))
    texts.push_back(d.what);
  return texts;
}

// A plan that fits only because some layers are recomputed would not fit without these options.
TEST(ExportLaunch, RefusesOptionsOfSingleLayers) {
  Plan plan = plan_of_64(3, 1);
  plan.strategy.layer_options = *layer_options_from_text("0-7:recompute=full");
  for (const std::string word : {"megatron", "torchtitan", "deepspeed"})
    EXPECT_THAT(refusals(word, plan), testing::Contains(HasSubstr("--layer-options"))) << word;
  EXPECT_THAT(refusals("accelerate", plan),
              ElementsAre("accelerate 1.15.0 has no per-layer options"));
}

TEST(ExportLaunch, RefusesUnequalSharesOfTheBatch) {
  Plan plan = plan_of_64(1, 1);
  plan.strategy.batch_shares = *batch_shares_from_text("0-7:12+8-15:4");
  for (const std::string word : {"megatron", "torchtitan", "deepspeed"})
    EXPECT_THAT(refusals(word, plan), testing::Contains(HasSubstr("--batch-shares"))) << word;
  EXPECT_THAT(refusals("accelerate", plan),
              testing::Contains("accelerate 1.15.0 gives all ranks equal shares of the batch"));
  Plan pipelined = plan_of_64();
  pipelined.strategy.batch_shares = *batch_shares_from_text("0-1:96+2-3:32");
  EXPECT_THAT(refusals("pytorch-csv", pipelined),
              ElementsAre("torch.distributed.pipelining has one schedule for all data-parallel "
                          "ranks"));
}

TEST(ExportLaunch, WritesEveryFormat) {
  const LaunchJob pipelined = job_of(plan_of_64());
  for (const std::string word : {"megatron", "megatron-bridge", "slurm"})
    expect_golden(exported(word, pipelined).text, "export-" + word + ".txt");
  const LaunchJob sharded = job_of(plan_of_64(3, 1));
  for (const std::string word : {"torchtitan", "accelerate"})
    expect_golden(exported(word, sharded).text, "export-" + word + ".txt");
  Plan plain = plan_of_64(3, 1);
  plain.strategy.sequence_parallel = false;
  expect_golden(exported("deepspeed", job_of(plain)).text, "export-deepspeed.txt");
}

// p = 4: three warm-up forwards on the first stage, then forwards and backwards in turn.
TEST(ExportLaunch, WritesTheOrderOfEveryStage) {
  const std::string csv = exported("pytorch-csv", job_of(plan_of_64())).text;
  EXPECT_TRUE(csv.starts_with("0F0,0F1,0F2,0F3,0B0,0F4,0B1,")) << csv.substr(0, 60);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
}

TEST(ExportLaunch, RefusesPlansThatTheProgramCannotRun) {
  EXPECT_THAT(refusals("megatron", plan_of_64(3)),
              ElementsAre("Megatron-LM core_v0.19.0 has no ZeRO 3 with pipeline parallelism; it "
                          "has ZeRO 0 and 1"));
  EXPECT_THAT(refusals("torchtitan", plan_of_64(1)),
              testing::Contains("torchtitan v0.2.2 has no ZeRO 1; it has ZeRO 0, 2 and 3"));
  EXPECT_THAT(refusals("accelerate", plan_of_64(1)),
              ElementsAre("accelerate 1.15.0 has no pipeline parallelism",
                          "accelerate 1.15.0 has no ZeRO 1 with FSDP2; it has ZeRO 0, 2 and 3"));
  EXPECT_THAT(refusals("pytorch-csv", plan_of_64(1, 1)),
              ElementsAre("torch.distributed.pipelining has no schedule without a pipeline"));
  EXPECT_THAT(refusals("slurm", plan_of_64()), IsEmpty());
}

// Buckets and overlaps change the step time alone: the launch says that they are missing.
TEST(ExportLaunch, NotesOptionsThatTheProgramDoesNotHave) {
  Plan plan = plan_of_64(3, 1);
  plan.strategy.data_parallelism.buckets = *buckets_from_text("megatron");
  EXPECT_THAT(refusals("torchtitan", plan), IsEmpty());
  const LaunchText launch = exported("torchtitan", job_of(plan));
  ASSERT_EQ(launch.unsupported.size(), 1u);
  EXPECT_THAT(launch.text, HasSubstr("# Not expressible: gradient buckets megatron"));
}

TEST(ExportLaunch, RefusesModelsThatMegatronCannotBuild) {
  Plan plan = plan_of_64(1, 1);
  plan.blocks_per_stage = {24};
  EXPECT_THAT(complaints_of([&] { exported("megatron", job_of(plan, "bert-large")); }),
              HasSubstr("no bidirectional attention"));
  EXPECT_THAT(complaints_of([&] { job_of(plan, "mlp"); }), HasSubstr("is not a transformer"));
}

// 96 ranks fill 12 nodes of 8; 6 ranks fit in one node; 12 do not fill two.
TEST(ExportLaunch, SpreadsRanksOverWholeNodes) {
  Plan plan = plan_of_64(1, 1);
  plan.strategy.degrees = {.data = 96};
  EXPECT_EQ(job_of(plan).nodes, 12);
  plan.strategy.degrees = {.data = 6};
  EXPECT_EQ(job_of(plan).nodes, 1);
  EXPECT_EQ(job_of(plan).ranks_per_node, 6);
}

// arguments.py requires CUDA_DEVICE_MAX_CONNECTIONS=1 with tensor parallelism up to Hopper, and
// more for FSDP.
TEST(ExportLaunch, SetsTheEnvironmentThatFlagsRequire) {
  using Environment = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(megatron_job(job_of(plan_of_64())).environment,
            (Environment{{"CUDA_DEVICE_MAX_CONNECTIONS", "1"}}));
  EXPECT_EQ(megatron_job(job_of(plan_of_64(3, 1))).environment,
            (Environment{{"CUDA_DEVICE_MAX_CONNECTIONS", "32"}}));
  EXPECT_THAT(megatron_job(job_of(plan_of_64(), "llama-3.1-70b", "dgx-b200")).environment,
              IsEmpty());
}

// Three dense layers, then 58 with experts; sizes of DeepSeek-V3's config.json.
TEST(ExportLaunch, DescribesLatentAttentionAndExperts) {
  Plan plan = plan_of_64(1, 1);
  plan.blocks_per_stage = {61};
  const std::string text = exported("megatron", job_of(plan, "deepseek-v3")).text;
  for (const char* flag :
       {"--multi-latent-attention\n", "--q-lora-rank 1536\n", "--kv-lora-rank 512\n",
        "--qk-head-dim 128\n", "--qk-pos-emb-head-dim 64\n", "--v-head-dim 128\n",
        "--num-experts 256\n", "--moe-router-topk 8\n", "--moe-ffn-hidden-size 2048\n",
        "--moe-layer-freq \"([0]*3+[1]*58)\"\n", "--moe-shared-expert-intermediate-size 2048\n",
        "--moe-router-enable-expert-bias\n", "--expert-tensor-parallel-size 1\n"})
    EXPECT_THAT(text, HasSubstr(flag));
}

// Llama 4 Maverick: every fourth layer has no positions, every second one experts. Chunks and the
// temperature begin at 8,192 positions.
TEST(ExportLaunch, DescribesLlama4) {
  Plan plan = plan_of_64();
  plan.blocks_per_stage = {12, 12, 12, 12};
  plan.strategy.sequence_length = 4096;
  const LaunchText launch = exported("megatron", job_of(plan, "llama-4-maverick"));
  for (const char* flag :
       {"--no-rope-freq \"([0]*3+[1]*1+", "--moe-layer-freq \"([0]*1+[1]*1+", "--num-experts 128\n",
        "--moe-router-topk 1\n", "--moe-ffn-hidden-size 8192\n", "--ffn-hidden-size 16384\n",
        "--moe-shared-expert-intermediate-size 8192\n", "--moe-apply-probs-on-input\n",
        "--moe-router-score-function sigmoid\n"})
    EXPECT_THAT(launch.text, HasSubstr(flag));
  EXPECT_THAT(launch.text, testing::Not(HasSubstr("--qk-l2-norm")));
  EXPECT_THAT(launch.unsupported, IsEmpty());
  plan.strategy.sequence_length = 16384;
  const LaunchText longer = exported("megatron", job_of(plan, "llama-4-scout"));
  EXPECT_THAT(longer.text, HasSubstr("--qk-l2-norm\n"));
  EXPECT_THAT(longer.unsupported,
              testing::UnorderedElementsAre("the temperature of attention",
                                            "attention in chunks of 8192 positions"));
}

// A width of 11008 is above 8/3 of 4096: multiple_of = 11008 gives it.
TEST(ExportLaunch, SaysHowToAddAModelToTorchtitan) {
  Plan plan = plan_of_64(3, 1);
  plan.blocks_per_stage = {32};
  const LaunchText launch = exported("torchtitan", job_of(plan, "llama-2-7b"));
  EXPECT_THAT(launch.text, HasSubstr("\"llama-2-7b\": TransformerModelArgs(dim=4096, n_layers=32, "
                                     "n_heads=32, n_kv_heads=32, vocab_size=32000, "
                                     "multiple_of=11008)"));
}

TEST(ExportLaunch, ExpressesQuantizationInTorchtitan) {
  Plan plan = plan_of_64(3, 1);
  plan.strategy.dtype = Dtype::kFp8;
  plan.strategy.precision.fp8_recipe = Fp8Recipe::kTensorwise;
  plan.strategy.precision.fp8_parameters = true;
  const LaunchText launch = exported("torchtitan", job_of(plan));
  EXPECT_THAT(launch.text, HasSubstr("converters = [\"quantize.linear.float8\"]\n\n"
                                     "[quantize.linear.float8]\nrecipe_name = \"tensorwise\"\n"
                                     "enable_fsdp_float8_all_gather = true\n"));
  EXPECT_THAT(launch.unsupported, IsEmpty());
}

// ---- options of the named version ---------------------------------------------------------------

struct KnownOption {
  std::string kind, type;
  std::vector<std::string> choices;
};

/// Rows "name kind type choice,choice" of the file next to this test.
std::map<std::string, KnownOption> megatron_options() {
  std::istringstream lines(read_file(std::string(MESHWRIGHT_SOURCE_DIR) +
                                     "/tests/models/launch/megatron_core_v0.19.0_options.txt"));
  std::map<std::string, KnownOption> options;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string name, choices;
    KnownOption option;
    words >> name >> option.kind >> option.type >> choices;
    std::istringstream list(choices);
    for (std::string choice; std::getline(list, choice, ',');) option.choices.push_back(choice);
    options[name] = option;
  }
  return options;
}

std::string problem_of(const LaunchFlag& flag, const std::map<std::string, KnownOption>& options) {
  const auto found = options.find(flag.name);
  if (found == options.end()) return "no option --" + flag.name;
  const KnownOption& option = found->second;
  if (flag.value.empty() != (option.kind == "switch")) return "--" + flag.name + " " + flag.value;
  std::istringstream values(flag.value);
  int count = 0;
  for (std::string value; values >> value; ++count) {
    const bool is_number = value.find_first_not_of("0123456789.e-+") == std::string::npos;
    const bool is_whole = value.find_first_not_of("0123456789") == std::string::npos;
    if ((option.type == "int" && !is_whole) || (option.type == "float" && !is_number))
      return "--" + flag.name + " " + value;
    if (!option.choices.empty() &&
        std::find(option.choices.begin(), option.choices.end(), value) == option.choices.end())
      return "--" + flag.name + " " + value;
  }
  return option.kind == "one" && count != 1 ? "--" + flag.name + " " + flag.value : "";
}

// Random plans over models of every kind: dense, with experts, latent attention, windows, sinks.
TEST(MegatronFlags, AreOptionsOfTheNamedVersionWithAllowedValues) {
  const auto options = megatron_options();
  ASSERT_GT(options.size(), 800u);
  constexpr unsigned kSeed = 20261123;
  RandomJobs jobs("megatron-core",
                  {"gpt2", "llama-3.1-8b", "mistral-7b", "mixtral-8x7b", "qwen3-30b-a3b",
                   "deepseek-v3", "gpt-oss-20b", "nemotron-4-15b", "llama-4-scout"},
                  kSeed);
  for (int i = 0; i < 400; ++i) {
    const LaunchJob job = jobs.next();
    if (!megatron_refusal(job).empty()) continue;
    for (const MegatronJob::Group& group : megatron_job(job).groups)
      for (const LaunchFlag& flag : group.flags) ASSERT_EQ(problem_of(flag, options), "");
  }
}

// Checks of TransformerConfig that no parser sees.
TEST(MegatronFlags, RespectWhatTheProgramChecksLater) {
  Plan plan = plan_of_64(0, 1);
  Strategy& s = plan.strategy;
  s.dtype = Dtype::kFp8;
  s.precision.fp8_parameters = true;
  s.precision.wide_blocks = 1;
  const LaunchText launch = exported("megatron", job_of(plan));
  EXPECT_THAT(launch.text, testing::Not(HasSubstr("--fp8-param-gather")));
  EXPECT_THAT(launch.text, testing::Not(HasSubstr("--first-last-layers-bf16")));
  EXPECT_THAT(launch.unsupported,
              ElementsAre("fp8 parameters without ZeRO (requires ZeRO 1 or higher)",
                          "first and last layers in bf16 with fp8 recipe delayed"));
  s.recompute = *recompute_from_text("modules:layernorm");
  EXPECT_THAT(megatron_refusal(job_of(plan)), HasSubstr("fp8 recipe delayed"));
  Plan experts = plan_of_64(1, 1);
  experts.blocks_per_stage = {24};
  experts.strategy.degrees.expert_tensor = 4;
  EXPECT_THAT(megatron_refusal(job_of(experts, "gpt-oss-20b")), HasSubstr("it has 1"));
}

}  // namespace
}  // namespace meshwright
