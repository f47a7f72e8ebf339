// Unknown keys of config.json files: what is reported, and what is not.
#include <gtest/gtest.h>

#include <string>

#include "models/load/load.hpp"

namespace meshwright {
namespace {

/// The warnings as the program prints them.
std::string warnings_about(const std::string& text) {
  std::string printed;
  for (const Diagnostic& d : load_model({"x", "x.json", text}).warnings) {
    printed += "warning: " + d.where + ": " + d.what + "\n";
    if (!d.hint.empty()) printed += "  hint: " + d.hint + "\n";
  }
  return printed;
}

TEST(ConfigWarning, NamesKeyAndValueAndTheNearestKey) {
  EXPECT_EQ(warnings_about(R"({"model_type": "llama", "num_hiden_layers": 24})"),
            "warning: x.json#/num_hiden_layers: ignoring unknown key 'num_hiden_layers' with value "
            "24\n"
            "  hint: did you mean 'num_hidden_layers'?\n");
  // Inside of another object.
  EXPECT_EQ(warnings_about(R"({"model_type": "llama", "rope_scaling":
                               {"rope_type": "linear", "factr": 2}})"),
            "warning: x.json#/rope_scaling/factr: ignoring unknown key 'factr' with value 2\n"
            "  hint: did you mean 'factor'?\n");
}

TEST(ConfigWarning, SaysThatQuantizationIsIgnored) {
  EXPECT_EQ(warnings_about(R"({"model_type": "llama", "quantization_config": {"fmt": "e4m3"}})"),
            "warning: x.json#/quantization_config: ignored: training uses unquantized weights\n"
            "  hint: choose their type with --dtype\n");
}

TEST(ConfigWarning, SuggestsOnlyKeysThatAreAbsent) {
  EXPECT_EQ(
      warnings_about(R"({"model_type": "llama", "num_hidden_layers": 32, "num_hidden_layer": 24})")
          .find("did you mean 'num_hidden_layers'"),
      std::string::npos);
}

TEST(ConfigWarning, ListsTheKnownKeysIfNoneIsNear) {
  EXPECT_EQ(warnings_about(R"({"model_type": "mlp", "experts": 8})"),
            "warning: x.json#/experts: ignoring unknown key 'experts' with value 8\n"
            "  hint: remove it or check its spelling; known keys: hidden_size, intermediate_size, "
            "num_hidden_layers, vocab_size\n");
}

// Features of other architectures, which no plan accounts for.
TEST(ConfigWarning, ReportsFeaturesThatTheModelTypeDoesNotHave) {
  EXPECT_NE(warnings_about(R"({"model_type": "llama", "sliding_window": 4096})"), "");
  EXPECT_NE(warnings_about(R"({"model_type": "llama", "attn_logit_softcapping": 50})"), "");
  EXPECT_NE(warnings_about(R"({"model_type": "bert", "position_embedding_type": "relative_key"})"),
            "");
}

TEST(ConfigWarning, IsSilentAboutFeaturesThatAreOff) {
  EXPECT_EQ(warnings_about(R"({"model_type": "llama", "sliding_window": null, "is_decoder": false,
                               "pruned_heads": {}, "num_kv_shared_layers": 0, "layer_types": []})"),
            "");
  EXPECT_EQ(warnings_about(R"({"model_type": "mistral", "attention_bias": false})"), "");
  // The default is true: a misspelled key keeps it.
  EXPECT_NE(warnings_about(R"({"model_type": "gpt2", "tie_word_embedings": false})"), "");
}

TEST(ConfigWarning, EscapesKeysAndBoundsTheirNumber) {
  EXPECT_EQ(warnings_about("{\"model_type\": \"mlp\", \"a/b~\\u001b\": 1}"),
            "warning: x.json#/a~1b~0\\u001b: ignoring unknown key 'a~1b~0\\u001b' with value 1\n"
            "  hint: remove it or check its spelling; known keys: hidden_size, intermediate_size, "
            "num_hidden_layers, vocab_size\n");
  std::string many = R"({"model_type": "mlp")";
  for (char c = 'a'; c < 'a' + 20; ++c) many += std::string(", \"") + c + "\": 1";
  const std::vector<Diagnostic> warnings = load_model({"x", "x.json", many + "}"}).warnings;
  ASSERT_EQ(warnings.size(), 9u);
  EXPECT_EQ(warnings.back(), (Diagnostic{"x.json#", "ignoring 12 more unknown keys", ""}));
}

TEST(ConfigWarning, IsSilentAboutEveryPreset) {
  for (const std::string& name : model_preset_names())
    EXPECT_EQ(load_model(find_model(name)).warnings, std::vector<Diagnostic>{}) << name;
}

// Keys as HuggingFace publishes them, with all that does not matter here.
TEST(ConfigWarning, IsSilentAboutPublishedConfigurations) {
  const char* const kPublished[] = {
      R"({"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
          "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256,
          "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2",
          "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
          "resid_pdrop": 0.1, "summary_activation": null, "summary_first_dropout": 0.1,
          "summary_proj_to_labels": true, "summary_type": "cls_index", "summary_use_proj": true,
          "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}},
          "vocab_size": 50257})",
      R"({"architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1,
          "gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
          "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072,
          "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert",
          "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0,
          "position_embedding_type": "absolute", "transformers_version": "4.6.0.dev0",
          "type_vocab_size": 2, "use_cache": true, "vocab_size": 30522, "directionality": "bidi",
          "pooler_fc_size": 768, "pooler_type": "first_token_transform"})",
      R"({"_name_or_path": "meta-llama/Llama-3.1-8B", "architectures": ["LlamaForCausalLM"],
          "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 128000,
          "eos_token_id": [128001, 128008], "head_dim": 128, "hidden_act": "silu",
          "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
          "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
          "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
          "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0,
          "rope_type": "llama3"}, "rope_theta": 500000.0, "tie_word_embeddings": false,
          "torch_dtype": "bfloat16", "transformers_version": "4.43.0", "use_cache": true,
          "vocab_size": 128256})",
      R"({"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false,
          "attention_dropout": 0.0, "auto_map": {"AutoConfig": "c.DeepseekV3Config"},
          "aux_loss_alpha": 0.001, "bos_token_id": 0, "eos_token_id": 1, "ep_size": 1,
          "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168,
          "initializer_range": 0.02, "intermediate_size": 18432, "kv_lora_rank": 512,
          "max_position_embeddings": 163840, "model_type": "deepseek_v3",
          "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8,
          "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": true,
          "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61,
          "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "pretraining_tp": 1,
          "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
          "rms_norm_eps": 1e-06, "rope_scaling":
          {"type": "yarn"}, "rope_theta": 10000, "routed_scaling_factor": 2.5,
          "scoring_func": "sigmoid", "seq_aux": true, "tie_word_embeddings": false,
          "topk_group": 4, "topk_method": "noaux_tc", "torch_dtype": "bfloat16",
          "transformers_version": "4.33.1", "use_cache": true, "v_head_dim": 128,
          "vocab_size": 129280})",
      R"({"architectures": ["GptOssForCausalLM"], "attention_bias": true, "attention_dropout": 0.0,
          "dtype": "bfloat16", "eos_token_id": 200002, "experts_per_token": 4, "head_dim": 64,
          "hidden_act": "silu", "hidden_size": 2880, "initial_context_length": 4096,
          "initializer_range": 0.02, "intermediate_size": 2880, "max_position_embeddings": 131072,
          "model_type": "gpt_oss", "num_attention_heads": 64, "num_experts_per_tok": 4,
          "num_hidden_layers": 36, "num_key_value_heads": 8, "num_local_experts": 128,
          "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_parameters":
          {"rope_type": "yarn"}, "router_aux_loss_coef": 0.9, "sliding_window": 128,
          "swiglu_limit": 7.0, "tie_word_embeddings": false, "transformers_version": "5.0.0",
          "use_cache": true, "vocab_size": 201088})",
      R"({"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "hidden_act": "silu",
          "hidden_size": 3584, "initializer_range": 0.02, "intermediate_size": 18944,
          "max_position_embeddings": 32768, "max_window_layers": 28, "model_type": "qwen2",
          "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
          "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072,
          "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true,
          "use_mrope": false, "use_sliding_window": false, "vocab_size": 152064})"};
  for (const char* text : kPublished) EXPECT_EQ(warnings_about(text), "");
}

}  // namespace
}  // namespace meshwright
