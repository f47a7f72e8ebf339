#include "core/plan.hpp"

#include <fmt/format.h>

#include <charconv>

namespace meshwright {

// ---- ranks ----------------------------------------------------------------------------------

RankStrides strides_of(const ParallelDegrees& d, const RankOrder& order) {
  const std::int64_t stage_ranks = std::int64_t{d.tensor} * d.context * d.data;
  RankStrides strides;
  std::int64_t dense = 1, expert = 1;
  for (const Axis axis : order.axes) switch (axis) {
      case Axis::kTensor:
        strides.tensor = dense, dense *= d.tensor;
        strides.expert_tensor = expert, expert *= d.expert_tensor;
        break;
      case Axis::kContext:
        strides.context = dense, dense *= d.context;
        break;
      case Axis::kExpert:
        strides.expert = expert, expert *= d.expert;
        break;
      case Axis::kData:
        strides.data = dense, dense *= d.data;
        strides.expert_data = expert,
        expert *= stage_ranks / (std::int64_t{d.expert} * d.expert_tensor);
        break;
      case Axis::kPipeline:
        strides.pipeline = dense, dense *= d.pipeline;
        strides.expert_pipeline = expert, expert *= d.pipeline;
        break;
    }
  return strides;
}

RankId rank_at(const ParallelDegrees& degrees, const RankCoordinate& c, const RankOrder& order) {
  const RankStrides s = strides_of(degrees, order);
  return RankId(static_cast<std::int32_t>(c.pipeline * s.pipeline + c.data * s.data +
                                          c.context * s.context + c.tensor * s.tensor));
}

RankCoordinate coordinate_of(const ParallelDegrees& d, RankId rank, const RankOrder& order) {
  const RankStrides s = strides_of(d, order);
  const auto along = [&](std::int64_t stride, int degree) {
    return static_cast<int>(rank.value / stride % degree);
  };
  return {.pipeline = along(s.pipeline, d.pipeline),
          .data = along(s.data, d.data),
          .context = along(s.context, d.context),
          .tensor = along(s.tensor, d.tensor)};
}

// ---- words ----------------------------------------------------------------------------------

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
