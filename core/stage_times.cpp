#include "core/stage_times.hpp"

#include "core/check.hpp"

namespace meshwright {

StageTimes uniform_times(int stages, Ticks forward, Ticks backward_input, Ticks backward_weight) {
  MW_CHECK(stages >= 0);
  const auto count = static_cast<std::size_t>(stages);
  return {.forward = std::vector<Ticks>(count, forward),
          .backward_input = std::vector<Ticks>(count, backward_input),
          .backward_weight = std::vector<Ticks>(count, backward_weight),
          .latency = {},
          .link_occupancy = {},
          .overlapped_pair = {}};
}

}  // namespace meshwright
