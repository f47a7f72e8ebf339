/// AdamW updates of the parameter elements that a rank owns, with its state on the device or
/// offloaded to the host.
#pragma once

#include "executor/parameters/stage_parameters.hpp"
#include "executor/ranks/training_options.hpp"
#include "executor/training/gradient_norm.hpp"

namespace meshwright {

class OptimizerStep {
 public:
  /// All must outlive it. Gradients are scaled by the clip factor of `norm`.
  OptimizerStep(RankContext& rank, GradientNorm& norm, const TrainingOptions& options)
      : rank_(rank), norm_(norm), options_(options) {}

  /// Updates the owned elements within `range`; `updates` is the number of earlier updates.
  void update(StageParameters& parameters, bool expert, const Block& range, std::int64_t updates);
  void update_all(StageParameters& parameters, std::int64_t updates);
  /// With offloaded state: copies gradients to the host, or updated weights from it.
  void copy_with_host(ParameterRun& run, const Collective& collective);

 private:
  void update_by_gradient(ParameterRun& run, const Block& range, std::int64_t updates);
  void balance_experts(ParameterRun& run, const ParameterShard& shard, const Block& correction);
  double mean_rows_of(TensorId correction) const;

  RankContext& rank_;
  GradientNorm& norm_;
  const TrainingOptions& options_;
};

}  // namespace meshwright
