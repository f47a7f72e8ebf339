/// The input of the transformer builders, independent of the keys of any configuration file. Filled
/// and checked by the family readers: all sizes are positive, heads divide.
///
/// Legend as in core/model/model_graph.hpp: H hidden, A heads, G key/value heads, D head size, F
/// feed-forward, V vocabulary, E experts, K experts per token, L layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/model_graph.hpp"

namespace meshwright {

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1).
struct LatentAttention {
  std::optional<std::int64_t> query_rank;  ///< absent: queries are projected directly
  std::int64_t key_value_rank = 0;
  std::int64_t rotary_size = 0;        ///< rotated part of a key, shared by all heads
  std::int64_t positionless_size = 0;  ///< the part without position embedding
};

struct AttentionConfig {
  std::int64_t heads = 0, key_value_heads = 0;
  std::int64_t head_size = 0;   ///< D; unused by latent attention
  std::int64_t value_size = 0;  ///< of one head
  std::optional<LatentAttention> latent;
  bool rotary = true;
  std::optional<std::int64_t> rotated_size;  ///< of one head; absent: all of it
  bool causal = true;
  double dropout = 0;            ///< of the attention probabilities
  bool projection_bias = false;  ///< on queries, keys, values (latent: on the compressions)
  bool output_bias = false;
  bool query_key_norm = false;  ///< RMS norm of every query and key head (Qwen3)
  bool sinks = false;           ///< one additional learned logit per head (gpt-oss)
};

struct FeedForwardConfig {
  std::int64_t width = 0;  ///< F
  ActivationKind activation = ActivationKind::kSwiGlu;
  bool bias = false;
};

struct ExpertsConfig {
  int experts = 0, experts_per_token = 0;
  std::int64_t width = 0;         ///< F of one expert
  std::int64_t shared_width = 0;  ///< total F of the shared experts; 0: none
  bool shared_gate = false;  ///< the output of the shared experts is scaled per token (Qwen2-MoE)
  bool bias = false;         ///< on every expert matrix
  bool router_bias = false;
  bool score_correction = false;  ///< router bias updated from expert load (DeepSeek-V3)
};

/// Settings that can differ from layer to layer.
struct LayerConfig {
  std::optional<std::int64_t> window;  ///< sliding-window size; nullopt: full attention
  bool uses_experts = false;
};

struct TransformerConfig {
  std::int64_t hidden = 0, vocabulary = 0;
  std::int64_t positions = 0;    ///< longest sequence
  std::int64_t token_types = 0;  ///< rows of the token-type table; 0: none (BERT: 2)
  bool learned_positions = false;
  bool tied_embeddings = false;
  NormKind norm = NormKind::kRmsNorm;
  bool norm_after = false;            ///< norm(x + f(x)) as in BERT, instead of x + f(norm(x))
  bool norm_of_branches = false;      ///< x + norm(f(norm(x))): Grok-1
  bool masked_language_head = false;  ///< dense, GELU and norm before logits with a bias
  double embedding_dropout = 0, residual_dropout = 0;
  AttentionConfig attention;
  FeedForwardConfig feed_forward;
  ExpertsConfig experts;  ///< of the layers that use them
  std::vector<LayerConfig> layers;
};

}  // namespace meshwright
