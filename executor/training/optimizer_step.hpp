/// AdamW, SGD and Muon updates of the parameter elements that a rank owns, with its state on the
/// device or offloaded to the host.
#pragma once

#include "executor/parameters/stage_parameters.hpp"
#include "executor/ranks/training_options.hpp"
#include "executor/training/gradient_norm.hpp"
#include "executor/training/muon.hpp"

namespace meshwright {

struct UpdateNumber {
  std::int64_t step = 0;     ///< training step, for the learning rate
  std::int64_t earlier = 0;  ///< earlier updates, for the bias correction of AdamW
};

class OptimizerStep {
 public:
  /// All must outlive it. Gradients are scaled by the clip factor of `norm`.
  OptimizerStep(RankContext& rank, GradientNorm& norm, const TrainingOptions& options)
      : rank_(rank), norm_(norm), options_(options), muon_(rank, options) {}

  /// Updates the owned elements within `range`.
  void update(StageParameters& parameters, bool expert, const Block& range,
              const UpdateNumber& number);
  void update_all(StageParameters& parameters, const UpdateNumber& number);
  /// With offloaded state: copies gradients to the host, or updated weights from it.
  void copy_with_host(ParameterRun& run, const Collective& collective);

 private:
  /// The elements of an update that have the same rule.
  struct GradientUpdate {
    Block range;
    float weight_decay = 0;
    UpdateNumber number;
  };
  void update_by_gradient(ParameterRun& run, const GradientUpdate& update);
  void update_by_muon(ParameterRun& run, const ParameterShard& shard, std::int64_t step);
  float weight_decay_of(const ParameterShard& shard) const;
  void balance_experts(ParameterRun& run, const ParameterShard& shard, const Block& correction);
  double mean_rows_of(TensorId correction) const;

  RankContext& rank_;
  GradientNorm& norm_;
  const TrainingOptions& options_;
  Muon muon_;
};

}  // namespace meshwright
