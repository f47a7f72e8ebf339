// Parameter counts to the unit. Published counts are those of the weights on the HuggingFace hub
// (number of elements in their safetensors); the others follow by hand from the formulas above
// them. Legend: V vocabulary, H hidden, L layers, P positions, F feed-forward.
#include <gtest/gtest.h>

#include <string>

#include "core/model/model_graph.hpp"
#include "models/load/load.hpp"

namespace meshwright {
namespace {

struct Published {
  std::string preset;
  std::int64_t parameters;
};

std::ostream& operator<<(std::ostream& out, const Published& p) { return out << p.preset; }

class ParameterCount : public testing::TestWithParam<Published> {};

TEST_P(ParameterCount, EqualsThePublishedOneToTheUnit) {
  const ModelGraph model = model_from_config(find_model(GetParam().preset));
  EXPECT_EQ(parameter_count(model), GetParam().parameters);
}

// T V H + L (A D H + 2 G D H + A D H + 3 H F + 2 H) + H, T = 1 if the embeddings are tied, else 2;
// experts: E of the 3 H F and a router E H; biases and query/key norms as each family has them.
INSTANTIATE_TEST_SUITE_P(OnTheHub, ParameterCount,
                         testing::Values(Published{"llama-2-7b", 6'738'415'616},         //
                                         Published{"llama-2-13b", 13'015'864'320},       //
                                         Published{"llama-2-70b", 68'976'648'192},       //
                                         Published{"llama-3-8b", 8'030'261'248},         //
                                         Published{"llama-3-70b", 70'553'706'496},       //
                                         Published{"llama-3.1-8b", 8'030'261'248},       //
                                         Published{"llama-3.1-70b", 70'553'706'496},     //
                                         Published{"llama-3.1-405b", 405'853'388'800},   //
                                         Published{"mistral-7b", 7'241'732'096},         //
                                         Published{"qwen2-7b", 7'615'616'512},           //
                                         Published{"qwen3-0.6b", 596'049'920},           //
                                         Published{"qwen3-8b", 8'190'735'360},           //
                                         Published{"qwen3-30b-a3b", 30'532'122'624},     //
                                         Published{"qwen3-235b-a22b", 235'093'634'560},  //
                                         Published{"gpt2", 124'439'808},                 //
                                         Published{"gpt2-medium", 354'823'168},          //
                                         Published{"gpt2-large", 774'030'080},           //
                                         Published{"gpt2-xl", 1'557'611'200},            //
                                         Published{"mixtral-8x7b", 46'702'792'704},      //
                                         Published{"gpt-oss-20b", 20'914'757'184},       //
                                         Published{"deepseek-v2", 235'741'434'880},      //
                                         Published{"deepseek-v3", 671'026'419'200},      //
                                         Published{"glm-4.5", 352'797'829'024},          //
                                         Published{"glm-4.5-air", 106'852'251'264}),
                         [](const auto& instance) {
                           std::string name = instance.param.preset;
                           for (char& c : name)
                             if (c == '-' || c == '.') c = '_';
                           return name;
                         });

// V H + P H + L (12 H^2 + 13 H) + 2 H with V = 51,200 and P = 2,048. For GPT-3: 53,248 * 12,288 +
// 96 (1,811,939,328 + 159,744) + 24,576 = 654,311,424 + 173,961,510,912 + 24,576 = 174,615,846,912,
// the 174.6 B of Narayanan et al. (arXiv 2104.04473, table 2).
TEST(MegatronParameterCount, FollowsTheGptFormula) {
  const auto count = [](const char* preset) {
    return parameter_count(model_from_config(find_model(preset)));
  };
  const auto formula = [](std::int64_t hidden, std::int64_t layers) {
    return (51'200 + 2'048) * hidden + layers * (12 * hidden * hidden + 13 * hidden) + 2 * hidden;
  };
  EXPECT_EQ(count("gpt3-175b"), formula(12'288, 96));
  EXPECT_EQ(count("gpt3-175b"), 174'615'846'912);
  EXPECT_EQ(count("megatron-22b"), formula(6'144, 48));
  EXPECT_EQ(count("megatron-145b"), formula(12'288, 80));
  EXPECT_EQ(count("megatron-530b"), formula(20'480, 105));
  EXPECT_EQ(count("megatron-1t"), formula(25'600, 128));
}

// 2 V H + L (2 A D H + 2 G D H + 2 H F + 4 H) + 2 H: two matrices per feed-forward layer, layer
// norms with a bias. 15B: 3,145,728,000 + 32 (75,497,472 + 12,582,912 + 301,989,888 + 24,576) +
// 12,288; the paper counts 3.2 B in the embeddings and 12.5 B elsewhere (arXiv 2402.16819, section
// 2). 340B: 9,437,184,000 + 96 (679,477,248 + 56,623,104 + 2,717,908,992 + 73,728) + 36,864; 9.4 B
// and 331.6 B (arXiv 2406.11704, section 2).
TEST(NemotronParameterCount, FollowsTheFormula) {
  const auto count = [](const char* preset) {
    return parameter_count(model_from_config(find_model(preset)));
  };
  EXPECT_EQ(count("nemotron-4-15b"), 15'628'775'424);
  EXPECT_EQ(count("nemotron-4-340b"), 341'029'195'776);
}

// V H + L (2 A D H + 2 G D H + 8 (3 H F + H) + 4 H) + H with tied embeddings and four norms per
// layer: 805,306,368 + 64 (75,497,472 + 12,582,912 + 4,831,838,208 + 49,152 + 24,576) + 6,144.
TEST(GrokParameterCount, FollowsTheFormula) {
  EXPECT_EQ(parameter_count(model_from_config(find_model("grok-1"))), 315'684'820'992);
}

// Devlin et al. publish 110 M for the encoder with its pooler: embeddings (30,522 + 512 + 2) 768
// and their norm 1,536; 12 layers of 4 (768^2 + 768) + 2 * 768 * 3,072 + 3,072 + 768 + 2 * 1,536 =
// 7,087,872; pooler 768^2 + 768 = 590,592: 109,482,240 in all. The model here trains the masked
// language loss: no pooler, but a dense layer 590,592, a norm 1,536 and a bias 30,522 on the
// logits.
TEST(BertParameterCount, IsTheEncoderAndTheMaskedLanguageHead) {
  constexpr std::int64_t kEncoderWithPooler = 109'482'240, kPooler = 590'592;
  const ModelGraph model = model_from_config(find_model("bert-base"));
  EXPECT_EQ(parameter_count(model), kEncoderWithPooler - kPooler + 590'592 + 1'536 + 30'522);
}

// Two layers of 1,024^2 + 1,024, a table 256 x 1,024, and a classifier 1,024 x 256 + 256.
TEST(MlpParameterCount, IsCountedByHand) {
  EXPECT_EQ(parameter_count(model_from_config(find_model("mlp"))),
            2 * 1'049'600 + 262'144 + 262'144 + 256);
}

// Qwen's report says 3.3 B active of 30.5 B (embeddings counted): all but 120 of 128 experts:
// 30,532,122,624 - 48 * 120 * 3 * 2,048 * 768 = 3,353,032,704.
TEST(ActiveParameterCount, LeavesOutTheExpertsThatATokenDoesNotVisit) {
  EXPECT_EQ(active_parameter_count(model_from_config(find_model("qwen3-30b-a3b"))), 3'353'032'704);
}

}  // namespace
}  // namespace meshwright
