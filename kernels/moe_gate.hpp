/// MoE router: from logits to K experts per token and their weights. All fp32.
/// Notation: N tokens, E experts, K experts per token.
///
///   score      softmax over experts (Switch, arXiv 2101.03961; Mixtral) or sigmoid of each
///              (DeepSeek-V3, arXiv 2412.19437, section 2.1.2)
///   choice     the K largest score + correction; ties: the lower expert index
///   weight     score of the chosen expert, divided by the sum over the chosen experts if
///              `normalized`, times `scale`
///   auxiliary  coefficient * E * sum over e of f_e P_e (arXiv 2101.03961, eq. 4-6), f_e being the
///              fraction of choices that fell on e (constant for the gradient) and P_e the mean
///              over tokens of e's score (for sigmoid: of its share of the scores)
#pragma once

#include <cstdint>
#include <span>

#include "core/model/model_graph.hpp"
#include "kernels/argument_checks.hpp"
#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

// Rows of the list in kernel_table.hpp.
// clang-format off
#define MESHWRIGHT_MOE_GATE_KERNELS(X)      \
  X(gate_forward,        GateForward)       \
  X(gate_load,           GateLoad)          \
  X(gate_auxiliary_loss, GateAuxiliaryLoss) \
  X(gate_backward,       GateBackward)
// clang-format on

inline constexpr std::int64_t kMaxExpertGroups = 64;

struct GateShape {
  RouterScore score = RouterScore::kSoftmax;
  std::int64_t tokens = 0, experts = 0, experts_per_token = 0;  ///< N, E, K
  bool normalized = true;
  float scale = 1;  ///< DeepSeek's routed_scaling_factor
  /// Node-limited routing: experts form `groups` equal groups, one per node. A token's experts are
  /// chosen from the `chosen_groups` groups whose ceil(K / chosen_groups) largest keys (score +
  /// correction) have the largest sum; ties: the first (DeepSeek-V3, arXiv 2412.19437, section
  /// 2.1.2).
  std::int64_t groups = 1, chosen_groups = 1;
  std::int64_t keys_per_group = 0;  ///< in that sum, if not ceil(K / chosen_groups)
  std::int64_t summed_keys() const {
    return keys_per_group > 0 ? keys_per_group
                              : (experts_per_token + chosen_groups - 1) / chosen_groups;
  }
};
inline void check(const GateShape& s) {
  MW_CHECK(s.tokens >= 0 && s.experts > 0);
  MW_CHECK(s.experts_per_token > 0 && s.experts_per_token <= s.experts);
  MW_CHECK(s.groups > 0 && s.groups <= kMaxExpertGroups && s.experts % s.groups == 0);
  MW_CHECK(s.chosen_groups > 0 && s.keys_per_group >= 0);
  MW_CHECK(s.chosen_groups >= s.groups ||
           s.chosen_groups * (s.experts / s.groups) >= s.experts_per_token);
}

struct GateForward {
  GateShape shape = {};
  std::span<const float> logits = {};      ///< [N, E]
  std::span<const float> correction = {};  ///< [E] or empty: added for the choice only
  std::span<float> scores = {};            ///< [N, E] out; may be the logits
  std::span<std::int32_t> experts = {};    ///< [N, K] out, best first
  std::span<float> weights = {};           ///< [N, K] out
};
inline void check(const GateForward& a) {
  check(a.shape);
  check_size(a.logits, a.shape.tokens * a.shape.experts);
  check_size_or_empty(a.correction, a.shape.experts);
  check_size(a.scores, a.shape.tokens * a.shape.experts);
  check_size(a.experts, a.shape.tokens * a.shape.experts_per_token);
  check_size(a.weights, a.shape.tokens * a.shape.experts_per_token);
}

/// Load of the experts for balancing: choices and total share of each; an all-reduce makes it
/// global.
struct GateLoad {
  GateShape shape = {};
  std::span<const float> scores = {};
  std::span<const std::int32_t> experts = {};
  std::span<float> choices = {};  ///< [E] out: number of choices of e (exact below 2^24)
  std::span<float> shares = {};   ///< [E] out: sum over tokens of e's share of the scores
};
inline void check(const GateLoad& a) {
  check(a.shape);
  check_size(a.scores, a.shape.tokens * a.shape.experts);
  check_size(a.experts, a.shape.tokens * a.shape.experts_per_token);
  check_size(a.choices, a.shape.experts);
  check_size(a.shares, a.shape.experts);
}

/// loss = coefficient * E * sum of (choices / (tokens K)) (shares / tokens).
struct GateAuxiliaryLoss {
  GateShape shape = {};  ///< tokens: the number that choices and shares cover
  std::span<const float> choices = {}, shares = {};
  float coefficient = 0;
  float* loss = nullptr;
};
inline void check(const GateAuxiliaryLoss& a) {
  check(a.shape);
  check_size(a.choices, a.shape.experts);
  check_size(a.shares, a.shape.experts);
  MW_CHECK(a.loss != nullptr);
}

struct GateBackward {
  GateShape shape = {};
  std::span<const float> scores = {};
  std::span<const std::int32_t> experts = {};
  std::span<const float> dweights = {};  ///< [N, K]
  std::span<const float> choices = {};   ///< [E] or empty: no auxiliary loss
  /// dloss/d(share of token n on e) = share_scale * choices[e]; for the loss above:
  /// coefficient * E / (K tokens^2), tokens as counted there.
  float share_scale = 0;
  std::span<float> dlogits = {};  ///< [N, E] out
};
inline void check(const GateBackward& a) {
  check(a.shape);
  check_size(a.scores, a.shape.tokens * a.shape.experts);
  check_size(a.experts, a.shape.tokens * a.shape.experts_per_token);
  check_size(a.dweights, a.shape.tokens * a.shape.experts_per_token);
  check_size_or_empty(a.choices, a.shape.experts);
  check_size(a.dlogits, a.shape.tokens * a.shape.experts);
}

}  // namespace meshwright
