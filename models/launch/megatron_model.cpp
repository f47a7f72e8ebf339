/// Flags that make Megatron-LM's pretrain_gpt.py build the model.
#include <fmt/format.h>

#include <algorithm>

#include "models/launch/megatron.hpp"

namespace meshwright {
namespace {

class ModelFlags {
 public:
  ModelFlags(const LaunchJob& job, MegatronModel& result)
      : model_(job.model), c_(job.model.shape), strategy_(job.plan.strategy), result_(result) {}

  void write() {
    sizes();
    positions();
    norms();
    feed_forward();
    attention();
    if (c_.experts.experts > 0) experts();
    flag("attention-dropout", c_.attention.dropout);
    flag("hidden-dropout", c_.residual_dropout);
  }

 private:
  void flag(std::string_view name) { result_.flags.push_back({std::string(name), ""}); }
  template <class Value>
  void flag(std::string_view name, const Value& value) {
    result_.flags.push_back({std::string(name), fmt::format("{}", value)});
  }
  void miss(std::string what) { result_.unsupported.push_back(std::move(what)); }

  void sizes() {
    const AttentionConfig& a = c_.attention;
    flag("num-layers", c_.layers.size());
    flag("hidden-size", c_.hidden);
    flag("ffn-hidden-size", c_.feed_forward.width);
    flag("num-attention-heads", a.heads);
    if (!a.latent) {
      if (a.key_value_heads != a.heads) {
        flag("group-query-attention");
        flag("num-query-groups", a.key_value_heads);
      }
      flag("kv-channels", a.head_size);
    }
    flag("max-position-embeddings", std::max(c_.positions, strategy_.sequence_length));
    if (!c_.tied_embeddings) flag("untie-embeddings-and-output-weights");
  }

  void positions() {
    if (c_.learned_positions) return flag("position-embedding-type", "learned_absolute");
    flag("position-embedding-type", c_.attention.rotary ? "rope" : "none");
    if (!c_.attention.rotary) return;
    if (model_.rotary_base) flag("rotary-base", *model_.rotary_base);
    if (c_.attention.rotated_size)
      flag("rotary-percent", static_cast<double>(*c_.attention.rotated_size) /
                                 static_cast<double>(c_.attention.head_size));
    if (model_.rotary_factor) {
      flag("use-rope-scaling");
      flag("rope-scaling-factor", *model_.rotary_factor);
    }
    std::vector<bool> positionless;
    for (const LayerConfig& layer : c_.layers) positionless.push_back(!layer.rotary);
    if (std::ranges::find(positionless, true) != positionless.end())
      flag("no-rope-freq", layer_pattern(positionless));
    const auto is_tempered = [&](const LayerConfig& layer) {
      return layer.temperature && layer.temperature->interval <= strategy_.sequence_length;
    };
    if (std::ranges::any_of(c_.layers, is_tempered)) miss("the temperature of attention");
  }

  void norms() {
    flag("normalization", c_.norm.kind == NormKind::kRmsNorm ? "RMSNorm" : "LayerNorm");
    if (model_.norm_epsilon) flag("norm-epsilon", *model_.norm_epsilon);
    const QueryKeyNorm heads = c_.attention.query_key_norm;
    if (heads != QueryKeyNorm::kNone)
      flag(heads == QueryKeyNorm::kUnweightedPerHead ? "qk-l2-norm" : "qk-layernorm");
    if (heads == QueryKeyNorm::kAllHeads)
      miss("norms of queries and keys over all heads (each head is normalized)");
  }

  /// Megatron-LM has one switch for the biases of all linear layers, and one for those of queries,
  /// keys and values alone.
  void feed_forward() {
    switch (c_.feed_forward.activation) {
      case ActivationKind::kSwiGlu:
        flag("swiglu");
        break;
      case ActivationKind::kSquaredRelu:
        flag("squared-relu");
        break;
      case ActivationKind::kRelu:
        miss("ReLU (GELU is used)");
        break;
      case ActivationKind::kGegluTanh:
      case ActivationKind::kGegluErf:
      case ActivationKind::kReglu:
      case ActivationKind::kClampedSwiGlu:
        flag("swiglu");
        miss("the activation of the gate (SiLU is used)");
        break;
      case ActivationKind::kGeluErf:
      case ActivationKind::kGeluTanh:
        break;
    }
    const AttentionConfig& a = c_.attention;
    const bool all = a.output_bias && a.projection_bias && has_feed_forward_bias();
    if (all) return;
    flag("disable-bias-linear");
    if (a.projection_bias) flag("add-qkv-bias");
    if (a.output_bias) miss("bias of the attention output alone");
    if (has_feed_forward_bias()) miss("biases of feed-forward layers alone");
  }
  bool has_feed_forward_bias() const {
    return c_.experts.experts > 0 ? c_.experts.bias : c_.feed_forward.bias;
  }

  void attention() {
    const AttentionConfig& a = c_.attention;
    if (const std::optional<LatentAttention>& l = a.latent) {
      flag("multi-latent-attention");
      if (l->query_rank) flag("q-lora-rank", *l->query_rank);
      flag("kv-lora-rank", l->key_value_rank);
      flag("qk-head-dim", l->positionless_size);
      flag("qk-pos-emb-head-dim", l->rotary_size);
      flag("v-head-dim", a.value_size);
    }
    if (a.sinks) flag("softmax-type", "learnable");
    windows();
    for (const LayerConfig& layer : c_.layers)
      if (layer.chunk && *layer.chunk < strategy_.sequence_length)
        return miss(fmt::format("attention in chunks of {} positions", *layer.chunk));
  }

  /// A window of W keys is W - 1 keys to the left.
  void windows() {
    std::vector<bool> slides;
    std::optional<std::int64_t> window;
    for (const LayerConfig& layer : c_.layers) {
      slides.push_back(layer.window.has_value());
      if (layer.window) window = layer.window;
    }
    if (!window) return;
    flag("window-size", fmt::format("{},0", *window - 1));
    if (std::ranges::find(slides, false) != slides.end())
      flag("window-attn-skip-freq", layer_pattern(slides));
  }

  void experts() {
    const ExpertsConfig& e = c_.experts;
    flag("num-experts", e.experts);
    flag("moe-router-topk", e.experts_per_token);
    flag("moe-ffn-hidden-size", e.width);
    std::vector<bool> uses;
    for (const LayerConfig& layer : c_.layers) uses.push_back(layer.uses_experts);
    if (std::ranges::find(uses, false) != uses.end()) flag("moe-layer-freq", layer_pattern(uses));
    if (e.shared_width > 0) flag("moe-shared-expert-intermediate-size", e.shared_width);
    if (e.shared_gate) flag("moe-shared-expert-gate");
    flag("moe-grouped-gemm");
    flag("moe-token-dispatcher-type", "alltoall");
    if (e.weighted_inputs) flag("moe-apply-probs-on-input");
    if (e.score == RouterScore::kSigmoid) flag("moe-router-score-function", "sigmoid");
    if (e.score_correction) {
      flag("moe-router-enable-expert-bias");
      flag("moe-router-load-balancing-type", "seq_aux_loss");
      flag("moe-aux-loss-coeff", "1e-4");
    } else {
      flag("moe-router-load-balancing-type", "aux_loss");
      flag("moe-aux-loss-coeff", "1e-2");
    }
    // Megatron-LM's default is the tensor-parallel size.
    const ParallelDegrees& d = strategy_.degrees;
    if (d.tensor > 1 && d.expert == 1 && d.expert_tensor == 1)
      flag("expert-tensor-parallel-size", 1);
  }

  const LaunchModel& model_;
  const TransformerConfig& c_;
  const Strategy& strategy_;
  MegatronModel& result_;
};

}  // namespace

std::string layer_pattern(const std::vector<bool>& layers) {
  std::string text;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i;
    while (end < layers.size() && layers[end] == layers[i]) ++end;
    text += fmt::format("{}[{}]*{}", i == 0 ? "" : "+", layers[i] ? 1 : 0, end - i);
    i = end;
  }
  return fmt::format("({})", text);
}

MegatronModel megatron_model(const LaunchJob& job) {
  MegatronModel result;
  ModelFlags(job, result).write();
  return result;
}

std::string megatron_refusal(const LaunchJob& job) {
  const TransformerConfig& c = job.model.shape;
  const Strategy& s = job.plan.strategy;
  if (c.block == BlockKind::kAfter || c.masked_language_head || !c.attention.causal)
    return "pretrain_gpt.py has no bidirectional attention and no masked-language loss";
  if (c.block == BlockKind::kBoth || c.block == BlockKind::kBranch)
    return "Megatron-LM has no norms after attention and feed-forward layers";
  if (c.block != BlockKind::kBefore)
    return "Megatron-LM has no attention in parallel with the feed-forward layer";
  if (!has_plain_factors(c))
    return "Megatron-LM has no such factors or caps of embeddings, branches, scores and logits";
  if (c.experts.experts > 0 && c.experts.bias && s.degrees.expert_tensor > 1)
    return fmt::format(
        "Megatron-LM has no experts with biases and an expert-tensor-parallel size of {}; it has 1",
        s.degrees.expert_tensor);
  const bool discards = s.recompute.has(RecomputeModule::kLayerNorm) ||
                        s.recompute.has(RecomputeModule::kMoeActivation);
  if (s.dtype == Dtype::kFp8 && s.precision.fp8_recipe == Fp8Recipe::kDelayed && discards)
    return "Megatron-LM has no recomputation of layernorm and moe_act with fp8 recipe delayed";
  return "";
}

}  // namespace meshwright
