#include "core/plan/plan.hpp"

#include "core/base/value_named.hpp"

namespace meshwright {

std::string_view name_of(AttentionAlgorithm algorithm) {
  return algorithm == AttentionAlgorithm::kFlash ? "flash" : "standard";
}

std::optional<AttentionAlgorithm> attention_from_name(std::string_view name) {
  return value_named<AttentionAlgorithm>(name, kAttentionAlgorithmCount);
}

}  // namespace meshwright
