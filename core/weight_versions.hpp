/// Schedules without a flush: which version of the weights each micro-batch meets, and which
/// micro-batches make a new one.
///
///   pipedream      (Narayanan et al., SOSP 2019, arXiv:1806.03377, section 3.3) a stage updates
///                  behind every backward pass. A micro-batch goes forward with the newest weights
///                  of the stage and backward with the same ones, which are stashed meanwhile. With
///                  n stages, w_k the weights of stage k = 1..n, t updates done:
///                    w(t+1) = w(t) - nu * grad f(w_1(t-n+1), w_2(t-n+2), ..., w_n(t))
///   pipedream-2bw  (Narayanan et al., arXiv:2006.09503, section 3.1) gradients of the m >= n
///                  micro-batches of a step are summed, all stages are one update behind:
///                    W(t+1) = W(t) - nu * grad f(W(t-1))
///
/// Both are one rule. Micro-batches are counted through all steps; those that make one update are a
/// *batch*. Batch t passes a stage that holds V versions with version max(0, t - (V - 1)), and its
/// update makes version t + 1 of version t. Version t + 1 takes the place of version t + 1 - V,
/// which batch t was the last to use.
///
/// A step of such a schedule does not stand alone: the first forward passes of the next step come
/// before its own last backward passes. A task graph therefore covers a window of several steps,
/// from an empty pipeline to an empty one, its micro-batches counted on: the simulator reads one
/// step off it in the steady state, the executor trains through a window as long as its run. A
/// graph of one step with loose ends would have had sends without receives, and no dependencies
/// across its borders; one step from empty to empty would have been a flush.
///
/// The norm that gradients are clipped by is that of one stage: to know that of all would be a
/// flush.
#pragma once

#include <vector>

#include "core/error.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "core/schedule.hpp"

namespace meshwright {

/// False for names that are no schedule's.
bool updates_without_flush(const Strategy& strategy);

/// Of one pipeline position under a schedule without a flush.
struct WeightVersions {
  int held = 1;                    ///< V
  int microbatches_per_batch = 1;  ///< those that make one update
  int batch_of(int microbatch) const { return microbatch / microbatches_per_batch; }
  int version_for(int microbatch) const {
    const int version = batch_of(microbatch) - (held - 1);
    return version > 0 ? version : 0;
  }
  bool completes_batch(int microbatch) const {
    return (microbatch + 1) % microbatches_per_batch == 0;
  }
  friend bool operator==(const WeightVersions&, const WeightVersions&) = default;
};
WeightVersions weight_versions_of(const Strategy& strategy, PipelineRankId device);

/// The last of `covered_steps()` steps that has the passes of a full pipeline on every rank: those
/// behind it bring the forward passes that fall into it. In front of it are the steps in which the
/// pipeline fills, and enough micro-batches for its slowest stage to set the pace.
struct SteadyWindow {
  int steps = 1;   ///< of the graph
  int steady = 0;  ///< the number of the step to measure, counted from 0
  friend bool operator==(const SteadyWindow&, const SteadyWindow&) = default;
};
SteadyWindow steady_window(const Strategy& strategy);

/// The order of work that lower() makes a graph of: schedule_of(), or that of `steps` steps without
/// a flush (0: as many as the steady window has). InputError if they are more than can be ordered.
Schedule schedule_to_lower(const Plan& plan, int steps = 0);

/// What does not go with a schedule without a flush, each with the flag (without dashes) as its
/// place. Empty for others.
std::vector<Diagnostic> without_flush_problems(const Plan& plan, const ModelGraph& model);

}  // namespace meshwright
