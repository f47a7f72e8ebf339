/// The parallel sizes of a plan as a table: a new one is a row here and a member of
/// ParallelDegrees.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "core/base/kernel.hpp"
#include "core/plan/plan.hpp"

namespace meshwright {

struct ParallelSize {
  std::string_view key;        ///< in plan files; the flag without dashes
  int ParallelDegrees::*size;  ///< 1: not parallel
  std::optional<Axis> axis{};  ///< whose communication it causes; none: a size within another axis
};

/// In the order of plan files.
inline constexpr std::array kParallelSizes{
    ParallelSize{"tp", &ParallelDegrees::tensor, Axis::kTensor},
    ParallelSize{"pp", &ParallelDegrees::pipeline, Axis::kPipeline},
    ParallelSize{"vpp", &ParallelDegrees::chunks},
    ParallelSize{"dp", &ParallelDegrees::data, Axis::kData},
    ParallelSize{"cp", &ParallelDegrees::context, Axis::kContext},
    ParallelSize{"ep", &ParallelDegrees::expert, Axis::kExpert},
    ParallelSize{"etp", &ParallelDegrees::expert_tensor},
};

constexpr int size_along(const ParallelDegrees& degrees, Axis axis) {
  for (const ParallelSize& size : kParallelSizes)
    if (size.axis == axis) return degrees.*size.size;
  return 1;
}
static_assert(size_along({.data = 2, .context = 4}, Axis::kContext) == 4);

}  // namespace meshwright
