/// The optimizer of a training: what state it keeps per parameter.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace meshwright {

enum class OptimizerKind : std::uint8_t {
  kAdamW,
  kSgd,  ///< with momentum
  /// Matrices of blocks: momentum, orthogonalized by Newton-Schulz iterations (Jordan et al.,
  /// 2024). All other parameters: AdamW.
  kMuon
};
inline constexpr int kOptimizerKindCount = 3;
std::string_view name_of(OptimizerKind kind);  ///< "adamw", "sgd", "muon"
std::optional<OptimizerKind> optimizer_from_name(std::string_view name);

/// fp32 values per parameter besides the weight: momentum, and the second moment of AdamW. The
/// buffers of Muon have both for all parameters, though matrices do not use the second.
constexpr int moment_count(OptimizerKind kind) { return kind == OptimizerKind::kSgd ? 1 : 2; }

}  // namespace meshwright
