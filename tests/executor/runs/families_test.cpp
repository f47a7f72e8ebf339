/// Every model family trains, with the same results under every parallel split.
#include <gmock/gmock.h>

#include <algorithm>

#include "core/operators/local_parameters.hpp"
#include "executor/parameters/parameter_shards.hpp"
#include "models/families/transformer_families.hpp"
#include "models/load/load.hpp"
#include "tests/executor/runs/expect_same.hpp"

namespace meshwright {
namespace {

/// A tiny model with the structure of the family, as in its configuration files.
struct TinyFamily {
  std::string name, config;
  bool has_whole_norms = false;  ///< over all heads, which tensor parallelism cannot split
};
const TinyFamily kTinyFamilies[] = {
    {"bert", R"({"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"deepseek_v2",
     with_values(kDeepSeek, {{"model_type", R"("deepseek_v2")"}, {"q_lora_rank", "null"}})},
    {"deepseek_v3", std::string(kDeepSeek)},
    {"gpt2", R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4,
        "n_positions": 16, "vocab_size": 200})"},
    {"gpt_oss", std::string(kGptOss)},
    {"grok-1", R"({"model_type": "grok-1", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_experts": 4, "num_experts_per_tok": 2, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"kimi_k2", with_values(kDeepSeek, {{"model_type", R"("kimi_k2")"},
                                        {"n_routed_experts", "8"},
                                        {"num_experts_per_tok", "3"}})},
    {"llama", R"({"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2,
        "attention_bias": true, "mlp_bias": true, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"llama4_text", R"({"model_type": "llama4_text", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 24, "intermediate_size_mlp": 48, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2,
        "no_rope_layers": [1, 0], "interleave_moe_layer_step": 2, "attention_chunk_size": 6,
        "floor_scale": 4, "vocab_size": 200, "max_position_embeddings": 16})"},
    {"mistral", R"({"model_type": "mistral", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2,
        "sliding_window": 6, "vocab_size": 200, "max_position_embeddings": 16})"},
    {"mixtral", R"({"model_type": "mixtral", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"mlp", R"({"model_type": "mlp", "hidden_size": 16, "num_hidden_layers": 2,
        "vocab_size": 200})"},
    {"nemotron", R"({"model_type": "nemotron", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "vocab_size": 200, "max_position_embeddings": 16})"},
    {"qwen2", R"({"model_type": "qwen2", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2,
        "tie_word_embeddings": true, "vocab_size": 200, "max_position_embeddings": 16})"},
    {"qwen2_moe", R"({"model_type": "qwen2_moe", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 24, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"qwen3", R"({"model_type": "qwen3", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 12, "vocab_size": 200, "max_position_embeddings": 16})"},
    {"qwen3_moe", R"({"model_type": "qwen3_moe", "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "num_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 16, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"cohere", R"({"model_type": "cohere", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"falcon", R"({"model_type": "falcon", "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "new_decoder_architecture": true, "num_kv_heads": 2, "bias": true, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"gemma", R"({"model_type": "gemma", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"gemma2", R"({"model_type": "gemma2", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 6, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"gemma3_text", R"({"model_type": "gemma3_text", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 6, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"glm", R"({"model_type": "glm", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"glm4", R"({"model_type": "glm4", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"glm4_moe", R"({"model_type": "glm4_moe", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
        "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
        "use_qk_norm": true, "vocab_size": 200, "max_position_embeddings": 16})"},
    {"gpt_neox", R"({"model_type": "gpt_neox", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"granite", R"({"model_type": "granite", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "residual_multiplier": 0.7, "embedding_multiplier": 3, "logits_scaling": 2, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"olmo", R"({"model_type": "olmo", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {.name = "olmo2",
     .config = R"({"model_type": "olmo2", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
        "max_position_embeddings": 16})",
     .has_whole_norms = true},
    {.name = "olmo3",
     .config = R"({"model_type": "olmo3", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
        "sliding_window": 6, "layer_types": ["sliding_attention", "full_attention"],
        "max_position_embeddings": 16})",
     .has_whole_norms = true},
    {"opt", R"({"model_type": "opt", "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "ffn_dim": 48, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"phi", R"({"model_type": "phi", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"phi3", R"({"model_type": "phi3", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "sliding_window": 6, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"smollm3", R"({"model_type": "smollm3", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "no_rope_layer_interval": 2, "vocab_size": 200,
        "max_position_embeddings": 16})"},
    {"starcoder2", R"({"model_type": "starcoder2", "hidden_size": 32, "num_hidden_layers": 2,
        "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "sliding_window": 6, "vocab_size": 200, "max_position_embeddings": 16})"},
};

TEST(TinyFamilies, CoverAllImportableFamilies) {
  std::vector<std::string> tried;
  for (const TinyFamily& family : kTinyFamilies) tried.push_back(family.name);
  std::vector<std::string> known = transformer_families();
  known.emplace_back("mlp");
  EXPECT_THAT(tried, testing::UnorderedElementsAreArray(known));
}

void PrintTo(const TinyFamily& family, std::ostream* out) { *out << family.name; }

class EveryFamily : public testing::TestWithParam<TinyFamily> {
 protected:
  static TrainingRun run(const Strategy& strategy) {
    // AdamW's first step is the sign of a gradient; an epsilon above rounding errors prevents steps
    // of elements whose gradient is zero except for rounding.
    RunOptions options;
    options.training.epsilon = 1e-6F;
    return run_plan(GetParam().config, strategy, options);
  }
  static const TrainingRun& on_one_rank() {
    static std::map<std::string_view, TrainingRun> known;
    if (!known.contains(GetParam().name)) known[GetParam().name] = run(base());
    return known.at(GetParam().name);
  }
  /// Reports what differs.
  static void expect_same_with(void (*change)(Strategy&)) {
    Strategy cut = base();
    change(cut);
    expect_same_run(on_one_rank(), run(cut));
  }
  /// The same with tensor parallelism, or that the plan is refused.
  static void expect_same_with_tensor(void (*change)(Strategy&)) {
    if (!GetParam().has_whole_norms) return expect_same_with(change);
    Strategy cut = base();
    change(cut);
    EXPECT_THROW(run(cut), InputError);
  }
};

TEST_P(EveryFamily, TrainsOnOneRank) {
  const TrainingRun& run = on_one_rank();
  ASSERT_FALSE(run.failure.has_value()) << run.failure->cause;
  // A vocabulary of 200: the initial loss is about ln 200.
  EXPECT_NEAR(run.steps.front().loss, std::log(200.0), 0.3);
  EXPECT_LT(run.steps.back().loss, run.steps.front().loss);
}
// The vocabulary of 200 is padded to 256, also in the bias of the logits (BERT).
TEST_P(EveryFamily, HoldsTheParametersThatTheGraphCounts) {
  const ModelGraph model =
      model_from_config({.name = "tiny", .where = "tiny.json", .text = GetParam().config});
  std::vector<LayerId> layers;
  for (std::size_t i = 0; i < model.layers.size(); ++i) layers.emplace_back(i);
  for (const int tensor : {1, 2}) {
    Strategy strategy = base();
    strategy.degrees.tensor = tensor;
    LocalParameters counted;
    for (const LayerId layer : layers)
      counted += local_parameters(model, layer, shard_shape_of(strategy));
    const PartShards held = shards_of_part(model, layers, strategy, RankId(0));
    EXPECT_EQ(held.dense, counted.dense) << tensor << " tensor ranks";
    EXPECT_EQ(held.expert, counted.expert) << tensor << " tensor ranks";
  }
}
TEST_P(EveryFamily, TrainsEquallyWithTensorParallelism) {
  expect_same_with_tensor([](Strategy& s) { s.degrees.tensor = 2; });
}
TEST_P(EveryFamily, TrainsEquallyWithSequenceParallelism) {
  expect_same_with_tensor([](Strategy& s) { use_sequence_parallel(s, 2); });
}
TEST_P(EveryFamily, TrainsEquallyWithPipelineParallelism) {
  expect_same_with([](Strategy& s) { s.degrees.pipeline = 2; });
}
TEST_P(EveryFamily, TrainsEquallyWithDataParallelism) {
  expect_same_with([](Strategy& s) { use_data(s, 2, 1); });
}
TEST_P(EveryFamily, TrainsEquallyWithRingAttention) {
  expect_same_with([](Strategy& s) { use_context(s, 2, ContextAlgorithm::kRing); });
}
INSTANTIATE_TEST_SUITE_P(Of, EveryFamily, testing::ValuesIn(kTinyFamilies), [](const auto& tried) {
  std::string name = tried.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace meshwright
