// From the configuration classes of huggingface/transformers 4 and 5 (configuration_utils.py,
// generation/configuration_utils.py, models/*/configuration_*.py) and from published configurations
// of the model types that Meshwright reads.
#include "models/families/irrelevant_config_keys.hpp"

#include <algorithm>
#include <array>

namespace meshwright {
namespace {

/// Leading underscore: private to transformers, or a comment.
constexpr std::array<std::string_view, 9> kPrefixes{"_",       "classifier_", "mrope_",
                                                    "output_", "pooler_",     "quantization",
                                                    "rope_",   "summary_",    "transformers"};
constexpr std::array<std::string_view, 5> kSuffixes{"_epsilon", "_eps", "_loss_coef", "_token_id",
                                                    "_token_index"};

// Sorted.
constexpr std::array kKeys = std::to_array<std::string_view>({
    "architectures",
    "attn_implementation",
    "auto_map",
    "aux_loss_alpha",
    "bad_words_ids",
    "begin_suppress_tokens",
    "chunk_size_feed_forward",
    "compression_config",
    "custom_pipelines",
    "directionality",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "ep_size",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "gradient_checkpointing",
    "id2label",
    "initial_context_length",
    "initializer_factor",
    "initializer_range",
    "is_llama_config",
    "label2id",
    "length_penalty",
    "max_length",
    "max_new_tokens",
    "max_seq_len",
    "max_sequence_length",
    "min_length",
    "min_new_tokens",
    "model_max_length",
    "model_type",
    "n_group",
    "name_or_path",
    "no_repeat_ngram_size",
    "norm_topk_prob",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_nextn_predict_layers",  // multi-token prediction is left out of every plan
    "num_return_sequences",
    "original_max_position_embeddings",
    "partial_rotary_factor",
    "predict_special_tokens",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "remove_invalid_values",
    "reorder_and_upcast_attn",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "routed_scaling_factor",
    "router_jitter_noise",
    "scale_attn_by_inverse_layer_idx",
    "scale_attn_weights",
    "scoring_func",
    "seq_aux",
    "suppress_tokens",
    "swiglu_alpha",
    "swiglu_limit",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tokenizer_class",
    "tokenizer_model_max_length",
    "tokenizer_padding_side",
    "top_k",
    "top_p",
    "topk_group",
    "torch_dtype",
    "torchscript",
    "typical_p",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
    "use_mrope",
    "use_return_dict",
});
static_assert(std::is_sorted(kKeys.begin(), kKeys.end()));

}  // namespace

bool is_irrelevant_config_key(std::string_view key) {
  const auto begins = [&](std::string_view prefix) { return key.starts_with(prefix); };
  const auto ends = [&](std::string_view suffix) { return key.ends_with(suffix); };
  return std::binary_search(kKeys.begin(), kKeys.end(), key) ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(), begins) ||
         std::any_of(kSuffixes.begin(), kSuffixes.end(), ends);
}

}  // namespace meshwright
