#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "models/load/load.hpp"
#include "tests/complaints.hpp"

namespace meshwright {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

ModelGraph model_of(const std::string& text) { return model_from_config({"x", "x.json", text}); }
std::string complaint_about(const std::string& text) {
  return complaints_of([&] { model_of(text); });
}
/// The first attention operator of the block.
const Attention& attention_of(const ModelGraph& model, int block) {
  const Layer& layer = model.layers[static_cast<std::size_t>(block) + 1];
  for (std::int32_t i = 0; i < layer.operator_count; ++i)
    if (const auto* attention = std::get_if<Attention>(
            &model.operators[static_cast<std::size_t>(layer.first_operator + i)].shape))
      return *attention;
  throw std::out_of_range("no attention");
}

// ---- dispatch and defaults ------------------------------------------------------------------

TEST(ModelConfig, TakesMissingKeysFromTheDefaultsOfItsModelType) {
  // The defaults of gpt2 are GPT-2 small, those of llama Llama-2-7B with P = 2,048.
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "gpt2"})")), 124'439'808);
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "llama"})")), 6'738'415'616);
}

// Counted by transformers 5.24 (sums of numel() of the models' parameters and score corrections).
TEST(ModelConfig, PresetsHaveTheParametersThatTransformersCounts) {
  const std::vector<std::pair<std::string, std::int64_t>> counts{
      {"bert-base", 109514298},          {"bert-large", 335174458},
      {"deepseek-v2", 235741434880},     {"deepseek-v3", 671026419200},
      {"gemma-2-9b", 9241705984},        {"gemma-3-1b", 999885952},
      {"gemma-3-27b", 27009346304},      {"glm-4-9b", 9400279040},
      {"gpt-oss-120b", 116829156672},    {"gpt-oss-20b", 20914757184},
      {"gpt2-large", 774030080},         {"gpt2-medium", 354823168},
      {"gpt2-xl", 1557611200},           {"gpt2", 124439808},
      {"gpt3-175b", 174615846912},       {"kimi-k2", 1026408232448},
      {"llama-2-13b", 13015864320},      {"llama-2-70b", 68976648192},
      {"llama-2-7b", 6738415616},        {"llama-3-70b", 70553706496},
      {"llama-3-8b", 8030261248},        {"llama-3.1-405b", 405853388800},
      {"llama-3.1-70b", 70553706496},    {"llama-3.1-8b", 8030261248},
      {"megatron-1.7b", 1652230656},     {"megatron-145b", 145622261760},
      {"megatron-18.4b", 18449756160},   {"megatron-1t", 1008038758400},
      {"megatron-22b", 22074273792},     {"megatron-3.6b", 3562168320},
      {"megatron-310b", 310130540544},   {"megatron-39.1b", 39096041472},
      {"megatron-530b", 529600819200},   {"megatron-7.5b", 7467786240},
      {"megatron-76.1b", 76050739200},   {"mistral-7b", 7241732096},
      {"mixtral-8x22b", 140630071296},   {"mixtral-8x7b", 46702792704},
      {"nemotron-4-15b", 15628775424},   {"nemotron-4-340b", 341029195776},
      {"olmo-2-13b", 13716198400},       {"olmo-2-32b", 32234279936},
      {"olmo-2-7b", 7298617344},         {"phi-4", 14659507200},
      {"qwen2-7b", 7615616512},          {"qwen3-0.6b", 596049920},
      {"qwen3-1.7b", 1720574976},        {"qwen3-14b", 14768307200},
      {"qwen3-235b-a22b", 235093634560}, {"qwen3-30b-a3b", 30532122624},
      {"qwen3-32b", 32762123264},        {"qwen3-4b", 4022468096},
      {"qwen3-8b", 8190735360},          {"smollm3-3b", 3075098624}};
  for (const auto& [name, count] : counts)
    EXPECT_EQ(parameter_count(model_from_config(find_model(name))), count) << name;
}

// The same, of its language model.
TEST(ModelConfig, CountsTheParametersOfLlama4) {
  EXPECT_EQ(parameter_count(model_from_config(find_model("llama-4-scout"))), 107'769'861'120);
  EXPECT_EQ(parameter_count(model_from_config(find_model("llama-4-maverick"))), 400'711'848'960);
}

// StarCoder2-3B on the HuggingFace hub has 3,030,371,328 parameters: V H + L (2 A D H + 2 G D H + 2
// H F + biases of 4 H + 2 G D + F + 4 H) + 2 H.
TEST(ModelConfig, BuildsDecodersWithTwoMatricesAndGroupedHeads) {
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "starcoder2"})")), 3'030'371'328);
  const ModelGraph model = model_of(R"({"model_type": "starcoder2"})");
  EXPECT_EQ(attention_of(model, 0).key_value_heads, 2);
}

template <class Shape>
Shape first_of(const ModelGraph& model) {
  for (const Operator& op : model.operators)
    if (const auto* shape = std::get_if<Shape>(&op.shape)) return *shape;
  throw std::out_of_range("no such operator");
}

// 48 query and 8 key heads of 128 elements, half of each rotated.
TEST(ModelConfig, ReadsNemotronsActivationAndPartialRotation) {
  const ModelGraph model = model_from_config(find_model("nemotron-4-15b"));
  EXPECT_EQ(first_of<Activation>(model), (Activation{ActivationKind::kSquaredRelu, 24'576, false}));
  EXPECT_EQ(first_of<RotaryEmbedding>(model), (RotaryEmbedding{56 * 128, 64}));
  EXPECT_EQ(first_of<Norm>(model).kind, NormKind::kLayerNorm);
  EXPECT_EQ(
      first_of<RotaryEmbedding>(model_of(R"({"model_type": "nemotron", "rope_percent": 0.25})"))
          .rotated_per_head,
      32);
}

TEST(ModelConfig, RefusesARotationOfHalfAPair) {
  EXPECT_EQ(complaint_about(R"({"model_type": "nemotron", "partial_rotary_factor": 0.4})"),
            "error: x.json#/partial_rotary_factor: 51 of the 128 elements of a head would be "
            "rotated\n  hint: choose a factor that gives a positive even number: rotary position "
            "embedding rotates pairs of elements\n");
  EXPECT_EQ(
      complaint_about(R"({"model_type": "nemotron", "partial_rotary_factor": 1.5})"),
      "error: x.json#/partial_rotary_factor: must be greater than 0 and at most 1, got 1.5\n");
}

// Four norms per layer and one after the last.
TEST(ModelConfig, GrokNormalizesTheOutputOfEveryBranch) {
  const ModelGraph model = model_of(R"({"model_type": "grok-1", "num_hidden_layers": 3})");
  EXPECT_EQ(std::ranges::count_if(
                model.operators,
                [](const Operator& op) { return std::holds_alternative<Norm>(op.shape); }),
            13);
}

TEST(ModelConfig, DispatchesOnTheArchitectureIfThereIsNoModelType) {
  EXPECT_EQ(model_of(R"({"architectures": ["LlamaForCausalLM"]})").family, "llama");
  EXPECT_EQ(model_of(R"({"model_type": "custom", "architectures": ["Qwen3ForCausalLM"]})").family,
            "qwen3");
}

TEST(ModelConfigError, RefusesModelsWithOtherPartsOrLosses) {
  EXPECT_EQ(complaint_about(R"({"model_type": "llava", "text_config": {"model_type": "llama"}})"),
            "error: x.json#/text_config: model_type \"llava\" is not supported: it has other parts "
            "than a language model\n"
            "  hint: save the object 'text_config' as a file to train the language model alone\n");
  EXPECT_EQ(
      complaint_about(R"({"model_type": "llama",
                                "architectures": ["LlamaForSequenceClassification"]})"),
      "error: x.json#/architectures/0: 'ForSequenceClassification' is not supported: only "
      "language models are\n"
      "  hint: set \"architectures\" to the class that ends in ForCausalLM, if the model is to "
      "be trained as a language model\n");
}

TEST(ModelConfigError, RefusesFeaturesByName) {
  EXPECT_EQ(complaint_about(R"({"model_type": "olmo", "clip_qkv": 8})"),
            "error: x.json#/clip_qkv: 'clip_qkv' is not supported (it is 8)\n"
            "  hint: remove it to build the model without it\n");
  EXPECT_EQ(complaint_about(R"({"model_type": "olmo", "clip_qkv": null})"), "");
  EXPECT_NE(complaint_about(R"({"model_type": "llama", "partial_rotary_factor": 0.5})")
                .find("'partial_rotary_factor' is not supported for model_type 'llama'"),
            std::string::npos);
}

TEST(ModelConfig, IgnoresKeysThatItDoesNotKnow) {
  EXPECT_EQ(model_of(R"({"model_type": "gpt2", "a": [1, {"b": null}]})"),
            model_of(R"({"model_type": "gpt2"})"));
}

TEST(ModelConfig, TakesNullForNone) {
  const char* text = R"({"model_type": "llama", "num_key_value_heads": null, "head_dim": null})";
  EXPECT_EQ(model_of(text), model_of(R"({"model_type": "llama"})"));
}

TEST(ModelConfig, UntiesTheHeadWhereAskedTo) {
  // One more table of 50,257 x 768.
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "gpt2", "tie_word_embeddings": false})")),
            124'439'808 + 50'257 * 768);
}

TEST(ModelConfig, CountsKimiK2WithTheDeepSeekFormula) {
  // As DeepSeek-V3, but V 163,840, 64 heads, 384 experts and one dense layer. Attention: query
  // down, norm, up (heads x 192); key-value down (512 + 64), norm, up (heads x 256); output. The
  // dense feed-forward is 3 x 7168 x 18432 = 396,361,728; two norms a layer are 14,336.
  const std::int64_t attention = 7168LL * 1536 + 1536 + 1536LL * 64 * 192 + 7168LL * 576 + 512 +
                                 512LL * 64 * 256 + 64LL * 128 * 7168;
  const std::int64_t experts = 385LL * 3 * 7168 * 2048 + 384LL * 7168 + 384;
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "kimi_k2", "first_k_dense_replace": 1})")),
            2LL * 163840 * 7168 + 7168 + 61 * (attention + 14336) + 396'361'728 + 60 * experts);
}

TEST(ModelConfig, CountsQwen2MoeWithItsSharedExpertAndGate) {
  // Qwen1.5-MoE-A2.7B (the defaults): H 2048, 24 layers, 60 experts of 1408, shared 5632:
  // 2*151936*2048 + 2048 + 24 (4*2048^2 + 3*2048 + 60*3*2048*1408 + 60*2048 + 3*2048*5632 + 2048
  // + 2*2048) = 14,315,784,192, the published count.
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "qwen2_moe"})")), 14'315'784'192);
}

// Qwen3-MoE has num_experts in transformers 4 and num_local_experts in 5; Mixtral and gpt-oss have
// num_local_experts, DeepSeek n_routed_experts, and transformers takes the other names for them.
TEST(ModelConfig, ReadsTheNumberOfExpertsUnderEachOfItsNames) {
  for (const std::string type : {"qwen2_moe", "qwen3_moe", "mixtral", "gpt_oss"})
    for (const std::string name : {"num_experts", "num_local_experts"}) {
      SCOPED_TRACE(type + " " + name);
      EXPECT_EQ(traits_of(model_of(R"({"model_type": ")" + type + R"(", ")" + name +
                                   R"(": 4, "num_experts_per_tok": 2})"))
                    .experts,
                4);
    }
  for (const std::string name : {"n_routed_experts", "num_experts", "num_local_experts"})
    for (const std::string type : {"deepseek_v2", "deepseek_v3", "kimi_k2"}) {
      SCOPED_TRACE(type + " " + name);
      EXPECT_EQ(
          traits_of(model_of(R"({"model_type": ")" + type + R"(", ")" + name +
                             R"(": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1})"))
              .experts,
          4);
    }
}

// attribute_map of GPT2Config.
TEST(ModelConfig, ReadsGpt2UnderTheStandardNames) {
  EXPECT_EQ(model_of(R"({"model_type": "gpt2", "hidden_size": 64, "num_hidden_layers": 2,
                         "num_attention_heads": 4, "max_position_embeddings": 128})"),
            model_of(R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4,
                         "n_positions": 128})"));
}

// Without the biases of queries, keys and values: 24 layers x 3 x 2048.
TEST(ModelConfig, LeavesOutTheBiasOfQwen2MoeWhereAskedTo) {
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "qwen2_moe", "qkv_bias": false})")),
            14'315'784'192 - 24LL * 3 * 2048);
}

TEST(ModelConfig, MixesDenseLayersWithExpertLayers) {
  // decoder_sparse_step 2: the second and fourth of four layers; mlp_only_layers takes the fourth.
  const ModelGraph model = model_of(
      R"({"model_type": "qwen3_moe", "num_hidden_layers": 4, "decoder_sparse_step": 2,
          "mlp_only_layers": [3]})");
  std::vector<int> classes;
  for (const Layer& layer : model.layers) classes.push_back(layer.layer_class);
  EXPECT_EQ(classes, (std::vector<int>{0, 1, 2, 1, 1, 3}));
}

// ---- attention ------------------------------------------------------------------------------

TEST(ModelConfig, SlidesWindowsByTheRuleOfTheModelType) {
  const ModelGraph mistral = model_of(R"({"model_type": "mistral"})");
  EXPECT_EQ(attention_of(mistral, 0).window, 4096);
  EXPECT_EQ(attention_of(mistral, 31).window, 4096);
  const ModelGraph gpt_oss = model_of(R"({"model_type": "gpt_oss", "num_hidden_layers": 2})");
  EXPECT_EQ(attention_of(gpt_oss, 0).window, 128);
  EXPECT_EQ(attention_of(gpt_oss, 1).window, std::nullopt);
  const ModelGraph qwen = model_of(R"({"model_type": "qwen2", "use_sliding_window": true})");
  EXPECT_EQ(attention_of(qwen, 27).window, std::nullopt);
  EXPECT_EQ(attention_of(qwen, 28).window, 4096);
  const ModelGraph plain = model_of(R"({"model_type": "qwen2"})");
  EXPECT_EQ(attention_of(plain, 31).window, std::nullopt);
  const ModelGraph listed = model_of(
      R"({"model_type": "qwen3", "num_hidden_layers": 2, "use_sliding_window": true,
          "layer_types": ["sliding_attention", "full_attention"]})");
  EXPECT_EQ(attention_of(listed, 0).window, 4096);
  EXPECT_EQ(attention_of(listed, 1).window, std::nullopt);
}

// Every second layer has no positions: it sees all keys, at a temperature, without norms of heads.
TEST(ModelConfig, CutsAttentionOfLlama4IntoChunks) {
  const ModelGraph model = model_of(
      R"({"model_type": "llama4_text", "num_hidden_layers": 4, "no_rope_layer_interval": 2,
          "interleave_moe_layer_step": 4, "attention_chunk_size": 100, "attn_scale": 0.2,
          "attn_temperature_tuning": 4})");
  EXPECT_EQ(attention_of(model, 0).chunk, 100);
  EXPECT_EQ(attention_of(model, 1).chunk, std::nullopt);
  std::vector<std::string> names;
  for (const Operator& op : operators_of(model, LayerId(2)))
    names.push_back(op.name.substr(op.name.find('.') + 1));
  EXPECT_THAT(names, Contains("attention.temperature"));
  EXPECT_THAT(names, Not(Contains("attention.query_norm")));
  EXPECT_THAT(names, Contains("feed_forward.gate_up"));
  names.clear();
  for (const Operator& op : operators_of(model, LayerId(3)))
    names.push_back(op.name.substr(op.name.find('.') + 1));
  EXPECT_THAT(names, Contains("attention.query_norm"));
  EXPECT_THAT(names, Not(Contains("attention.temperature")));
  // What the experts read is weighted, and kept for the gradient of the weights.
  for (const Operator& op : operators_of(model, LayerId(4))) {
    if (const auto* dispatch = std::get_if<TokenDispatch>(&op.shape)) {
      EXPECT_TRUE(dispatch->weighted);
      EXPECT_EQ(op.kept, std::vector{op.inputs[0]});
    }
    if (const auto* combine = std::get_if<TokenCombine>(&op.shape)) {
      EXPECT_FALSE(combine->weighted);
      EXPECT_TRUE(op.kept.empty());
    }
  }
}

TEST(ModelConfigError, RefusesChunkedAttentionWithoutASize) {
  EXPECT_THAT(complaint_about(R"({"model_type": "llama4_text", "num_hidden_layers": 1,
                                  "attention_chunk_size": null,
                                  "layer_types": ["chunked_attention"]})"),
              HasSubstr("attention_chunk_size: missing key, but some layers have chunked"));
  EXPECT_THAT(complaint_about(R"({"model_type": "llama4_text", "num_hidden_layers": 1,
                                  "layer_types": ["sliding_attention"]})"),
              HasSubstr("use full_attention or chunked_attention"));
}

TEST(ModelConfig, LooksBothWaysInBertOnly) {
  EXPECT_FALSE(attention_of(model_of(R"({"model_type": "bert"})"), 0).causal);
  EXPECT_TRUE(attention_of(model_of(R"({"model_type": "gpt2"})"), 0).causal);
}

TEST(ModelConfig, KeepsDropoutMasksOnlyWhereThereIsDropout) {
  EXPECT_EQ(attention_of(model_of(R"({"model_type": "gpt2"})"), 0).dropout, 0.1);
  EXPECT_EQ(attention_of(model_of(R"({"model_type": "gpt2", "attn_pdrop": 0})"), 0).dropout, 0);
  EXPECT_EQ(attention_of(model_of(R"({"model_type": "llama"})"), 0).dropout, 0);
}

// Keys of 128 + 64 elements, values of 128.
TEST(ModelConfig, GivesLatentAttentionItsKeyAndValueSizes) {
  const Attention attention = attention_of(model_of(R"({"model_type": "deepseek_v3"})"), 0);
  EXPECT_EQ(attention.key_size, 192);
  EXPECT_EQ(attention.value_size, 128);
  EXPECT_EQ(attention.heads, 128);
}

// ---- every kind of bad input, with its full message -----------------------------------------

TEST(ModelConfigError, PointsAtTheLineThatIsNotJson) {
  EXPECT_EQ(complaint_about("{\n  \"model_type\": llama\n}"),
            "error: x.json:2:17: invalid JSON: syntax error while parsing value - invalid "
            "literal; last read: '\"model_type\": l'\n"
            "  hint: pass a HuggingFace config.json\n");
  EXPECT_EQ(complaint_about(""),
            "error: x.json:1:1: invalid JSON: syntax error while parsing value - unexpected end "
            "of input; expected '[', '{', or a literal\n"
            "  hint: pass a HuggingFace config.json\n");
}

TEST(ModelConfigError, WantsAnObject) {
  EXPECT_EQ(complaint_about("[1, 2]"),
            "error: x.json#: expected an object, got [...]\n"
            "  hint: pass a HuggingFace config.json\n");
}

TEST(ModelConfigError, SuggestsTheNearestModelType) {
  EXPECT_EQ(complaint_about(R"({"model_type": "lama"})"),
            "error: x.json#/model_type: unknown model_type \"lama\"\n"
            "  hint: did you mean 'llama'?\n");
  const std::string known =
      "bert, cohere, deepseek_v2, deepseek_v3, falcon, gemma, gemma2, gemma3_text, glm, glm4, "
      "glm4_moe, gpt2, gpt_neox, gpt_oss, granite, grok-1, kimi_k2, llama, llama4_text, mistral, "
      "mixtral, mlp, nemotron, olmo, olmo2, olmo3, opt, phi, phi3, qwen2, qwen2_moe, qwen3, "
      "qwen3_moe, smollm3, starcoder2";
  EXPECT_EQ(complaint_about("{}"),
            "error: x.json#: missing key 'model_type'\n"
            "  hint: set \"model_type\" to one of: " +
                known + "\n");
  EXPECT_EQ(complaint_about(R"({"architectures": ["ResNet"]})"),
            "error: x.json#/architectures/0: unknown architecture \"ResNet\"\n"
            "  hint: set \"model_type\" to one of: " +
                known + "\n");
}

TEST(ModelConfigError, RefusesSizesThatAreNotPositiveWholeNumbers) {
  const auto hidden = [](const std::string& value) {
    return complaint_about(R"({"model_type": "llama", "hidden_size": )" + value + "}");
  };
  for (const std::string value : {"0", "-4096", "18446744073709551615"})
    EXPECT_EQ(hidden(value), "error: x.json#/hidden_size: " + value +
                                 " is out of range: expected 1 to 2147483648\n");
  for (const std::string value : {"4096.5", "\"4096\"", "null", "true"})
    EXPECT_EQ(hidden(value), "error: x.json#/hidden_size: invalid value " + value +
                                 ": expected a whole number from 1 to 2147483648\n");
  EXPECT_EQ(hidden("[1]"),
            "error: x.json#/hidden_size: invalid value [...]: expected a whole number from 1 to "
            "2147483648\n");
  EXPECT_EQ(hidden("1e999"),
            "error: x.json: number out of range\n"
            "  hint: pass a HuggingFace config.json\n");
}

TEST(ModelConfigError, RefusesMoreLayersThanAnyMachineHolds) {
  EXPECT_EQ(complaint_about(R"({"model_type": "gpt2", "n_layer": 10001})"),
            "error: x.json#/n_layer: 10001 is out of range: expected 1 to 10000\n");
}

TEST(ModelConfigError, RefusesSizesThatAreAbsurdTogether) {
  EXPECT_EQ(complaint_about(
                R"({"model_type": "llama", "hidden_size": 2147483648, "vocab_size": 2147483648})"),
            "error: x.json#: the model has 2^62 or more parameters (at 'embedding.words.weight')\n"
            "  hint: check the sizes of the model\n");
}

TEST(ModelConfigError, RefusesHeadsThatDoNotDivide) {
  EXPECT_EQ(complaint_about(R"({"model_type": "gpt2", "n_head": 7})"),
            "error: x.json#/n_head: 7 attention heads do not divide the hidden size 768\n"
            "  hint: use one of: 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64\n");
  EXPECT_EQ(complaint_about(R"({"model_type": "llama", "num_key_value_heads": 5})"),
            "error: x.json#/num_key_value_heads: 5 key/value heads do not divide the 32 attention "
            "heads\n"
            "  hint: use one of: 1, 2, 4, 8, 16, 32\n");
  EXPECT_EQ(complaint_about(R"({"model_type": "llama", "head_dim": 127})"),
            "error: x.json#/head_dim: head size must be even, got 127\n"
            "  hint: use an even head size: rotary position embedding rotates pairs of elements\n");
}

TEST(ModelConfigError, RefusesMoreChosenExpertsThanThereAre) {
  EXPECT_EQ(complaint_about(R"({"model_type": "mixtral", "num_experts_per_tok": 9})"),
            "error: x.json#/num_experts_per_tok: 9 experts per token, but the model has 8\n"
            "  hint: use a whole number from 1 to 8\n");
}

TEST(ModelConfigError, RefusesTwoNamesOfOneSettingThatDiffer) {
  EXPECT_EQ(
      complaint_about(R"({"model_type": "qwen3_moe", "num_experts": 128, "num_local_experts": 4})"),
      "error: x.json#/num_local_experts: 4 conflicts with 'num_experts' = 128\n"
      "  hint: remove one of them: they are two names of one setting\n");
  EXPECT_EQ(complaint_about(R"({"model_type": "gpt_oss", "num_experts_per_tok": 4,
                                "experts_per_token": 4, "num_experts": null,
                                "num_local_experts": 8})"),
            "");
}

TEST(ModelConfigError, RefusesWhatIsNoProbability) {
  EXPECT_EQ(complaint_about(R"({"model_type": "gpt2", "resid_pdrop": 1.5})"),
            "error: x.json#/resid_pdrop: must be at least 0 and less than 1, got 1.5\n");
}

TEST(ModelConfigError, RefusesUnknownActivations) {
  EXPECT_EQ(complaint_about(R"({"model_type": "gpt2", "activation_function": "gelu_neu"})"),
            "error: x.json#/activation_function: invalid value \"gelu_neu\"\n"
            "  hint: did you mean 'gelu_new', 'gelu', 'gelu_fast'?\n");
}

TEST(ModelConfigError, RefusesFlagsAndListsOfTheWrongType) {
  EXPECT_EQ(complaint_about(R"({"model_type": "llama", "tie_word_embeddings": "no"})"),
            "error: x.json#/tie_word_embeddings: invalid value \"no\": expected true or false\n");
  EXPECT_EQ(complaint_about(R"({"model_type": "qwen3_moe", "mlp_only_layers": [-1]})"),
            "error: x.json#/mlp_only_layers: expected an array of whole numbers from 0 to 10000, "
            "got [...]\n");
  EXPECT_EQ(complaint_about(R"({"model_type": "mistral", "layer_types": ["full_attention"]})"),
            "error: x.json#/layer_types: expected 32 entries, got 1\n"
            "  hint: give one entry per layer\n");
}

TEST(ModelConfigError, RefusesUnknownLayerTypes) {
  for (const std::string type : {"qwen3", "gemma2"})
    EXPECT_EQ(complaint_about(R"({"num_hidden_layers": 1, "layer_types": ["chunked_attention"],
                                  "model_type": ")" +
                              type + "\"}"),
              "error: x.json#/layer_types: 'chunked_attention' is not supported\n"
              "  hint: use full_attention or sliding_attention\n")
        << type;
}

TEST(ModelConfigError, ReportsAllComplaintsAtOnce) {
  EXPECT_EQ(complaint_about(R"({"model_type": "mlp", "hidden_size": 0, "vocab_size": -1})"),
            "error: x.json#/hidden_size: 0 is out of range: expected 1 to 2147483648\n"
            "error: x.json#/vocab_size: -1 is out of range: expected 1 to 2147483648\n");
}

}  // namespace
}  // namespace meshwright
