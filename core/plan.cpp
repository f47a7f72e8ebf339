#include "core/plan.hpp"

#include <fmt/format.h>

#include <charconv>

namespace meshwright {

std::string to_text(const Recompute& recompute) {
  switch (recompute.kind) {
    case RecomputeKind::kNone:
      return "none";
    case RecomputeKind::kSelective:
      return "selective";
    case RecomputeKind::kFull:
      return "full";
    case RecomputeKind::kBlocks:
      break;
  }
  return fmt::format("block:{}", recompute.blocks);
}

std::optional<Recompute> recompute_from_text(std::string_view text) {
  if (text == "none") return Recompute{};
  if (text == "selective") return Recompute{.kind = RecomputeKind::kSelective, .blocks = 0};
  if (text == "full") return Recompute{.kind = RecomputeKind::kFull, .blocks = 0};
  constexpr std::string_view kPrefix = "block:";
  if (!text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  int blocks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), blocks);
  if (error != std::errc{} || end != text.data() + text.size() || blocks < 0) return std::nullopt;
  return Recompute{.kind = RecomputeKind::kBlocks, .blocks = blocks};
}

std::string_view name_of(AttentionAlgorithm algorithm) {
  return algorithm == AttentionAlgorithm::kFlash ? "flash" : "standard";
}

std::optional<AttentionAlgorithm> attention_from_name(std::string_view name) {
  if (name == "flash") return AttentionAlgorithm::kFlash;
  if (name == "standard") return AttentionAlgorithm::kStandard;
  return std::nullopt;
}

}  // namespace meshwright
