// Names and layouts of parameters in HuggingFace checkpoints, by family: as save_pretrained() of
// transformers 5 writes them.
#include "models/families/weight_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

using TensorNames = std::array<std::string_view, 3>;  ///< of tensors side by side in one parameter

struct NameRow {
  std::string_view ours;
  TensorNames theirs;
};

/// How one tensor holds queries, keys and values.
enum class FusedHeads : std::uint8_t {
  kSideBySide,  ///< all queries, all keys, all values
  kByHead,      ///< query, key and value of the first head, of the second, …
  kByGroup      ///< the queries that share a key head, that key and that value, …
};

struct FamilyNames {
  std::vector<std::string_view> model_types;
  std::string_view layer = "model.layers.{}.";
  std::vector<NameRow> rows = {};  ///< before those of kLlamaNames
  FusedHeads fused = FusedHeads::kSideBySide;
  bool transposed = true;          ///< matrices are [out, in]
  bool alternating_gates = false;  ///< columns of gate and up in turn, where one tensor has both
};

const std::vector<NameRow> kLlamaNames{
    {"embedding.words", {"model.embed_tokens"}},
    {"head.norm", {"model.norm"}},
    {"head.logits", {"lm_head"}},
    {"attention_norm", {"input_layernorm"}},
    {"attention.query_key_value", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
    {"attention.query_norm", {"self_attn.q_norm"}},
    {"attention.key_norm", {"self_attn.k_norm"}},
    {"attention.output", {"self_attn.o_proj"}},
    {"feed_forward_norm", {"post_attention_layernorm"}},
    {"feed_forward.gate_up", {"mlp.gate_proj", "mlp.up_proj"}},
    {"feed_forward.up", {"mlp.up_proj"}},
    {"feed_forward.down", {"mlp.down_proj"}},
    {"router", {"mlp.gate"}},
    {"experts.gate_up", {"mlp.experts.{}.gate_proj", "mlp.experts.{}.up_proj"}},
    {"experts.down", {"mlp.experts.{}.down_proj"}}};

const std::vector<FamilyNames>& named_families() {
  static const std::vector<FamilyNames> kFamilies{
      {.model_types = {"llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "granite", "smollm3",
                       "olmo", "nemotron", "cohere", "gemma"}},
      {.model_types = {"gemma2", "gemma3_text"},
       .rows = {{"attention_output_norm", {"post_attention_layernorm"}},
                {"feed_forward_norm", {"pre_feedforward_layernorm"}},
                {"feed_forward_output_norm", {"post_feedforward_layernorm"}}}},
      {.model_types = {"olmo2", "olmo3"},
       .rows = {{"attention_output_norm", {"post_attention_layernorm"}},
                {"feed_forward_output_norm", {"post_feedforward_layernorm"}}}},
      {.model_types = {"glm", "glm4"},
       .rows = {{"attention_output_norm", {"post_self_attn_layernorm"}},
                {"feed_forward_output_norm", {"post_mlp_layernorm"}},
                {"feed_forward.gate_up", {"mlp.gate_up_proj"}}}},
      {.model_types = {"phi3"},
       .rows = {{"attention.query_key_value", {"self_attn.qkv_proj"}},
                {"feed_forward.gate_up", {"mlp.gate_up_proj"}}}},
      {.model_types = {"phi"},
       .rows = {{"attention.output", {"self_attn.dense"}},
                {"feed_forward.up", {"mlp.fc1"}},
                {"feed_forward.down", {"mlp.fc2"}},
                {"head.norm", {"model.final_layernorm"}}}},
      {.model_types = {"starcoder2"},
       .rows = {{"feed_forward.up", {"mlp.c_fc"}}, {"feed_forward.down", {"mlp.c_proj"}}}},
      {.model_types = {"mixtral"},
       .rows = {{"router", {"block_sparse_moe.gate"}},
                {"experts.gate_up",
                 {"block_sparse_moe.experts.{}.w1", "block_sparse_moe.experts.{}.w3"}},
                {"experts.down", {"block_sparse_moe.experts.{}.w2"}}}},
      {.model_types = {"qwen2_moe"},
       .rows = {{"shared_experts.gate_up",
                 {"mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj"}},
                {"shared_experts.down", {"mlp.shared_expert.down_proj"}},
                {"shared_experts.gate", {"mlp.shared_expert_gate"}}}},
      {.model_types = {"gpt_oss"},
       .rows = {{"router", {"mlp.router"}},
                {"attention.sinks", {"self_attn.sinks"}},
                {"experts.gate_up", {"mlp.experts.gate_up_proj"}},
                {"experts.down", {"mlp.experts.down_proj"}}},
       .alternating_gates = true},
      {.model_types = {"llama4_text"},
       .rows = {{"feed_forward.gate_up", {"feed_forward.gate_proj", "feed_forward.up_proj"}},
                {"feed_forward.down", {"feed_forward.down_proj"}},
                {"router", {"feed_forward.router"}},
                {"experts.gate_up", {"feed_forward.experts.gate_up_proj"}},
                {"experts.down", {"feed_forward.experts.down_proj"}},
                {"shared_experts.gate_up",
                 {"feed_forward.shared_expert.gate_proj", "feed_forward.shared_expert.up_proj"}},
                {"shared_experts.down", {"feed_forward.shared_expert.down_proj"}}}},
      {.model_types = {"deepseek_v2", "deepseek_v3", "kimi_k2"},
       .rows = {{"attention.query", {"self_attn.q_proj"}},
                {"attention.query_down", {"self_attn.q_a_proj"}},
                {"attention.query_norm", {"self_attn.q_a_layernorm"}},
                {"attention.query_up", {"self_attn.q_b_proj"}},
                {"attention.key_value_down", {"self_attn.kv_a_proj_with_mqa"}},
                {"attention.key_value_norm", {"self_attn.kv_a_layernorm"}},
                {"attention.key_value_up", {"self_attn.kv_b_proj"}},
                {"router.score_correction", {"mlp.gate.e_score_correction_bias"}},
                {"shared_experts.gate_up",
                 {"mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj"}},
                {"shared_experts.down", {"mlp.shared_experts.down_proj"}}}},
      {.model_types = {"glm4_moe"},
       .rows = {{"router.score_correction", {"mlp.gate.e_score_correction_bias"}},
                {"shared_experts.gate_up",
                 {"mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj"}},
                {"shared_experts.down", {"mlp.shared_experts.down_proj"}}}},
      {.model_types = {"gpt2"},
       .layer = "transformer.h.{}.",
       .rows = {{"embedding.words", {"transformer.wte"}},
                {"embedding.positions", {"transformer.wpe"}},
                {"head.norm", {"transformer.ln_f"}},
                {"attention_norm", {"ln_1"}},
                {"attention.query_key_value", {"attn.c_attn"}},
                {"attention.output", {"attn.c_proj"}},
                {"feed_forward_norm", {"ln_2"}},
                {"feed_forward.up", {"mlp.c_fc"}},
                {"feed_forward.down", {"mlp.c_proj"}}},
       .transposed = false},
      {.model_types = {"gpt_neox"},
       .layer = "gpt_neox.layers.{}.",
       .rows = {{"embedding.words", {"gpt_neox.embed_in"}},
                {"head.norm", {"gpt_neox.final_layer_norm"}},
                {"head.logits", {"embed_out"}},
                {"attention.query_key_value", {"attention.query_key_value"}},
                {"attention.output", {"attention.dense"}},
                {"feed_forward.up", {"mlp.dense_h_to_4h"}},
                {"feed_forward.down", {"mlp.dense_4h_to_h"}}},
       .fused = FusedHeads::kByHead},
      {.model_types = {"falcon"},
       .layer = "transformer.h.{}.",
       .rows = {{"embedding.words", {"transformer.word_embeddings"}},
                {"head.norm", {"transformer.ln_f"}},
                {"attention.query_key_value", {"self_attention.query_key_value"}},
                {"attention.output", {"self_attention.dense"}},
                {"feed_forward.up", {"mlp.dense_h_to_4h"}},
                {"feed_forward.down", {"mlp.dense_4h_to_h"}}},
       .fused = FusedHeads::kByGroup},
      {.model_types = {"opt"},
       .layer = "model.decoder.layers.{}.",
       .rows = {{"embedding.words", {"model.decoder.embed_tokens"}},
                {"embedding.positions", {"model.decoder.embed_positions"}},
                {"head.norm", {"model.decoder.final_layer_norm"}},
                {"attention_norm", {"self_attn_layer_norm"}},
                {"attention.output", {"self_attn.out_proj"}},
                {"feed_forward_norm", {"final_layer_norm"}},
                {"feed_forward.up", {"fc1"}},
                {"feed_forward.down", {"fc2"}}}}};
  return kFamilies;
}

/// "layer3.attention.output.weight": number of the layer, name within it, and kind.
struct OurName {
  std::string layer;  ///< empty: of no block
  std::string name;
  std::string kind;  ///< ".weight", ".bias" or empty
};
OurName split_name(const std::string& name) {
  OurName split;
  split.name = name;
  if (name.starts_with("layer")) {
    const std::size_t dot = name.find('.');
    constexpr std::size_t kPrefix = std::string_view("layer").size();
    split.layer = name.substr(kPrefix, dot - kPrefix);
    split.name = name.substr(dot + 1);
  }
  for (const char* kind : {".weight", ".bias"})
    if (split.name.ends_with(kind)) {
      split.name.resize(split.name.size() - std::string_view(kind).size());
      split.kind = kind;
    }
  return split;
}

/// All that the layout of one parameter depends on.
class ParameterLayout {
 public:
  ParameterLayout(const ModelGraph& model, const FamilyNames& family, const Operator& op,
                  TensorId id)
      : model_(model),
        family_(family),
        op_(op),
        shape_(parameter_of(model, id)),
        ours_(split_name(model.tensors[id.index()].name)) {}

  /// Falcon's older models have one key and value head for all queries: side by side.
  std::vector<WeightPart> parts() const {
    const NameRow* row = find_row();
    MW_CHECK(row != nullptr);
    if (const auto* linear = std::get_if<ExpertLinear>(&op_.shape))
      return of_experts(*linear, row->theirs);
    if (ours_.name == "attention.key_value_up") return by_block(row->theirs[0], latent_blocks());
    const bool is_fused = ours_.name == "attention.query_key_value" && row->theirs[1].empty();
    if (is_fused && family_.fused != FusedHeads::kSideBySide)
      return by_block(row->theirs[0], head_blocks());
    return side_by_side(row->theirs);
  }

 private:
  const NameRow* find_row() const {
    for (const std::vector<NameRow>* rows : {&family_.rows, &kLlamaNames})
      if (const auto row = std::ranges::find(*rows, ours_.name, &NameRow::ours); row != rows->end())
        return &*row;
    return nullptr;
  }

  std::string name_of(std::string_view theirs, std::string_view kind) const {
    std::string name = fmt::format("{}{}", theirs, kind);
    if (ours_.layer.empty()) return name;
    return fmt::format(fmt::runtime(family_.layer), ours_.layer) + name;
  }

  /// The vocabulary projection is a Linear of torch in all families.
  bool is_transposed() const {
    return std::holds_alternative<Linear>(op_.shape) && shape_.shape.size() == 2 &&
           (family_.transposed || ours_.name == "head.logits");
  }

  WeightPart part(std::string name, std::int64_t first, std::int64_t columns) const {
    return {.tensor = std::move(name),
            .transposed = is_transposed(),
            .first = first,
            .columns = columns};
  }

  /// One tensor per output of the operator, or one for all.
  std::vector<WeightPart> side_by_side(const TensorNames& names) const {
    const std::string kind =
        ours_.name == "router.score_correction" || ours_.name == "attention.sinks" ? ""
                                                                                   : ours_.kind;
    if (names[1].empty()) return {part(name_of(names[0], kind), 0, shape_.shape.back())};
    std::vector<WeightPart> parts;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < op_.outputs.size(); ++i) {
      const std::int64_t width = activation_of(model_, op_.outputs[i]).width;
      parts.push_back(part(name_of(names[i], kind), first, width));
      first += width;
    }
    return parts;
  }

  struct Blocks {
    std::vector<std::int64_t> sizes;  ///< of the outputs, within a repetition
    std::int64_t repetitions = 1;
  };
  const Attention& attention() const {
    const auto first = static_cast<std::size_t>(&op_ - model_.operators.data());
    for (std::size_t i = first; i < model_.operators.size(); ++i)
      if (const auto* found = std::get_if<Attention>(&model_.operators[i].shape)) return *found;
    MW_CHECK(false);
  }
  Blocks head_blocks() const {
    const Attention& a = attention();
    const bool grouped = family_.fused == FusedHeads::kByGroup;
    const std::int64_t sharing = grouped ? a.heads / a.key_value_heads : 1;
    return {{sharing * a.key_size, a.key_size, a.value_size}, a.heads / sharing};
  }
  /// Of every head the key without position, then the value.
  Blocks latent_blocks() const {
    const Attention& a = attention();
    const std::int64_t keys = activation_of(model_, op_.outputs[0]).width;
    return {{keys / a.heads, a.value_size}, a.heads};
  }
  std::vector<WeightPart> by_block(std::string_view name, const Blocks& blocks) const {
    std::int64_t stride = 0, first = 0, in_file = 0;
    for (const std::int64_t size : blocks.sizes) stride += size;
    std::vector<WeightPart> parts;
    for (const std::int64_t size : blocks.sizes) {
      WeightPart one = part(name_of(name, ours_.kind), first, size * blocks.repetitions);
      one.first_in_file = in_file;
      one.block = size;
      one.stride = stride;
      parts.push_back(std::move(one));
      first += size * blocks.repetitions;
      in_file += size;
    }
    return parts;
  }

  /// One tensor per expert and projection, or one for all.
  std::vector<WeightPart> of_experts(const ExpertLinear& linear, const TensorNames& names) const {
    std::vector<WeightPart> parts;
    const bool gated = ours_.name == "experts.gate_up";
    const std::int64_t width = linear.out / (gated ? 2 : 1);
    if (names[0].find("{}") == std::string_view::npos) {
      const std::string name = name_of(names[0], ours_.kind == ".bias" ? "_bias" : "");
      if (!gated || !family_.alternating_gates)
        return {{.tensor = name, .first = 0, .columns = linear.out}};
      for (std::int64_t i = 0; i < 2; ++i)
        parts.push_back({.tensor = name,
                         .first = i * width,
                         .columns = width,
                         .first_in_file = i,
                         .block = 1,
                         .stride = 2});
      return parts;
    }
    for (int expert = 0; expert < linear.experts; ++expert)
      for (std::int64_t i = 0; i < (gated ? 2 : 1); ++i) {
        const std::string name =
            fmt::format(fmt::runtime(names[static_cast<std::size_t>(i)]), expert);
        WeightPart one = part(name_of(name, ours_.kind), i * width, width);
        one.transposed = true;
        one.expert = expert;
        parts.push_back(std::move(one));
      }
    return parts;
  }

  const ModelGraph& model_;
  const FamilyNames& family_;
  const Operator& op_;
  const ParameterTensor& shape_;
  OurName ours_;
};

const FamilyNames* family_named(const std::string& model_type) {
  for (const FamilyNames& family : named_families())
    if (std::ranges::find(family.model_types, model_type) != family.model_types.end())
      return &family;
  return nullptr;
}

/// Norms whose names depend on the block: the second norm of GPT-NeoX and Falcon's two.
FamilyNames adapted(const FamilyNames& family, const ModelGraph& model) {
  FamilyNames names = family;
  const bool two_norms = std::ranges::any_of(model.tensors, [](const Tensor& tensor) {
    return tensor.name.ends_with("feed_forward_norm.weight");
  });
  if (model.family == "falcon" && two_norms) {
    const bool newer = std::ranges::any_of(model.operators, [](const Operator& op) {
      const auto* attention = std::get_if<Attention>(&op.shape);
      return attention != nullptr && attention->key_value_heads > 1;
    });
    if (newer) {
      names.rows.push_back({"attention_norm", {"ln_attn"}});
      names.rows.push_back({"feed_forward_norm", {"ln_mlp"}});
    }
  }
  return names;
}

}  // namespace

std::optional<WeightLayout> weight_layout(const ModelGraph& model) {
  const FamilyNames* known = family_named(model.family);
  if (known == nullptr) return std::nullopt;
  const FamilyNames family = adapted(*known, model);
  WeightLayout layout;
  for (const Operator& op : model.operators)
    for (const TensorId id : op.parameters) {
      std::vector<WeightPart>& parts = layout[model.tensors[id.index()].name];
      if (parts.empty()) parts = ParameterLayout(model, family, op, id).parts();
    }
  return layout;
}

}  // namespace meshwright
