// From the configuration classes of huggingface/transformers 4 and 5 (configuration_utils.py,
// generation/configuration_utils.py, models/*/configuration_*.py) and from published configurations
// of the model types that Meshwright reads.
#include "models/families/irrelevant_config_keys.hpp"

#include <algorithm>
#include <array>

namespace meshwright {
namespace {

/// Leading underscore: private to transformers, or a comment.
constexpr std::array<std::string_view, 6> kPrefixes{"_",       "classifier_", "output_",
                                                    "pooler_", "summary_",    "transformers"};
constexpr std::array<std::string_view, 3> kSuffixes{"_loss_coef", "_token_id", "_token_index"};

// Sorted.
constexpr std::array kKeys = std::to_array<std::string_view>({
    "architectures",
    "attn_implementation",
    "auto_map",
    "aux_loss_alpha",
    "bad_words_ids",
    "begin_suppress_tokens",
    "chunk_size_feed_forward",
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
    "initializer_factor",
    "is_encoder_decoder",
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
    "name_or_path",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_mtp_layers",
    "num_nextn_predict_layers",  // multi-token prediction is left out of every plan
    "num_return_sequences",
    "predict_special_tokens",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "remove_invalid_values",
    "reorder_and_upcast_attn",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "seq_aux",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tokenizer_class",
    "tokenizer_model_max_length",
    "tokenizer_padding_side",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "typical_p",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
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
