#include "core/plan/optimizer.hpp"

#include "core/base/value_named.hpp"

namespace meshwright {

std::string_view name_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kAdamW:
      return "adamw";
    case OptimizerKind::kSgd:
      return "sgd";
    case OptimizerKind::kMuon:
      break;
  }
  return "muon";
}

std::optional<OptimizerKind> optimizer_from_name(std::string_view name) {
  return value_named<OptimizerKind>(name, kOptimizerKindCount);
}

}  // namespace meshwright
