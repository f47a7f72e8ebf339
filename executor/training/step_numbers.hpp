/// Numbers of training steps and of the updates within them.
#pragma once

#include <optional>

#include "core/plan/weight_versions.hpp"

namespace meshwright {

/// The graph of a flushless schedule covers several steps, with micro-batches numbered across them;
/// any other graph covers one step.
class StepNumbers {
 public:
  StepNumbers(const Strategy& strategy, PipelineRankId device)
      : microbatches_(static_cast<int>(microbatch_count(strategy))) {
    if (updates_without_flush(strategy)) versions_ = weight_versions_of(strategy, device);
  }

  void begin(std::int64_t first_step) { first_ = first_step; }
  std::int64_t first() const { return first_; }  ///< training step number of the graph's first step
  /// Step within the graph; 0 for single-step graphs and outside of micro-batches.
  int in_graph(std::int32_t microbatch) const {
    return versions_ && microbatch >= 0 ? microbatch / microbatches_ : 0;
  }
  std::int64_t of(std::int32_t microbatch) const { return first_ + in_graph(microbatch); }
  /// Micro-batch number within its step.
  std::int64_t microbatch_in_step(std::int32_t microbatch) const {
    return microbatch - std::int64_t{in_graph(microbatch)} * microbatches_;
  }
  /// Set for flushless schedules only.
  const std::optional<WeightVersions>& versions() const { return versions_; }
  int updates_per_step() const {
    return versions_ ? microbatches_ / versions_->microbatches_per_batch : 1;
  }

 private:
  int microbatches_;  ///< per step
  std::optional<WeightVersions> versions_;
  std::int64_t first_ = 0;
};

}  // namespace meshwright
