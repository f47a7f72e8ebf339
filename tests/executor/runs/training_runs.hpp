/// Even smaller models, for many plans of many steps.
#pragma once

#include <string_view>

#include "tests/executor/runs/expect_same.hpp"

namespace meshwright {

inline constexpr std::string_view kTinyGpt =
    R"({"model_type": "gpt2", "n_embd": 16, "n_layer": 4, "n_head": 4, "n_positions": 8,
        "vocab_size": 200, "resid_pdrop": 0, "attn_pdrop": 0, "embd_pdrop": 0})";
inline constexpr std::string_view kTinyLlama =
    R"({"model_type": "llama", "hidden_size": 16, "num_hidden_layers": 4, "intermediate_size": 24,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
        "max_position_embeddings": 8, "rms_norm_eps": 1e-5})";
inline constexpr std::string_view kTinyMixtral =
    R"({"model_type": "mixtral", "hidden_size": 16, "num_hidden_layers": 4,
        "intermediate_size": 24, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 200,
        "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "rope_theta": 10000,
        "sliding_window": null})";

inline Strategy tiny_strategy() {
  Strategy s = base();
  s.sequence_length = 8;
  return s;
}

inline TrainingRun train_tiny(std::string_view config, const Strategy& strategy, int steps,
                              const TrainingOptions& options = {}) {
  return run_plan(config, strategy, {.training = options, .steps = steps});
}

}  // namespace meshwright
