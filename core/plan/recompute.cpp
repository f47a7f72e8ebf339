#include "core/plan/recompute.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/base/number_from_text.hpp"
#include "core/base/split_at.hpp"
#include "core/base/value_named.hpp"

namespace meshwright {
namespace {

constexpr std::array<std::string_view, kRecomputeModuleCount> kModuleNames{
    "core_attn", "layernorm", "mla_up_proj", "moe_act", "mlp", "moe", "shared_experts"};
constexpr std::string_view kBlockPrefix = "block:", kModulesPrefix = "modules:";
/// By RecomputeKind; of blocks and modules, what a list follows.
constexpr std::array<std::string_view, 6> kKindTexts{
    "none", "selective", "full", kBlockPrefix, kModulesPrefix, "torch-selective"};
constexpr std::size_t kMostStagesInList = 1 << 16;

std::optional<Recompute> blocks_from_text(std::string_view text) {
  Recompute recompute{.kind = RecomputeKind::kBlocks};
  std::vector<int> counts;
  for (const std::string_view word : split_at_commas(text)) {
    const auto blocks = number_from_text<int>(word);
    if (!blocks || *blocks < 0 || counts.size() == kMostStagesInList) return std::nullopt;
    counts.push_back(*blocks);
  }
  if (counts.size() == 1)
    recompute.blocks = counts.front();
  else
    recompute.blocks_per_stage = std::move(counts);
  return recompute;
}

std::optional<Recompute> modules_from_text(std::string_view text) {
  Recompute recompute{.kind = RecomputeKind::kModules};
  for (const std::string_view word : split_at_commas(text)) {
    const auto known = std::find(kModuleNames.begin(), kModuleNames.end(), word);
    if (known == kModuleNames.end()) return std::nullopt;
    recompute.modules |= 1U << static_cast<unsigned>(known - kModuleNames.begin());
  }
  return recompute;
}

}  // namespace

std::string_view name_of(RecomputeModule module) {
  return kModuleNames[static_cast<std::size_t>(module)];
}

std::string to_text(const Recompute& recompute) {
  std::string text(entry_of(kKindTexts, recompute.kind));
  if (recompute.kind == RecomputeKind::kModules) {
    std::vector<std::string_view> names;
    for (int i = 0; i < kRecomputeModuleCount; ++i)
      if (const auto module = static_cast<RecomputeModule>(i); recompute.has(module))
        names.push_back(name_of(module));
    return text + fmt::format("{}", fmt::join(names, ","));
  }
  if (recompute.kind != RecomputeKind::kBlocks) return text;
  if (recompute.blocks_per_stage.empty()) return text + std::to_string(recompute.blocks);
  return text + fmt::format("{}", fmt::join(recompute.blocks_per_stage, ","));
}

std::optional<Recompute> recompute_from_text(std::string_view text) {
  for (const RecomputeKind kind : {RecomputeKind::kNone, RecomputeKind::kSelective,
                                   RecomputeKind::kFull, RecomputeKind::kTorchSelective})
    if (const Recompute named{.kind = kind}; text == to_text(named)) return named;
  if (text.starts_with(kBlockPrefix)) return blocks_from_text(text.substr(kBlockPrefix.size()));
  if (text.starts_with(kModulesPrefix))
    return modules_from_text(text.substr(kModulesPrefix.size()));
  return std::nullopt;
}

int recomputed_blocks(const Recompute& recompute, int part) {
  if (recompute.kind == RecomputeKind::kFull) return std::numeric_limits<int>::max();
  if (recompute.kind != RecomputeKind::kBlocks) return 0;
  const auto index = static_cast<std::size_t>(part);
  return index < recompute.blocks_per_stage.size() ? recompute.blocks_per_stage[index]
                                                   : recompute.blocks;
}

}  // namespace meshwright
