#include "core/plan/plan.hpp"

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

std::string_view name_of(AttentionAlgorithm algorithm) {
  return algorithm == AttentionAlgorithm::kFlash ? "flash" : "standard";
}

std::optional<AttentionAlgorithm> attention_from_name(std::string_view name) {
  if (name == "flash") return AttentionAlgorithm::kFlash;
  if (name == "standard") return AttentionAlgorithm::kStandard;
  return std::nullopt;
}

}  // namespace meshwright
