// Defaults of every model type. A new one that has the keys of another is a row here; one with keys
// of its own also has a reader in dialects.hpp. A missing key takes the default of the HuggingFace
// configuration class of that model_type (huggingface/transformers,
// src/transformers/models/*/configuration_*.py). Where transformers 4 and 5 write different names,
// or the class has an `attribute_map`, every name is read.
#include "models/families/transformer_families.hpp"

#include <algorithm>
#include <array>

#include "core/base/check.hpp"
#include "models/families/dialects.hpp"

namespace meshwright {
namespace {

constexpr std::array<Family, 16> kFamilies{{
    {"bert", "BertForMaskedLM", read_bert, 30522, 512, 768, 12, 12, {}, {}, 3072},
    {.model_type = "deepseek_v2",
     .architecture = "DeepseekV2ForCausalLM",
     .read = read_deepseek,
     .vocabulary = 32000,
     .positions = 2048,
     .hidden = 4096,
     .layers = 32,
     .heads = 32,
     .feed_forward = 11008,
     .expert_width = 1407},
    {.model_type = "deepseek_v3",
     .architecture = "DeepseekV3ForCausalLM",
     .read = read_deepseek,
     .vocabulary = 129280,
     .positions = 4096,
     .hidden = 7168,
     .layers = 61,
     .heads = 128,
     .feed_forward = 18432,
     .experts = 256,
     .experts_per_token = 8,
     .expert_width = 2048},
    {"gpt2", "GPT2LMHeadModel", read_gpt2, 50257, 1024, 768, 12, 12},
    {.model_type = "gpt_oss",
     .architecture = "GptOssForCausalLM",
     .read = read_experts,
     .vocabulary = 201088,
     .positions = 131072,
     .hidden = 2880,
     .layers = 36,
     .heads = 64,
     .key_value_heads = 8,
     .head_size = 64,
     .feed_forward = 2880,
     .window = 128,
     .experts = 128,
     .experts_per_token = 4},
    // xai-org/grok-1 as hpcai-tech/grok-1 and others describe it; not a part of transformers.
    {.model_type = "grok-1",
     .architecture = "Grok1ModelForCausalLM",
     .read = read_experts,
     .vocabulary = 32000,
     .positions = 4096,
     .hidden = 4096,
     .layers = 32,
     .heads = 32,
     .key_value_heads = 32,
     .feed_forward = 32768,
     .experts = 8,
     .experts_per_token = 2},
    {.model_type = "kimi_k2",
     .architecture = "KimiK2ForCausalLM",
     .read = read_deepseek,
     .vocabulary = 163840,
     .positions = 131072,
     .hidden = 7168,
     .layers = 61,
     .heads = 64,
     .feed_forward = 18432,
     .experts = 384,
     .experts_per_token = 8,
     .expert_width = 2048},
    {"llama", "LlamaForCausalLM", read_llama, 32000, 2048, 4096, 32, 32, {}, {}, 11008},
    {"mistral", "MistralForCausalLM", read_llama, 32000, 131072, 4096, 32, 32, 8, {}, 14336, 4096},
    {.model_type = "mixtral",
     .architecture = "MixtralForCausalLM",
     .read = read_experts,
     .vocabulary = 32000,
     .positions = 131072,
     .hidden = 4096,
     .layers = 32,
     .heads = 32,
     .key_value_heads = 8,
     .feed_forward = 14336,
     .experts = 8,
     .experts_per_token = 2},
    {"nemotron", "NemotronForCausalLM", read_ungated, 256000, 4096, 6144, 32, 48, {}, {}, 24576},
    {"qwen2", "Qwen2ForCausalLM", read_llama, 151936, 32768, 4096, 32, 32, 32, {}, 22016, 4096},
    {.model_type = "qwen2_moe",
     .architecture = "Qwen2MoeForCausalLM",
     .read = read_experts,
     .vocabulary = 151936,
     .positions = 32768,
     .hidden = 2048,
     .layers = 24,
     .heads = 16,
     .key_value_heads = 16,
     .feed_forward = 5632,
     .window = 4096,
     .experts = 60,
     .experts_per_token = 4,
     .expert_width = 1408},
    {"qwen3", "Qwen3ForCausalLM", read_llama, 151936, 32768, 4096, 32, 32, 32, 128, 22016, 4096},
    {.model_type = "qwen3_moe",
     .architecture = "Qwen3MoeForCausalLM",
     .read = read_experts,
     .vocabulary = 151936,
     .positions = 32768,
     .hidden = 2048,
     .layers = 24,
     .heads = 32,
     .key_value_heads = 4,
     .feed_forward = 6144,
     .window = 4096,
     .experts = 128,
     .experts_per_token = 8,
     .expert_width = 768},
    {"starcoder2", "Starcoder2ForCausalLM", read_ungated, 49152, 4096, 3072, 30, 24, 2, {}, 12288},
}};

}  // namespace

std::vector<std::string> transformer_families() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.model_type);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> family_of_architecture(const std::string& architecture) {
  for (const Family& family : kFamilies)
    if (family.architecture == architecture) return std::string(family.model_type);
  return std::nullopt;
}

TransformerConfig read_transformer(const std::string& family_name, ConfigReader& reader) {
  const auto family = std::find_if(kFamilies.begin(), kFamilies.end(),
                                   [&](const Family& f) { return f.model_type == family_name; });
  MW_CHECK(family != kFamilies.end());
  return family->read(*family, reader);
}

}  // namespace meshwright
