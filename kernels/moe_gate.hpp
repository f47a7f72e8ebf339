/// The router of a mixture of experts: from logits to K experts per token and their weights.
/// All fp32. Letters: N tokens, E experts, K experts per token.
///
///   score        softmax over experts (Switch, arXiv 2101.03961; Mixtral) or sigmoid of each
///                (DeepSeek-V3, arXiv 2412.19437, section 2.1.2)
///   choice       the K largest score + correction; equal ones: the smaller expert
///   weight       score of the chosen, divided by the sum of the chosen if `normalised`, times
///   scale auxiliary    coefficient * E * sum over e of f_e P_e (arXiv 2101.03961, eq. 4-6), where
///   f_e is
///                the fraction of the choices that fell on e (a constant for the gradient) and P_e
///                the mean over tokens of e's score (of its share of the scores, for sigmoid)
#pragma once

#include <cstdint>
#include <span>

#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

enum class GateScore : std::uint8_t { kSoftmax, kSigmoid };

inline constexpr std::int64_t kMostExpertGroups = 64;

struct GateShape {
  GateScore score = GateScore::kSoftmax;
  std::int64_t tokens = 0, experts = 0, experts_per_token = 0;  ///< N, E, K
  bool normalised = true;
  float scale = 1;  ///< DeepSeek's routed_scaling_factor
  /// Experts are `groups` equal runs, those of one node each. A token's experts come out of the
  /// `chosen_groups` runs whose ceil(K / chosen_groups) largest keys (score + correction) have the
  /// largest sum, of equal ones the first (DeepSeek-V3, arXiv 2412.19437, section 2.1.2).
  std::int64_t groups = 1, chosen_groups = 1;
};

struct GateForward {
  GateShape shape = {};
  std::span<const float> logits = {};      ///< [N, E]
  std::span<const float> correction = {};  ///< [E] or empty: added for the choice alone
  std::span<float> scores = {};            ///< [N, E] out; may be the logits
  std::span<std::int32_t> experts = {};    ///< [N, K] out, best first
  std::span<float> weights = {};           ///< [N, K] out
};

/// What balance needs to know: choices and mean share per expert; one all-reduce makes it global.
struct GateLoad {
  GateShape shape = {};
  std::span<const float> scores = {};
  std::span<const std::int32_t> experts = {};
  std::span<float> choices = {};  ///< [E] out: how many chose e (exact below 2^24)
  std::span<float> shares = {};   ///< [E] out: sum over tokens of e's share of the scores
};

/// loss = coefficient * E * sum of (choices / (tokens K)) (shares / tokens).
struct GateAuxiliaryLoss {
  GateShape shape = {};  ///< tokens: those that choices and shares count
  std::span<const float> choices = {}, shares = {};
  float coefficient = 0;
  float* loss = nullptr;
};

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

}  // namespace meshwright
