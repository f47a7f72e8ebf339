/// Which activations of a block the backward pass recomputes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

enum class RecomputeKind : std::uint8_t {
  kNone,
  kSelective,      ///< the attention core only (Korthikanti et al., arXiv 2205.05198, section 5)
  kFull,           ///< every block saves only its input
  kBlocks,         ///< kFull for the first blocks of every stage, kNone for the others
  kModules,        ///< some modules of every block: Megatron-LM's --recompute-modules
  kTorchSelective  ///< torchtitan's selective activation checkpointing per operator
};

/// Modules of Megatron-LM's --recompute-modules (core/transformer/transformer_config.py). The
/// outputs of some are discarded after the forward pass and restored before the backward pass of
/// their readers; of the others (checkpoints), everything but their inputs and outputs.
enum class RecomputeModule : std::uint8_t {
  kCoreAttention,    ///< core_attn: checkpoint; with fused attention its forward runs again
  kLayerNorm,        ///< layernorm: outputs of the two norms of a block
  kMlaUpProjection,  ///< mla_up_proj: up projections and rotation of latent attention
  kMoeActivation,    ///< moe_act: output of the experts' activation
  kMlp,              ///< mlp: checkpoint of a dense feed-forward layer
  kMoe,              ///< moe: checkpoint of router, dispatch, experts and shared experts
  kSharedExperts     ///< shared_experts: checkpoint
};
inline constexpr int kRecomputeModuleCount = 7;
std::string_view name_of(RecomputeModule module);  ///< "core_attn", …

struct Recompute {
  RecomputeKind kind = RecomputeKind::kNone;
  int blocks = 0;                          ///< for kBlocks, in every stage
  std::vector<int> blocks_per_stage = {};  ///< for kBlocks: by model part, instead of `blocks`
  std::uint32_t modules = 0;               ///< for kModules: bit i is RecomputeModule i
  friend bool operator==(const Recompute&, const Recompute&) = default;
  bool has(RecomputeModule module) const {
    return kind == RecomputeKind::kModules && (modules >> static_cast<unsigned>(module) & 1U) != 0;
  }
};
/// "none", "selective", "full", "block:4", "block:4,3,2", "modules:layernorm,moe_act",
/// "torch-selective".
std::string to_text(const Recompute& recompute);
std::optional<Recompute> recompute_from_text(std::string_view text);

/// Number of fully recomputed blocks of a model part; all if kFull.
int recomputed_blocks(const Recompute& recompute, int part);
/// True if operators of every block are recomputed, but not whole blocks.
constexpr bool recomputes_operators(RecomputeKind kind) {
  return kind == RecomputeKind::kSelective || kind == RecomputeKind::kModules ||
         kind == RecomputeKind::kTorchSelective;
}

}  // namespace meshwright
