#include "models/import/import_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/formats/plan.hpp"
#include "core/plan/placement.hpp"
#include "models/families/load_model.hpp"
#include "models/import/import.hpp"
#include "models/import/megatron_options.hpp"
#include "models/import/model_config_text.hpp"
#include "models/import/shell_arithmetic.hpp"
#include "models/import/shell_script.hpp"
#include "models/launch/megatron.hpp"
#include "tests/complaints.hpp"
#include "tests/models/launch/random_jobs.hpp"
#include "tests/models/mutated_text.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

NamedText script_of(std::string text) {
  return {.name = "train", .where = "train.sh", .text = std::move(text)};
}

// ---- shell scripts ------------------------------------------------------------------------------

/// The words of the last command, separated by '|'.
std::string last_command(const std::string& text) {
  const ShellScript script = read_shell_script(script_of(text));
  std::string joined;
  for (const ShellWord& word : script.commands.back())
    joined += (joined.empty() ? "" : "|") + word.text;
  return joined;
}

TEST(ShellScript, ReplacesVariablesArraysAndDefaults) {
  EXPECT_EQ(last_command("A=8\nrun --tp $A --pp ${A} --cp \"${A}x\"\n"),
            "run|--tp|8|--pp|8|--cp|8x");
  EXPECT_EQ(last_command("X=( --a 1 # note\n --b \"two words\" )\nX+=(--c)\nrun \"${X[@]}\"\n"),
            "run|--a|1|--b|two words|--c");
  EXPECT_EQ(last_command("ARGS=\"--a 1 \\\n  --b 2\"\nrun $ARGS \\\n  --c\n"),
            "run|--a|1|--b|2|--c");
  EXPECT_EQ(last_command("N=2\nrun ${M:-4} ${N:-4} ${K:-$N}\n"), "run|4|2|2");
  EXPECT_EQ(last_command("run $UNSET ${ALSO_UNSET} '$A' \"$@\"\n"), "run|$UNSET|${ALSO_UNSET}|$A");
}

TEST(ShellScript, EvaluatesArithmeticAndSkipsRedirections) {
  EXPECT_EQ(last_command("G=8\nN=4\nW=$(($G*$N))\nrun $W $((N + 2 * (G - 1))) > log 2>&1\n"),
            "run|32|18");
  const std::map<std::string, std::vector<std::string>> none;
  EXPECT_EQ(evaluate_arithmetic("7 / 2 - 10 % 4", none), 1);
  EXPECT_EQ(evaluate_arithmetic("1 / 0", none), std::nullopt);
  EXPECT_EQ(evaluate_arithmetic("999999999 * 999999999 * 999999999", none), std::nullopt);
}

TEST(ShellScript, RejectsWhatHasNoEndAndWhatGrowsWithoutLimit) {
  EXPECT_THAT(complaints_of([] { read_shell_script(script_of("a\nrun \"x\n")); }),
              HasSubstr("train.sh:2: quote without an end"));
  EXPECT_THAT(complaints_of([] { read_shell_script(script_of("X=( --a 1\n")); }),
              HasSubstr("train.sh:1: array without ')'"));
  std::string doubling = "A=0123456789\n";
  for (int i = 0; i < 40; ++i) doubling += "A=$A$A\n";
  EXPECT_THAT(complaints_of([&] { read_shell_script(script_of(doubling)); }),
              HasSubstr("more than 65536 characters"));
  std::string repeated = "A=" + std::string(60'000, 'x') + "\nrun";
  for (int i = 0; i < 1000; ++i) repeated += " $A";  // 60 MB
  EXPECT_THAT(complaints_of([&] { read_shell_script(script_of(repeated)); }),
              HasSubstr("expand to more than 16777216 characters"));
}

// ---- layouts and patterns -----------------------------------------------------------------------

// FORMATS of Megatron-LM: E embedding, t layer, m multi-token prediction, L loss.
TEST(MegatronPatterns, AreExpanded) {
  EXPECT_THAT(layers_of_layout("Ett|ttt|tL"), ElementsAre(2, 3, 1));
  EXPECT_THAT(layers_of_layout("Et*3|(tt|)*2,m|L"), ElementsAre(3, 2, 2, 0, 0));
  EXPECT_THAT(layers_of_layout("Ett|x"), IsEmpty());
  EXPECT_THAT(layers_of_layout("(t*65536)*65536"), IsEmpty());
  EXPECT_THAT(layers_of_pattern("([0]*1+[1]*3)", 4), ElementsAre(false, true, true, true));
  EXPECT_THAT(layers_of_pattern("[0,1]*2", 4), ElementsAre(false, true, false, true));
  EXPECT_THAT(layers_of_pattern("2", 4), ElementsAre(true, false, true, false));
  EXPECT_THAT(layers_of_pattern("[1]*3", 4), IsEmpty());
}

// ---- Megatron-LM --------------------------------------------------------------------------------

constexpr const char* kSmallModel =
    "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32 "
    "--micro-batch-size 1 --vocab-size 512 --padded-vocab-size 512 ";

ImportedJob megatron(const std::string& text, std::optional<int> gpus = {}) {
  return import_megatron(script_of(text), {.model = {}, .gpus = gpus});
}

// Defaults of arguments.py: F = 4 H, learned positions, layer norm, biases, dropout 0.1.
TEST(ImportMegatron, ReadsAListOfOptionsWithDefaults) {
  const ImportedJob job = megatron(std::string(kSmallModel) + "\n--bf16\n--lr 1e-4\n", 8);
  const auto model = load_transformer(job.model);
  EXPECT_EQ(model->family, "gpt2");
  EXPECT_EQ(model->config.feed_forward.width, 256);
  EXPECT_EQ(model->config.residual_dropout, 0.1);
  EXPECT_EQ(job.strategy.degrees.data, 8);
  EXPECT_EQ(job.strategy.global_batch, 8);
  EXPECT_EQ(job.strategy.dtype, Dtype::kBf16);
  EXPECT_THAT(job.ignored, ElementsAre("--lr"));
  EXPECT_THAT(job.notes, IsEmpty());
}

TEST(ImportMegatron, CountsTheGpusOfTheLauncher) {
  const std::string program = std::string("pretrain_gpt.py ") + kSmallModel;
  EXPECT_EQ(megatron("torchrun --nnodes 2 --nproc_per_node=4 " + program).strategy.degrees.data, 8);
  EXPECT_EQ(megatron("torchrun --standalone --nproc-per-node 4 " + program).strategy.degrees.data,
            4);
  EXPECT_EQ(megatron("#SBATCH --nodes=3\n#SBATCH --gres=gpu:h100:8\nsrun torchrun --nnodes "
                     "$SLURM_NNODES --nproc-per-node 8 " +
                     program)
                .strategy.degrees.data,
            24);
  EXPECT_THAT(complaints_of([&] { megatron("torchrun --nnodes $N " + program); }),
              HasSubstr("train.sh: the number of GPUs is missing"));
}

TEST(ImportMegatron, NamesMissingAndInvalidOptions) {
  EXPECT_THAT(complaints_of([] { megatron("--num-layer 4 --hidden-size 64\n", 8); }),
              HasSubstr("train.sh: --num-layers: missing option\n  hint: add it to the file; did "
                        "you mean '--num-layer'?"));
  EXPECT_THAT(complaints_of(
                  [] { megatron(std::string(kSmallModel) + "\n--global-batch-size $BATCH\n", 8); }),
              HasSubstr("train.sh:2: --global-batch-size: invalid value '$BATCH': expected a whole "
                        "number from 1 to 2147483648\n  hint: the file does not set $BATCH: "
                        "replace it by its value"));
  EXPECT_THAT(complaints_of(
                  [] { megatron(std::string(kSmallModel) + "--tensor-model-parallel-size 3", 8); }),
              HasSubstr("3 tensor x 1 pipeline x 1 context ranks do not divide 8 GPUs"));
  EXPECT_THAT(complaints_of([] { megatron("echo hello\n", 8); }),
              HasSubstr("no command with options of Megatron-LM found"));
}

TEST(ImportMegatron, SeparatesOptionsThatChangeTimeFromOthers) {
  const ImportedJob job =
      megatron(std::string(kSmallModel) + "--cuda-graph-impl local --seed 1 --save x y", 1);
  EXPECT_THAT(job.not_modeled, ElementsAre("--cuda-graph-impl"));
  EXPECT_THAT(job.ignored, ElementsAre("--seed", "--save"));
}

// A trace with the command line of its program is still a trace.
TEST(ImportMegatron, IsRecognizedByItsOptions) {
  EXPECT_EQ(guess_import_format("--num-layers 4 --hidden-size 64")->name, "megatron");
  EXPECT_EQ(guess_import_format("[model]\nflavor = \"8B\"\n")->name, "torchtitan");
  EXPECT_EQ(guess_import_format("{\"traceEvents\": [], \"args\": \"--num-layers 4\"}")->name,
            "kineto");
}

// 50257 tokens, padded to a multiple of 128 x 2 tensor ranks: 50432.
TEST(ImportMegatron, PadsTheVocabularyAsMegatronDoes) {
  const ImportedJob job = megatron(
      "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32 "
      "--micro-batch-size 1 --tokenizer-type GPT2BPETokenizer --tensor-model-parallel-size 2",
      8);
  EXPECT_EQ(load_transformer(job.model)->config.vocabulary, 50432);
  EXPECT_THAT(job.notes, ElementsAre("vocabulary of 50257 padded to 50432"));
}

// No model_type has SwiGLU with learned positions: the nearest one, and what differs.
TEST(ImportMegatron, NotesWhatNoModelTypeHas) {
  const ImportedJob job = megatron(std::string(kSmallModel) +
                                       "--swiglu --disable-bias-linear --normalization RMSNorm "
                                       "--hidden-dropout 0 --attention-dropout 0",
                                   8);
  EXPECT_EQ(load_transformer(job.model)->family, "llama");
  EXPECT_THAT(job.notes, ElementsAre("model: learned positions yes (no is used)",
                                     "model: rotary embedding no (yes is used)"));
}

constexpr const char* kLlama4 =
    "--swiglu --disable-bias-linear --normalization RMSNorm --hidden-dropout 0 "
    "--attention-dropout 0 --position-embedding-type rope --untie-embeddings-and-output-weights "
    "--qk-l2-norm --num-experts 8 --moe-router-topk 1 --moe-ffn-hidden-size 96 "
    "--moe-shared-expert-intermediate-size 96 --moe-router-score-function sigmoid "
    "--moe-apply-probs-on-input --moe-layer-freq [0,1]*2 ";

// Layers 2 and 4 have experts; the last has no positions, and no norms of queries and keys.
TEST(ImportMegatron, ReadsTheModelOfLlama4) {
  const ImportedJob job = megatron(std::string(kSmallModel) + kLlama4 + "--no-rope-freq 4", 8);
  const auto model = load_transformer(job.model);
  EXPECT_EQ(model->family, "llama4_text");
  EXPECT_THAT(job.notes, IsEmpty());
  const TransformerConfig& config = model->config;
  EXPECT_EQ(config.attention.query_key_norm, QueryKeyNorm::kUnweightedPerHead);
  EXPECT_TRUE(config.experts.weighted_inputs);
  EXPECT_EQ(config.experts.shared_width, 96);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    EXPECT_EQ(config.layers[i].uses_experts, i % 2 == 1) << i;
    EXPECT_EQ(config.layers[i].rotary, i != 3) << i;
    EXPECT_EQ(config.layers[i].query_key_norm, i != 3) << i;
    EXPECT_FALSE(config.layers[i].chunk || config.layers[i].temperature) << i;
  }
  EXPECT_THAT(complaints_of(
                  [] { megatron(std::string(kSmallModel) + kLlama4 + "--no-rope-freq [1]*3", 8); }),
              HasSubstr("--no-rope-freq: invalid value '[1]*3'\n"
                        "  hint: give a number, or a list of 4 layers"));
}

/// Operators without the extension of their context, which the options of Megatron-LM do not set.
std::vector<Operator> without_extension(std::vector<Operator> operators) {
  for (Operator& op : operators) {
    if (auto* rotary = std::get_if<RotaryEmbedding>(&op.shape)) {
      const double base = rotary->angles.base;
      rotary->angles = RotaryAngles();
      rotary->angles.base = base;
    }
    if (auto* attention = std::get_if<Attention>(&op.shape)) attention->scale.reset();
  }
  return operators;
}

TEST(ModelConfigText, GivesBackEveryModelThatMegatronCanBuild) {
  for (const std::string name : {"gpt2", "gpt3-175b", "llama-3.1-70b", "mistral-7b", "qwen2-7b",
                                 "qwen3-8b", "mixtral-8x7b", "qwen3-30b-a3b", "qwen3-235b-a22b",
                                 "deepseek-v2", "deepseek-v3", "gpt-oss-20b", "nemotron-4-15b"}) {
    const LaunchModel model = launch_model(find_model(name));
    const ModelConfigText text = model_config_text(model.shape);
    EXPECT_THAT(text.differences, IsEmpty()) << name;
    const ModelGraph graph = model_from_config({.name = name, .where = name, .text = text.json});
    EXPECT_TRUE(without_extension(graph.operators) == without_extension(model.graph.operators))
        << name;
  }
}

// ---- round trips --------------------------------------------------------------------------------

std::vector<int> layers_of(const ImportedJob& job, std::size_t layers) {
  if (!job.blocks_per_stage.empty()) return job.blocks_per_stage;
  Plan plan;
  plan.strategy = job.strategy;
  return cut_uniformly(job.cut, static_cast<int>(layers), placement_of(plan));
}

/// Exports random plans and imports them again, until `count` were expressible without a remainder.
void expect_round_trips(RandomJobs& jobs, const std::string& target, int count) {
  const ExportTarget& program = *find_export_target(target);
  for (int seen = 0, tried = 0; seen < count; ++tried) {
    ASSERT_LT(tried, 100 * count);
    const LaunchJob job = jobs.next();
    if (!export_problems(program, job.plan, "--").empty() || !megatron_refusal(job).empty())
      continue;
    const LaunchText launch = export_launch(program, job);
    // FSDP that keeps gathered parameters is ZeRO 2 or 3: both give the same file.
    const Strategy& s = job.plan.strategy;
    if (s.zero == 3 && !s.data_parallelism.reshard_after_forward) continue;
    if (!launch.unsupported.empty()) continue;
    ++seen;
    SCOPED_TRACE(job.model.name + "\n" + launch.text);
    const auto ranks = static_cast<int>(rank_count(job.plan.strategy.degrees));
    const NamedText text{.name = "train", .where = "train", .text = launch.text};
    const ImportFormat* format = guess_import_format(text.text);
    ASSERT_NE(format, nullptr);
    ASSERT_NE(format->job, nullptr);
    const ImportedJob back = format->job(text, {.model = {}, .gpus = ranks});
    ASSERT_EQ(to_json(back.strategy), to_json(job.plan.strategy));
    ASSERT_EQ(layers_of(back, job.model.shape.layers.size()), job.plan.blocks_per_stage);
    ASSERT_THAT(back.notes, testing::Each(HasSubstr("vocabulary")));
    ASSERT_EQ(model_from_config(back.model).operators.size(), job.model.graph.operators.size());
  }
}

constexpr unsigned kRoundTripSeed = 20261124;

TEST(ImportMegatron, GivesBackTheStrategyOfExportedPlans) {
  RandomJobs jobs("megatron-core",
                  {"gpt2", "llama-3.1-8b", "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3",
                   "gpt-oss-20b", "nemotron-4-15b"},
                  kRoundTripSeed);
  expect_round_trips(jobs, "megatron", 300);
  expect_round_trips(jobs, "slurm", 20);
}

TEST(ImportTorchtitan, GivesBackTheStrategyOfExportedPlans) {
  RandomJobs jobs("torchtitan", {"llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3"}, kRoundTripSeed);
  expect_round_trips(jobs, "torchtitan", 200);
}

// Importers of damaged launches succeed or throw InputError: the test program survives.
TEST(ImportJob, SurvivesDamagedFiles) {
  RandomJobs jobs("megatron-core", {"gpt2", "qwen3-30b-a3b"}, kRoundTripSeed);
  std::mt19937 random(kRoundTripSeed);
  int rejected = 0;
  constexpr int kCases = 600;
  for (int i = 0; i < kCases; ++i) {
    const LaunchJob job = jobs.next();
    if (!megatron_refusal(job).empty()) continue;
    const bool is_toml = i % 3 == 0;
    const LaunchText launch =
        export_launch(*find_export_target(is_toml ? "torchtitan" : "megatron"), job);
    const NamedText text = script_of(mutated(launch.text, random));
    try {
      const JobImportOptions options{.model = {}, .gpus = 8};
      (is_toml ? import_torchtitan : import_megatron)(text, options);
    } catch (const InputError&) {
      ++rejected;
    }
  }
  EXPECT_GT(rejected, kCases / 10);
  EXPECT_LT(rejected, kCases);
}

// ---- torchtitan ---------------------------------------------------------------------------------

ImportedJob torchtitan(const std::string& text, std::optional<int> gpus = {}) {
  return import_torchtitan({.name = "train", .where = "train.toml", .text = text},
                           {.model = {}, .gpus = gpus});
}

// Defaults of job_config.py: shard over all ranks, selective recomputation, local batch of 8. The
// embedding and the output count as layers: 34 on 4 stages, 9 9 8 8, without the embedding 8.
TEST(ImportTorchtitan, ReadsAJobFileWithDefaults) {
  const ImportedJob job = torchtitan(
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\npipeline_parallel_degree = 2\n"
      "pipeline_parallel_schedule = \"Interleaved1F1B\"\n[activation_checkpoint]\n"
      "selective_ac_option = \"op\"\n[compile]\nenable = true\n",
      16);
  EXPECT_EQ(job.strategy.degrees.data, 8);
  EXPECT_EQ(job.strategy.degrees.chunks, 2);
  EXPECT_EQ(job.strategy.zero, 2);
  EXPECT_EQ(job.strategy.schedule, "interleaved-1f1b");
  EXPECT_EQ(job.strategy.global_batch, 64);
  EXPECT_EQ(job.strategy.recompute.kind, RecomputeKind::kTorchSelective);
  EXPECT_THAT(job.blocks_per_stage, ElementsAre(8, 9, 8, 7));
  EXPECT_EQ(job.trainer, "torchtitan");
}

// 2^31 shards of 4 replicas: more than an int holds.
TEST(ImportTorchtitan, RejectsMoreGpusThanAnyJobHas) {
  const NamedText job{.name = "train.toml",
                      .where = "train.toml",
                      .text =
                          "[model]\nname = 'llama3'\nflavor = '8B'\n[parallelism]\n"
                          "data_parallel_shard_degree = 2147483648\n"
                          "data_parallel_replicate_degree = 4\n"};
  EXPECT_THAT(complaints_of([&] { import_torchtitan(job, {}); }),
              HasSubstr("the degrees multiply to 8589934592 GPUs; at most 1048576 are possible"));
}

TEST(ImportTorchtitan, NamesInvalidKeysWithTheirPlace) {
  EXPECT_THAT(complaints_of([] { torchtitan("[model]\nflavor = \"8B\"\n"); }),
              HasSubstr("parallelism.data_parallel_shard_degree: -1: depends on the number of "
                        "GPUs\n  hint: set --gpus"));
  EXPECT_THAT(complaints_of([] { torchtitan("[model]\nflavor = \"9B\"\n", 8); }),
              HasSubstr("train.toml:2:10: model.flavor: unknown flavor '9B' of model 'llama3'"));
  EXPECT_THAT(complaints_of([] {
                torchtitan(
                    "[model]\nflavor = \"8B\"\n[parallelism]\n"
                    "tensor_parallel_degree = \"8\"\n",
                    8);
              }),
              HasSubstr("train.toml:4:26: parallelism.tensor_parallel_degree: expected a whole "
                        "number"));
  EXPECT_THAT(complaints_of([] {
                torchtitan(
                    "[model]\nflavor = \"8B\"\n[parallelism]\n"
                    "pipeline_parallel_degree = 2\n"
                    "pipeline_parallel_schedule = \"1F1\"\n",
                    8);
              }),
              HasSubstr("did you mean '1F1B'"));
}

}  // namespace
}  // namespace meshwright
