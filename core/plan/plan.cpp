#include "core/plan/plan.hpp"

namespace meshwright {

std::string_view name_of(AttentionAlgorithm algorithm) {
  return algorithm == AttentionAlgorithm::kFlash ? "flash" : "standard";
}

std::optional<AttentionAlgorithm> attention_from_name(std::string_view name) {
  if (name == "flash") return AttentionAlgorithm::kFlash;
  if (name == "standard") return AttentionAlgorithm::kStandard;
  return std::nullopt;
}

}  // namespace meshwright
