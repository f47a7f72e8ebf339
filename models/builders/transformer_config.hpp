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

struct NormShape {
  NormKind kind = NormKind::kRmsNorm;
  double epsilon = 1e-5;
  double offset = 0;     ///< added to the weights, whose initial value is 1 - offset
  bool weighted = true;  ///< false: no parameters (OLMo)
  bool biased = true;    ///< layer norms only
};

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1).
struct LatentAttention {
  std::optional<std::int64_t> query_rank;  ///< absent: queries are projected directly
  std::int64_t key_value_rank = 0;
  std::int64_t rotary_size = 0;        ///< rotated part of a key, shared by all heads
  std::int64_t positionless_size = 0;  ///< the part without position embedding
};

/// RMS norm of queries and keys before their rotation.
enum class QueryKeyNorm : std::uint8_t {
  kNone,
  kPerHead,            ///< of every head: Qwen3
  kUnweightedPerHead,  ///< the same without weights: Llama 4
  kAllHeads            ///< of all heads together: OLMo 2
};

struct AttentionConfig {
  std::int64_t heads = 0, key_value_heads = 0;
  std::int64_t head_size = 0;   ///< D; unused by latent attention
  std::int64_t value_size = 0;  ///< of one head
  std::optional<LatentAttention> latent;
  std::optional<std::int64_t> rotated_size;  ///< of one head; absent: all of it
  RotaryAngles angles;
  std::optional<double> scale;        ///< of the scores; absent: 1 / sqrt(D)
  double softcap = 0;                 ///< of the scores; 0: none
  double dropout = 0;                 ///< of the attention probabilities
  double latent_norm_epsilon = 1e-6;  ///< of the compressed queries, keys and values
  RotaryPairs pairs = RotaryPairs::kHalves;
  bool rotary = true;
  bool causal = true;
  bool projection_bias = false;  ///< on queries, keys, values (latent: on the compressions)
  bool output_bias = false;
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;
  bool sinks = false;  ///< one additional learned logit per head (gpt-oss)
};

struct FeedForwardConfig {
  std::int64_t width = 0;  ///< F
  ActivationKind activation = ActivationKind::kSwiGlu;
  bool bias = false;
  double limit = 0;  ///< of a clamped activation
};

struct ExpertsConfig {
  int experts = 0, experts_per_token = 0;
  std::int64_t width = 0;         ///< F of one expert
  std::int64_t shared_width = 0;  ///< total F of the shared experts; 0: none
  bool shared_gate = false;  ///< the output of the shared experts is scaled per token (Qwen2-MoE)
  bool bias = false;         ///< on every expert matrix
  bool router_bias = false;
  bool score_correction = false;  ///< router bias updated from expert load (DeepSeek-V3)
  ActivationKind activation = ActivationKind::kSwiGlu;
  double limit = 0;  ///< of a clamped activation
  RouterScore score = RouterScore::kSoftmax;
  bool weighted_inputs = false;  ///< the scores scale inputs of the experts, not outputs (Llama 4)
  bool normalized = true;        ///< the weights of the chosen experts sum to `scale`
  double scale = 1;
  int groups = 1, chosen_groups = 1, scores_per_group = 0;  ///< as in Router
};

/// Settings that can differ from layer to layer.
struct LayerConfig {
  std::optional<std::int64_t> window;  ///< sliding-window size; nullopt: full attention
  std::optional<std::int64_t> chunk;   ///< of positions that see each other; nullopt: no chunks
  bool uses_experts = false;
  bool rotary = true;                           ///< false: no positions in this layer (SmolLM3)
  std::optional<RotaryAngles> angles;           ///< instead of those of the model (Gemma 3)
  std::optional<double> score_scale;            ///< instead of that of the model (GPT-2)
  std::optional<QueryTemperature> temperature;  ///< of a layer without positions (Llama 4)
  bool query_key_norm = true;                   ///< false: none in this layer
};

/// y = x + f(x) of attention and feed-forward layer with norms N:
enum class BlockKind : std::uint8_t {
  kBefore,        ///< x + f(N(x))
  kAfter,         ///< N(x + f(x)): BERT
  kBoth,          ///< x + N(f(N(x))): Grok-1, Gemma 2
  kBranch,        ///< x + N(f(x)): OLMo 2
  kParallel,      ///< x + attention(N(x)) + feed_forward(N(x)), the same norm: Phi, Cohere
  kParallelNorms  ///< the same with two norms: GPT-NeoX
};

struct TransformerConfig {
  std::int64_t hidden = 0, vocabulary = 0;
  std::int64_t positions = 0;                ///< longest sequence
  std::int64_t token_types = 0;              ///< rows of the token-type table; 0: none (BERT: 2)
  std::optional<std::int64_t> padding = {};  ///< token whose embedding is not trained
  bool learned_positions = false;
  bool tied_embeddings = false;
  NormShape norm;
  BlockKind block = BlockKind::kBefore;
  double embedding_scale = 1, residual_scale = 1;  ///< of branches; 1: none
  double logit_scale = 1, logit_softcap = 0;       ///< 1 and 0: none
  bool logit_bias = false;
  std::int64_t first_position = 0;           ///< row of position 0 in the position table (OPT: 2)
  double initial_deviation = 0.02;           ///< of matrices
  double initial_residual_deviation = 0.02;  ///< of the last matrices of branches
  bool masked_language_head = false;         ///< dense, GELU and norm before logits with a bias
  double embedding_dropout = 0, residual_dropout = 0;
  AttentionConfig attention;
  FeedForwardConfig feed_forward;
  ExpertsConfig experts;  ///< of the layers that use them
  std::vector<LayerConfig> layers;
};

/// No factors and caps of embeddings, branches, scores and logits.
bool has_plain_factors(const TransformerConfig& config);

}  // namespace meshwright
