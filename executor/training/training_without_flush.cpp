// Flushless training over several steps: the weight version of each pass, and updates between
// passes (core/plan/weight_versions.hpp). Gradients are clipped by the norm of this stage only.
#include "core/base/check.hpp"
#include "executor/training/training_actions.hpp"

namespace meshwright {

/// 0 for single-step graphs and outside of micro-batches.
int TrainingActions::step_in_graph(int microbatch) const {
  if (!versions_ || microbatch < 0) return 0;
  return static_cast<int>(microbatch / microbatch_count(rank_.strategy));
}

void TrainingActions::use_weights_for(const Task& task) {
  StageParameters& parameters = *stage_of(task).parameters;
  for (const bool expert : {false, true})
    parameters.run(expert).use_version(versions_->version_for(task.microbatch));
}

/// After the last backward pass of a batch, when its micro-batches are no longer needed.
void TrainingActions::update_without_flush(const Task& task) {
  Stage& stage = stage_of(task);
  RankGroup alone(rank_.communicator, {rank_.rank}, {});
  reduce_norm(alone, Ticks());
  const int batch = versions_->batch_of(task.microbatch);
  const int batches_per_step =
      static_cast<int>(microbatch_count(rank_.strategy) / versions_->microbatches_per_batch);
  // AdamW counts updates.
  const std::int64_t step = std::exchange(step_, step_ * batches_per_step + batch);
  for (const bool expert : {false, true}) {
    ParameterRun& run = stage.parameters->run(expert);
    run.begin_version(batch + 1);
    update(*stage.parameters, expert, {0, run.elements()});
  }
  step_ = step;
  stage.parameters->clear_gradients();
  rows_.erase(rows_.begin(), rows_.upper_bound(task.microbatch));
  stage.microbatches.erase(stage.microbatches.begin(),
                           stage.microbatches.upper_bound(task.microbatch));
}

}  // namespace meshwright
